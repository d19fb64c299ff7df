/** What tools return besides texts and JSON: images, whose type is checked by their bytes, and sources. */

import {
  ALL_MEDIA_TYPES,
  decodedBytes,
  type ImageType,
  isMediaType,
  isStrictBase64,
  labelOf,
  MAX_ATTACHMENT_BYTES,
  SNIFF_BYTES,
  sniffMediaType,
} from "../protocol/attachments.ts";
import type { FinishedToolCall, ImagePart, ToolContent } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";
import type { ResultSource } from "../protocol/sources.ts";
import { fileOf, textContent } from "../providers/history.ts";
import { fieldNames, unknownField } from "./fields.ts";
import { cutText } from "./tool-events.ts";

/** What a tool returns, as `toolResult` takes it. The model gets the text, then `json` as a text, then the pictures. */
export interface ToolResultParts {
  text?: string;
  images?: readonly ToolImage[];
  /** Any JSON. */
  json?: unknown;
  /** What the result is based on. Models get citable search results, or text if the result has no text of its own. */
  sources?: readonly ResultSource[];
}

export interface ToolImage {
  /** The bytes, or their base64 without a `data:` prefix. */
  data: Uint8Array | string;
  mimeType: ImageType;
}

export type ShownImages = Pick<FinishedToolCall, "images" | "images_omitted">;

/** Maximum number, and bytes in all, of one result's images that clients get. */
const MAX_SHOWN = { count: 4, bytes: 1024 * 1024 };

const TYPES = ALL_MEDIA_TYPES.filter((type) => type.startsWith("image/"));

const FIELDS = fieldNames<ToolResultParts>({ text: true, images: true, json: true, sources: true });

/** The result, with at most `maxChars` characters of sources, and the images that clients get. @throws TypeError */
export function readResult(
  result: ToolResultParts,
  asText: (value: unknown) => string,
  maxChars: number,
): { content: ToolContent[]; images: ShownImages; sources: ResultSource[] } {
  const unknown = unknownField(result, FIELDS, "toolResult");
  if (unknown !== undefined) throw new TypeError(unknown);
  const { text, images = [], json, sources = [] } = result;
  if (text !== undefined && typeof text !== "string") throw new TypeError("text of toolResult must be a string.");
  const pictures = picturesOf(images);
  const texts = [text, json === undefined ? undefined : asText(json)].filter((one) => one !== undefined);
  const said = texts.length === 0 && pictures.length > 0 ? [] : textContent(texts.join("\n"));
  return { content: [...said, ...pictures], images: shownImages(pictures), sources: sourcesOf(sources, maxChars) };
}

const SOURCE_FIELDS = fieldNames<ResultSource>({ title: true, url: true, text: true });

/** @throws TypeError that says what is wrong */
function sourcesOf(sources: unknown, maxChars: number): ResultSource[] {
  if (!Array.isArray(sources)) throw new TypeError("sources of toolResult must be an array.");
  let room = maxChars;
  return sources.flatMap((source, index): ResultSource[] => {
    const at = `sources[${index}]`;
    const { title, url, text = "" }: Record<string, unknown> = isRecord(source) ? source : {};
    const isText = typeof title === "string" && title.trim() !== "" && typeof text === "string";
    if (!isText || !(url === undefined || isPage(url))) {
      throw new TypeError(`${at} must have a title, and may have a text, and a url of http or https.`);
    }
    const unknown = unknownField(source, SOURCE_FIELDS, at);
    if (unknown !== undefined) throw new TypeError(unknown);
    if (room <= 0) return [];
    const words = text === "" ? {} : { text: cutText(text, room) };
    room -= title.length + (url?.length ?? 0) + text.length;
    return [{ title: cutText(title, maxChars), ...(url === undefined ? {} : { url }), ...words }];
  });
}

function isPage(url: unknown): url is string {
  return typeof url === "string" && /^https?:/i.test(url) && URL.canParse(url);
}

/** @throws TypeError that says what is wrong */
export function picturesOf(images: unknown): ImagePart[] {
  if (!Array.isArray(images)) throw new TypeError("images must be an array.");
  return images.map((image, index) => pictureOf(image, `images[${index}]`));
}

function pictureOf(image: unknown, at: string): ImagePart {
  const { data, mimeType, mime_type: type = mimeType } = isRecord(image) ? image : {};
  if (typeof type !== "string" || !isMediaType(type) || !TYPES.includes(type)) {
    throw new TypeError(`The type of ${at} must be one of ${TYPES.join(", ")}.`);
  }
  const base64 =
    data instanceof Uint8Array ? Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") : data;
  if (typeof base64 !== "string" || !isStrictBase64(base64)) {
    throw new TypeError(`The data of ${at} must be bytes, or their base64 without a prefix.`);
  }
  if (decodedBytes(base64) > MAX_ATTACHMENT_BYTES) throw new TypeError(`${at} is larger than 20 MiB.`);
  const head = Buffer.from(base64.slice(0, Math.ceil(SNIFF_BYTES / 3) * 4), "base64");
  if (sniffMediaType(head) !== type) throw new TypeError(`${at} is no ${labelOf(type)} picture.`);
  return { type: "image_url", image_url: { url: `data:${type};base64,${base64}` } };
}

/** The images that clients get: in their order, those that fit into the limits. */
export function shownImages(pictures: readonly ImagePart[]): ShownImages {
  let room = MAX_SHOWN.bytes;
  const images = pictures.flatMap((picture): NonNullable<ShownImages["images"]> => {
    const { mediaType, base64 } = fileOf(picture);
    const bytes = decodedBytes(base64);
    if (bytes > room) return [];
    room -= bytes;
    return [{ mime_type: mediaType as ImageType, data: base64 }];
  });
  const shown = images.slice(0, MAX_SHOWN.count);
  const omitted = pictures.length - shown.length;
  return pictures.length === 0 ? {} : { images: shown, ...(omitted === 0 ? {} : { images_omitted: omitted }) };
}
