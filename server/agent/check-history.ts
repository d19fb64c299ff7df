/** Checks that a `conversation_history` from a client is one that a run could have produced. */

import type { Settings } from "../config/settings.ts";
import {
  type AttachmentType,
  isMediaType,
  isStrictBase64,
  MAX_ATTACHMENT_BYTES,
  MEDIA_TYPES,
} from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  ContentPart,
  HistoryMessage,
  OmittedFile,
  ToolMessage,
  UserMessage,
} from "../protocol/chat.ts";
import { type ApiError, invalidField } from "../protocol/errors.ts";
import { isRecord } from "../protocol/json.ts";
import { withDigest } from "../providers/history.ts";

export type HistoryLimits = Pick<Settings, "maxHistoryItems" | "maxHistoryBytes">;

const ROOT = "/state/conversation_history";

/**
 * Accepts only user, assistant and tool messages in Parley's format. Each call must have its result before the next
 * user or assistant message, and no URL may need fetching. Unknown fields are kept only on assistant messages and their
 * calls, because a provider may need them back.
 * @throws ApiError `invalid_state` with a pointer to the message, or `request_too_large`
 */
export function checkHistory(value: unknown, limits: HistoryLimits): HistoryMessage[] {
  if (!Array.isArray(value)) throw invalid(ROOT, "must be an array");
  checkSize(value, limits);
  const open = new Set<string>();
  const history = value.map((message, index) => checkMessage(message, `${ROOT}/${index}`, open));
  if (open.size > 0) throw invalid(ROOT, "ends with a tool call that has no result");
  return history;
}

/** Checks only the files: the signature of an open exchange proves the rest. @throws ApiError `invalid_state` */
export function checkFiles(messages: readonly unknown[], at: string): HistoryMessage[] {
  return messages.map((message, index) => {
    if (!isRecord(message) || message.role === "assistant" || !Array.isArray(message.content)) return message;
    return { ...message, content: checkUserContent(message.content, `${at}/${index}/content`) };
  }) as HistoryMessage[];
}

/** Maximum average number of values (numbers, texts, arrays, objects) per item: far more than any provider sends. */
const VALUES_PER_ITEM = 100;

/** Walks the history once, without recursion, and stops once it is too large. @throws ApiError `request_too_large` */
export function checkSize(
  history: readonly unknown[],
  { maxHistoryItems, maxHistoryBytes }: HistoryLimits,
  at = ROOT,
): void {
  const tooLarge = (problem: string) =>
    invalidField(at, `${problem} allowed. Start a new conversation`, "request_too_large");
  const items = history.reduce((sum: number, message) => sum + 1 + itemsIn(message), 0);
  if (items > maxHistoryItems) {
    throw tooLarge(`holds ${items} messages and parts; at most ${maxHistoryItems} are`);
  }
  let values = maxHistoryItems * VALUES_PER_ITEM;
  let bytes = maxHistoryBytes;
  const open: unknown[] = [...history];
  while (open.length > 0) {
    const value = open.pop();
    values--;
    if (typeof value === "string") bytes -= Buffer.byteLength(value);
    else if (Array.isArray(value)) {
      for (const item of value) open.push(item);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, field] of Object.entries(value)) {
        bytes -= key.length;
        open.push(field);
      }
    }
    if (bytes < 0) throw tooLarge(`is larger than the ${maxHistoryBytes} bytes that are`);
    if (values < 0) throw tooLarge("holds more values than are");
  }
}

function itemsIn(message: unknown): number {
  if (!isRecord(message)) return 0;
  const { content, tool_calls: calls } = message;
  return (Array.isArray(content) ? content.length : 0) + (Array.isArray(calls) ? calls.length : 0);
}

/** `open` holds the ids of tool calls that have no result yet. */
function checkMessage(message: unknown, at: string, open: Set<string>): HistoryMessage {
  if (!isRecord(message)) throw invalid(at, "must be an object");
  const { role, content } = message;
  if (role === "tool") return checkToolMessage(message, at, open);
  if (role !== "user" && role !== "assistant") {
    throw invalid(`${at}/role`, 'must be "user", "assistant" or "tool"');
  }
  if (open.size > 0) throw invalid(at, "comes before every tool call has its result");
  if (role === "user") return { role, content: checkUserContent(content, `${at}/content`) };
  return checkAssistantMessage(message, at, open);
}

function checkToolMessage(message: Record<string, unknown>, at: string, open: Set<string>): ToolMessage {
  const { tool_call_id: id, content, is_error, sources } = message;
  if (typeof id !== "string" || !open.delete(id)) {
    throw invalid(`${at}/tool_call_id`, "answers no tool call that is open");
  }
  const read = checkUserContent(content, `${at}/content`);
  if (!isToolContent(read)) throw invalid(`${at}/content`, "must be a string, or an array of texts and images");
  if (is_error !== undefined && typeof is_error !== "boolean") throw invalid(`${at}/is_error`, "must be true or false");
  const areSources = Array.isArray(sources) && sources.every(isSource);
  if (sources !== undefined && !areSources) throw invalid(`${at}/sources`, "must be sources with a title");
  const more = { ...(is_error === undefined ? {} : { is_error }), ...(areSources ? { sources } : {}) };
  return { role: "tool", tool_call_id: id, content: read, ...more };
}

function isSource(one: unknown): boolean {
  const { title, url = "", text = "" } = isRecord(one) ? one : {};
  return [title, url, text].every((field) => typeof field === "string");
}

function isToolContent(content: UserMessage["content"]): content is ToolMessage["content"] {
  return typeof content === "string" || content.every(({ type }) => type !== "file");
}

function checkAssistantMessage(message: Record<string, unknown>, at: string, open: Set<string>): AssistantMessage {
  const { content, tool_calls: calls = [] } = message;
  if (typeof content !== "string" && content !== null) throw invalid(`${at}/content`, "must be a string or null");
  if (!Array.isArray(calls)) throw invalid(`${at}/tool_calls`, "must be an array");
  for (const [index, call] of calls.entries()) open.add(checkCall(call, `${at}/tool_calls/${index}`, open));
  return message as AssistantMessage;
}

function checkCall(call: unknown, at: string, open: ReadonlySet<string>): string {
  if (!isRecord(call) || call.type !== "function" || !isRecord(call.function)) {
    throw invalid(at, 'must be an object with "type": "function" and a function');
  }
  if (typeof call.function.name !== "string" || typeof call.function.arguments !== "string") {
    throw invalid(`${at}/function`, "must have a name and arguments, both strings");
  }
  if (typeof call.id !== "string" || call.id === "" || open.has(call.id)) {
    throw invalid(`${at}/id`, "must be a string that no other call of the message has");
  }
  return call.id;
}

function checkUserContent(content: unknown, at: string): UserMessage["content"] {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw invalid(at, "must be a string or an array of parts");
  return content.map((part, index) => checkPart(part, `${at}/${index}`));
}

/**
 * Accepts only `data:` URLs, so that neither this server nor the provider fetches an address from a client. Keeps only
 * the fields that are checked here: a provider may know others, such as the id or the address of a file.
 */
function checkPart(part: unknown, at: string): ContentPart {
  const { type, text, image_url: image, file, omitted } = isRecord(part) ? part : {};
  if (type === "text" && typeof text === "string") return { type, text };
  if (type === "omitted") return { type, omitted: checkOmitted(omitted, `${at}/omitted`) };
  if (type === "image_url" && isRecord(image) && isDataUrl(image.url, "image")) {
    return withDigest({ type, image_url: { url: image.url } });
  }
  if (type === "file" && isRecord(file)) {
    const { filename, file_data } = file;
    if (isFileName(filename) && isDataUrl(file_data, "file")) {
      return withDigest({ type, file: { filename, file_data } });
    }
  }
  throw invalid(at, "must be a text, an omitted file, or an image or file with a data: URL");
}

/** Whether the value is a `data:` URL with a media type that may be attached as this type (image or file). */
function isDataUrl(value: unknown, type: AttachmentType): value is string {
  if (typeof value !== "string") return false;
  const [prefix = "", mediaType = ""] = /^data:([a-z/]+);base64,/.exec(value.slice(0, 100)) ?? [];
  const isOfType = isMediaType(mediaType) && MEDIA_TYPES[mediaType].type === type;
  return isOfType && isStrictBase64(value.slice(prefix.length));
}

/** In UTF-16 code units; far more than the names of files in a message may have. */
const MAX_NAME = 1000;

function isFileName(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_NAME;
}

function checkOmitted(omitted: unknown, at: string): OmittedFile {
  if (!isRecord(omitted)) throw invalid(at, "must be an object");
  const { sha256, mime_type, bytes, name } = omitted;
  if (typeof sha256 !== "string" || !/^[\w-]{43}$/.test(sha256)) {
    throw invalid(`${at}/sha256`, "must be 32 bytes in base64url");
  }
  if (typeof mime_type !== "string" || !isMediaType(mime_type)) {
    throw invalid(`${at}/mime_type`, "must be a media type that can be attached");
  }
  if (!Number.isInteger(bytes) || Number(bytes) < 0 || Number(bytes) > MAX_ATTACHMENT_BYTES) {
    throw invalid(`${at}/bytes`, "must be the size of a file");
  }
  if (name === undefined) return { sha256, mime_type, bytes: Number(bytes) };
  if (!isFileName(name)) throw invalid(`${at}/name`, `must be a string of at most ${MAX_NAME} characters`);
  return { sha256, mime_type, bytes: Number(bytes), name };
}

const invalid = (param: string, problem: string): ApiError => invalidField(param, problem, "invalid_state");
