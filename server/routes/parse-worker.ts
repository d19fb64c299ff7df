/** The thread that parses large messages, so that running answers go on meanwhile. */

import { parentPort } from "node:worker_threads";
import { ApiError, type ApiErrorOptions, type ErrorCode } from "../protocol/errors.ts";
import { parseJson } from "./parse-json.ts";
import { type MessageRules, PARSERS, type ParserName, type RememberedState } from "./parse-message.ts";

/** One message to parse. Its bytes are moved to the thread, not copied. */
export interface ParseJob {
  readonly parser: ParserName;
  readonly bytes: Uint8Array;
  readonly rules: MessageRules;
  /** What a socket continues from; empty for a body. */
  readonly remembered: RememberedState;
}

/** An exception does not survive the way between threads whole, so it goes in parts. */
export type ParseOutcome =
  | { type: "parsed"; value: unknown }
  | { type: "refused"; code: ErrorCode; message: string; options: ApiErrorOptions }
  | { type: "bug"; text: string };

function parse({ parser, bytes, rules, remembered }: ParseJob): unknown {
  return PARSERS[parser](parseJson(bytes, rules.maxJsonDepth), rules, remembered);
}

function outcomeOf(job: ParseJob): ParseOutcome {
  try {
    return { type: "parsed", value: parse(job) };
  } catch (error) {
    if (!(error instanceof ApiError)) return { type: "bug", text: String(error) };
    const { code, message, param } = error;
    return { type: "refused", code, message, options: param === undefined ? {} : { param } };
  }
}

parentPort?.on("message", (job: ParseJob) => parentPort?.postMessage(outcomeOf(job)));
