/** The thread that parses large messages, so that running answers continue meanwhile. */

import { parentPort } from "node:worker_threads";
import { loadParser } from "../doors/index.ts";
import { ApiError } from "../protocol/errors.ts";
import type { ParseJob, ParseOutcome } from "./message.ts";
import { parseJson } from "./parse-json.ts";
import { PARSERS } from "./parse-message.ts";

async function parse({ parser, bytes, rules, remembered }: ParseJob): Promise<unknown> {
  await loadParser(parser);
  return PARSERS[parser](parseJson(bytes, rules.maxJsonDepth), rules, remembered);
}

async function outcomeOf(job: ParseJob): Promise<ParseOutcome> {
  try {
    return { type: "parsed", value: await parse(job) };
  } catch (error) {
    if (!(error instanceof ApiError)) return { type: "bug", text: String(error) };
    const { code, message, param } = error;
    return { type: "refused", code, message, options: param === undefined ? {} : { param } };
  }
}

parentPort?.on("message", async (job: ParseJob) => parentPort?.postMessage(await outcomeOf(job)));
