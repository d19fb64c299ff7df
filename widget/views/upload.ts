/** How much of a message with large files has left. */

import { nothing } from "lit";
import { strings } from "../strings.ts";
import type { SentFile } from "../transcript.ts";

/** Less than this has left before anybody looks. */
const WORTH_SHOWING_BYTES = 262_144;

const LOOKS_EVERY_MS = 100;

/** The session whose last message has the files. */
export interface Sending {
  /** Whether the message is not answered yet. */
  readonly busy: boolean;
  /** Whether the message waits for the connection: it will be sent, or sent again. */
  readonly isQueued: boolean;
  /** See `ChatTransport`. */
  readonly unsent: number;
}

/** By the files of a message, which is drawn more than once. */
const bars = new WeakMap<readonly SentFile[], UploadBar>();

/** A bar below the files while they are on their way. It keeps itself up to date: the rest of the screen stands still. */
export function uploadView(files: readonly SentFile[], sending: Sending): unknown {
  const bytes = files.reduce((sum, { size = 0 }) => sum + size, 0);
  if (bytes < WORTH_SHOWING_BYTES) return nothing;
  const bar = bars.get(files) ?? new UploadBar(bytes);
  bars.set(files, bar);
  bar.watch(sending);
  return bar.element;
}

class UploadBar {
  readonly element = document.createElement("div");
  /** As base64, which has 4 characters for 3 bytes. */
  readonly #length: number;
  /** Between two drawings `strings` may be the table of another element. */
  #strings = strings;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Whether all of the message was seen to leave: nobody looks through the whole answer. */
  #hasLeft = false;

  constructor(bytes: number) {
    this.#length = (bytes / 3) * 4;
    this.element.className = "upload";
    this.element.setAttribute("part", "upload");
    this.element.setAttribute("role", "progressbar");
    this.element.hidden = true;
  }

  /** To be called while drawing. Follows a message until all of it has left: one whose line was lost is sent again. */
  watch(sending: Sending): void {
    this.#strings = strings;
    if (!sending.busy || sending.isQueued) this.#hasLeft = false;
    if (!sending.busy || this.#hasLeft) return;
    this.#timer ??= setInterval(() => this.#look(sending), LOOKS_EVERY_MS);
  }

  #look({ busy, unsent }: Sending): void {
    const leaves = busy && unsent > 0;
    this.#hasLeft = busy && !leaves && !this.element.hidden;
    this.element.hidden = !leaves;
    if (leaves) this.#show(1 - unsent / Math.max(unsent, this.#length));
    if (busy && !this.#hasLeft) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** `share` is not a number where nobody knows how much has left. */
  #show(share: number): void {
    const { element } = this;
    const { uploading, lang } = this.#strings;
    const isKnown = Number.isFinite(share);
    const percent = Math.floor(share * 100);
    const words = isKnown ? (percent / 100).toLocaleString(lang, { style: "percent" }) : "";
    element.setAttribute("aria-label", uploading);
    if (isKnown) element.setAttribute("aria-valuenow", String(percent));
    else element.removeAttribute("aria-valuenow");
    element.textContent = `${uploading} ${words}`;
    element.style.setProperty("--_done", `${percent}%`);
  }
}
