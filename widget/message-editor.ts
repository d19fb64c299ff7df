/** Changing an earlier message: its text is in the composer, and what was being written waits. */

import type { TemplateResult } from "lit";
import type { Announcer } from "./announcer.ts";
import type { ChatSession } from "./chat-session.ts";
import type { OutgoingMessage } from "./conversation.ts";
import { strings } from "./strings.ts";
import type { Question } from "./transcript.ts";
import { editingView } from "./views/editing.ts";

/** Where messages are written. */
export interface Desk {
  take(): OutgoingMessage;
  put(message: OutgoingMessage): void;
  focus(): void;
}

export class MessageEditor {
  readonly #desk: Desk;
  readonly #announcer: Announcer;
  #id: string | undefined;
  #waiting: OutgoingMessage | undefined;
  /** Whether the message had files that are no longer here. */
  #withoutFiles = false;

  constructor(desk: Desk, announcer: Announcer) {
    this.#desk = desk;
    this.#announcer = announcer;
  }

  /** The message that is being changed. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Begins to change a message where that is possible. */
  begin(question: Question, session: ChatSession): void {
    if (!session.canEdit(question)) return;
    const message = session.outgoing(question);
    // First, so that what is taken out now is still kept as the draft: a reload brings it back.
    this.#id = question.id;
    const draft = this.#desk.take();
    this.#waiting ??= draft;
    this.#withoutFiles = message.files.length < question.files.length;
    this.#desk.put(message);
    this.#desk.focus();
    this.#announcer.say(strings.editing);
  }

  /** Ends the changing, and puts back what was being written. */
  end(): void {
    const waiting = this.#waiting;
    this.#id = undefined;
    this.#waiting = undefined;
    if (waiting) {
      this.#desk.take();
      this.#desk.put(waiting);
    }
  }

  /** Leaves the message as it was. */
  leave(): void {
    this.end();
    this.#desk.focus();
  }

  /** What is said while a message is changed. */
  render(): TemplateResult | undefined {
    return this.#id === undefined ? undefined : editingView(this.#withoutFiles, () => this.leave());
  }
}
