import { asString, isRecord, textsOf } from "../protocol/json.ts";

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

/** Lists whose elements come in pieces, too. */
const BLOCKS = new Map([
  ["thinking_blocks", mergeThinkingBlocks],
  ["thinking_parts", mergeThinkingParts],
  ["reasoning_details", mergeReasoningDetails],
]);

function merge(name: string, before: unknown, value: unknown): unknown {
  const mergeBlocks = BLOCKS.get(name);
  if (mergeBlocks !== undefined && Array.isArray(value)) {
    return mergeBlocks(Array.isArray(before) ? before : [], value);
  }
  if (STREAMED_TEXT.has(name) && typeof value === "string") return asString(before) + value;
  if (Array.isArray(before) && Array.isArray(value)) return [...before, ...value];
  if (!isRecord(value)) return value;
  const fields = new Map(Object.entries(isRecord(before) ? before : {}));
  for (const [key, inner] of Object.entries(value)) {
    fields.set(key, merge(key, fields.get(key), inner));
  }
  return Object.fromEntries(fields);
}

/**
 * LiteLLM streams a thinking block as many: pieces of its text, then one that only brings the signature.
 * Claude wants back the one block that they make. A signature ends a block.
 */
function mergeThinkingBlocks(before: readonly unknown[], pieces: readonly unknown[]): unknown[] {
  const blocks = [...before];
  for (const piece of pieces) {
    const open = blocks.at(-1);
    if (!isThinking(open) || !isThinking(piece) || asString(open.signature) !== "") {
      blocks.push(piece);
      continue;
    }
    const thinking = asString(open.thinking) + asString(piece.thinking);
    const signature = asString(piece.signature);
    blocks[blocks.length - 1] = { ...open, ...piece, thinking, signature };
  }
  return blocks;
}

function isThinking(block: unknown): block is Record<string, unknown> {
  return isRecord(block) && block.type === "thinking";
}

/** Mistral's thinking parts: each piece brings a list with the next piece of the text. */
function mergeThinkingParts(before: readonly unknown[], pieces: readonly unknown[]): unknown[] {
  const parts = [...before];
  for (const piece of pieces) {
    const open = parts.at(-1);
    if (!isThinking(open) || !isThinking(piece) || open.closed === true) {
      parts.push(piece);
      continue;
    }
    const thought = textsOf(open.thinking, "text") + textsOf(piece.thinking, "text");
    parts[parts.length - 1] = { ...open, ...piece, thinking: [{ type: "text", text: thought }] };
  }
  return parts;
}

/**
 * OpenRouter streams a detail as many with the same type and index. It asks for the whole ones back;
 * an encrypted one comes whole.
 */
function mergeReasoningDetails(before: readonly unknown[], pieces: readonly unknown[]): unknown[] {
  const details = [...before];
  for (const piece of pieces) {
    const open = details.at(-1);
    const field = isRecord(piece) ? DETAIL_TEXT.get(asString(piece.type)) : undefined;
    if (field === undefined || !isRecord(open) || !isRecord(piece) || !isSameDetail(open, piece)) {
      details.push(piece);
      continue;
    }
    const whole = new Map(Object.entries(open));
    for (const [name, value] of Object.entries(piece)) if (value !== null) whole.set(name, value);
    whole.set(field, asString(open[field]) + asString(piece[field]));
    details[details.length - 1] = Object.fromEntries(whole);
  }
  return details;
}

const DETAIL_TEXT = new Map([
  ["reasoning.text", "text"],
  ["reasoning.summary", "summary"],
]);

function isSameDetail(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  return a.type === b.type && a.index === b.index;
}
