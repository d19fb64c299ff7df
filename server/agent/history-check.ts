/** Proves that a `conversation_history` is one that a run could have made. */

import { ApiError } from "../protocol/api-error.ts";
import { type AttachmentType, isMediaType, MEDIA_TYPES } from "../protocol/attachments.ts";
import type { ContentPart, HistoryMessage, UserMessage } from "../protocol/chat.ts";
import { isRecord } from "../protocol/is-record.ts";

/**
 * Only user, assistant and tool messages of our own shape, every call answered before the conversation goes
 * on, and no address that somebody else would fetch. Fields beyond ours stay on assistant messages and
 * their calls: a provider may need them back.
 * @throws ApiError `invalid_state` with a pointer to the message.
 */
export function checkHistory(value: unknown): HistoryMessage[] {
  const root = "/state/conversation_history";
  if (!Array.isArray(value)) throw invalid(root, "must be an array");
  const open = new Set<string>();
  for (const [index, message] of value.entries()) checkMessage(message, `${root}/${index}`, open);
  if (open.size > 0) throw invalid(root, "ends with a tool call that has no result");
  return value.map(withoutExtras);
}

/** What a client adds to its own and to the tools' messages is not for the provider. */
function withoutExtras(message: HistoryMessage): HistoryMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: ownContent(message.content) };
    case "tool":
      return {
        role: "tool",
        tool_call_id: message.tool_call_id,
        content: message.content,
        ...(message.is_error ? { is_error: true } : {}),
      };
    case "assistant":
      return message;
  }
}

/** A provider may know more fields of a part than we check, such as the id or the address of a file. */
function ownContent(content: UserMessage["content"]): UserMessage["content"] {
  return typeof content === "string" ? content : content.map(ownPart);
}

function ownPart(part: ContentPart): ContentPart {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image_url":
      return { type: "image_url", image_url: { url: part.image_url.url } };
    case "file": {
      const { filename, file_data } = part.file;
      return { type: "file", file: { filename, file_data } };
    }
  }
}

function checkMessage(message: unknown, at: string, open: Set<string>): void {
  if (!isRecord(message)) throw invalid(at, "must be an object");
  switch (message.role) {
    case "tool":
      checkToolMessage(message, at, open);
      break;
    case "user":
      refuseOpenCalls(at, open);
      checkUserContent(message.content, `${at}/content`);
      break;
    case "assistant":
      refuseOpenCalls(at, open);
      checkAssistant(message, at, open);
      break;
    default:
      throw invalid(`${at}/role`, 'must be "user", "assistant" or "tool"');
  }
}

function refuseOpenCalls(at: string, open: ReadonlySet<string>): void {
  if (open.size > 0) throw invalid(at, "comes before every tool call has its result");
}

function checkToolMessage(message: Record<string, unknown>, at: string, open: Set<string>): void {
  const id = message.tool_call_id;
  if (typeof id !== "string" || !open.delete(id)) {
    throw invalid(`${at}/tool_call_id`, "answers no tool call that is open");
  }
  if (typeof message.content !== "string") throw invalid(`${at}/content`, "must be a string");
  if (message.is_error !== undefined && typeof message.is_error !== "boolean") {
    throw invalid(`${at}/is_error`, "must be true or false");
  }
}

function checkAssistant(message: Record<string, unknown>, at: string, open: Set<string>): void {
  if (typeof message.content !== "string" && message.content !== null) {
    throw invalid(`${at}/content`, "must be a string or null");
  }
  if (message.tool_calls === undefined) return;
  if (!Array.isArray(message.tool_calls)) throw invalid(`${at}/tool_calls`, "must be an array");
  for (const [index, call] of message.tool_calls.entries()) {
    open.add(checkCall(call, `${at}/tool_calls/${index}`, open));
  }
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

function checkUserContent(content: unknown, at: string): void {
  if (typeof content === "string") return;
  if (!Array.isArray(content)) throw invalid(at, "must be a string or an array of parts");
  for (const [index, part] of content.entries()) {
    if (!isContentPart(part)) {
      throw invalid(`${at}/${index}`, "must be a text, or an image or file with a data: URL");
    }
  }
}

/** Only `data:` URLs: neither we nor the provider fetch an address that a client names. */
function isContentPart(part: unknown): boolean {
  if (!isRecord(part)) return false;
  switch (part.type) {
    case "text":
      return typeof part.text === "string";
    case "image_url":
      return isRecord(part.image_url) && isDataUrl(part.image_url.url, "image");
    case "file":
      return isRecord(part.file) && typeof part.file.filename === "string" && isDataUrl(part.file.file_data, "file");
    default:
      return false;
  }
}

/** Of a media type that may be attached, under the type that it goes with. */
function isDataUrl(value: unknown, type: AttachmentType): boolean {
  if (typeof value !== "string") return false;
  const mediaType = /^data:([a-z/]+);base64,/.exec(value.slice(0, 100))?.[1] ?? "";
  return isMediaType(mediaType) && MEDIA_TYPES[mediaType].type === type;
}

function invalid(param: string, problem: string): ApiError {
  const field = param
    .slice(1)
    .replaceAll("/", ".")
    .replace(/\.(\d+)/g, "[$1]");
  return new ApiError("invalid_state", `${field} ${problem}.`, { param });
}
