/**
 * Keeps a conversation in the tab's storage: with every message, not with every token, and always before the page goes. A chunk: it is
 * loaded when there is a conversation.
 */

import { Place, type Storage } from "./place.ts";
import { decodeConversation, encodeConversation, type StoredConversation } from "./stored-conversation.ts";

export { keepTexts as texts } from "../texts/keep.ts";

const WRITE_EVERY_MS = 1_000;
/** Of the messages. A tab's storage holds some 5 million characters, and the site wants some of them. */
const MAX_CHARS = 2_000_000;

/** Another page has begun anew. */
const NOTHING: StoredConversation = {
  agent: "",
  draft: { text: "", files: [] },
  messages: [],
  state: {},
  forks: new Map(),
  cut: false,
};

export class ConversationStore {
  readonly #place: Place;
  readonly #read: () => StoredConversation;
  readonly #onLost: () => void;
  readonly #listening = new AbortController();
  #isLost = isBlocked();
  /** What was read or written last. */
  #text: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** How many messages there were with the last change. */
  #count = 0;

  /** Takes a place of its own; see `Place`. `read` gives what is to be kept at the moment; `onOther` is told of what another page of this tab has kept since, and `onLost` when its own is lost, or no longer is. */
  constructor(
    area: Storage,
    first: string,
    id: string,
    read: () => StoredConversation,
    onOther: (stored: StoredConversation) => void,
    onLost: () => void,
  ) {
    this.#place = new Place(area, first, id);
    this.#read = read;
    this.#onLost = onLost;
    const { signal } = this.#listening;
    window.addEventListener("pagehide", () => this.flush(), { signal });
    // The last moment that a phone grants.
    document.addEventListener("visibilitychange", () => this.flush(), { signal });
    // "Back" shows this page as it was left, and the conversation may have gone on in another one meanwhile.
    window.addEventListener(
      "pageshow",
      ({ persisted }) => {
        const before = this.#text;
        const stored = persisted ? this.load() : undefined;
        if (persisted && this.#text !== before) onOther(stored ?? NOTHING);
      },
      { signal },
    );
  }

  /** Whether a reload will find nothing: the browser blocks storage, or it has no room for even the end of the conversation. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** What an earlier page of this tab has kept, if it is whole and of this version. */
  load(): StoredConversation | undefined {
    this.#text = this.#place.read();
    return this.#text === undefined ? undefined : decodeConversation(this.#text);
  }

  /** To be called after every change. */
  changed(): void {
    this.#timer ??= setTimeout(() => this.flush(), WRITE_EVERY_MS);
    // What has just been sent is written at once: a browser that crashes does not say so before.
    const { length } = this.#read().messages;
    if (length !== this.#count) this.flush();
    this.#count = length;
  }

  /** Writes what has changed. */
  flush(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const stored = this.#read();
    if (stored.messages.length === 0 && `${stored.draft.text}${stored.draft.files}` === "") {
      this.wipe();
      return;
    }
    const isWritten = this.#write(stored);
    // Half a conversation would be a false one.
    if (!isWritten) this.wipe();
    const isLost = !isWritten || isBlocked();
    if (isLost === this.#isLost) return;
    this.#isLost = isLost;
    this.#onLost();
  }

  /** Writes as much of the end as there is room for; `false` if that is not even the state. */
  #write(stored: StoredConversation): boolean {
    for (let room = MAX_CHARS; room > 1_000; room /= 2) {
      this.#text = encodeConversation(stored, room);
      if (this.#place.write(this.#text)) return true;
    }
    return false;
  }

  wipe(): void {
    this.#text = undefined;
    this.#place.clear();
  }

  /** Writes a last time; or, where nothing is to be kept any more, leaves nothing. */
  close(erase: boolean): void {
    this.flush();
    this.#listening.abort();
    if (erase) this.#place.erase();
    this.#place.leave();
  }
}

/** Without storage what is written lasts as long as the page. */
function isBlocked(): boolean {
  try {
    return !sessionStorage;
  } catch {
    return true;
  }
}
