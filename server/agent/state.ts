/** The conversation's state on its way to and from a client, which is not trusted. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { ConversationState, HistoryMessage, OpenExchange, StateKind } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { callsOf } from "../providers/history.ts";
import { checkHistory, checkSize, type HistoryLimits } from "./check-history.ts";
import { type IsHidden, isSealed, openMessages, openValue, type Seal, sealMessages, sealValue } from "./sealed.ts";

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
  /** The same or, where there are none, what signs and seals what needs it in any case, such as open exchanges. */
  readonly ownSecrets: readonly string[];
  readonly limits: HistoryLimits;
}

const NEW_CONVERSATION: ConversationState = {};

/**
 * The ids of calls that clients may not read are added to `hidden`.
 * @throws ApiError `invalid_state`, or `invalid_request` if the state is no object at all
 */
export function readState(value: unknown, binding: StateBinding, hidden = new Set<string>()): ConversationState {
  if (value === undefined || value === null) return NEW_CONVERSATION;
  if (!isRecord(value)) {
    throw new ApiError("invalid_request", "state must be an object.", { param: "/state" });
  }
  const { kind } = binding;
  const other: StateKind = kind === "previous_response_id" ? "conversation_history" : "previous_response_id";
  const { open } = value;
  const isOpen = open !== undefined && open !== null;
  if ((value[kind] === undefined && !isOpen) || value[other] !== undefined) {
    if (Object.keys(value).length === 0) return NEW_CONVERSATION;
    throw invalidState("/state", `state must be as this server returned it: {} or an object with ${kind}.`);
  }
  const conversation = readConversation(value.conversation);
  const read = kind === "previous_response_id" ? readResponseId : readHistory;
  const state = value[kind] === undefined ? {} : read(value[kind], value.signature, conversation, binding, hidden);
  const before = withConversation(state, state.conversation ?? conversation);
  return isOpen
    ? readOpen(open, value[kind], conversation === undefined ? before : { ...before, conversation }, binding, hidden)
    : before;
}

/** The open exchange of a state, whose rest was read. `base` is what it goes on from, as it was sent. */
function readOpen(
  open: unknown,
  base: unknown,
  state: ConversationState,
  binding: StateBinding,
  hidden: Set<string>,
): ConversationState {
  const { signature, ...exchange } = isRecord(open) ? open : {};
  if (!Array.isArray(exchange.messages) || typeof signature !== "string") throw altered("/state/open");
  // It goes on from this base, and from nothing else.
  const signed = [exchange, digestOf(state.previous_response_id ?? base)];
  if (!isSigned("parley-open-1", signed, signature, state.conversation, binding)) throw altered("/state/open");
  const opened = exchange.sealed === undefined ? exchange : openExchange(exchange, state, binding, hidden);
  const messages = opened.messages as HistoryMessage[];
  checkSize(state.conversation_history ?? [], messages, binding.limits);
  return { ...state, open: { ...opened, messages, signature } };
}

function openExchange(
  { sealed, ...readable }: Record<string, unknown>,
  { conversation }: ConversationState,
  binding: StateBinding,
  hidden: Set<string>,
): Record<string, unknown> {
  const opened = openValue(String(sealed), { ...binding, conversation, secrets: binding.ownSecrets });
  if (opened === undefined) throw altered("/state/open");
  const whole = { ...readable, ...opened };
  if (opened.messages === undefined) return whole;
  // Which of its calls were the hidden ones, the tools of the next run need not know any more.
  const { messages, waiting } = opened as unknown as OpenExchange;
  for (const { id } of [...callsOf(messages), ...(waiting?.calls ?? [])]) hidden.add(id);
  for (const message of messages) if (message.role === "tool") hidden.add(message.tool_call_id);
  return whole;
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

function readResponseId(
  value: unknown,
  _signature: unknown,
  beside: string | undefined,
  binding: StateBinding,
): ConversationState {
  const param = "/state/previous_response_id";
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,512}$/.test(value)) {
    throw invalidState(param, "previous_response_id must be a string that this server returned.");
  }
  if (binding.secrets.length === 0) return { previous_response_id: value };
  const [, id, conversation, signature = ""] = /^(.+)\.([\w-]+)\.([\w-]+)$/.exec(value) ?? [];
  if (id === undefined || conversation === undefined) throw altered(param);
  if (!isSigned("parley-state-1", id, signature, conversation, binding)) throw altered(param);
  if (beside !== undefined && beside !== conversation) throw altered("/state/conversation");
  return { previous_response_id: id, conversation };
}

function readHistory(
  value: unknown,
  signature: unknown,
  conversation: string | undefined,
  binding: StateBinding,
  hidden: Set<string>,
): ConversationState {
  // The value as it was sent: a field that was added to it makes it another one.
  const given = typeof signature === "string" ? signature : "";
  if (isSealed(value)) {
    const secrets = binding.ownSecrets;
    if (!isSigned("parley-state-1", value, given, conversation, { ...binding, secrets })) throw altered("/state");
    const opened = openMessages(value, { ...binding, conversation, secrets }, hidden);
    if (opened === undefined) throw altered("/state");
    return { conversation_history: checkHistory(opened, binding.limits) };
  }
  const history = checkHistory(value, binding.limits);
  if (history.length === 0) return NEW_CONVERSATION;
  if (binding.secrets.length > 0 && !isSigned("parley-state-1", value, given, conversation, binding)) {
    throw altered("/state");
  }
  return { conversation_history: history };
}

/**
 * The state as the client gets it: signed, where the server signs or a call is hidden, which is sealed then. A state that
 * continues nothing is empty.
 */
export function sealState(
  state: ConversationState,
  conversation: string,
  binding: StateBinding,
  isHidden?: IsHidden,
): ConversationState {
  const { previous_response_id: id, conversation_history: opened, open } = state;
  if (id === undefined && opened === undefined && open === undefined) return NEW_CONVERSATION;
  const seal = { ...binding, conversation, secrets: binding.ownSecrets };
  const history = opened && isHidden ? sealMessages(opened, isHidden, seal) : opened;
  const [secret] = history === opened ? binding.secrets : seal.secrets;
  const digest = secret === undefined && open === undefined ? "" : digestOf(id ?? history);
  const signature = secret && sign("parley-state-1", digest, secret, conversation, binding);
  const sealed: ConversationState = { conversation };
  if (id !== undefined) sealed.previous_response_id = signature ? `${id}.${conversation}.${signature}` : id;
  if (history !== undefined) {
    sealed.conversation_history = history;
    if (signature) sealed.signature = signature;
  }
  if (open !== undefined) {
    const [own = ""] = seal.secrets;
    const shown = readableOpen(open, seal, isHidden !== undefined);
    const signed = sign("parley-open-1", digestOf([shown, digest]), own, conversation, binding);
    sealed.open = { ...shown, signature: signed };
  }
  return sealed;
}

/** What clients may read of an open exchange, with the rest sealed beside it. */
function readableOpen({ signature: _former, ...exchange }: OpenExchange, seal: Seal, isHidden: boolean): OpenExchange {
  // Whole: where the API keeps the conversation, it has results without their calls.
  if (isHidden) return { messages: [], sealed: sealValue(exchange, seal) };
  const { waiting, ...readable } = exchange;
  // A framework keeps what its tools threw, what was thought, and objects that not even its model gets.
  const isKept = [waiting, ...(waiting?.calls ?? [])].some((one) => one?.kept !== undefined);
  return isKept ? { ...readable, sealed: sealValue({ waiting }, seal) } : exchange;
}

/** Each use of the secret has its own purpose, which the signed text begins with: none signs the same text as another. */
type Purpose = "parley-state-1" | "parley-open-1";

function secretsFor(purpose: Purpose, { secrets, ownSecrets }: StateBinding): readonly string[] {
  return purpose === "parley-open-1" ? ownSecrets : secrets;
}

/** A user may go on with a conversation that has no user yet, and it is theirs from then on. */
function isSigned(
  purpose: Purpose,
  value: unknown,
  signature: string,
  conversation: string | undefined,
  binding: StateBinding,
): boolean {
  const digest = digestOf(value);
  const given = Buffer.from(signature);
  const owners = binding.user === undefined ? [binding] : [binding, { ...binding, user: undefined }];
  const known = secretsFor(purpose, binding).flatMap((secret) =>
    owners.map((owner) => sign(purpose, digest, secret, conversation, owner)),
  );
  return known.some((right) => right.length === given.length && timingSafeEqual(Buffer.from(right), given));
}

function sign(
  purpose: Purpose,
  digest: string,
  secret: string,
  conversation: string | undefined,
  { agent, provider, user }: StateBinding,
): string {
  const bound = JSON.stringify([purpose, agent, provider, user ?? null, conversation ?? null, digest]);
  return createHmac("sha256", secret).update(bound).digest("base64url");
}

/** Texts are hashed together up to this length: each update has a price of its own. */
const JOINED_CHARS = 16 * 1024;

/**
 * Hashes a JSON value part by part, because writing 8 MB of JSON would stop every stream. Each value begins with its type
 * and length, so different values never give the same input. Clients may store a state in something that sorts keys, so
 * the order of keys makes no difference.
 */
export function digestOf(value: unknown): string {
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
  return invalidState(param, "state was not signed by this server, or it was altered. Start a new conversation.");
}

function invalidState(param: string, message: string): ApiError {
  return new ApiError("invalid_state", message, { param });
}
