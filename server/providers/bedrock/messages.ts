/** The history in the form of the Converse API. */

import type { ContentBlock, ImageBlock, ImageFormat, Message } from "@aws-sdk/client-bedrock-runtime";
import type { ImageType } from "../../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  FilePart,
  HistoryMessage,
  HistoryToolCall,
  ImagePart,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import {
  alternating,
  inOrder,
  NO_TEXT,
  type ThinkingBlock,
  ToolUseIds,
  thinkingBlocks,
  toolUseName,
} from "../claude/messages.ts";
import { providerError } from "../failures.ts";
import { argumentsOf, fileOf, outputText, partsOf, picturesIn } from "../history.ts";
import { textBeforePictures, withPicturesAfter } from "../result-pictures.ts";
import { LABEL } from "./failures.ts";
import { type Maker, makerOf } from "./models.ts";

type ToolInput = NonNullable<ContentBlock["toolUse"]>["input"];

/** https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html */
const MAX_DOCUMENTS = 5;

/**
 * `isForgotten` says whether a message's reasoning is left out. @throws ApiError when the newest message has more
 * documents than a request may contain
 */
export function converseMessages(
  history: readonly HistoryMessage[],
  model: string,
  isForgotten: (message: HistoryMessage) => boolean,
): Message[] {
  const maker = makerOf(model);
  const ids = new ToolUseIds(ID_FORMS[maker]);
  const nameDocument = documentNames();
  const dropped = documentsToDrop(history);
  const thinking = new Set<HistoryMessage>(thinkingMessages(history, maker).filter((message) => !isForgotten(message)));
  // Whether a result may have an error status, and pictures.
  const hasFullResults = maker === "claude" || maker === "nova";

  function userBlocks(message: UserMessage): ContentBlock[] {
    const blocks = partsOf(message).flatMap((part) => {
      if (part.type === "text") return textBlock(part.text);
      if (dropped.has(part))
        return { text: `[${fileOf(part).name} (PDF) was attached here earlier and is no longer included]` };
      return fileBlock(part, nameDocument);
    });
    // The API demands a text beside a document.
    const needsText = blocks.length === 0 || blocks.some(({ document }) => document !== undefined);
    return needsText && blocks.every(({ text }) => text === undefined) ? [{ text: NO_TEXT }, ...blocks] : blocks;
  }

  function toolUse(call: HistoryToolCall): ContentBlock {
    // A value that was parsed from JSON is what the package calls a document.
    const input = argumentsOf(call) as ToolInput;
    return { toolUse: { toolUseId: ids.begin(call.id), name: toolUseName(call.function.name), input } };
  }

  function toolResult(message: ToolMessage): ContentBlock {
    const text = hasFullResults ? outputText(message) : textBeforePictures(message);
    const pictures = hasFullResults ? picturesIn(message).map((part) => ({ image: imageOf(part) })) : [];
    const texts =
      text.trim() === "" && pictures.length > 0 ? [] : [{ text: text.trim() === "" ? "(no output)" : text }];
    return {
      toolResult: {
        toolUseId: ids.answer(message.tool_call_id),
        content: [...texts, ...pictures],
        ...(hasFullResults && message.is_error ? { status: "error" } : {}),
      },
    };
  }

  const blocksOf = (message: HistoryMessage): ContentBlock[] => {
    switch (message.role) {
      case "user":
        return userBlocks(message);
      case "assistant":
        return inOrder<ContentBlock>(message, {
          thinking: thinking.has(message) ? thinkingBlocks(message).map(reasoning) : [],
          uses: (message.tool_calls ?? []).map(toolUse),
          text: textBlock,
        });
      case "tool":
        return [toolResult(message)];
    }
  };
  return alternating(hasFullResults ? history : withPicturesAfter(history), blocksOf, { text: NO_TEXT });
}

function reasoning(block: ThinkingBlock): ContentBlock {
  if (block.type === "redacted_thinking") {
    return { reasoningContent: { redactedContent: Buffer.from(block.data, "base64") } };
  }
  return { reasoningContent: { reasoningText: { text: block.thinking, signature: block.signature } } };
}

/**
 * The messages whose reasoning is sent back. Claude gets all of it, so that each request begins like the previous one
 * and is read from the cache. Other models need it only with the tool calls that it led to: reasoning of earlier
 * messages is no longer needed, and may have signatures of another model, which this one would refuse.
 */
export function thinkingMessages(history: readonly HistoryMessage[], maker: Maker): AssistantMessage[] {
  const start = maker === "claude" ? -1 : workStart(history);
  return history.filter(
    (message, index): message is AssistantMessage =>
      index > start && message.role === "assistant" && message.thinking_blocks !== undefined,
  );
}

/**
 * The index of the user's message that the model works on. A message right after a tool's result is part of the same work: to
 * the API both are one message, and the calls before it must keep their reasoning.
 */
function workStart(history: readonly HistoryMessage[]): number {
  const isUser = (message: HistoryMessage) => message.role === "user";
  let start = history.findLastIndex(isUser);
  while (start > 0 && history[start - 1]?.role === "tool") start = history.slice(0, start).findLastIndex(isUser);
  return start;
}

/** The oldest documents beyond the limit of one request. All documents of the newest message must be sent. */
function documentsToDrop(history: readonly HistoryMessage[]): Set<ContentPart> {
  const newest = history.findLastIndex((message) => message.role === "user");
  const dropped = new Set<ContentPart>();
  let count = 0;
  for (const [index, message] of [...history.entries()].toReversed()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const part of message.content.toReversed()) {
      if (part.type === "file" && ++count > MAX_DOCUMENTS) dropped.add(part);
    }
    if (index === newest && dropped.size > 0) {
      const limit = `takes at most ${MAX_DOCUMENTS} PDF files in one message.`;
      throw providerError("invalid_request", `${LABEL} ${limit}`, { message: `The assistant ${limit}` });
    }
  }
  return dropped;
}

function textBlock(text: string): ContentBlock[] {
  return text.trim() === "" ? [] : [{ text }];
}

const IMAGE_FORMATS: Record<ImageType, ImageFormat> = {
  "image/jpeg": "jpeg",
  "image/png": "png",
  "image/gif": "gif",
  "image/webp": "webp",
};

function fileBlock(part: FilePart, nameDocument: (filename: string) => string): ContentBlock {
  if (part.type === "image_url") return { image: imageOf(part) };
  const { name, base64 } = fileOf(part);
  return { document: { format: "pdf", name: nameDocument(name), source: { bytes: Buffer.from(base64, "base64") } } };
}

function imageOf(part: ImagePart): ImageBlock {
  const { mediaType, base64 } = fileOf(part);
  return { format: IMAGE_FORMATS[mediaType as ImageType], source: { bytes: Buffer.from(base64, "base64") } };
}

/** The form of call ids that a maker's models accept; other models accept the form of Claude's. */
const ID_FORMS: Partial<Record<Maker, RegExp>> = {
  mistral: /^[a-zA-Z0-9]{9}$/,
  // Kimi names its calls "functions.read_file:1", and reads these names.
  kimi: /^[\w.:-]{1,64}$/,
};

/** The longest document name, without a number after it. */
const MAX_NAME_CHARS = 190;

/**
 * Names documents after their files; names must be unique in a request. The API accepts only ASCII letters and digits,
 * single spaces, hyphens, parentheses and square brackets.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html
 */
function documentNames(): (filename: string) => string {
  const used = new Set<string>();
  return (filename) => {
    const plain = filename
      .replace(/\.pdf$/i, "")
      .normalize("NFKD")
      .replaceAll(/\p{Mark}/gu, "")
      .replaceAll(/[^a-zA-Z0-9()[\]-]+/g, " ")
      .trim()
      .slice(0, MAX_NAME_CHARS)
      .trim();
    const base = plain === "" ? "document" : plain;
    let name = base;
    for (let count = 2; used.has(name); count++) name = `${base} (${count})`;
    used.add(name);
    return name;
  };
}
