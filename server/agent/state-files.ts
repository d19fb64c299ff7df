/** The files in a state: whole, with their digest beside them, or only the digest. Both forms have one signature. */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { decodedBytes } from "../protocol/attachments.ts";
import type { ContentPart, FilePart, HistoryMessage } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";
import { fileOf } from "../providers/history.ts";

/** The part with what its data says of it. */
export function withDigest(part: FilePart): FilePart {
  const { mediaType, base64 } = fileOf(part);
  const sha256 = createHash("sha256").update(base64, "base64").digest("base64url");
  const name = part.type === "file" ? { name: part.file.filename } : {};
  return { ...part, omitted: { sha256, mime_type: mediaType, bytes: decodedBytes(base64), ...name } };
}

/** The messages as they leave the server: those without files are the same objects. */
export function withDigests(messages: readonly HistoryMessage[]): HistoryMessage[] {
  return messages.map((message) => {
    if (message.role === "assistant" || typeof message.content === "string") return message;
    const content = message.content.map((part: ContentPart) => {
      return part.type === "text" || part.type === "omitted" || part.omitted ? part : withDigest(part);
    });
    return { ...message, content } as HistoryMessage;
  });
}

/** The messages as a signature covers them. `read` is what `check-history.ts` has read of them. */
export function signedForm(messages: unknown, read: readonly HistoryMessage[] | undefined): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message, index) => {
    const parts = read?.[index]?.content;
    if (!isRecord(message) || !Array.isArray(message.content) || !Array.isArray(parts)) return message;
    return { ...message, content: message.content.map((part, at) => signedPart(part, parts[at])) };
  });
}

/** A part that holds more than was read of it stands for itself: nothing goes by unsigned. */
function signedPart(part: Record<string, unknown>, read: ContentPart | undefined): unknown {
  if (read === undefined || read.type === "text" || read.type === "omitted") return part;
  const { omitted } = read;
  return isDeepStrictEqual({ ...part, omitted }, read) ? { type: "omitted", omitted } : part;
}
