/** The bytes of files that were sent, as long as their messages can be sent again here. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { OutgoingMessage } from "./conversation.ts";
import type { SentFile, UserMessage } from "./messages.ts";

/** Number of messages whose files are kept: each may have some 64 MiB of them. */
const MESSAGES_WITH_FILES = 3;

type Attachments = ReadonlyMap<string, readonly Attachment[]>;

export class SentFiles {
  /** By the id of the message. */
  readonly #attachments = new Map<string, readonly Attachment[]>();

  get all(): Attachments {
    return new Map(this.#attachments);
  }

  /** Whether all files of a message are here. */
  has({ id, files }: UserMessage): boolean {
    return files.length === 0 || this.#attachments.has(id);
  }

  add(id: string, attachments: readonly Attachment[]): void {
    this.#attachments.set(id, attachments);
  }

  /** Like `add`, for a message that was sent here: the files of the oldest one are dropped if there are too many. */
  keep(id = "", attachments: readonly Attachment[]): void {
    this.#attachments.set(id, attachments);
    const [oldest] = this.#attachments.keys();
    if (oldest && this.#attachments.size > MESSAGES_WITH_FILES) this.#attachments.delete(oldest);
  }

  /** A message as it was sent; without its files if they are no longer here. */
  outgoing({ id, text, files }: UserMessage): OutgoingMessage {
    const attachments = this.#attachments.get(id) ?? [];
    return { text, attachments, files: attachments.length === files.length ? files : [] };
  }

  delete(id: string): void {
    this.#attachments.delete(id);
  }
}

/** Leaves out the bytes that a file of the composer has: a message contains only what it shows. */
export function shownOf({ text, files }: OutgoingMessage): Pick<UserMessage, "text" | "files"> {
  return { text, files: files.map(({ attachment: _, ...file }: SentFile & { attachment?: Attachment }) => file) };
}
