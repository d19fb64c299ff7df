/** The attachment rules that server and chat element share. */

/** A file inside a chat request. */
export interface Attachment {
  type: AttachmentType;
  /** Shown to people and models; never a path. */
  name: string;
  mime_type: MediaType;
  /** Strict base64 of the bytes: no `data:` prefix, no white space. */
  data: string;
}

/**
 * An attachment as the server keeps it. The URL is made where the message is parsed, which is a worker thread for large ones:
 * joining 28 MB of base64 to a few letters copies them, and every running answer would wait for it.
 */
export interface ReceivedFile extends Omit<Attachment, "data"> {
  /** `data:` URL. */
  url: string;
}

export type AttachmentType = "image" | "file";

/** Each media type that may be attached, and the `type` that it goes with. */
export const MEDIA_TYPES = {
  "image/jpeg": { type: "image", label: "JPEG" },
  "image/png": { type: "image", label: "PNG" },
  "image/gif": { type: "image", label: "GIF" },
  "image/webp": { type: "image", label: "WebP" },
  "application/pdf": { type: "file", label: "PDF" },
} as const satisfies Record<string, { type: AttachmentType; label: string }>;

export type MediaType = keyof typeof MEDIA_TYPES;

/** Every media type, in the order in which sentences name them. */
export const ALL_MEDIA_TYPES = Object.keys(MEDIA_TYPES) as MediaType[];

/** Largest file, in decoded bytes: 20 MiB. */
export const MAX_ATTACHMENT_BYTES = 20 * 1024 * 1024;

/** How many leading bytes `sniffMediaType` looks at. */
export const SNIFF_BYTES = 1024;

export function isMediaType(value: string): value is MediaType {
  return Object.hasOwn(MEDIA_TYPES, value);
}

/** Proves a media type from a file's first bytes; `undefined` when they are none of ours. */
export function sniffMediaType(head: Uint8Array): MediaType | undefined {
  const startsWith = (text: string, at = 0) =>
    [...text].every((char, index) => head[at + index] === char.charCodeAt(0));
  if (startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith("GIF87a") || startsWith("GIF89a")) return "image/gif";
  if (startsWith("RIFF") && startsWith("WEBP", 8)) return "image/webp";
  // ISO 32000 readers accept a PDF header anywhere in the first 1,024 bytes.
  const last = Math.min(head.length, SNIFF_BYTES) - 5;
  for (let at = 0; at <= last; at++) if (startsWith("%PDF-", at)) return "application/pdf";
  return undefined;
}

/** RFC 4648, 3.5: four characters, or two or three of which the last has no bits to spare. */
const LAST_QUANTUM = /^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)$/;

/** Whether no other text stands for the same bytes. */
export function isStrictBase64(data: string): boolean {
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data) && LAST_QUANTUM.test(data.slice(-4));
}

/** Decoded size of strict base64, without decoding it. */
export function decodedBytes(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** "JPEG, PNG and PDF": for sentences about what is taken. */
export function listMediaTypes(types: readonly string[]): string {
  const labels = types.map((type) => (isMediaType(type) ? MEDIA_TYPES[type].label : type));
  const last = labels.pop() ?? "no";
  return labels.length > 0 ? `${labels.join(", ")} and ${last}` : last;
}
