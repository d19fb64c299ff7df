/** The files of the message that is being written: which may be attached, and why a file may not. */

import {
  type Attachment,
  isMediaType,
  MEDIA_TYPES,
  type MediaType,
  SNIFF_BYTES,
  sniffMediaType,
} from "../../server/protocol/attachments.ts";
import type { AgentInfo } from "../../server/protocol/chat.ts";
import { formatBytes } from "../i18n/format.ts";
import type { Strings } from "../i18n/strings.ts";
import type { OutgoingMessage } from "../session/chat-session.ts";
import type { SentFile } from "../session/messages.ts";

/** What the server says about its agent and the files that it takes. */
export type FileRules = Pick<AgentInfo, "agent" | "attachments" | "max_body_bytes">;

/** A file that will go with the message. */
export interface DraftFile extends SentFile {
  readonly attachment: Attachment;
  /** Whether a sent message shows the picture, too: it stays when this file is removed. */
  readonly isShared: boolean;
}

/** What is said about a file, in the language of the moment. */
export type Sentence = (strings: Strings) => string;

/** Room for what is still to be written, and for the JSON around it. */
const SPARE_BYTES = 16_384;

/** Checks and reads files, and owns the object URLs of their previews until they are sent. */
export class DraftFiles {
  readonly #onChange: () => void;
  #files: readonly DraftFile[] = [];
  #pending: readonly File[] = [];
  #refusals: readonly Sentence[] = [];
  /** Resolves when all files so far have been judged. */
  #added: Promise<unknown> = Promise.resolve();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get files(): readonly DraftFile[] {
    return this.#files;
  }

  /** The files that are still being read, or wait for the rules. */
  get pending(): readonly File[] {
    return this.#pending;
  }

  /** Why files were refused: a sentence for each, until they are dismissed. */
  get refusals(): readonly Sentence[] {
    return this.#refusals;
  }

  /** The names of all files, also of those that are still being read. */
  get names(): readonly string[] {
    return [...this.#files, ...this.#pending].map(({ name }) => name);
  }

  /**
   * Adds what may be attached. `rules` is called when it is their turn, and also gives what else is sent with the
   * message: the state and the text. Resolves to a sentence for each, to be spoken.
   */
  add(
    files: readonly File[],
    rules: () => Promise<{ readonly rules: FileRules; readonly besides: unknown }>,
  ): Promise<readonly Sentence[]> {
    if (files.length === 0) return Promise.resolve([]);
    this.#pending = [...this.#pending, ...files];
    this.#refusals = [];
    this.#onChange();
    // Files are judged beside those that are there, also those that were added before and are still being read.
    const outcomes = this.#added.then(async () => {
      const known = await rules();
      return this.#addAll(files, known.rules, known.besides);
    });
    this.#added = outcomes;
    return outcomes;
  }

  remove(removed: DraftFile): void {
    revoke(removed);
    this.#files = this.#files.filter((file) => file !== removed);
    this.#onChange();
  }

  /** Takes out files that were sent: their object URLs belong to the message from now on. */
  release(sent: readonly DraftFile[]): void {
    this.replace(this.#files.filter((file) => !sent.includes(file)));
  }

  /** Has other files in place of these, whose object URLs stay. */
  replace(files: readonly DraftFile[]): void {
    this.#files = files;
    this.#refusals = [];
    this.#onChange();
  }

  /** Revokes the object URLs of files that will be replaced, and are shown nowhere else. */
  discard(): void {
    for (const file of this.#files) revoke(file);
  }

  /** Says which files a reload has lost. Returns the sentences. */
  lose(names: readonly string[]): readonly Sentence[] {
    this.#refusals = names.map((name) => (strings) => strings.fileLost(name));
    this.#onChange();
    return this.#refusals;
  }

  dismissRefusals(): void {
    this.#refusals = [];
    this.#onChange();
  }

  async #addAll(files: readonly File[], rules: FileRules, besides: unknown): Promise<readonly Sentence[]> {
    // A state may hold the files of all earlier messages.
    const room = rules.max_body_bytes - new Blob([JSON.stringify(besides)]).size - SPARE_BYTES;
    const refusals: Sentence[] = [];
    const outcomes: Sentence[] = [];
    for (const file of files) {
      const refusal = await this.#addOne(file, rules, Math.max(0, room));
      if (refusal) refusals.push(refusal);
      outcomes.push(refusal ?? ((strings) => strings.fileAttached(file.name)));
      this.#pending = this.#pending.filter((other) => other !== file);
    }
    this.#refusals = [...this.#refusals, ...refusals];
    this.#onChange();
    return outcomes;
  }

  /** Returns why the file is refused, if it is. */
  async #addOne(file: File, { agent, attachments }: FileRules, room: number): Promise<Sentence | undefined> {
    const { name } = file;
    const { media_types, max_bytes, max_count } = attachments;
    if (media_types.length === 0) return (strings) => strings.noFilesTaken(agent);
    if (this.#files.length >= max_count) return (strings) => strings.tooManyFiles(name, max_count);
    if (file.size > max_bytes) return (strings) => strings.fileTooLarge(name, formatBytes(max_bytes, strings.lang));
    if (file.size === 0) return (strings) => strings.fileEmpty(name);
    const taken = this.#files.reduce((sum, { attachment }) => sum + attachment.data.length, 0);
    if (taken + base64Length(file.size) > room) {
      return (strings) => strings.filesTooLarge(name, formatBytes(Math.floor((room / 4) * 3), strings.lang));
    }
    try {
      const mediaType = sniffMediaType(new Uint8Array(await file.slice(0, SNIFF_BYTES).arrayBuffer()));
      if (mediaType === undefined || !media_types.includes(mediaType)) {
        return wrongType(file, mediaType, media_types);
      }
      const data = await readBase64(file);
      if (this.#files.some(({ attachment }) => attachment.data === data)) return (strings) => strings.fileTwice(name);
      this.#files = [...this.#files, draftFile(file, mediaType, data)];
      this.#onChange();
      return undefined;
    } catch {
      // The file was moved, or the system denies reading it.
      return (strings) => strings.fileUnreadable(name);
    }
  }
}

function revoke({ previewUrl, isShared }: DraftFile): void {
  if (previewUrl !== undefined && !isShared) URL.revokeObjectURL(previewUrl);
}

/** The files of a message that was to be sent, or was. */
export function draftFilesOf({ files, attachments }: OutgoingMessage, isShared: boolean): readonly DraftFile[] {
  return attachments.flatMap((attachment, index) => {
    const file = files[index];
    return file ? [{ ...file, attachment, isShared }] : [];
  });
}

function draftFile(file: File, mediaType: MediaType, data: string): DraftFile {
  const { name, size } = file;
  const { type } = MEDIA_TYPES[mediaType];
  const previewUrl = type === "image" ? URL.createObjectURL(file) : undefined;
  // The proven type, not the claimed one: a WebP that is called .jpg is a fine WebP.
  const attachment: Attachment = { type, name, mime_type: mediaType, data };
  return { name, size, mediaType, previewUrl, attachment, isShared: false };
}

function wrongType({ name, type }: File, mediaType: MediaType | undefined, allowed: readonly string[]): Sentence {
  if (mediaType === undefined && isMediaType(type)) {
    return (strings) => strings.fileTypeFalse(name, listTypes([type], strings.lang));
  }
  return (strings) => strings.fileTypeRefused(name, listTypes(allowed, strings.lang));
}

/** "JPEG, PNG, and PDF". A type that this version does not know is named as it is. */
function listTypes(types: readonly string[], lang: string): string {
  const labels = types.map((type) => (isMediaType(type) ? MEDIA_TYPES[type].label : type));
  return new Intl.ListFormat(lang).format(labels);
}

/** It has 4 characters for 3 bytes. */
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
