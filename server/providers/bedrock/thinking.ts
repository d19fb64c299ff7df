/** Reasoning in the history: `thinking_blocks` of an assistant message, in the form that LiteLLM made common. */

import type { ContentBlock } from "@aws-sdk/client-bedrock-runtime";
import type { AssistantMessage } from "../../protocol/chat.ts";
import { isRecord } from "../../protocol/is-record.ts";
import { text } from "../text.ts";

/** A block of reasoning that the model wants back as it was. */
export type ThinkingBlock =
  | { type: "thinking"; thinking: string; signature: string }
  /** `data` is the base64 of the encrypted bytes. */
  | { type: "redacted_thinking"; data: string };

/**
 * A block to keep; `undefined` for reasoning without a signature. No model needs that back, some refuse it,
 * and some repeat it aloud.
 */
export function thinkingBlock(block: {
  text: string;
  signature: string;
  redacted: readonly Uint8Array[];
}): ThinkingBlock | undefined {
  const { text: thinking, signature, redacted } = block;
  if (redacted.length > 0) {
    return { type: "redacted_thinking", data: Buffer.concat(redacted).toString("base64") };
  }
  return signature === "" ? undefined : { type: "thinking", thinking, signature };
}

/** The reasoning of an earlier turn as Converse takes it back. What is not of this form is left out. */
export function reasoningContent(message: AssistantMessage): ContentBlock[] {
  const blocks: unknown = message.thinking_blocks;
  return Array.isArray(blocks) ? blocks.flatMap(toContent) : [];
}

function toContent(block: unknown): ContentBlock[] {
  if (!isRecord(block)) return [];
  const [signature, data] = [text(block.signature), text(block.data)];
  if (block.type === "thinking" && signature !== "") {
    const reasoningText = { text: text(block.thinking), signature };
    return [{ reasoningContent: { reasoningText } }];
  }
  if (block.type !== "redacted_thinking" || data === "") return [];
  return [{ reasoningContent: { redactedContent: Buffer.from(data, "base64") } }];
}
