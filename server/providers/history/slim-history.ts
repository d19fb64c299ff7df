import { decodedBytes, isMediaType, MEDIA_TYPES } from "../../protocol/attachments.ts";
import type { ContentPart, HistoryMessage } from "../../protocol/chat.ts";

/** Base64 characters of all attachments that one handed-out state may hold: 8 MiB. */
export const MAX_STATE_ATTACHMENT_CHARS = 8 * 1024 * 1024;

/**
 * The history as it leaves the server. The client sends it back with each message, so it must not grow
 * without bound: attachments that alone are beyond the limit, and then the oldest ones until the rest is
 * within it, are replaced by a text that tells the model and the reader what was there.
 */
export function slimHistory(
  history: readonly HistoryMessage[],
  maxChars = MAX_STATE_ATTACHMENT_CHARS,
): HistoryMessage[] {
  const dropped = partsToDrop(history, maxChars);
  if (dropped.size === 0) return [...history];
  return history.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    const content = message.content.map((part) => (dropped.has(part) ? notice(part) : part));
    return { ...message, content };
  });
}

function partsToDrop(history: readonly HistoryMessage[], maxChars: number): Set<ContentPart> {
  const dropped = new Set<ContentPart>();
  let chars = 0;
  for (const message of history.toReversed()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const part of message.content.toReversed()) {
      const size = base64Of(part).length;
      if (size === 0) continue;
      if (size <= maxChars) chars += size;
      if (size > maxChars || chars > maxChars) dropped.add(part);
    }
  }
  return dropped;
}

function notice(part: ContentPart): ContentPart {
  const name = part.type === "file" ? part.file.filename : "an image";
  const mediaType = /^data:([^;,]*)/.exec(dataUrl(part))?.[1] ?? "";
  const label = isMediaType(mediaType) ? MEDIA_TYPES[mediaType].label : "file";
  const megabytes = (decodedBytes(base64Of(part)) / 1e6).toFixed(1);
  return {
    type: "text",
    text: `[${name} (${label}, ${megabytes} MB) was attached here earlier and is no longer included]`,
  };
}

function base64Of(part: ContentPart): string {
  const url = dataUrl(part);
  return url.slice(url.indexOf(",") + 1);
}

function dataUrl(part: ContentPart): string {
  if (part.type === "image_url") return part.image_url.url;
  return part.type === "file" ? part.file.file_data : "";
}
