/** Edits a message in its place. Loaded when the page is idle, once messages can be shown. */

import { toJson } from "../../server/protocol/json.ts";
import type { Composer } from "../composer/composer.ts";
import type { OutgoingMessage } from "../conversations/conversation.ts";
import type { UserMessage } from "../conversations/messages.ts";
import type { EditedMessage } from "../conversations/tab-slot.ts";
import type { Client } from "../session/client.ts";
import type { ChatActions } from "../ui/context.ts";
import { hasTouchKeyboard } from "../ui/controls.ts";
import type { MessageElement } from "../ui/message.ts";

/** The members of the element that an edit uses. */
export interface EditHost extends HTMLElement {
  readonly updateComplete: Promise<boolean>;
  readonly client: Client | undefined;
  readonly composer: Composer | null | undefined;
  /** The attribute `actions`: what users can do with messages. */
  readonly actions: string;
  /** Drawn in place of the message that is being edited, while that message is shown. */
  editor: Composer | undefined;
  focusComposer(): void;
}

export interface EditActions extends Pick<ChatActions, "holdScroll" | "saveDraft" | "takeOut"> {
  takeBack(): Promise<OutgoingMessage | undefined>;
  /** Opens an empty editor in place of a message. */
  openEditor(edits: EditedMessage): Composer;
}

/** `ChatActions` documents the methods. */
export class EditInPlace {
  readonly #host: EditHost;
  readonly #actions: EditActions;
  /** The editor that this class opened last; an editor restored from an earlier page load is another one. */
  #opened: Composer | undefined;
  /** Its initial content, as JSON. */
  #begun = "";
  /** Whether it was opened from the composer. */
  #isRecalled = false;

  constructor(host: EditHost, actions: EditActions) {
    this.#host = host;
    this.#actions = actions;
  }

  edit({ id }: Pick<UserMessage, "id">, isRecalled = false): void {
    this.#isRecalled = isRecalled;
    const { client, editor } = this.#host;
    const message = client?.session.messages.find((it) => it.id === id);
    if (message?.role !== "user") return;
    if (editor?.isConnected && this.#isChanged(editor)) void this.#show(editor);
    else if (client?.session.canEdit(message)) {
      this.giveUp(editor);
      const next = this.#actions.openEditor({ conversation: client.library.shownId, id: message.id });
      next.restoreUnsent({ ...client.session.conversation.files.outgoing(message), files: message.files });
      this.#opened = next;
      this.#begun = toJson(next.written);
      void this.#show(next);
    }
  }

  #isChanged(editor: Composer): boolean {
    return editor !== this.#opened || toJson(editor.written) !== this.#begun;
  }

  async #show(editor: Composer): Promise<void> {
    this.#actions.holdScroll();
    await this.#host.updateComplete;
    editor.focusEnd();
  }

  /** Closes an editor whose message is gone, or when another one is edited. A changed text goes to the composer. */
  giveUp(editor: Composer | undefined): void {
    if (!editor || editor !== this.#host.editor) return;
    this.#host.editor = undefined;
    if (this.#isChanged(editor)) this.#host.composer?.restoreUnsent(editor.outgoing);
  }

  async recall(): Promise<void> {
    const { client, actions, composer } = this.#host;
    // The user has typed something while this code was loaded.
    if (composer?.draft) return;
    const last = client?.session.queued.at(-1);
    if (last) {
      void this.#actions.takeOut(last.id, true);
      return;
    }
    const question = client?.session.lastQuestion;
    if (!question || !/all|edit/.test(actions)) return;
    if (!(await this.#actions.takeBack())) this.edit(question, true);
  }

  async end(): Promise<void> {
    const host = this.#host;
    const message = host.editor?.closest<MessageElement>("agent-chat-message");
    this.#actions.holdScroll();
    host.editor = undefined;
    this.#actions.saveDraft();
    await host.updateComplete;
    const button = message?.querySelector<HTMLElement>('.said [part="edit"]:enabled');
    if (button && !this.#isRecalled) button.focus({ preventScroll: true });
    else if (!hasTouchKeyboard()) host.focusComposer();
  }
}
