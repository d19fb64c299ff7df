import { ApiError, invalidRequest } from "../protocol/api-error.ts";
import {
  ALL_MEDIA_TYPES,
  decodedBytes,
  isMediaType,
  listMediaTypes,
  MAX_ATTACHMENT_BYTES,
  MEDIA_TYPES,
  type MediaType,
  type ReceivedFile,
  SNIFF_BYTES,
  sniffMediaType,
} from "../protocol/attachments.ts";
import { isRecord } from "../protocol/is-record.ts";

export interface AttachmentRules {
  maxCount: number;
  /** What the served model takes. */
  mediaTypes: readonly MediaType[];
  /** Of the provider, for sentences. */
  label: string;
}

/** Longest file name that is kept. */
const MAX_NAME = 200;

/** Checks every attachment, or says which one is wrong and why. @throws ApiError */
export function parseAttachments(value: unknown, rules: AttachmentRules): ReceivedFile[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalidRequest("/attachments", "attachments must be an array.");
  if (value.length > rules.maxCount) {
    throw new ApiError(
      "invalid_attachment",
      `attachments holds ${value.length} files; at most ${rules.maxCount} are allowed.`,
      { param: "/attachments" },
    );
  }
  return value.map((item, index) => parseAttachment(item, index, rules));
}

function parseAttachment(item: unknown, index: number, rules: AttachmentRules): ReceivedFile {
  if (!isRecord(item)) {
    throw invalidRequest(`/attachments/${index}`, `attachments[${index}] must be an object.`);
  }
  const fields = new Map<string, unknown>(Object.entries(item));
  const text = (field: string): string => {
    const value = fields.get(field);
    if (typeof value === "string") return value;
    throw invalidRequest(`/attachments/${index}/${field}`, `attachments[${index}].${field} must be a string.`);
  };
  const type = text("type");
  const name = displayName(text("name"));
  const mediaType = text("mime_type").toLowerCase();
  const data = text("data");

  if (type !== "image" && type !== "file") {
    throw refuse("invalid_attachment", index, "type", 'must be "image" or "file"');
  }
  if (!isMediaType(mediaType)) {
    const known = ALL_MEDIA_TYPES.join(", ");
    throw refuse("unsupported_attachment", index, "mime_type", `must be one of ${known}`);
  }
  if (MEDIA_TYPES[mediaType].type !== type) {
    const right = MEDIA_TYPES[mediaType].type;
    throw refuse("invalid_attachment", index, "type", `must be "${right}" for ${mediaType}`);
  }
  if (!rules.mediaTypes.includes(mediaType)) {
    const taken = listMediaTypes(rules.mediaTypes);
    const onlyImages = rules.mediaTypes.every((known) => MEDIA_TYPES[known].type === "image");
    const problem = `is ${MEDIA_TYPES[mediaType].label}; ${rules.label} takes ${taken} ${onlyImages ? "images" : "files"}`;
    throw refuse("unsupported_attachment", index, "mime_type", problem);
  }
  checkData(data, mediaType, index);
  return { type, name, mime_type: mediaType, url: `data:${mediaType};base64,${data}` };
}

/** RFC 4648, 3.5: four characters, or two or three of which the last has no bits to spare. */
const LAST_QUANTUM = /^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)$/;

function checkData(data: string, mediaType: MediaType, index: number): void {
  if (data.startsWith("data:")) {
    throw refuse("invalid_attachment", index, "data", "must be bare base64, not a data: URL");
  }
  // Judged before the characters are looked at: the length alone tells the size.
  if (decodedBytes(data) > MAX_ATTACHMENT_BYTES) {
    const limit = `${MAX_ATTACHMENT_BYTES} bytes (20 MiB)`;
    throw refuse("attachment_too_large", index, "data", `is larger than ${limit}`);
  }
  if (data === "") throw refuse("invalid_attachment", index, "data", "is empty");
  const isBase64 = data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
  if (!isBase64 || !LAST_QUANTUM.test(data.slice(-4))) {
    throw refuse("invalid_attachment", index, "data", "is not base64");
  }
  const head = Buffer.from(data.slice(0, Math.ceil(SNIFF_BYTES / 3) * 4), "base64");
  if (sniffMediaType(head) !== mediaType) {
    throw refuse("unsupported_attachment", index, "data", `is not a file of type ${mediaType}`);
  }
}

function refuse(
  code: "invalid_attachment" | "unsupported_attachment" | "attachment_too_large",
  index: number,
  field: string,
  problem: string,
): ApiError {
  return new ApiError(code, `attachments[${index}].${field} ${problem}.`, {
    param: `/attachments/${index}/${field}`,
  });
}

/** The last part of a path, without control, direction and other characters that deceive a reader. */
function displayName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const clean = last
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "")
    .trim();
  return [...clean].slice(0, MAX_NAME).join("") || "attachment";
}
