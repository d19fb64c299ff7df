import type { ContentBlock, ImageFormat, Message } from "@aws-sdk/client-bedrock-runtime";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import type { ForgottenThinking } from "../anthropic/forgotten-thinking.ts";
import { readLayout } from "../anthropic/thinking.ts";
import { ProviderError } from "../failures/provider-error.ts";
import { argumentsOf } from "../history/calls.ts";
import { textOfResult } from "../history/tool-output.ts";
import { LABEL } from "./failures.ts";
import { familyOf } from "./family.ts";
import { DocumentNames, ToolUseIds, toolUseName } from "./names.ts";
import { reasoningContent } from "./thinking.ts";

type ToolInput = NonNullable<ContentBlock["toolUse"]>["input"];

/** https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html */
const MAX_DOCUMENTS = 5;

/** Blank text is refused, and so is a document without a text beside it. */
const NO_TEXT = "(no text)";

/**
 * The history as Converse takes it: user first, user and assistant in turns, nothing empty.
 * Reasoning of the `forgotten` messages stays behind.
 * @throws ProviderError when the newest message holds more documents than a request may
 */
export function converseMessages(
  history: readonly HistoryMessage[],
  model: string,
  forgotten: Pick<ForgottenThinking, "has">,
): Message[] {
  const converter = new Converter(history, model);
  const thinking = new Set(thinkingMessages(history).filter((message) => !forgotten.has(message)));
  const messages: { role: "user" | "assistant"; content: ContentBlock[] }[] = [];
  for (const message of history) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = converter.convert(message, thinking);
    const before = messages.at(-1);
    if (content.length === 0) continue;
    if (before?.role === role) before.content.push(...content);
    else messages.push({ role, content });
  }
  if (messages[0]?.role === "assistant") {
    messages.unshift({ role: "user", content: [{ text: NO_TEXT }] });
  }
  return messages;
}

class Converter {
  readonly #ids: ToolUseIds;
  readonly #names = new DocumentNames();
  readonly #dropped: ReadonlySet<ContentPart>;
  readonly #knowsStatus: boolean;

  constructor(history: readonly HistoryMessage[], model: string) {
    const { maker } = familyOf(model);
    this.#ids = new ToolUseIds(model);
    this.#dropped = documentsToDrop(
      history,
      history.findLastIndex((message) => message.role === "user"),
    );
    this.#knowsStatus = maker === "claude" || maker === "nova";
  }

  convert(message: HistoryMessage, thinking: ReadonlySet<HistoryMessage>): ContentBlock[] {
    switch (message.role) {
      case "user":
        return this.#user(message);
      case "assistant":
        return this.#assistant(message, thinking.has(message));
      case "tool":
        return [this.#toolResult(message)];
    }
  }

  #user({ content }: UserMessage): ContentBlock[] {
    const parts: ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const blocks = parts.flatMap((part) => this.#part(part));
    const hasText = blocks.some((block) => block.text !== undefined);
    const needsText = blocks.length === 0 || blocks.some((block) => block.document !== undefined);
    return needsText && !hasText ? [{ text: NO_TEXT }, ...blocks] : blocks;
  }

  #part(part: ContentPart): ContentBlock[] {
    switch (part.type) {
      case "text":
        return textBlock(part.text);
      case "image_url":
        return [image(part.image_url.url)];
      case "file": {
        const { filename, file_data } = part.file;
        if (this.#dropped.has(part)) {
          return [{ text: `[${filename} (PDF) was attached here earlier and is no longer included]` }];
        }
        const name = this.#names.name(filename);
        return [{ document: { format: "pdf", name, source: { bytes: bytesOf(file_data) } } }];
      }
    }
  }

  #assistant(message: AssistantMessage, hasThinking: boolean): ContentBlock[] {
    const content = message.content ?? "";
    const uses = (message.tool_calls ?? []).map((call) => this.#toolUse(call));
    const thinking = hasThinking ? reasoningContent(message) : [];
    const layout = thinking.length === 0 ? undefined : readLayout(message, thinking.length);
    if (layout === undefined) return [...thinking, ...textBlock(content), ...uses];
    return layout.flatMap((block) => {
      if (block === "thinking") return thinking.splice(0, 1);
      return block === "tool_use" ? uses.splice(0, 1) : textBlock(content.slice(...block));
    });
  }

  #toolUse(call: HistoryToolCall): ContentBlock {
    const toolUseId = this.#ids.begin(call.id);
    // What was parsed from JSON is what the package calls a document.
    const input = argumentsOf(call) as ToolInput;
    return { toolUse: { toolUseId, name: toolUseName(call.function.name), input } };
  }

  #toolResult(result: ToolMessage): ContentBlock {
    const text = this.#knowsStatus ? result.content : textOfResult(result);
    return {
      toolResult: {
        toolUseId: this.#ids.answer(result.tool_call_id),
        content: [{ text: text.trim() === "" ? "(no output)" : text }],
        ...(this.#knowsStatus && result.is_error ? { status: "error" } : {}),
      },
    };
  }
}

/**
 * The messages whose reasoning the model wants back: it belongs to the tool calls that it led to. That of
 * earlier messages has done its work, and may be of another model, whose signatures this one would refuse.
 */
export function thinkingMessages(history: readonly HistoryMessage[]): AssistantMessage[] {
  const start = workStart(history);
  return history.filter(
    (message, index): message is AssistantMessage =>
      index > start && message.role === "assistant" && message.thinking_blocks !== undefined,
  );
}

/**
 * Where the message begins that the model is at work on. What the user says right after a tool's result is
 * part of the same work: to the API both are one message, and the calls before it must keep their reasoning.
 */
function workStart(history: readonly HistoryMessage[]): number {
  const isUser = (message: HistoryMessage) => message.role === "user";
  let start = history.findLastIndex(isUser);
  while (start > 0 && history[start - 1]?.role === "tool") {
    start = history.slice(0, start).findLastIndex(isUser);
  }
  return start;
}

/** The oldest documents beyond what one request may hold. Those of the newest message all have to go. */
function documentsToDrop(history: readonly HistoryMessage[], newest: number): Set<ContentPart> {
  const dropped = new Set<ContentPart>();
  let count = 0;
  for (const [index, message] of [...history.entries()].toReversed()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const part of message.content.toReversed()) {
      if (part.type === "file" && ++count > MAX_DOCUMENTS) dropped.add(part);
    }
    if (index === newest && dropped.size > 0) {
      const limit = `${LABEL} takes at most ${MAX_DOCUMENTS} PDF files in one message.`;
      throw new ProviderError("invalid_request", limit);
    }
  }
  return dropped;
}

function textBlock(text: string): ContentBlock[] {
  return text.trim() === "" ? [] : [{ text }];
}

const IMAGE_FORMATS: ReadonlyMap<string, ImageFormat> = new Map([
  ["image/jpeg", "jpeg"],
  ["image/png", "png"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
]);

function image(url: string): ContentBlock {
  const format = IMAGE_FORMATS.get(/^data:([^;,]*)/.exec(url)?.[1] ?? "");
  if (format !== undefined) return { image: { format, source: { bytes: bytesOf(url) } } };
  return { text: "[an image of a type that is not taken was attached here]" };
}

function bytesOf(dataUrl: string): Uint8Array {
  return Buffer.from(dataUrl.slice(dataUrl.indexOf(",") + 1), "base64");
}
