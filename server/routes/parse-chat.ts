/** Unknown JSON becomes a checked request; every 400 about a body or socket message is written here. */

import type { RunRequest } from "../agent/runner.ts";
import { readState, type StateBinding } from "../agent/state.ts";
import { invalidRequest } from "../protocol/api-error.ts";
import type { ConversationState } from "../protocol/chat.ts";
import { type AttachmentRules, parseAttachments } from "./parse-attachments.ts";

export interface ChatRules {
  state: StateBinding;
  attachments: AttachmentRules;
}

/** Deepest nesting of arrays and objects that is looked at: what reads a body walks it recursively. */
const MAX_DEPTH = 64;

/** Parses the body of `POST /api/chat`. Unknown fields are ignored. @throws ApiError */
export function parseChat(
  body: unknown,
  rules: ChatRules,
): { stream: boolean; request: RunRequest } {
  const fields = asFields(body);
  const { message, stream } = fields;
  if (typeof message !== "string") throw invalidRequest("/message", "message must be a string.");
  if (typeof stream !== "boolean") throw invalidRequest("/stream", "stream must be true or false.");
  return { stream, request: parseMessage(message, fields.state, fields.attachments, rules) };
}

/** A parsed socket message. */
export type SocketCommand =
  | { type: "clear" }
  | { type: "stop" }
  | { type: "chat"; request: RunRequest };

/**
 * Parses one text frame. `state` wins over `previous_response_id`; a message with neither continues from
 * `remembered`, the state that the socket handed out last. @throws ApiError
 */
export function parseSocketMessage(
  body: unknown,
  remembered: ConversationState,
  rules: ChatRules,
): SocketCommand {
  const fields = asFields(body);
  const { type, message, previous_response_id: responseId } = fields;
  if (type === "clear" || type === "stop") return { type };
  if (typeof message !== "string") {
    throw invalidRequest("/message", 'message must be a string, unless type is "clear" or "stop".');
  }
  if (isGiven(responseId) && typeof responseId !== "string") {
    throw invalidRequest("/previous_response_id", "previous_response_id must be a string.");
  }
  const continued = isGiven(responseId) ? { previous_response_id: responseId } : remembered;
  const state = isGiven(fields.state) ? fields.state : continued;
  return { type: "chat", request: parseMessage(message, state, fields.attachments, rules) };
}

function parseMessage(
  message: string,
  state: unknown,
  attachments: unknown,
  rules: ChatRules,
): RunRequest {
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

function asFields(body: unknown): Record<string, unknown> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("", "The message must be a JSON object.");
  }
  refuseDeepNesting(body);
  // Own fields only: what a body inherits is not what the client sent.
  return Object.assign(Object.create(null), body);
}

function refuseDeepNesting(body: object): void {
  let level: object[] = [body];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) {
      throw invalidRequest("", `The message is nested deeper than ${MAX_DEPTH} levels.`);
    }
    level = level.flatMap((node) => Object.values(node).filter(isNode));
  }
}

function isNode(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** `null` for an optional field means absent. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
