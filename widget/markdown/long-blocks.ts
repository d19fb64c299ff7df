import type { Cut, CutTools } from "../chunks/cut.ts";
import { type Chunks, loadChunk } from "../lazy-chunk.ts";
import { codeChunks } from "./draw-block.ts";
import { inlinePieces } from "./inline-pieces.ts";
import type { LexedBlocks } from "./markdown-lexer.ts";
import { childrenOf, type OpenBlocks } from "./open-block.ts";
import { settledCount } from "./settle.ts";

const tools: CutTools = {
  childrenOf,
  codeChunks,
  inlinePieces,
  settledCount,
};

/** The chunk that settles the finished parts of a block that goes on. Without it only whole blocks are settled. */
export const longBlocks: { chunk?: Chunks["cut"] | undefined } = {};

/** Loads it, for all messages. */
export async function loadLongBlocks(): Promise<void> {
  longBlocks.chunk ??= await loadChunk("cut", loadLongBlocks);
}

/** Cuts a source in front of what may still change, if anything is final. */
export function cutGrowing(source: string, blocks: LexedBlocks, open: OpenBlocks): Cut | undefined {
  if (longBlocks.chunk) return longBlocks.chunk.cutOf(source, blocks, open, tools);
  const count = settledCount(source, blocks.tokens);
  return count > 0 ? cutBehind(source, blocks, count) : undefined;
}

/** Cuts a source behind its first blocks. */
export function cutBehind(source: string, blocks: LexedBlocks, count: number): Cut {
  const length = blocks.tokens.slice(0, count).reduce((sum, { raw }) => sum + raw.length, 0);
  return { steps: [{ token: blocks, count, skip: 0 }], rest: source.slice(length) };
}
