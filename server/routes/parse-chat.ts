/** Unknown JSON becomes a checked request; every 400 about a body or socket message is written here. */

import type { HistoryLimits } from "../agent/history-size.ts";
import type { RunRequest } from "../agent/runner.ts";
import { readState, type StateBinding } from "../agent/state.ts";
import type { JsonLimits } from "../http/parse-json.ts";
import { ApiError, invalidRequest } from "../protocol/api-error.ts";
import { isRecord } from "../protocol/is-record.ts";
import { type AttachmentRules, parseAttachments } from "./parse-attachments.ts";
import { parseAfter, parseRunId } from "./parse-run.ts";
import { type Remembered, readRemembered } from "./remembered-state.ts";

/** How large the parts of one message may be. */
export interface MessageLimits extends HistoryLimits, JsonLimits {
  /** Longest text of a message, in UTF-16 units. */
  readonly maxMessageChars: number;
}

/** Plain data: it can be handed to another thread. */
export interface ChatRules {
  readonly state: StateBinding;
  readonly attachments: AttachmentRules;
  readonly limits: MessageLimits;
}

/** Parses the body of `POST /api/chat`. Unknown fields are ignored. @throws ApiError */
export function parseChat(
  body: unknown,
  rules: ChatRules,
): { stream: boolean; run: string | undefined; request: RunRequest } {
  const fields = asFields(body);
  const { message, stream } = fields;
  if (typeof message !== "string") throw invalidRequest("/message", "message must be a string.");
  if (typeof stream !== "boolean") throw invalidRequest("/stream", "stream must be true or false.");
  const run = parseRunId(fields.run);
  return { stream, run, request: parseMessage(message, fields.state, fields.attachments, rules) };
}

/** A parsed socket message. */
export type SocketCommand =
  | { type: "clear" }
  | { type: "stop" }
  | { type: "resume"; run: string; after: number }
  | { type: "chat"; run: string | undefined; request: RunRequest };

/**
 * Parses one text frame. `state` wins over `previous_response_id`; a message with neither continues from
 * `remembered`, the state that the socket handed out last. @throws ApiError
 */
export function parseSocketMessage(body: unknown, remembered: Remembered, rules: ChatRules): SocketCommand {
  const fields = asFields(body);
  const { type, message, previous_response_id: responseId } = fields;
  if (type === "clear" || type === "stop") return { type };
  const run = parseRunId(fields.run);
  if (type === "resume") {
    if (run === undefined) throw invalidRequest("/run", "run must name the run to resume.");
    return { type, run, after: parseAfter(fields.after) };
  }
  if (typeof message !== "string") {
    throw invalidRequest("/message", 'message must be a string, unless type is "clear", "stop" or "resume".');
  }
  if (isGiven(responseId) && typeof responseId !== "string") {
    throw invalidRequest("/previous_response_id", "previous_response_id must be a string.");
  }
  const state = continuesRemembered(body)
    ? readRemembered(remembered)
    : (fields.state ?? { previous_response_id: responseId });
  return { type: "chat", run, request: parseMessage(message, state, fields.attachments, rules) };
}

/** Whether a socket message is a chat message that names no state. @throws ApiError */
export function continuesRemembered(body: unknown): boolean {
  const { message, state, previous_response_id: responseId } = asFields(body);
  return isGiven(message) && !isGiven(state) && !isGiven(responseId);
}

function parseMessage(message: string, state: unknown, attachments: unknown, rules: ChatRules): RunRequest {
  const { maxMessageChars } = rules.limits;
  if (message.length > maxMessageChars) {
    throw new ApiError(
      "request_too_large",
      `message is longer than the ${maxMessageChars} characters that are allowed.`,
      { param: "/message" },
    );
  }
  const files = parseAttachments(attachments, rules.attachments);
  if (message.trim() === "" && files.length === 0) {
    throw invalidRequest("/message", "message must not be empty, unless a file is attached.");
  }
  return {
    // A lone surrogate cannot be sent on as UTF-8.
    message: message.toWellFormed(),
    attachments: files,
    state: readState(state, rules.state),
  };
}

/** All that is read of a message. */
const FIELDS = ["type", "message", "stream", "run", "after", "state", "previous_response_id", "attachments"] as const;

function asFields(body: unknown): Partial<Record<(typeof FIELDS)[number], unknown>> {
  if (!isRecord(body)) {
    throw invalidRequest("", "The message must be a JSON object.");
  }
  // Own fields only: what a body inherits is not what the client sent. And no others: a message may hold any number.
  const own = FIELDS.filter((name) => Object.hasOwn(body, name));
  return Object.fromEntries(own.map((name) => [name, body[name]]));
}

/** `null` for an optional field means absent. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
