/** Changing an earlier message: its text is in the composer, and what was being written waits. */

import type { OutgoingMessage } from "./conversation.ts";

/** Where messages are written. */
export interface Desk {
  take(): OutgoingMessage;
  put(message: OutgoingMessage): void;
  focus(): void;
}

export class MessageEditor {
  readonly #desk: Desk;
  #id: string | undefined;
  #waiting: OutgoingMessage | undefined;
  #withoutFiles = false;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** The message that is being changed. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Whether the message had files that are no longer here. */
  get withoutFiles(): boolean {
    return this.#withoutFiles;
  }

  begin(id: string, message: OutgoingMessage, withoutFiles: boolean): void {
    // First, so that what is taken out now is still kept as the draft: a reload brings it back.
    this.#id = id;
    const draft = this.#desk.take();
    this.#waiting ??= draft;
    this.#withoutFiles = withoutFiles;
    this.#desk.put(message);
    this.#desk.focus();
  }

  /** Ends the changing, and puts back what was being written. Gives the message's id. */
  end(): string | undefined {
    const [id, waiting] = [this.#id, this.#waiting];
    this.#id = undefined;
    this.#waiting = undefined;
    if (waiting) {
      this.#desk.take();
      this.#desk.put(waiting);
    }
    return id;
  }
}
