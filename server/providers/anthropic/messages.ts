/** The history in the form of the Messages API. */

import type { Anthropic } from "@anthropic-ai/sdk";
import { isMediaType } from "../../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import { inOrder, thinkingBlocks } from "../claude/thinking.ts";
import { argumentsOf } from "../history.ts";

type Block = Anthropic.ContentBlockParam;

export interface AnthropicMessage {
  role: "user" | "assistant";
  content: Block[];
}

/**
 * User and assistant alternate, and the user begins. Extra fields of other providers are left out. `hasThinking` says of which
 * messages the thinking goes back.
 */
export function toMessages(
  history: readonly HistoryMessage[],
  hasThinking: (message: AssistantMessage) => boolean,
): AnthropicMessage[] {
  const messages: AnthropicMessage[] = [];
  const ids = new ToolUseIds();
  for (const message of history) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message, ids, hasThinking);
    const before = messages.at(-1);
    if (before?.role === role) before.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  if (messages[0]?.role !== "user") messages.unshift({ role: "user", content: [textBlock(EMPTY)] });
  return messages;
}

/** The API refuses a text without a visible character, and a message without a block. */
const EMPTY = "[empty message]";

function blocksOf(
  message: HistoryMessage,
  ids: ToolUseIds,
  hasThinking: (message: AssistantMessage) => boolean,
): Block[] {
  switch (message.role) {
    case "user":
      return userBlocks(message);
    case "assistant":
      return assistantBlocks(message, ids, hasThinking(message));
    case "tool":
      return [toolResult(message, ids)];
  }
}

function userBlocks({ content }: UserMessage): Block[] {
  const parts: ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  // Claude reads a question best after what it is about.
  const files = parts.flatMap((part) => (part.type === "text" ? [] : [fileBlock(part)]));
  const texts = parts.flatMap((part) => (part.type === "text" ? visibleText(part.text) : []));
  return files.length + texts.length > 0 ? [...files, ...texts] : [textBlock(EMPTY)];
}

function fileBlock(part: Exclude<ContentPart, { type: "text" }>): Block {
  const url = part.type === "file" ? part.file.file_data : part.image_url.url;
  const [, mediaType = "", data = ""] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
  if (!isMediaType(mediaType)) return textBlock("[A file of a kind that this model cannot read was attached here.]");
  if (mediaType !== "application/pdf") {
    return { type: "image", source: { type: "base64", media_type: mediaType, data } };
  }
  const title = part.type === "file" ? part.file.filename.trim() : "";
  return {
    type: "document",
    source: { type: "base64", media_type: mediaType, data },
    ...(title === "" ? {} : { title }),
  };
}

function assistantBlocks(message: AssistantMessage, ids: ToolUseIds, hasThinking: boolean): Block[] {
  const blocks = inOrder<Block>(message, {
    thinking: hasThinking ? thinkingBlocks(message) : [],
    uses: (message.tool_calls ?? []).map((call) => toolUse(call, ids)),
    text: visibleText,
  });
  // Thoughts alone are no message.
  return blocks.some(({ type }) => type === "text" || type === "tool_use") ? blocks : [];
}

function toolUse(call: HistoryToolCall, ids: ToolUseIds): Block {
  return { type: "tool_use", id: ids.open(call.id), name: toolName(call.function.name), input: argumentsOf(call) };
}

function toolResult({ tool_call_id: id, content, is_error }: ToolMessage, ids: ToolUseIds): Block {
  const result = { type: "tool_result" as const, tool_use_id: ids.answered(id) };
  // An error has to say something: the API refuses one without content.
  if (content.trim() === "") return result;
  return { ...result, content, ...(is_error ? { is_error: true } : {}) };
}

function visibleText(text: string): Anthropic.TextBlockParam[] {
  return text.trim() === "" ? [] : [textBlock(text)];
}

function textBlock(text: string): Anthropic.TextBlockParam {
  return { type: "text", text };
}

const NOT_IN_NAMES = /[^a-zA-Z0-9_-]/g;

/** A name as the API takes it: one that a model of another provider made up must not break the request. */
export function toolName(name: string): string {
  return name.replace(NOT_IN_NAMES, "_").slice(0, 128) || "_";
}

/** Ids of calls as the API takes them: of few characters, and each only once in a conversation. */
class ToolUseIds {
  readonly #used = new Set<string>();
  /** By the id in the history, which an earlier call may have had too. */
  readonly #latest = new Map<string, string>();

  open(id: string): string {
    const base = id.replace(NOT_IN_NAMES, "_");
    let sent = base;
    for (let count = 2; this.#used.has(sent); count++) sent = `${base}_${count}`;
    this.#used.add(sent);
    this.#latest.set(id, sent);
    return sent;
  }

  answered(id: string): string {
    return this.#latest.get(id) ?? id;
  }
}
