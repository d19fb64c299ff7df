/** The attachment rules that server and chat element share. */

/** A file inside a chat request. */
export interface Attachment {
  type: AttachmentType;
  /** Shown to people and models; never a path. */
  name: string;
  mime_type: FileType;
  /** Strict base64 of the bytes: no `data:` prefix, no white space. */
  data: string;
}

/**
 * An attachment as the server keeps it. URL and text are made where the message is parsed, which is a worker thread if it is
 * large: a prefix before 28 MB of base64 copies them, and every running answer would wait for that.
 */
export type ReceivedFile =
  /** `url` is a `data:` URL. */
  | (Omit<Attachment, "data" | "mime_type"> & { mime_type: MediaType; url: string; text?: never })
  | (Omit<Attachment, "data" | "mime_type"> & { mime_type: TextType; text: string; url?: never });

export type AttachmentType = "image" | "file";

/** The media types that models accept as bytes, and the `type` that each belongs to. */
export const MEDIA_TYPES = {
  "image/jpeg": { type: "image", label: "JPEG" },
  "image/png": { type: "image", label: "PNG" },
  "image/gif": { type: "image", label: "GIF" },
  "image/webp": { type: "image", label: "WebP" },
  "application/pdf": { type: "file", label: "PDF" },
} as const satisfies Record<string, { type: AttachmentType; label: string }>;

export type MediaType = keyof typeof MEDIA_TYPES;
export type ImageType = Exclude<MediaType, "application/pdf">;

/** Every such media type, in the order that sentences use. */
export const ALL_MEDIA_TYPES = Object.keys(MEDIA_TYPES) as MediaType[];

/** The media types of text files, with their labels. Their `type` is "file". Any model gets them as text. */
export const TEXT_TYPES = {
  "text/plain": "TXT",
  "text/markdown": "Markdown",
  "text/csv": "CSV",
  "application/json": "JSON",
} as const;

export type TextType = keyof typeof TEXT_TYPES;

/** A media type that an agent may accept. */
export type FileType = MediaType | TextType;

/** Maximum size of a file, in decoded bytes: 20 MiB, or 1 MiB for a text file. */
export const MAX_ATTACHMENT_BYTES = 20 * 1024 * 1024;
export const MAX_TEXT_BYTES = 1024 * 1024;

/** How many leading bytes `sniffMediaType` looks at. */
export const SNIFF_BYTES = 1024;

export function isMediaType(value: string): value is MediaType {
  return Object.hasOwn(MEDIA_TYPES, value);
}

export function isTextType(value: string): value is TextType {
  return Object.hasOwn(TEXT_TYPES, value);
}

/** The label of this media type, for sentences. */
export function labelOf(type: string): string {
  return isTextType(type) ? TEXT_TYPES[type] : isMediaType(type) ? MEDIA_TYPES[type].label : type;
}

/** Detects the media type by a file's first bytes; `undefined` if it is not in `MEDIA_TYPES`. */
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

/** The last four characters. Before padding, bits that encode nothing must be zero (RFC 4648, 3.5). */
const LAST_QUANTUM = /^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)$/;

/** Whether this is canonical base64: no other base64 text has the same bytes. */
export function isStrictBase64(data: string): boolean {
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data) && LAST_QUANTUM.test(data.slice(-4));
}

/** Decoded size of strict base64, without decoding it. */
export function decodedBytes(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** "JPEG, PNG and PDF": for sentences about accepted files. */
export function listMediaTypes(types: readonly string[]): string {
  const labels = types.map(labelOf);
  const last = labels.pop() ?? "no";
  return labels.length > 0 ? `${labels.join(", ")} and ${last}` : last;
}
