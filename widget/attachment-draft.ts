/** The files of the message that is being written: what may be attached, and why a file may not. */

import {
  type Attachment,
  isMediaType,
  MEDIA_TYPES,
  type MediaType,
  SNIFF_BYTES,
  sniffMediaType,
} from "../server/protocol/attachments.ts";
import type { AgentInfo } from "../server/protocol/chat.ts";
import { formatBytes } from "./format.ts";
import { formatMediaTypes } from "./format-media-types.ts";
import { strings } from "./strings.ts";
import type { SentFile } from "./transcript.ts";

/** A file that will go with the message. */
export interface DraftFile {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  readonly mediaType: MediaType;
  /** An object URL, for images. Whoever shows it last revokes it. */
  readonly url?: string;
  readonly attachment: Attachment;
  /** A sent message shows the picture, too. */
  readonly shared?: boolean;
}

/** What the server has said of itself and its files. */
export type AttachmentLimits = Pick<AgentInfo, "agent" | "attachments" | "max_body_bytes">;

/** Room for what is still to be written, and for how a message is put together. */
const MORE_BYTES = 16_384;

export class AttachmentDraft {
  readonly #onChange: () => void;
  #files: readonly DraftFile[] = [];
  #refusals: readonly string[] = [];
  #count = 0;
  #pending: readonly File[] = [];
  /** When all files so far are judged. */
  #added: Promise<unknown> = Promise.resolve();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get files(): readonly DraftFile[] {
    return this.#files;
  }

  /** One sentence for each file that was not taken, until they are dismissed. */
  get refusals(): readonly string[] {
    return this.#refusals;
  }

  /** The files that are still being read. */
  get pending(): readonly File[] {
    return this.#pending;
  }

  /**
   * Checks and reads files, and keeps those that may be attached beside what else is sent: the state and the text. Resolves to a
   * sentence for each, to be spoken.
   */
  add(files: readonly File[], limits: AttachmentLimits, besides: unknown): Promise<readonly string[]> {
    this.#pending = [...this.#pending, ...files];
    this.#refusals = [];
    this.#onChange();
    // Each file is judged by those that are there, also by those of an earlier drop that are still being read.
    const outcomes = this.#added.then(() => this.#addAll(files, limits, besides));
    this.#added = outcomes;
    return outcomes;
  }

  async #addAll(files: readonly File[], limits: AttachmentLimits, besides: unknown): Promise<readonly string[]> {
    // A state may hold the files of all earlier messages.
    const room = limits.max_body_bytes - new Blob([JSON.stringify(besides)]).size - MORE_BYTES;
    const refusals: string[] = [];
    const outcomes: string[] = [];
    for (const file of files) {
      const refusal = await this.#addOne(file, limits, Math.max(0, room));
      if (refusal !== undefined) refusals.push(refusal);
      outcomes.push(refusal ?? strings.fileAttached(file.name));
      this.#pending = this.#pending.filter((other) => other !== file);
    }
    this.#refusals = [...this.#refusals, ...refusals];
    this.#onChange();
    return outcomes;
  }

  remove(id: number): void {
    const removed = this.#files.find((file) => file.id === id);
    if (removed?.url !== undefined && !removed.shared) URL.revokeObjectURL(removed.url);
    this.#files = this.#files.filter((file) => file !== removed);
    this.#onChange();
  }

  /** Files of a draft that a reload has brought back without them; answers what is said about each. */
  lose(names: readonly string[]): readonly string[] {
    this.#refusals = names.map((name) => strings.fileLost(name));
    this.#onChange();
    return this.#refusals;
  }

  dismissRefusals(): void {
    this.#refusals = [];
    this.#onChange();
  }

  /** Starts an empty draft. The object URLs of its files belong to the message now. */
  take(): void {
    this.#files = [];
    this.#refusals = [];
    this.#onChange();
  }

  /** Files of a message that is taken up again. */
  put(files: readonly SentFile[], attachments: readonly Attachment[]): void {
    this.#files = attachments.flatMap((attachment, index) => {
      const { name, mediaType, size = 0, url } = files[index] ?? {};
      if (name === undefined || mediaType === undefined) return [];
      this.#count += 1;
      const picture = url === undefined ? {} : { url };
      return { id: this.#count, name, mediaType, size, attachment, shared: true, ...picture };
    });
    this.#onChange();
  }

  async #addOne(file: File, { agent, attachments }: AttachmentLimits, room: number): Promise<string | undefined> {
    const { media_types, max_bytes, max_count } = attachments;
    if (media_types.length === 0) return strings.noFilesTaken(agent);
    if (this.#files.length >= max_count) return strings.tooManyFiles(file.name, max_count);
    if (file.size > max_bytes) return strings.fileTooLarge(file.name, formatBytes(max_bytes));
    if (file.size === 0) return strings.fileEmpty(file.name);
    // As base64, which has 4 characters for 3 bytes.
    const taken = this.#files.reduce((sum, { attachment }) => sum + attachment.data.length, 0);
    if (taken + Math.ceil(file.size / 3) * 4 > room) {
      return strings.filesTooLarge(file.name, formatBytes(Math.floor((room / 4) * 3)));
    }
    try {
      const head = new Uint8Array(await file.slice(0, SNIFF_BYTES).arrayBuffer());
      const mediaType = sniffMediaType(head);
      if (mediaType === undefined || !media_types.includes(mediaType)) {
        const claimed = mediaType === undefined && isMediaType(file.type) ? file.type : undefined;
        return claimed !== undefined
          ? strings.fileTypeFalse(file.name, formatMediaTypes([claimed]))
          : strings.fileTypeRefused(file.name, formatMediaTypes(media_types));
      }
      const data = await readBase64(file);
      if (this.#files.some(({ attachment }) => attachment.data === data)) {
        return strings.fileTwice(file.name);
      }
      this.#keep(file, mediaType, data);
      return undefined;
    } catch {
      // The file was moved, or the system denies reading it.
      return strings.fileUnreadable(file.name);
    }
  }

  #keep(file: File, mediaType: MediaType, data: string): void {
    const { type } = MEDIA_TYPES[mediaType];
    const { name, size } = file;
    this.#count += 1;
    const preview = type === "image" ? { url: URL.createObjectURL(file) } : {};
    // The proven type, not the claimed one: a WebP that is called .jpg is a fine WebP.
    const attachment: Attachment = { type, name, mime_type: mediaType, data };
    this.#files = [...this.#files, { id: this.#count, name, size, mediaType, attachment, ...preview }];
    this.#onChange();
  }
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
