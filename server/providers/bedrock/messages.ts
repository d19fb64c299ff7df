/** The history as Converse takes it. */

import type { ContentBlock, ImageFormat, Message } from "@aws-sdk/client-bedrock-runtime";
import type { MediaType } from "../../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  HistoryToolCall,
  ToolMessage,
  UserMessage,
} from "../../protocol/chat.ts";
import { inOrder, type ThinkingBlock, thinkingBlocks } from "../claude/thinking.ts";
import { providerError } from "../failures.ts";
import { argumentsOf, resultText } from "../history.ts";
import { LABEL } from "./failures.ts";
import { makerOf } from "./models.ts";

type ToolInput = NonNullable<ContentBlock["toolUse"]>["input"];

/** https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html */
const MAX_DOCUMENTS = 5;

/** The API refuses blank text, and a document without a text beside it. */
const NO_TEXT = "(no text)";

/**
 * User and assistant alternate, the user begins, and nothing is empty. `isForgotten` says of which messages the reasoning does
 * not go back. @throws ApiError when the newest message holds more documents than a request may
 */
export function converseMessages(
  history: readonly HistoryMessage[],
  model: string,
  isForgotten: (message: HistoryMessage) => boolean,
): Message[] {
  const converter = new Converter(history, model, isForgotten);
  const messages: { role: "user" | "assistant"; content: ContentBlock[] }[] = [];
  for (const message of history) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = converter.convert(message);
    const before = messages.at(-1);
    if (content.length === 0) continue;
    if (before?.role === role) before.content.push(...content);
    else messages.push({ role, content });
  }
  if (messages[0]?.role === "assistant") messages.unshift({ role: "user", content: [{ text: NO_TEXT }] });
  return messages;
}

class Converter {
  readonly #ids: ToolUseIds;
  readonly #names = new DocumentNames();
  readonly #dropped: ReadonlySet<ContentPart>;
  readonly #thinking: ReadonlySet<HistoryMessage>;
  readonly #knowsStatus: boolean;

  constructor(history: readonly HistoryMessage[], model: string, isForgotten: (message: HistoryMessage) => boolean) {
    const maker = makerOf(model);
    this.#ids = new ToolUseIds(model);
    this.#dropped = documentsToDrop(history);
    this.#thinking = new Set(thinkingMessages(history).filter((message) => !isForgotten(message)));
    this.#knowsStatus = maker === "claude" || maker === "nova";
  }

  convert(message: HistoryMessage): ContentBlock[] {
    switch (message.role) {
      case "user":
        return this.#user(message);
      case "assistant":
        return this.#assistant(message);
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
        return [
          { document: { format: "pdf", name: this.#names.name(filename), source: { bytes: bytesOf(file_data) } } },
        ];
      }
    }
  }

  #assistant(message: AssistantMessage): ContentBlock[] {
    return inOrder<ContentBlock>(message, {
      thinking: this.#thinking.has(message) ? thinkingBlocks(message).map(reasoning) : [],
      uses: (message.tool_calls ?? []).map((call) => this.#toolUse(call)),
      text: textBlock,
    });
  }

  #toolUse(call: HistoryToolCall): ContentBlock {
    const toolUseId = this.#ids.begin(call.id);
    // A value that was parsed from JSON is what the package calls a document.
    const input = argumentsOf(call) as ToolInput;
    return { toolUse: { toolUseId, name: toolUseName(call.function.name), input } };
  }

  #toolResult(message: ToolMessage): ContentBlock {
    const text = this.#knowsStatus ? message.content : resultText(message);
    return {
      toolResult: {
        toolUseId: this.#ids.answer(message.tool_call_id),
        content: [{ text: text.trim() === "" ? "(no output)" : text }],
        ...(this.#knowsStatus && message.is_error ? { status: "error" } : {}),
      },
    };
  }
}

function reasoning(block: ThinkingBlock): ContentBlock {
  if (block.type === "redacted_thinking") {
    return { reasoningContent: { redactedContent: Buffer.from(block.data, "base64") } };
  }
  return { reasoningContent: { reasoningText: { text: block.thinking, signature: block.signature } } };
}

/**
 * The messages whose reasoning the model wants back: it belongs to the tool calls that it led to. That of earlier messages has
 * done its work, and may be of another model, whose signatures this one would refuse.
 */
export function thinkingMessages(history: readonly HistoryMessage[]): AssistantMessage[] {
  const start = workStart(history);
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

/** The oldest documents beyond those that one request may hold. All those of the newest message have to go along. */
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

const IMAGE_FORMATS = new Map<string, ImageFormat>(
  Object.entries({
    "image/jpeg": "jpeg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
  } satisfies Record<Exclude<MediaType, "application/pdf">, ImageFormat>),
);

function image(url: string): ContentBlock {
  const format = IMAGE_FORMATS.get(/^data:([^;,]*)/.exec(url)?.[1] ?? "");
  if (format !== undefined) return { image: { format, source: { bytes: bytesOf(url) } } };
  return { text: "[an image of a type that is not taken was attached here]" };
}

function bytesOf(dataUrl: string): Uint8Array {
  return Buffer.from(dataUrl.slice(dataUrl.indexOf(",") + 1), "base64");
}

/** Gives each tool call of a history an id that the model takes, and its result the same one. */
class ToolUseIds {
  readonly #form: RegExp;
  readonly #used = new Set<string>();
  readonly #latest = new Map<string, string>();

  constructor(model: string) {
    this.#form = ID_FORMS[makerOf(model)] ?? /^[\w-]{1,64}$/;
  }

  /** The id for a call. */
  begin(id: string): string {
    const own = this.#form.test(id) && !this.#used.has(id) ? id : this.#mint();
    this.#used.add(own);
    this.#latest.set(id, own);
    return own;
  }

  /** The id for the result of the latest call that had this id. */
  answer(id: string): string {
    return this.#latest.get(id) ?? id;
  }

  /** Counted, not random: a model's reasoning may be bound to the history that it was given. */
  #mint(): string {
    for (let count = this.#used.size; ; count++) {
      const id = `call${String(count).padStart(5, "0")}`;
      if (!this.#used.has(id)) return id;
    }
  }
}

const ID_FORMS: Readonly<Record<string, RegExp>> = {
  mistral: /^[a-zA-Z0-9]{9}$/,
  // It names its calls "functions.read_file:1", and reads these names.
  kimi: /^[\w.:-]{1,64}$/,
};

/** A tool's name; a model may have made one up that the API would refuse. */
export function toolUseName(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_").slice(0, 64) || "_";
}

/** The longest document name, without a number after it. */
const MAX_NAME_CHARS = 190;

/** Names documents after their files; two of one request must not have the same name. */
class DocumentNames {
  readonly #used = new Set<string>();

  /**
   * Letters and digits of ASCII, single spaces, hyphens, parentheses and square brackets are all that is taken.
   * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html
   */
  name(filename: string): string {
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
    for (let count = 2; this.#used.has(name); count++) name = `${base} (${count})`;
    this.#used.add(name);
    return name;
  }
}
