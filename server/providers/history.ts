/** Builds and reads the messages of a conversation. */

import { createHash } from "node:crypto";
import { decodedBytes, MEDIA_TYPES, type MediaType, type ReceivedFile } from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  FilePart,
  HistoryMessage,
  HistoryToolCall,
  ImagePart,
  OmittedFile,
  OmittedPart,
  TextPart,
  ToolContent,
  ToolMessage,
  Usage,
  UserMessage,
} from "../protocol/chat.ts";
import { isRecord, tryParse } from "../protocol/json.ts";
import type { ResultSource } from "../protocol/sources.ts";
import type { ModelEvent, ToolCall, ToolSpec, TurnFinish } from "./provider.ts";

/** The result that the model gets for a call that was never finished. */
export const CANCELLED = textContent("Cancelled: the run ended before this call was finished.");

export function textContent(text: string): TextPart[] {
  return [{ type: "text", text }];
}

export function toolMessage(id: string, content: readonly ToolContent[], failed: boolean): ToolMessage {
  return { role: "tool", tool_call_id: id, content: plainIfText(content), ...(failed ? { is_error: true } : {}) };
}

/** The text of a call's result, for an API that has a flag for a failure. */
export function outputText(result: ToolMessage): string {
  return resultWords(partsOf(result), result.sources);
}

/** The words of a result: its own or, if it has none, those of its sources. */
export function resultWords(parts: readonly ContentPart[], sources: readonly ResultSource[] = []): string {
  const words = ({ title, url, text }: ResultSource) => [title, url, text].filter(Boolean).join("\n");
  return textOf(parts) || sources.map(words).join("\n\n");
}

export function picturesIn(result: ToolMessage): ImagePart[] {
  return partsOf(result).filter((part) => part.type !== "text");
}

/** The text of a call's result, for an API that has no flag for a failure. */
export function resultText(result: ToolMessage): string {
  return result.is_error === true ? `Error: ${outputText(result)}` : outputText(result);
}

export function userMessage(message: string, attachments: readonly ReceivedFile[]): UserMessage {
  if (attachments.length === 0) return { role: "user", content: message };
  // Several APIs refuse an empty text part.
  const text = message === "" ? [] : textContent(message);
  return { role: "user", content: [...text, ...attachments.map(attachmentPart)] };
}

/** The content of a message: one string if all parts are text. */
function plainIfText<Part extends ContentPart>(parts: readonly Part[]): string | Part[] {
  return parts.every(({ type }) => type === "text") ? textOf(parts) : [...parts];
}

function attachmentPart({ type, name, url, text }: ReceivedFile): ContentPart {
  if (text !== undefined) return { type: "text", text: fencedText(name, text) };
  if (type === "image") return { type: "image_url", image_url: { url } };
  return { type: "file", file: { filename: name, file_data: url } };
}

/** A text file as models get it: the fence is longer than any in the text, so the text cannot end it. */
export function fencedText(name: string, text: string): string {
  // Not `Math.max(...)`: there may be more runs than a function can take arguments.
  const longest = (text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = "`".repeat(longest + 1);
  return `${name}\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** A part as models get it. */
export type ReadPart = Exclude<ContentPart, OmittedPart>;

/** The parts of a message: plain text is one part, and a text replaces a file that was omitted. */
export function partsOf<Part extends ContentPart>(message: {
  role: HistoryMessage["role"];
  content: string | Part[];
}): (Part & ReadPart)[];
export function partsOf({
  role,
  content,
}: {
  role: HistoryMessage["role"];
  content: string | ContentPart[];
}): ReadPart[] {
  if (typeof content === "string") return textContent(content);
  return content.map((part) => (part.type === "omitted" ? noLongerIncluded(part.omitted, role) : part));
}

/** The text that replaces a file which a message of this role leaves out. */
function noLongerIncluded(
  { name = "an image", mime_type: mediaType, bytes }: Omit<OmittedFile, "sha256">,
  role: HistoryMessage["role"],
): TextPart {
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const [what, where] = role === "tool" ? ["a picture", "in this result"] : [name, "attached here"];
  const file = `${what} (${MEDIA_TYPES[mediaType].label}, ${size})`;
  return { type: "text", text: `[${file} was ${where} earlier and is no longer included]` };
}

export function textOf(parts: readonly ContentPart[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** A file's name for use in texts, and the contents of its `data:` URL, which `check-history.ts` has checked. */
export function fileOf(part: FilePart): { name: string; mediaType: MediaType; base64: string } {
  const [name, url] =
    part.type === "file" ? [part.file.filename, part.file.file_data] : ["an image", part.image_url.url];
  const comma = url.indexOf(",");
  const mediaType = url.slice("data:".length, comma).split(";", 1)[0] as MediaType;
  return { name, mediaType, base64: url.slice(comma + 1) };
}

/** The part with a description of its file in `omitted`. */
export function withDigest(part: FilePart): FilePart {
  const { mediaType, base64 } = fileOf(part);
  const sha256 = createHash("sha256").update(base64, "base64").digest("base64url");
  const name = part.type === "file" ? { name: part.file.filename } : {};
  return { ...part, omitted: { sha256, mime_type: mediaType, bytes: decodedBytes(base64), ...name } };
}

/** The messages with a digest beside each file, so that a client may leave it out. */
export function withDigests(messages: readonly HistoryMessage[]): HistoryMessage[] {
  return messages.map((message) => {
    if (message.role === "assistant" || typeof message.content === "string") return message;
    const content = message.content.map((part: ContentPart) => {
      return part.type === "text" || part.type === "omitted" || part.omitted ? part : withDigest(part);
    });
    return { ...message, content } as HistoryMessage;
  });
}

/** The text that replaces a file that an earlier model accepted, but this model does not. */
export function unreadable(name: string, mediaType: MediaType): string {
  return `[${name} (${MEDIA_TYPES[mediaType].label}) was attached here, which this model cannot read]`;
}

/** A message of calls alone has no content. */
export function assistantMessage(said: string, calls: HistoryToolCall[]): AssistantMessage {
  return {
    role: "assistant",
    content: said === "" && calls.length > 0 ? null : said,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

export function toHistoryCall({ id, name, arguments: written }: ToolCall): HistoryToolCall {
  return { id, type: "function", function: { name, arguments: written } };
}

/** How many pieces of a text are joined at once. */
const PIECES = 256;

/**
 * A text that grows by one token at a time. With `+=`, V8 keeps it as a tree with a node for each token, and every
 * large garbage collection visits all nodes: with hundreds of streams, that delays the tokens.
 */
export class StringBuilder {
  #text = "";
  #pieces: string[] = [];
  /** Counted in UTF-16 units, as in a string. */
  length = 0;

  append(piece: string): void {
    this.length += piece.length;
    if (this.#pieces.push(piece) === PIECES) this.#join();
  }

  toString(): string {
    this.#join();
    return this.#text;
  }

  #join(): void {
    this.#text += this.#pieces.join("");
    this.#pieces = [];
  }
}

export function endEvent(finish: TurnFinish, usage: Usage | undefined): ModelEvent {
  return { type: "end", finish, ...(usage === undefined ? {} : { usage }) };
}

/** The arguments of a call as an object: APIs accept nothing else. Any other text is kept for the model to read. */
export function argumentsOf(call: HistoryToolCall): Record<string, unknown> {
  const { arguments: written } = call.function;
  const value = tryParse(written);
  return isRecord(value) ? value : { unparsed_arguments: written };
}

/** The arguments of a call as JSON. Servers parse them: invalid ones would make each later request fail. */
export function sentArguments(call: HistoryToolCall): string {
  const { arguments: written } = call.function;
  return isRecord(tryParse(written)) ? written : JSON.stringify(argumentsOf(call));
}

/** Returns `written` as the JSON of one object, which every tool accepts. A text that is no object is returned unchanged. */
export function callArguments(written: string, tool: string, tools: readonly ToolSpec[]): string {
  const value = objectIn(written);
  if (value === undefined) return written;
  const fitted = JSON.stringify(fit(value, tools.find(({ name }) => name === tool)?.parameters));
  // The model's own text, if nothing in it had to be changed.
  return isRecord(tryParse(written)) && fitted === JSON.stringify(value) ? written : fitted;
}

/** The object that the text means. An empty text and "null" mean an object without fields. */
function objectIn(written: string): Record<string, unknown> | undefined {
  if (written.trim() === "") return {};
  // Some servers send `{}` before the pieces of the real arguments.
  const parsed = tryParse(written);
  const value = parsed === undefined ? tryParse(written.replace(/^(?:\s*\{\s*\})+(?=\s*\{)/, "")) : parsed;
  if (isRecord(value)) return value;
  if (value === null) return {};
  // JSON that was encoded twice.
  return typeof value === "string" ? objectIn(value) : undefined;
}

/** Decodes lists and objects that are JSON strings where the schema allows only a list or an object. */
function fit(value: unknown, schema: unknown): unknown {
  if (!isRecord(schema)) return value;
  const { type, properties, items } = schema;
  if (typeof value === "string" && (type === "array" || type === "object")) {
    const inner = tryParse(value);
    return (type === "array" ? Array.isArray(inner) : isRecord(inner)) ? fit(inner, schema) : value;
  }
  if (Array.isArray(value)) return value.map((item) => fit(item, items));
  if (!isRecord(value) || !isRecord(properties)) return value;
  const schemaOf = (name: string) => (Object.hasOwn(properties, name) ? properties[name] : undefined);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, fit(field, schemaOf(name))]));
}

/** Every tool call of a history, in order. */
export function callsOf(history: readonly HistoryMessage[]): HistoryToolCall[] {
  return history.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
}

/** Whether a refusal with these words may only be quoting the conversation, which the visitor wrote. */
export function mayBeQuoted(words: RegExp, history: readonly HistoryMessage[]): boolean {
  return words.test(JSON.stringify(history));
}

/**
 * The history as it leaves the server. The client sends it back with each message, so it must not grow without bound: a
 * text replaces every file with more than `maxChars` characters of base64, and the oldest of the other files until the
 * rest is within that limit.
 */
export function slimHistory(history: readonly HistoryMessage[], maxChars: number): HistoryMessage[] {
  const dropped = partsToDrop(history, maxChars);
  if (dropped.size === 0) return [...history];
  return history.map((message) => {
    if (message.role === "assistant" || typeof message.content === "string") return message;
    // Every message with parts may contain text parts.
    return { ...message, content: message.content.map((part) => dropped.get(part) ?? part) } as HistoryMessage;
  });
}

/** The parts that exceed the limit, each with the text that replaces it. */
function partsToDrop(history: readonly HistoryMessage[], maxChars: number): Map<ContentPart, TextPart> {
  const dropped = new Map<ContentPart, TextPart>();
  let chars = 0;
  for (const message of history.toReversed()) {
    if (message.role === "assistant") continue;
    for (const part of partsOf<ContentPart>(message).toReversed()) {
      if (part.type === "text") continue;
      const { name, mediaType, base64 } = fileOf(part);
      if (base64.length <= maxChars) chars += base64.length;
      if (base64.length <= maxChars && chars <= maxChars) continue;
      dropped.set(part, noLongerIncluded({ name, mime_type: mediaType, bytes: decodedBytes(base64) }, message.role));
    }
  }
  return dropped;
}
