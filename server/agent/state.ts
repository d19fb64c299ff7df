/** The conversation's state on its way to and from a client, which is not trusted. */

import { createHmac, timingSafeEqual } from "node:crypto";
import type { ConversationState, StateKind } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { checkHistory, type HistoryLimits } from "./check-history.ts";

/** What a state belongs to: it continues no conversation with another agent or provider. Plain data, for a worker thread. */
export interface StateBinding {
  readonly kind: StateKind;
  readonly agent: string;
  /** Id of the provider. */
  readonly provider: string;
  /** The first signs, all verify; empty: states are not signed. */
  readonly secrets: readonly string[];
  readonly limits: HistoryLimits;
}

const NEW_CONVERSATION: ConversationState = {};

/** @throws ApiError `invalid_state`, or `invalid_request` if the state is no object at all */
export function readState(value: unknown, binding: StateBinding): ConversationState {
  if (value === undefined || value === null) return NEW_CONVERSATION;
  if (!isRecord(value)) {
    throw new ApiError("invalid_request", "state must be an object.", { param: "/state" });
  }
  const { kind } = binding;
  const other: StateKind = kind === "previous_response_id" ? "conversation_history" : "previous_response_id";
  if (value[kind] === undefined || value[other] !== undefined) {
    if (Object.keys(value).length === 0) return NEW_CONVERSATION;
    throw invalidState("/state", `state must be as this server returned it: {} or an object with ${kind}.`);
  }
  return kind === "previous_response_id"
    ? readResponseId(value[kind], binding)
    : readHistory(value[kind], value.signature, binding);
}

function readResponseId(value: unknown, binding: StateBinding): ConversationState {
  const param = "/state/previous_response_id";
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,512}$/.test(value)) {
    throw invalidState(param, "previous_response_id must be a string that this server returned.");
  }
  if (binding.secrets.length === 0) return { previous_response_id: value };
  const dot = value.lastIndexOf(".");
  const id = value.slice(0, Math.max(dot, 0));
  if (id === "" || !isSigned(id, value.slice(dot + 1), binding)) throw altered(param);
  return { previous_response_id: id };
}

function readHistory(value: unknown, signature: unknown, binding: StateBinding): ConversationState {
  const history = checkHistory(value, binding.limits);
  if (history.length === 0) return NEW_CONVERSATION;
  if (binding.secrets.length > 0) {
    const given = typeof signature === "string" ? signature : "";
    // The value as it was sent: a field that was added to it makes it another one.
    if (!isSigned(canonicalJson(value), given, binding)) throw altered("/state");
  }
  return { conversation_history: history };
}

/** The state as the client gets it: signed, where the server signs. */
export function sealState(state: ConversationState, binding: StateBinding): ConversationState {
  const [secret] = binding.secrets;
  const { previous_response_id: id, conversation_history: history } = state;
  if (secret === undefined) return state;
  if (id !== undefined) return { previous_response_id: `${id}.${sign(id, secret, binding)}` };
  if (history === undefined) return state;
  return { conversation_history: history, signature: sign(canonicalJson(history), secret, binding) };
}

function isSigned(text: string, signature: string, binding: StateBinding): boolean {
  const given = Buffer.from(signature);
  return binding.secrets.some((secret) => {
    const right = Buffer.from(sign(text, secret, binding));
    return right.length === given.length && timingSafeEqual(right, given);
  });
}

function sign(text: string, secret: string, { agent, provider }: StateBinding): string {
  const bound = JSON.stringify(["parley-state-1", agent, provider, text]);
  return createHmac("sha256", secret).update(bound).digest("base64url");
}

/** Clients may store a state in something that sorts keys, so the order of keys is not signed. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    isRecord(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}

function altered(param: string): ApiError {
  return invalidState(param, "state was not signed by this server, or it was altered.");
}

function invalidState(param: string, message: string): ApiError {
  return new ApiError("invalid_state", message, { param });
}
