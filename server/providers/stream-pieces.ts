/** Puts together what a streamed answer brings in pieces: tool calls, fields that have to go back as they came, and its end. */

import { randomUUID } from "node:crypto";
import type { AssistantMessage, HistoryToolCall, Usage } from "../protocol/chat.ts";
import { asString, isRecord, type Json, textsOf, tryParse } from "../protocol/json.ts";
import { UpstreamGarbage } from "./failures.ts";
import { callArguments, callsOf, endEvent } from "./history.ts";
import type { ModelEvent, ModelRequest, TurnFinish } from "./provider.ts";

/** The API's own fields of a call, and of the function in it. */
export const CALL_FIELDS: ReadonlySet<string> = new Set(["id", "type", "function"]);
export const FUNCTION_FIELDS: ReadonlySet<string> = new Set(["name", "arguments"]);

/** How the answer ended that the calls are part of. */
export interface AnswerEnd {
  readonly finish: TurnFinish;
  /** `false`: the stream is over, but nothing said that the model had finished. */
  readonly isSure?: boolean;
  /** Whether a call is the last thing in it. */
  readonly endsInCall: boolean;
  /** The conversation so far, none of whose ids is given again, and the tools that may be called. */
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
 * Puts streamed tool-call pieces together. Servers differ in how they mark the pieces of a call, so a piece goes
 * to the call with its id, else to the one at its index, else to the latest. A new id under an old index
 * is a new call, and so is a name after whole arguments, if the index is not the same too.
 */
export class ToolCallAssembler {
  readonly #calls: PartialCall[] = [];
  readonly #byId = new Map<string, PartialCall>();
  readonly #byIndex = new Map<number, PartialCall>();

  /** Takes one element of `delta.tool_calls`. */
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
   * The calls that were made, in the order in which they began: none in an answer that was withheld, and not the one
   * that was cut, by the token limit or because the stream ended there. @throws UpstreamGarbage for one without a name
   */
  finish({ finish, isSure = true, endsInCall, request: { messages, setup } }: AnswerEnd): HistoryToolCall[] {
    if (finish === "content_filter") return [];
    const used = new Set(callsOf(messages).map(({ id }) => id));
    const isCut = !isSure || (finish === "length" && endsInCall);
    const last = endsInCall ? this.#calls.at(-1) : undefined;
    return this.#calls.flatMap((call) => {
      const written = callArguments(call.arguments, call.name, setup.tools);
      // One that was cut before its arguments began would look like one that has none.
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
    // Servers that make the id of the tool's name give the same one to parallel calls of it.
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
 * Whether the piece cannot belong to the call, although id and index allow it: it brings a name, and the
 * arguments are whole. Servers that send whole calls may number them all 0.
 */
function beginsAnother(call: PartialCall, piece: Json): boolean {
  if (call.name === "" || !isNamed(piece)) return false;
  // Arguments that are not whole yet: a server that repeats the name in each piece.
  return isRecord(tryParse(call.arguments));
}

const PIECE_FIELDS = new Set([...CALL_FIELDS, "index"]);

/** Nine letters and digits: Mistral's models take no other form, and all others take this one. */
function mintId(used: ReadonlySet<string>): string {
  for (;;) {
    const id = randomUUID().replaceAll("-", "").slice(0, 9);
    if (!used.has(id)) return id;
  }
}

/**
 * Fields of a streamed message that are not ours to understand but must go back to the provider as they
 * came: signatures, thinking blocks, citations. Pieces of one field are merged over the chunks.
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

/** The strings that come in pieces. Any other string is a value that a later one replaces. */
const STREAMED_TEXT = new Set(["reasoning_content", "reasoning"]);

/** Lists whose elements come in pieces, too: each makes one of the last element and a piece that belongs to it. */
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
 * LiteLLM streams a thinking block as many: pieces of its text, then one that only brings the signature.
 * Claude wants back the one block that they make. A signature ends a block.
 */
function joinThinkingBlock(open: Json, piece: Json): Json | undefined {
  if (!areThinking(open, piece) || asString(open.signature) !== "") return undefined;
  const thinking = asString(open.thinking) + asString(piece.thinking);
  return { ...open, ...piece, thinking, signature: asString(piece.signature) };
}

/** Mistral's thinking parts: each piece brings a list with the next piece of the text. */
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
 * OpenRouter streams a detail as many with the same type and index. It asks for the whole ones back;
 * an encrypted one comes whole.
 */
function joinReasoningDetail(open: Json, piece: Json): Json | undefined {
  const field = DETAIL_TEXT.get(asString(piece.type));
  if (field === undefined || open.type !== piece.type || open.index !== piece.index) return undefined;
  const given = Object.entries(piece).filter(([, value]) => value !== null);
  const text = asString(open[field]) + asString(piece[field]);
  return Object.fromEntries([...Object.entries(open), ...given, [field, text]]);
}

/** Google's ways to say that the model wrote a call that is none, or of a tool that it does not have; proxies and packages pass them on. */
export const MALFORMED_CALL = /malformed|function_call_filter|unexpected_tool_call/i;

/** The server gave up in the middle of the answer: DeepSeek's `insufficient_system_resource`, vLLM's `abort`, Zhipu's `network_error`. */
const GIVEN_UP = /error|abort|cancel|fail|interrupt|insufficient_system_resource|time_?out/i;

/** `undefined` for an answer that is not whole. An unknown word is an end: servers have dozens of them. */
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
