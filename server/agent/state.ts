/** The conversation's state on its way to and from a client, which is not trusted. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { ConversationState, StateKind } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { checkHistory, type HistoryLimits } from "./check-history.ts";

/** What a state belongs to: it continues no conversation with another agent or provider. Plain data, for a worker thread. */
export interface StateBinding {
  readonly kind: StateKind;
  /** Id of the agent. */
  readonly agent: string;
  /** Id of the provider. */
  readonly provider: string;
  /** Id of the user whose conversation it is; `undefined` if the user is not known. */
  readonly user: string | undefined;
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
  const conversation = readConversation(value.conversation);
  const state =
    kind === "previous_response_id"
      ? readResponseId(value[kind], conversation, binding)
      : readHistory(value[kind], value.signature, conversation, binding);
  return withConversation(state, state.conversation ?? conversation);
}

/** As `randomUUID` makes it: without a dot, which parts a signed id. */
const CONVERSATION = /^[A-Za-z0-9_-]{16,64}$/;

function readConversation(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && CONVERSATION.test(value)) return value;
  throw invalidState("/state/conversation", "conversation must be a string that this server returned.");
}

function withConversation(state: ConversationState, conversation: string | undefined): ConversationState {
  const isNew = state.previous_response_id === undefined && state.conversation_history === undefined;
  return isNew || conversation === undefined ? state : { ...state, conversation };
}

function readResponseId(value: unknown, beside: string | undefined, binding: StateBinding): ConversationState {
  const param = "/state/previous_response_id";
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,512}$/.test(value)) {
    throw invalidState(param, "previous_response_id must be a string that this server returned.");
  }
  if (binding.secrets.length === 0) return { previous_response_id: value };
  const [, id, conversation, signature = ""] = /^(.+)\.([\w-]+)\.([\w-]+)$/.exec(value) ?? [];
  if (id === undefined || conversation === undefined) throw altered(param);
  if (!isSigned(id, signature, conversation, binding)) throw altered(param);
  if (beside !== undefined && beside !== conversation) throw altered("/state/conversation");
  return { previous_response_id: id, conversation };
}

function readHistory(
  value: unknown,
  signature: unknown,
  conversation: string | undefined,
  binding: StateBinding,
): ConversationState {
  const history = checkHistory(value, binding.limits);
  if (history.length === 0) return NEW_CONVERSATION;
  if (binding.secrets.length > 0) {
    const given = typeof signature === "string" ? signature : "";
    // The value as it was sent: a field that was added to it makes it another one.
    if (!isSigned(value, given, conversation, binding)) throw altered("/state");
  }
  return { conversation_history: history };
}

/** The state as the client gets it: signed, where the server signs. A state that continues nothing is empty. */
export function sealState(state: ConversationState, conversation: string, binding: StateBinding): ConversationState {
  const [secret] = binding.secrets;
  const { previous_response_id: id, conversation_history: history } = state;
  const signatureOf = (value: unknown) => secret && sign(digestOf(value), secret, conversation, binding);
  if (id !== undefined) {
    const signature = signatureOf(id);
    return { previous_response_id: signature ? `${id}.${conversation}.${signature}` : id, conversation };
  }
  if (history === undefined) return NEW_CONVERSATION;
  const signature = signatureOf(history);
  return { conversation_history: history, conversation, ...(signature ? { signature } : {}) };
}

/** A conversation that nobody has begun may be continued by a user, and is theirs from then on. */
function isSigned(value: unknown, signature: string, conversation: string | undefined, binding: StateBinding): boolean {
  const digest = digestOf(value);
  const given = Buffer.from(signature);
  const owners = binding.user === undefined ? [binding] : [binding, { ...binding, user: undefined }];
  const known = binding.secrets.flatMap((secret) => owners.map((owner) => sign(digest, secret, conversation, owner)));
  return known.some((right) => right.length === given.length && timingSafeEqual(Buffer.from(right), given));
}

/** The array begins with the purpose: no other use of the secret signs the same text. */
function sign(
  digest: string,
  secret: string,
  conversation: string | undefined,
  { agent, provider, user }: StateBinding,
): string {
  const bound = JSON.stringify(["parley-state-1", agent, provider, user ?? null, conversation ?? null, digest]);
  return createHmac("sha256", secret).update(bound).digest("base64url");
}

/** Texts are hashed together up to this length: each update has a price of its own. */
const JOINED_CHARS = 16 * 1024;

/**
 * Hashes a JSON value part by part, because writing 8 MB of JSON would stop every stream. Each value begins with its type
 * and length, so different values never give the same input. Clients may store a state in something that sorts keys, so
 * the order of keys makes no difference.
 */
function digestOf(value: unknown): string {
  const hash = createHash("sha256");
  let joined = "";
  const add = (text: string) => {
    if (joined.length + text.length > JOINED_CHARS) {
      hash.update(joined).update(text);
      joined = "";
    } else joined += text;
  };
  const addText = (text: string) => {
    // UTF-8 has no form for half a pair of surrogates, which JSON writes as an escape.
    const isWhole = text.isWellFormed();
    const written = isWhole ? text : JSON.stringify(text);
    add(`${isWhole ? "t" : "j"}${written.length}:`);
    add(written);
  };
  const addValue = (item: unknown): void => {
    if (typeof item === "string") addText(item);
    else if (Array.isArray(item)) {
      add(`a${item.length}:`);
      item.forEach(addValue);
    } else if (isRecord(item)) {
      // JSON leaves a field without a value out.
      const keys = Object.keys(item).filter((key) => item[key] !== undefined);
      add(`o${keys.length}:`);
      for (const key of keys.sort()) {
        addText(key);
        addValue(item[key]);
      }
    } else add(`v${String(item ?? null)}:`);
  };
  addValue(value);
  return hash.update(joined).digest("base64url");
}

function altered(param: string): ApiError {
  return invalidState(param, "state was not signed by this server, or it was altered.");
}

function invalidState(param: string, message: string): ApiError {
  return new ApiError("invalid_state", message, { param });
}
