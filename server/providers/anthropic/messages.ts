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
import { argumentsOf } from "../history/calls.ts";
import { readLayout, thinkingBlocks } from "./thinking.ts";

type Block = Anthropic.ContentBlockParam;
type Turn = { role: "user" | "assistant"; content: Block[] };

/**
 * The history in the form of the Messages API: user and assistant take turns, and the user is first. Extra
 * fields of other providers stay behind. `hasThinking` says whose thinking goes back.
 */
export function toMessages(
  history: readonly HistoryMessage[],
  hasThinking: (message: AssistantMessage) => boolean,
): Turn[] {
  const turns: Turn[] = [];
  const ids = new ToolUseIds();
  for (const message of history) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message, ids, hasThinking);
    const before = turns.at(-1);
    if (before?.role === role) before.content.push(...content);
    else if (content.length > 0) turns.push({ role, content });
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [textBlock(NOTHING)] });
  return turns;
}

/** The API refuses a text without a visible character, and a message without a block. */
const NOTHING = "[empty message]";

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
  const files = parts.filter((part) => part.type !== "text").map(fileBlock);
  const texts = parts.flatMap((part) => (part.type === "text" ? visibleText(part.text) : []));
  return files.length + texts.length > 0 ? [...files, ...texts] : [textBlock(NOTHING)];
}

function fileBlock(part: Exclude<ContentPart, { type: "text" }>): Block {
  const url = part.type === "file" ? part.file.file_data : part.image_url.url;
  const [, mediaType = "", data = ""] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
  if (!isMediaType(mediaType)) {
    return textBlock("[A file of a kind that this model cannot read was attached here.]");
  }
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
  const { content, tool_calls: calls = [] } = message;
  const thinking = hasThinking ? thinkingBlocks(message) : [];
  const uses = calls.map((call) => toolUse(call, ids));
  const layout = thinking.length === 0 ? undefined : readLayout(message, thinking.length);
  if (layout === undefined) {
    const said = visibleText(content ?? "");
    // Thoughts alone are no turn.
    return said.length + uses.length === 0 ? [] : [...thinking, ...said, ...uses];
  }
  return layout.flatMap((block): Block[] => {
    if (block === "thinking") return thinking.splice(0, 1);
    if (block === "tool_use") return uses.splice(0, 1);
    return visibleText((content ?? "").slice(...block));
  });
}

function toolUse(call: HistoryToolCall, ids: ToolUseIds): Block {
  return {
    type: "tool_use",
    id: ids.open(call.id),
    name: toolName(call.function.name),
    input: argumentsOf(call),
  };
}

function toolResult({ tool_call_id: id, content, is_error }: ToolMessage, ids: ToolUseIds): Block {
  const isEmpty = content.trim() === "";
  return {
    type: "tool_result",
    tool_use_id: ids.answered(id),
    ...(isEmpty ? {} : { content }),
    // The API refuses an error without a text, which only a client's own history has.
    ...(is_error && !isEmpty ? { is_error: true } : {}),
  };
}

function visibleText(text: string): Anthropic.TextBlockParam[] {
  return text.trim() === "" ? [] : [textBlock(text)];
}

function textBlock(text: string): Anthropic.TextBlockParam {
  return { type: "text", text };
}

/** A name as the API takes it: what a model of another provider made up must not break the request. */
export function toolName(name: string): string {
  return name.replace(NOT_IN_NAMES, "_").slice(0, 128) || "_";
}

const NOT_IN_NAMES = /[^a-zA-Z0-9_-]/g;

/** Ids of calls as the API takes them: of few characters, and each only once in a conversation. */
class ToolUseIds {
  readonly #used = new Set<string>();
  /** By the id in the history, which an earlier call may have had too. */
  readonly #latest = new Map<string, string>();

  open(id: string): string {
    const base = id.replace(NOT_IN_NAMES, "_");
    let sent = base;
    for (let again = 2; this.#used.has(sent); again++) sent = `${base}_${again}`;
    this.#used.add(sent);
    this.#latest.set(id, sent);
    return sent;
  }

  answered(id: string): string {
    return this.#latest.get(id) ?? id;
  }
}
