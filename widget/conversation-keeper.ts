/** Keeps a conversation and its draft over a reload, in this tab, as long as the element is in the page. */

import type { ConversationStore } from "./chunks/keep.ts";
import type { StoredConversation } from "./chunks/stored-conversation.ts";
import type { KeptDraft } from "./conversation.ts";
import { loadChunk } from "./lazy-chunk.ts";
import { forget, holds, recall, remember } from "./storage.ts";

export interface KeeperOptions {
  readonly server: URL;
  /** The element's, or an empty text. */
  readonly id: string;
  /** What is to be kept at the moment. */
  readonly read: () => Omit<StoredConversation, "draft">;
  /** Called with what an earlier page has kept, and with what another one has kept while this one was left: that is newer. */
  readonly restore: (stored: StoredConversation, isNewer?: boolean) => void;
  /** Called when it is known whether there is something to restore, and when what is kept is lost, or no longer is. */
  readonly onSettled: () => void;
}

export class ConversationKeeper {
  readonly #options: KeeperOptions;
  #isOn = false;
  /** Whether what was kept is to go, as soon as it is known which place is this element's. */
  #mustErase = false;
  /** The name of the first place of this server. */
  readonly #first: string;
  #store: ConversationStore | undefined;
  #restored: Promise<void> = Promise.resolve();
  #isRestoring = false;
  #draft: KeptDraft = { text: "", files: [] };

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#first = `agent-chat-session:${options.server.href}`;
  }

  /** Whether an earlier conversation is about to be shown. */
  get isRestoring(): boolean {
    return this.#isRestoring;
  }

  /** Whether it was to be kept, and the browser does not let it. */
  get isLost(): boolean {
    return this.#store?.isLost === true;
  }

  /** Resolves when what there was to restore is restored. */
  get restored(): Promise<void> {
    return this.#restored;
  }

  set draft(draft: KeptDraft) {
    if (`${draft.text}\n${draft.files}` === `${this.#draft.text}\n${this.#draft.files}`) return;
    this.#draft = draft;
    this.changed();
  }

  /** To be called after every change. */
  changed(): void {
    this.#store?.changed();
  }

  /** Turns keeping on, or off; then nothing of what was kept stays. */
  set isOn(isOn: boolean) {
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    if (isOn) {
      this.#isRestoring = holds(this.#first);
      this.#restored = this.#open(this.#isRestoring);
    } else {
      this.#letGo(true);
    }
  }

  /** Keeps what there is, and lets another element have the place. */
  close(): void {
    this.#isOn = false;
    this.#letGo(false);
  }

  /** With `waits`, not even a first failure ends the restoring: whoever sent something then would overwrite what was kept. */
  async #open(waits = false): Promise<void> {
    const { id, read, restore } = this.#options;
    const isNeeded = () => (this.#isOn || this.#mustErase) && !this.#store;
    // Without the chunk a conversation lasts as long as its page.
    let retry = (_retried?: Promise<void>) => {};
    const retried = new Promise<void>((resolve) => {
      retry = resolve;
    });
    const chunk = await loadChunk("keep", () => retry(isNeeded() ? this.#open() : undefined));
    if (!chunk && waits) return retried;
    this.#isRestoring = false;
    if (chunk && isNeeded()) {
      this.#store = new chunk.ConversationStore(
        { forget, recall, remember },
        this.#first,
        id,
        () => ({ ...read(), draft: this.#draft }),
        (stored) => restore(stored, true),
        this.#options.onSettled,
      );
      if (this.#mustErase) this.#store.wipe();
      this.#mustErase = false;
      const stored = this.#store.load();
      // What was said before the store was there.
      if (!stored || read().messages.length > 0) this.#store.changed();
      if (!this.#isOn) this.#letGo(true);
      else if (stored) restore(stored);
    }
    this.#options.onSettled();
  }

  #letGo(erase: boolean): void {
    if (this.#store) {
      this.#store.close(erase);
    } else if (erase) {
      this.#mustErase = true;
      void this.#open();
    }
    this.#store = undefined;
  }
}
