import { isRecord, text } from "./json.ts";

/**
 * Fields of a streamed message that are not ours to understand but must go back to the provider as they
 * came: signatures, thinking blocks, citations. Pieces of one field are merged over the chunks.
 */
export class ExtraFields {
  readonly #fields = new Map<string, unknown>();

  /** Takes all fields but those named, which the caller reads itself. */
  add(piece: Readonly<Record<string, unknown>>, except: ReadonlySet<string>): void {
    for (const [name, value] of Object.entries(piece)) {
      if (value === null || except.has(name)) continue;
      this.#fields.set(name, merge(name, this.#fields.get(name), value));
    }
  }

  /** Own properties only, whatever their names are: a provider may send one called `__proto__`. */
  toObject(): Record<string, unknown> {
    return Object.fromEntries(this.#fields);
  }
}

/** The strings that come in pieces. Any other string is a value that a later one replaces. */
const STREAMED_TEXT = new Set(["reasoning_content", "reasoning"]);

function merge(name: string, before: unknown, value: unknown): unknown {
  if (name === "thinking_blocks" && Array.isArray(value)) {
    return mergeThinkingBlocks(Array.isArray(before) ? before : [], value);
  }
  if (STREAMED_TEXT.has(name) && typeof value === "string") return text(before) + value;
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
    if (!isThinking(open) || !isThinking(piece) || text(open.signature) !== "") {
      blocks.push(piece);
      continue;
    }
    const thinking = text(open.thinking) + text(piece.thinking);
    const signature = text(piece.signature);
    blocks[blocks.length - 1] = { ...open, ...piece, thinking, signature };
  }
  return blocks;
}

function isThinking(block: unknown): block is Record<string, unknown> {
  return isRecord(block) && block.type === "thinking";
}
