/** Assembles the pieces of a streamed answer: tool calls, fields that must be sent back unchanged, and its end. */

import { randomUUID } from "node:crypto";
import type { AssistantMessage, HistoryToolCall, Usage } from "../protocol/chat.ts";
import { asString, isRecord, type Json, textsOf, tryParse } from "../protocol/json.ts";
import { UpstreamGarbage } from "./failures.ts";
import { callArguments, callsOf, endEvent } from "./history.ts";
import type { ModelEvent, ModelRequest, TurnFinish } from "./provider.ts";

/** The fields of a call, and of the function in it, that Chat Completions defines. */
export const CALL_FIELDS: ReadonlySet<string> = new Set(["id", "type", "function"]);
export const FUNCTION_FIELDS: ReadonlySet<string> = new Set(["name", "arguments"]);

/** How the answer that contains the calls ended. */
export interface AnswerEnd {
  readonly finish: TurnFinish;
  /** `false`: the stream ended without a sign that the model had finished. */
  readonly isSure?: boolean;
  /** Whether the answer ends with a call. */
  readonly endsInCall: boolean;
  /** The conversation so far, whose call ids are not used again, and the tools that may be called. */
  readonly request: Pick<ModelRequest, "messages" | "setup">;
}

interface PartialCall {
  id: string;
  name: string;
  arguments: string;
  extra: ExtraFields;
  functionExtra: ExtraFields;
}

/**
 * Assembles the streamed pieces of tool calls. Servers mark the pieces of a call differently: a piece belongs to the
 * call with its id, else to the one at its index, else to the latest. A new id at a known index begins a new call, and
 * so does a name after complete arguments, unless id and index are both the same.
 */
export class ToolCallAssembler {
  readonly #calls: PartialCall[] = [];
  readonly #byId = new Map<string, PartialCall>();
  readonly #byIndex = new Map<number, PartialCall>();

  /** Adds one element of `delta.tool_calls`. */
  add(piece: Json): void {
    const call = this.#find(piece);
    const fn = isRecord(piece.function) ? piece.function : {};
    call.name ||= asString(fn.name);
    // Some servers send the arguments as the object itself.
    call.arguments += isRecord(fn.arguments) ? JSON.stringify(fn.arguments) : asString(fn.arguments);
    for (const [name, value] of Object.entries(piece)) if (!PIECE_FIELDS.has(name)) call.extra.add(name, value);
    for (const [name, value] of Object.entries(fn)) if (!FUNCTION_FIELDS.has(name)) call.functionExtra.add(name, value);
  }

  /**
   * The complete calls, in the order in which they began: none if the answer was withheld, and without a call that the
   * token limit or the end of the stream cut off. @throws UpstreamGarbage for a call without a name
   */
  finish({ finish, isSure = true, endsInCall, request: { messages, setup } }: AnswerEnd): HistoryToolCall[] {
    if (finish === "content_filter") return [];
    const used = new Set(callsOf(messages).map(({ id }) => id));
    const isCut = !isSure || (finish === "length" && endsInCall);
    const last = endsInCall ? this.#calls.at(-1) : undefined;
    return this.#calls.flatMap((call) => {
      const written = callArguments(call.arguments, call.name, setup.tools);
      // A call that was cut off before its arguments would look like a call without arguments.
      const isWhole = call.arguments.trim() === "" ? call !== last : tryParse(written) !== undefined;
      if (isCut && !isWhole) return [];
      if (call.name === "") throw new UpstreamGarbage("a tool call has no name");
      // A server that counts from zero in each turn would give the same id to two calls of a conversation.
      const id = call.id === "" || used.has(call.id) ? mintId(used) : call.id;
      used.add(id);
      const called = { ...call.functionExtra.toObject(), name: call.name, arguments: written };
      return [{ ...call.extra.toObject(), id, type: "function" as const, function: called }];
    });
  }

  #find(piece: Json): PartialCall {
    const id = asString(piece.id);
    const index = typeof piece.index === "number" ? piece.index : undefined;
    let call = id === "" ? this.#withoutId(piece, index) : this.#withId(id, piece, index);
    if (call === undefined) {
      call = { id, name: "", arguments: "", extra: new ExtraFields(), functionExtra: new ExtraFields() };
      this.#calls.push(call);
    }
    if (id !== "") {
      call.id = id;
      this.#byId.set(id, call);
    }
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #withId(id: string, piece: Json, index: number | undefined): PartialCall | undefined {
    const known = this.#byId.get(id);
    if (index === undefined) return known;
    const atIndex = this.#byIndex.get(index);
    // Servers that derive the id from the tool's name give the same id to parallel calls of that tool.
    if (known !== undefined) {
      return known !== atIndex && beginsAnother(known, piece) ? undefined : known;
    }
    return atIndex?.id === "" && !beginsAnother(atIndex, piece) ? atIndex : undefined;
  }

  #withoutId(piece: Json, index: number | undefined): PartialCall | undefined {
    if (index !== undefined) {
      const atIndex = this.#byIndex.get(index);
      return atIndex && beginsAnother(atIndex, piece) ? undefined : atIndex;
    }
    const latest = this.#calls.at(-1);
    // With neither id nor index, a second name is the only sign of a second call.
    return isNamed(piece) && latest?.name ? undefined : latest;
  }
}

function isNamed({ function: fn }: Json): boolean {
  return isRecord(fn) && asString(fn.name) !== "";
}

/**
 * Whether the piece begins another call, although id or index match: it has a name, and the call's arguments are
 * complete. Servers that send whole calls may number them all 0.
 */
function beginsAnother(call: PartialCall, piece: Json): boolean {
  if (call.name === "" || !isNamed(piece)) return false;
  // With incomplete arguments, it is a server that repeats the name in each piece.
  return isRecord(tryParse(call.arguments));
}

const PIECE_FIELDS = new Set([...CALL_FIELDS, "index"]);

/** Nine letters and digits: Mistral's models accept no other form, and all others accept this one. */
function mintId(used: ReadonlySet<string>): string {
  for (;;) {
    const id = randomUUID().replaceAll("-", "").slice(0, 9);
    if (!used.has(id)) return id;
  }
}

/**
 * Fields of a streamed message that Parley does not interpret but must send back to the provider unchanged: signatures,
 * thinking blocks, citations. The pieces of a field are merged across chunks.
 */
export class ExtraFields {
  readonly #fields = new Map<string, unknown>();

  add(name: string, piece: unknown): void {
    if (piece !== null) this.#fields.set(name, merge(name, this.#fields.get(name), piece));
  }

  /** Own properties only, whatever their names are: a provider may send one called `__proto__`. */
  toObject(): Record<string, unknown> {
    return Object.fromEntries(this.#fields);
  }
}

/** Strings that are streamed in pieces. Any other string is a value that a later one replaces. */
const STREAMED_TEXT = new Set(["reasoning_content", "reasoning"]);

/** Lists whose elements are streamed in pieces: each function joins a piece to the last element if it belongs there. */
const JOINED = new Map<string, (open: Json, piece: Json) => Json | undefined>([
  ["thinking_blocks", joinThinkingBlock],
  ["thinking_parts", joinThinkingPart],
  ["reasoning_details", joinReasoningDetail],
]);

function merge(name: string, before: unknown, value: unknown): unknown {
  if (STREAMED_TEXT.has(name) && typeof value === "string") return asString(before) + value;
  if (Array.isArray(value)) return mergeLists(name, Array.isArray(before) ? before : [], value);
  if (!isRecord(value)) return value;
  const fields = new Map(Object.entries(isRecord(before) ? before : {}));
  for (const [key, inner] of Object.entries(value)) fields.set(key, merge(key, fields.get(key), inner));
  return Object.fromEntries(fields);
}

function mergeLists(name: string, before: readonly unknown[], pieces: readonly unknown[]): unknown[] {
  const join = JOINED.get(name);
  const list = [...before];
  for (const piece of pieces) {
    const open = list.at(-1);
    const joined = isRecord(open) && isRecord(piece) ? join?.(open, piece) : undefined;
    if (joined === undefined) list.push(piece);
    else list[list.length - 1] = joined;
  }
  return list;
}

/**
 * LiteLLM streams a thinking block as many blocks: pieces of its text, then one with only the signature, which ends the
 * block. Claude wants the joined block back.
 */
function joinThinkingBlock(open: Json, piece: Json): Json | undefined {
  if (!areThinking(open, piece) || asString(open.signature) !== "") return undefined;
  const thinking = asString(open.thinking) + asString(piece.thinking);
  return { ...open, ...piece, thinking, signature: asString(piece.signature) };
}

/** Mistral's thinking parts: each has a list with the next piece of the text. */
function joinThinkingPart(open: Json, piece: Json): Json | undefined {
  if (!areThinking(open, piece) || open.closed === true) return undefined;
  const text = textsOf(open.thinking, "text") + textsOf(piece.thinking, "text");
  return { ...open, ...piece, thinking: [{ type: "text", text }] };
}

function areThinking(open: Json, piece: Json): boolean {
  return open.type === "thinking" && piece.type === "thinking";
}

const DETAIL_TEXT = new Map([
  ["reasoning.text", "text"],
  ["reasoning.summary", "summary"],
]);

/**
 * OpenRouter streams a detail as many with the same type and index, and wants it back whole. An encrypted detail is
 * never split.
 */
function joinReasoningDetail(open: Json, piece: Json): Json | undefined {
  const field = DETAIL_TEXT.get(asString(piece.type));
  if (field === undefined || open.type !== piece.type || open.index !== piece.index) return undefined;
  const given = Object.entries(piece).filter(([, value]) => value !== null);
  const text = asString(open[field]) + asString(piece[field]);
  return Object.fromEntries([...Object.entries(open), ...given, [field, text]]);
}

/** Google's reasons for an invalid call, or a call of an unknown tool; proxies and packages pass them on. */
export const MALFORMED_CALL = /malformed|function_call_filter|unexpected_tool_call/i;

/** Reasons of a server that gave up: DeepSeek's `insufficient_system_resource`, vLLM's `abort`, Zhipu's `network_error`. */
const GIVEN_UP = /error|abort|cancel|fail|interrupt|insufficient_system_resource|time_?out/i;

/** `undefined` for an incomplete answer. An unknown reason means a complete one: servers have dozens of them. */
export function turnFinish(reason: string): TurnFinish | undefined {
  if (GIVEN_UP.test(reason)) return undefined;
  // Google adds the kind of filter: "content_filter: PROHIBITED_CONTENT".
  if (reason.startsWith("content_filter")) return "content_filter";
  // The last two are Mistral's and Zhipu's, for a full context.
  return ["length", "model_length", "model_context_window_exceeded"].includes(reason) ? "length" : "stop";
}

/** The events at the end of a turn: the message's calls, and the end. */
export function endOfTurn(message: AssistantMessage, finish: TurnFinish, usage: Usage | undefined): ModelEvent[] {
  const calls = (message.tool_calls ?? []).map(
    ({ id, function: { name, arguments: written } }): ModelEvent => ({
      type: "call",
      call: { id, name, arguments: written },
    }),
  );
  return [...calls, endEvent(finish, usage)];
}
