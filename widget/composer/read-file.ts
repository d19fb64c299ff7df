/** Checks and reads a file that is to be attached. Loaded with the first one. */

import "../i18n/add-part-texts.ts";
import {
  type Attachment,
  type FileType,
  isMediaType,
  labelOf,
  SNIFF_BYTES,
  sniffMediaType,
  type TextType,
} from "../../server/protocol/attachments.ts";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import type { SentFile } from "../conversations/messages.ts";
import { formatBytes } from "../i18n/format.ts";
import type { FileNote } from "../ui/file-notes.ts";
import { ENDINGS } from "./endings.ts";

/** The server's information about its agent and the files that it accepts. */
export type FileRules = Pick<AgentInfo, "agent" | "attachments" | "max_body_bytes">;

/** A file that will go with the message. */
export interface DraftFile extends SentFile {
  readonly attachment: Attachment;
}

/** What files are checked against when it is their turn. */
export interface Conditions {
  readonly rules: FileRules;
  /** What else is sent with the message: the state and the text. */
  readonly sentWith: unknown;
}

/** Reserved for text that is still to be written, and for the JSON around it. */
const SPARE_BYTES = 16_384;

/** A state may contain the files of all earlier messages, so it is measured only once for files added together. */
const rooms = new WeakMap<Conditions, number>();

/** How many characters of base64 all files of the message may have together. */
function roomFor(conditions: Conditions): number {
  const { rules, sentWith } = conditions;
  const room =
    rooms.get(conditions) ??
    Math.max(0, rules.max_body_bytes - new Blob([JSON.stringify(sentWith)]).size - SPARE_BYTES);
  rooms.set(conditions, room);
  return room;
}

/** Resolves to the file, or to why it cannot be added to `files`. Rejects if it cannot be read. */
export async function readFile(
  file: File,
  files: readonly DraftFile[],
  conditions: Conditions,
): Promise<DraftFile | FileNote> {
  const { rules } = conditions;
  const { name } = file;
  const refuse = (say: FileNote["say"]) => ({ name, say });
  const { media_types, max_text_bytes, max_count, ...limits } = rules.attachments;
  const textType = textTypeOf(name);
  const max_bytes = textType ? max_text_bytes : limits.max_bytes;
  if (media_types.length === 0) return refuse((strings) => strings.noFilesTaken(rules.agent));
  if (textType && !media_types.includes(textType)) return refuse(wrongType(file, textType, media_types));
  if (files.length >= max_count) return refuse((strings, names) => strings.tooManyFiles(names, max_count));
  if (file.size > max_bytes) {
    return refuse((strings, names) => strings.fileTooLarge(names, formatBytes(max_bytes, strings.lang)));
  }
  if (file.size === 0) return refuse((strings, names) => strings.fileEmpty(names));
  const room = roomFor(conditions);
  if (charsOf(files) + base64Length(file.size) > room) return refuse(tooLargeTogether(room));
  const mediaType = textType ?? sniffMediaType(new Uint8Array(await file.slice(0, SNIFF_BYTES).arrayBuffer()));
  if (mediaType === undefined || !media_types.includes(mediaType)) {
    return refuse(wrongType(file, mediaType, media_types));
  }
  const text = textType && (await textOf(file));
  if (textType && text === undefined) return refuse((strings, names) => strings.fileNotUtf8(names));
  if (text === "") return refuse((strings, names) => strings.fileEmpty(names));
  const data = await readBase64(file);
  if (files.some(({ attachment }) => attachment.data === data)) {
    return refuse((strings, names) => strings.fileAlreadyAttached(names));
  }
  return { ...draftFile(file, mediaType, data), ...(await sizeOf(file)) };
}

/** Why `others` cannot be added to `files`, though each of them was accepted before; empty if they can. */
export function refuseTogether(
  others: readonly DraftFile[],
  files: readonly DraftFile[],
  conditions: Conditions,
): readonly FileNote[] {
  if (files.length === 0) return [];
  const { max_count } = conditions.rules.attachments;
  const room = roomFor(conditions);
  const all = [...files, ...others];
  const tooMany: FileNote["say"] = (strings, names) => strings.tooManyFiles(names, max_count);
  const say = all.length > max_count ? tooMany : charsOf(all) > room ? tooLargeTogether(room) : undefined;
  return say ? others.map(({ name }) => ({ name, say })) : [];
}

const charsOf = (files: readonly DraftFile[]) => files.reduce((sum, { attachment }) => sum + attachment.data.length, 0);

function tooLargeTogether(room: number): FileNote["say"] {
  const left = Math.floor((room / 4) * 3);
  return (strings, names) => strings.filesTooLarge(names, formatBytes(left, strings.lang));
}

/** The type of a text file, by its extension: browsers report none, or that of the program that opens it. */
function textTypeOf(name: string): TextType | undefined {
  const [ending = "."] = /\.\w+$/.exec(name.toLowerCase()) ?? [];
  const types = Object.keys(ENDINGS) as TextType[];
  return types.find((type) => ENDINGS[type].includes(ending));
}

/** The text as the server reads it, without a byte order mark; `undefined` if the server will refuse it. */
async function textOf(file: File): Promise<string | undefined> {
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

function draftFile(file: File, mediaType: FileType, data: string): DraftFile {
  const { name, size } = file;
  const type = mediaType.startsWith("image/") ? "image" : "file";
  // The detected type, not the claimed one: a WebP that is called .jpg is a valid WebP.
  const attachment: Attachment = { type, name, mime_type: mediaType, data };
  return { name, size, mediaType, picture: type === "image" ? file : undefined, attachment };
}

/** The width and height of a picture that the browser can draw. */
async function sizeOf(file: File): Promise<Pick<SentFile, "width" | "height">> {
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  const { width, height } = bitmap ?? {};
  bitmap?.close();
  return { width, height };
}

function wrongType({ type }: File, mediaType: FileType | undefined, allowed: readonly string[]): FileNote["say"] {
  if (mediaType === undefined && isMediaType(type)) {
    return (strings, names) => strings.fileTypeFalse(names, formatMediaTypes([type], strings.lang));
  }
  return (strings, names) => strings.fileTypeRefused(names, formatMediaTypes(allowed, strings.lang));
}

/** "JPEG, PNG, and PDF". A type that this version does not know is named as it is. */
export function formatMediaTypes(types: readonly string[], lang: string): string {
  return new Intl.ListFormat(lang).format(types.map(labelOf));
}

/** Base64 has 4 characters for 3 bytes. */
function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const url = String(reader.result);
      resolve(url.slice(url.indexOf(",") + 1));
    };
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
