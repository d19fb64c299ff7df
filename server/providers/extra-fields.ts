import { asString, isRecord, type Json, textsOf } from "../protocol/json.ts";

/** The API's own fields of a call, and of the function in it. */
export const CALL_FIELDS: ReadonlySet<string> = new Set(["id", "type", "function"]);
export const FUNCTION_FIELDS: ReadonlySet<string> = new Set(["name", "arguments"]);

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
