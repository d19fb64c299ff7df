/** Hooks: functions of an agent that decide on messages and answers, or get them afterwards. */

import { Late, within } from "../config/within.ts";
import type { AttachedFile } from "../observe/run-observer.ts";
import { decodedBytes, type ReceivedFile } from "../protocol/attachments.ts";
import { ApiError } from "../protocol/errors.ts";
import type { RunContext } from "./run-context.ts";
import type { RunRecord } from "./run-record.ts";

/** A rating of an answer, as `onFeedback` gets it. `user` is verified; `run` and `conversation` are not. */
export interface Feedback extends Pick<RunContext, "user" | "metadata"> {
  /** Id of the run that gave the answer. A client may send the id of another user's run: join by run and user. */
  readonly run: string;
  readonly conversation: string | undefined;
  /** `null` withdraws an earlier rating. */
  readonly rating: "up" | "down" | null;
  /** A reason that the chat element offers, or one of another client; up to 200 characters. */
  readonly reason: string | undefined;
  /** Up to 4,000 characters. */
  readonly comment: string | undefined;
}

/** The message that `onMessage` decides on. */
export interface IncomingMessage {
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
}

/** Ends the run with this sentence in place of an answer. */
export interface Refusal {
  refuse: string;
}

/** Replaces the text of the user's message. */
export interface Replacement {
  message: string;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a hook may have no `return` at all.
type Nothing = void | undefined;

/** Functions that an agent's author may define for messages and answers. */
export interface Hooks {
  /** Gets each message with its answer, after the last event. No answer waits for it. */
  onRunEnd?(record: RunRecord): unknown;
  /** Gets each rating of `POST /api/feedback`, which exists only with this hook. No response waits for it. */
  onFeedback?(feedback: Feedback): unknown;
  /** Decides on a message before the model is asked: lets it pass, refuses it, or replaces its text. */
  onMessage?(
    incoming: IncomingMessage,
    ctx: RunContext,
  ): Nothing | Refusal | Replacement | Promise<Nothing | Refusal | Replacement>;
  /** Decides on an answer before clients get any of its text: lets it pass, or refuses it. */
  onAnswer?(outgoing: { readonly answer: string }, ctx: RunContext): Nothing | Refusal | Promise<Nothing | Refusal>;
}

/** How long a hook may take, in milliseconds. */
export const HOOK_MS = 10_000;

/** Clients get a server error; `detail` and `cause` tell the log what the author's function did. */
export function hookFailure(name: string, cause: unknown): ApiError {
  const isLate = cause instanceof Late;
  return new ApiError("internal", "Something went wrong on the server. Please try again.", {
    detail: isLate ? `${name} ${cause.message}` : `${name} failed`,
    cause: isLate ? undefined : cause,
  });
}

/**
 * Calls a function of the author. If it throws or is late, that is a server error.
 * @throws ApiError `internal`, or the reason of an abort
 */
export async function askAuthor<Value>(
  name: string,
  ask: (context: RunContext) => Value | PromiseLike<Value>,
  context: RunContext,
  maxMs: number,
): Promise<Value> {
  try {
    return await within((signal) => ask({ ...context, signal }), maxMs, context.signal);
  } catch (error) {
    context.signal.throwIfAborted();
    throw hookFailure(name, error);
  }
}

export function describeFile({ name, mime_type: mimeType, url, text }: ReceivedFile): AttachedFile {
  const bytes = text === undefined ? decodedBytes(url.slice(url.indexOf(",") + 1)) : Buffer.byteLength(text);
  return { name, mimeType, bytes };
}
