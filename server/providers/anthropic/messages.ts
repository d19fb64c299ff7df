/** The history in the form of the Messages API. */

import type { ImageType, MediaType } from "../../protocol/attachments.ts";
import type { AssistantMessage, FilePart, HistoryMessage, ToolMessage, UserMessage } from "../../protocol/chat.ts";
import type { ResultSource } from "../../protocol/sources.ts";
import {
  type AlternatingMessage,
  alternating,
  inOrder,
  NO_TEXT,
  type ThinkingBlock,
  ToolUseIds,
  thinkingBlocks,
  toolUseName,
} from "../claude/messages.ts";
import { argumentsOf, fileOf, outputText, partsOf, picturesIn, resultText } from "../history.ts";

/** A content block of a request: https://docs.anthropic.com/en/api/messages */
export type Block =
  | TextBlock
  | { type: "image"; source: Base64Source<ImageType> }
  | { type: "document"; source: Base64Source<"application/pdf">; title?: string }
  | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> }
  | { type: "search_result"; source: string; title: string; content: TextBlock[]; citations: { enabled: true } }
  | { type: "tool_result"; tool_use_id: string; content?: string | Block[]; is_error?: boolean }
  | ThinkingBlock;

interface TextBlock {
  type: "text";
  text: string;
}

interface Base64Source<Type extends MediaType> {
  type: "base64";
  media_type: Type;
  data: string;
}

/** Leaves out extra fields of other providers. `hasThinking` says whether a message's thinking is sent back. */
export function toMessages(
  history: readonly HistoryMessage[],
  hasThinking: (message: AssistantMessage) => boolean,
): AlternatingMessage<Block>[] {
  const ids = new ToolUseIds();
  const blocksOf = (message: HistoryMessage): Block[] => {
    switch (message.role) {
      case "user":
        return userBlocks(message);
      case "assistant":
        return assistantBlocks(message, ids, hasThinking(message));
      case "tool":
        return [toolResult(message, ids)];
    }
  };
  return alternating(history, blocksOf, textBlock(NO_TEXT));
}

function userBlocks(message: UserMessage): Block[] {
  const parts = partsOf(message);
  // Claude understands a question best after the files that it is about.
  const files = parts.flatMap((part) => (part.type === "text" ? [] : [fileBlock(part)]));
  const texts = parts.flatMap((part) => (part.type === "text" ? visibleText(part.text) : []));
  return files.length + texts.length > 0 ? [...files, ...texts] : [textBlock(NO_TEXT)];
}

function fileBlock(part: FilePart): Block {
  const { name, mediaType, base64: data } = fileOf(part);
  if (mediaType !== "application/pdf") {
    return { type: "image", source: { type: "base64", media_type: mediaType, data } };
  }
  const title = name.trim() === "" ? {} : { title: name.trim() };
  return { type: "document", source: { type: "base64", media_type: mediaType, data }, ...title };
}

function assistantBlocks(message: AssistantMessage, ids: ToolUseIds, hasThinking: boolean): Block[] {
  const blocks = inOrder<Block>(message, {
    thinking: hasThinking ? thinkingBlocks(message) : [],
    uses: (message.tool_calls ?? []).map((call) => ({
      type: "tool_use",
      id: ids.begin(call.id),
      name: toolUseName(call.function.name),
      input: argumentsOf(call),
    })),
    text: visibleText,
  });
  // A message must not consist of thoughts alone.
  return blocks.some(({ type }) => type === "text" || type === "tool_use") ? blocks : [];
}

function toolResult(message: ToolMessage, ids: ToolUseIds): Block {
  const result = { type: "tool_result" as const, tool_use_id: ids.answer(message.tool_call_id) };
  const { sources = [], ...words } = message;
  // An error may contain only text.
  const found = message.is_error ? [] : sources.map(searchResult);
  const own = found.length > 0 ? words : message;
  const rest = [...picturesIn(message).map(fileBlock), ...found];
  if (rest.length > 0) return { ...result, content: [...visibleText(resultText(own)), ...rest] };
  const content = outputText(message);
  // The API refuses an error without content, so an empty one is sent without the flag.
  if (content.trim() === "") return result;
  return { ...result, content, ...(message.is_error ? { is_error: true } : {}) };
}

/** A source that the model can cite in its answer. The API demands a text in it. */
function searchResult({ title, url = title, text = "" }: ResultSource): Block {
  const content = [textBlock(text.trim() === "" ? title : text)];
  return { type: "search_result", source: url, title, content, citations: { enabled: true } };
}

function visibleText(text: string): TextBlock[] {
  return text.trim() === "" ? [] : [textBlock(text)];
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}
