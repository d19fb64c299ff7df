/**
 * What Claude needs back of its own turns beside text and calls. The history keeps it on the assistant's
 * message: `thinking_blocks` as LiteLLM has them, and `anthropic_layout` where Chat Completions cannot
 * say in which order the blocks came. Both come back from the client, so they are checked.
 */

import type { Anthropic } from "@anthropic-ai/sdk";
import type { AssistantMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { text } from "../text.ts";

export type ThinkingBlock = Anthropic.ThinkingBlockParam | Anthropic.RedactedThinkingBlockParam;

/** The blocks of a turn in their order. A text is its start and end in the message's `content`. */
export type Layout = readonly ("thinking" | "tool_use" | readonly [start: number, end: number])[];

/** The blocks that the API can take back: without its signature it refuses one, and with it the request. */
export function thinkingBlocks(message: AssistantMessage): ThinkingBlock[] {
  const { thinking_blocks: blocks } = message;
  if (!Array.isArray(blocks)) return [];
  return blocks.flatMap((block: unknown) => (isRecord(block) ? readBlock(block) : []));
}

function readBlock(block: Record<string, unknown>): ThinkingBlock[] {
  const [signature, data] = [text(block.signature), text(block.data)];
  if (block.type === "thinking" && signature !== "") {
    return [{ type: "thinking", thinking: text(block.thinking), signature }];
  }
  return block.type === "redacted_thinking" && data !== "" ? [{ type: "redacted_thinking", data }] : [];
}

/** Whether the order is the one that goes without saying: thinking, then one text, then the calls. */
export function isPlain(layout: Layout): boolean {
  const order = layout.map((block) => ["thinking", "text", "tool_use"].indexOf(kindOf(block)));
  const texts = order.filter((kind) => kind === 1).length;
  return texts <= 1 && order.every((kind, index) => index === 0 || kind >= (order[index - 1] ?? 0));
}

function kindOf(block: Layout[number]): string {
  return typeof block === "string" ? block : "text";
}

/** The layout of a message, if it has one that fits what the message holds. */
export function readLayout(message: AssistantMessage, thinkingCount: number): Layout | undefined {
  const { anthropic_layout: layout, content, tool_calls: calls = [] } = message;
  if (!Array.isArray(layout)) return undefined;
  const length = content?.length ?? 0;
  const count = { thinking: 0, tool_use: 0 };
  let at = 0;
  for (const block of layout as readonly unknown[]) {
    if (block === "thinking" || block === "tool_use") {
      count[block]++;
      continue;
    }
    if (!isSpan(block) || block[0] < at || block[1] <= block[0] || block[1] > length) return undefined;
    // Nothing of the text may be lost but the blank lines that were put between two blocks.
    if ((content ?? "").slice(at, block[0]).trim() !== "") return undefined;
    at = block[1];
  }
  const isWhole = (content ?? "").slice(at).trim() === "" && count.tool_use === calls.length;
  return isWhole && count.thinking === thinkingCount ? layout : undefined;
}

function isSpan(block: unknown): block is [number, number] {
  return Array.isArray(block) && block.length === 2 && block.every(Number.isInteger);
}
