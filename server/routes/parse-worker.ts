/** The thread that reads large messages, so that running answers do not stall meanwhile. */

import { parentPort } from "node:worker_threads";
import { InvalidUtf8, parseJson } from "../http/parse-json.ts";
import { ApiError, type ApiErrorOptions } from "../protocol/api-error.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import { type ChatRules, parseChat, parseSocketMessage } from "./parse-chat.ts";
import type { Remembered } from "./remembered-state.ts";

/** One message to read. Its blocks are moved, not copied. */
export interface ParseJob {
  readonly blocks: readonly Uint8Array[];
  /** Of a socket message: what the socket remembers. Absent for a body. */
  readonly remembered: Remembered | undefined;
  readonly rules: ChatRules;
}

/** What came of it. An exception does not survive the way between threads whole, so it goes in parts. */
export type ParseOutcome =
  | { ok: true; value: unknown }
  | { ok: false; code: ErrorCode; message: string; options: ApiErrorOptions }
  | { ok: false; invalidUtf8: true }
  | { ok: false; bug: string };

/** Only in a worker: the server imports the types alone. */
parentPort?.on("message", (job: ParseJob) => parentPort?.postMessage(outcomeOf(job)));

function outcomeOf({ blocks, remembered, rules }: ParseJob): ParseOutcome {
  try {
    const body = parseJson(joined(blocks), rules.limits);
    const value = remembered === undefined ? parseChat(body, rules) : parseSocketMessage(body, remembered, rules);
    return { ok: true, value };
  } catch (error) {
    if (error instanceof InvalidUtf8) return { ok: false, invalidUtf8: true };
    if (!(error instanceof ApiError)) return { ok: false, bug: String(error) };
    const { code, message, param } = error;
    return { ok: false, code, message, options: param === undefined ? {} : { param } };
  }
}

/** One block, as a message of a socket is, is read where it lies. */
function joined(blocks: readonly Uint8Array[]): Buffer {
  const [first, ...others] = blocks;
  if (first === undefined || others.length > 0) return Buffer.concat(blocks);
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
}
