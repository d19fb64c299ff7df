/** The smallest file of each type that may be attached. */

import type { Attachment, AttachmentType, MediaType, ReceivedFile } from "../../server/protocol/attachments.ts";

/** A red pixel that browsers can display. */
export const RED_PIXEL: Buffer = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==",
  "base64",
);

const HEADS: Record<MediaType, { type: AttachmentType; name: string; head: string }> = {
  "image/jpeg": { type: "image", name: "photo.jpg", head: "\xff\xd8\xff\xe0" },
  "image/png": { type: "image", name: "plan.png", head: "\x89PNG\r\n\x1a\n" },
  "image/gif": { type: "image", name: "wave.gif", head: "GIF89a" },
  "image/webp": { type: "image", name: "cat.webp", head: "RIFF\x00\x00\x00\x00WEBP" },
  "application/pdf": { type: "file", name: "offer.pdf", head: "%PDF-1.7\n" },
};

/** An attachment of that type, padded with zeros to `bytes`. */
export function attachment(
  mediaType: MediaType,
  changes: Partial<Record<keyof Attachment, unknown>> & { bytes?: number } = {},
): Record<keyof Attachment, unknown> {
  const { bytes, ...fields } = changes;
  const { type, name, head } = HEADS[mediaType];
  const content = Buffer.alloc(bytes ?? head.length);
  content.write(head, "latin1");
  return { type, name, mime_type: mediaType, data: content.toString("base64"), ...fields };
}

/** An attachment as the model receives it. */
export function received({ data, ...about }: ReturnType<typeof attachment>) {
  return { ...about, url: `data:${about.mime_type};base64,${data}` };
}

/** A text file of a message, before it is formatted for the model. */
export const TEXT_FILE: ReceivedFile = {
  type: "file",
  name: "notes.md",
  mime_type: "text/markdown",
  text: "Say ```hello``` to Zoë 👋",
};

/** `TEXT_FILE` as text in the model's request. */
export const SENT_TEXT_FILE = "notes.md\n````\nSay ```hello``` to Zoë 👋\n````";

/** Files as a provider receives them: with data URLs. */
export const IMAGE_AND_PDF: readonly Extract<ReceivedFile, { url: string }>[] = [
  { type: "image", name: "a.png", mime_type: "image/png", url: "data:image/png;base64,iVBORw0=" },
  { type: "file", name: "b.pdf", mime_type: "application/pdf", url: "data:application/pdf;base64,JVBERi0=" },
];
