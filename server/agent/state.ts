/** Signs and verifies the conversation's state, which is kept by a client that is not trusted. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ContentPart, ConversationState, HistoryMessage, OpenExchange, StateKind } from "../protocol/chat.ts";
import { ApiError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { callsOf, withDigests } from "../providers/history.ts";
import { checkFiles, checkHistory, checkSize, type HistoryLimits } from "./check-history.ts";
import { type IsHidden, isSealed, openMessages, openValue, type Seal, sealMessages, sealValue } from "./sealed.ts";

/** What a state is bound to: it cannot be used with another agent or provider. Plain data, for a worker thread. */
export interface StateBinding extends Pick<Seal, "agent" | "provider" | "user"> {
  readonly kind: StateKind;
  /** The first one signs, each of them verifies. Empty: states are not signed. */
  readonly secrets: readonly string[];
  /** The same secrets or, if there are none, others: open exchanges and hidden calls are always signed and sealed. */
  readonly ownSecrets: readonly string[];
  readonly limits: HistoryLimits;
}

const NEW_CONVERSATION: ConversationState = {};

/**
 * Verifies and reads a state from a client. Adds the ids of calls that clients may not read to `hidden`.
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
  const reading = { binding, conversation, hidden };
  const read = kind === "previous_response_id" ? readResponseId : readHistory;
  const state = value[kind] === undefined ? {} : read(value[kind], value.signature, reading);
  const before = withConversation(state, state.conversation ?? conversation);
  return isOpen
    ? readOpen(open, value[kind], conversation === undefined ? before : { ...before, conversation }, reading)
    : before;
}

/** What the signature of a part of a state covers in addition to that part. */
interface Bound {
  readonly binding: StateBinding;
  readonly conversation: string | undefined;
}

/** What a state is verified against; `conversation` is the one that the state itself names. */
interface Reading extends Bound {
  readonly hidden: Set<string>;
}

/** Reads the open exchange of a state whose rest was read. `base`: what it continues, as the client sent it. */
function readOpen(
  open: unknown,
  base: unknown,
  state: ConversationState,
  { binding, hidden }: Reading,
): ConversationState {
  const { signature, ...exchange } = isRecord(open) ? open : {};
  if (!Array.isArray(exchange.messages) || typeof signature !== "string") throw altered("/state/open");
  const read = { ...exchange, messages: checkFiles(exchange.messages, "/state/open/messages") };
  // The signature covers the base, so the exchange continues no other.
  const { previous_response_id: id, conversation_history: history } = state;
  const signed = {
    now: () => [withSignedForm(exchange, read.messages), digestOf(id ?? signedForm(base, history))],
    before: () => [exchange, digestOf(id ?? base)],
  };
  if (!isSigned("open", signed, signature, { binding, conversation: state.conversation })) throw altered("/state/open");
  const opened = exchange.sealed === undefined ? read : openExchange(read, state, binding, hidden);
  const messages = opened.messages as HistoryMessage[];
  checkSize([...(state.conversation_history ?? []), ...messages], binding.limits);
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
  // All its calls stay hidden: the tools of the next run may not tell any more which ones were.
  const { messages, waiting } = opened as unknown as OpenExchange;
  for (const { id } of [...callsOf(messages), ...(waiting?.calls ?? [])]) hidden.add(id);
  for (const message of messages) if (message.role === "tool") hidden.add(message.tool_call_id);
  return whole;
}

/** Fits a `randomUUID`. Without a dot, which separates the parts of a signed id. */
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
  { binding, conversation: beside }: Reading,
): ConversationState {
  const param = "/state/previous_response_id";
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,512}$/.test(value)) {
    throw invalidState(param, "previous_response_id must be a string that this server returned.");
  }
  if (binding.secrets.length === 0) return { previous_response_id: value };
  const [, id, conversation, signature = ""] = /^(.+)\.([\w-]+)\.([\w-]+)$/.exec(value) ?? [];
  if (id === undefined || conversation === undefined) throw altered(param);
  const signed = { now: () => id, before: () => id };
  if (!isSigned("state", signed, signature, { binding, conversation })) throw altered(param);
  if (beside !== undefined && beside !== conversation) throw altered("/state/conversation");
  return { previous_response_id: id, conversation };
}

function readHistory(
  value: unknown,
  signature: unknown,
  { binding, conversation, hidden }: Reading,
): ConversationState {
  const secrets = isSealed(value) ? binding.ownSecrets : binding.secrets;
  const opened = isSealed(value) ? openMessages(value, { ...binding, conversation, secrets }, hidden) : value;
  if (opened === undefined) throw altered("/state");
  const history = checkHistory(opened, binding.limits);
  if (history.length === 0) return NEW_CONVERSATION;
  if (secrets.length === 0) return { conversation_history: history };
  // The value as the client sent it, so that an added field makes the signature invalid.
  const signed = { now: () => signedForm(value, history), before: () => value };
  const given = typeof signature === "string" ? signature : "";
  if (!isSigned("state", signed, given, { binding: { ...binding, secrets }, conversation })) throw altered("/state");
  return { conversation_history: history };
}

/**
 * The state as the client gets it. It is signed if the server signs states or a call is hidden; hidden calls are
 * sealed. A state with nothing to continue is empty.
 */
export function sealState(
  state: ConversationState,
  conversation: string,
  binding: StateBinding,
  isHidden?: IsHidden,
): ConversationState {
  const { previous_response_id: id, conversation_history, open } = state;
  const opened = conversation_history && withDigests(conversation_history);
  if (id === undefined && opened === undefined && open === undefined) return NEW_CONVERSATION;
  const bound = { binding, conversation };
  const seal = { ...binding, conversation, secrets: binding.ownSecrets };
  const history = opened && isHidden ? sealMessages(opened, isHidden, seal) : opened;
  const [secret] = history === opened ? binding.secrets : seal.secrets;
  const digest = secret === undefined && open === undefined ? "" : digestOf(id ?? signedForm(history, opened));
  const signature = secret && sign("parley-state-2", digest, secret, bound);
  const sealed: ConversationState = { conversation };
  if (id !== undefined) sealed.previous_response_id = signature ? `${id}.${conversation}.${signature}` : id;
  if (history !== undefined) {
    sealed.conversation_history = history;
    if (signature) sealed.signature = signature;
  }
  if (open !== undefined) {
    const [own = ""] = seal.secrets;
    const shown = readableOpen(open, seal, isHidden !== undefined);
    const value = [withSignedForm(shown, shown.messages), digest];
    const signed = sign("parley-open-2", digestOf(value), own, bound);
    sealed.open = { ...shown, signature: signed };
  }
  return sealed;
}

/** The open exchange as clients get it: what they may read, and the rest sealed. */
function readableOpen({ signature: _former, ...exchange }: OpenExchange, seal: Seal, isHidden: boolean): OpenExchange {
  // Sealed as a whole: if the API keeps the conversation, the exchange has results without their calls.
  if (isHidden) return { messages: [], sealed: sealValue(exchange, seal) };
  const { waiting, ...readable } = { ...exchange, messages: withDigests(exchange.messages) };
  // What a framework keeps may contain errors of its tools, thinking, and objects that not even its model gets.
  const isKept = [waiting, ...(waiting?.calls ?? [])].some((one) => one?.kept !== undefined);
  if (isKept) return { ...readable, sealed: sealValue({ waiting }, seal) };
  return waiting === undefined ? readable : { ...readable, waiting };
}

function withSignedForm(exchange: object, read: readonly HistoryMessage[]): object {
  const { messages } = exchange as { messages: unknown };
  return { ...exchange, messages: signedForm(messages, read) };
}

/**
 * Each use of the secret has its own purpose, with which the signed text begins, so that no two uses sign the same
 * text. Signatures of version 1 cover whole files; they are still accepted, but no longer made.
 */
type Purpose = `parley-${SignedPart}-${1 | 2}`;
type SignedPart = "state" | "open";

/** The value that a signature covers, in the form that is signed now (2) and in the former one (1). */
interface SignedValue {
  now(): unknown;
  before(): unknown;
}

/** A user may also continue a conversation that has no user yet; it is theirs from then on. */
function isSigned(
  part: SignedPart,
  { now, before }: SignedValue,
  signature: string,
  { binding, conversation }: Bound,
): boolean {
  const given = Buffer.from(signature);
  const owners = binding.user === undefined ? [binding] : [binding, { ...binding, user: undefined }];
  const secrets = part === "open" ? binding.ownSecrets : binding.secrets;
  const isRight = (purpose: Purpose, digest: string) =>
    secrets
      .flatMap((secret) => owners.map((owner) => sign(purpose, digest, secret, { binding: owner, conversation })))
      .some((right) => right.length === given.length && timingSafeEqual(Buffer.from(right), given));
  return isRight(`parley-${part}-2`, digestOf(now())) || isRight(`parley-${part}-1`, digestOf(before()));
}

function sign(purpose: Purpose, digest: string, secret: string, { binding, conversation }: Bound): string {
  const { agent, provider, user } = binding;
  const bound = JSON.stringify([purpose, agent, provider, user ?? null, conversation ?? null, digest]);
  return createHmac("sha256", secret).update(bound).digest("base64url");
}

/** The messages as a signature covers them: each file by its digest. `read`: the messages after `check-history.ts`. */
function signedForm(messages: unknown, read: readonly HistoryMessage[] | undefined): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message, index) => {
    const { role, content: known } = read?.[index] ?? {};
    const parts: unknown = message?.content;
    if (role === "assistant" || !Array.isArray(known) || !Array.isArray(parts)) return message;
    return { ...message, content: parts.map((part, at) => signedPart(part, known[at])) };
  });
}

/** A part with fields that were not read is signed as a whole, so that nothing stays unsigned. */
function signedPart(part: Record<string, unknown>, read: ContentPart | undefined): unknown {
  if (read === undefined || read.type === "text" || read.type === "omitted") return part;
  const { omitted } = read;
  return isDeepStrictEqual({ ...part, omitted }, read) ? { type: "omitted", omitted } : part;
}

/** A hash of the state that a client sent, which was read as `read`. It is the same with and without omitted files. */
export function digestOfState(state: unknown, read: ConversationState): string {
  if (!isRecord(state)) return digestOf(state);
  const { open, signature, conversation_history: history } = state;
  // The signature stands for the text that it covers, which can be long.
  return digestOf({
    ...state,
    conversation_history: typeof signature === "string" ? null : signedForm(history, read.conversation_history),
    open: isRecord(open) ? open.signature : open,
  });
}

/** Texts are joined up to this length before they are hashed, because each `update` has a fixed cost. */
const JOINED_CHARS = 16 * 1024;

/**
 * Hashes a JSON value part by part, because writing 8 MB of JSON would block every stream. Each value begins with its
 * type and length, so different values never give the same input. Clients may store a state in something that sorts
 * keys, so the order of keys makes no difference.
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
    // UTF-8 cannot encode a lone surrogate, which JSON writes as an escape.
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
      // JSON omits a field that is undefined.
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
