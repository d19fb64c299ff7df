/** Whether the server can be reached, and when to try again: back-off with full jitter, cut short by good news. */

const BASE_MS = 1_000;
const MAX_MS = 30_000;
/** The first attempt after a loss is made at once, but not by everybody in the same moment. */
const FIRST_MS = 250;

/** `up`: as far as known, the server answers. */
export type ConnectionState = "up" | "connecting" | "waiting";

export class Connection {
  readonly #onChange: () => void;
  #failures = 0;
  /** Whether the line is open after the failures; they count until something comes over it. */
  #isOpen = false;
  #retryAt: number | undefined;
  #waiting: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** One failure alone is no news: the attempt that follows at once mostly succeeds. */
  get state(): ConnectionState {
    if (this.#failures < 2 || this.#isOpen) return "up";
    return this.#retryAt === undefined ? "connecting" : "waiting";
  }

  /** Whether the browser knows that there is no network. A server on this machine may answer all the same. */
  get isOffline(): boolean {
    return navigator.onLine === false;
  }

  /** Seconds until the next attempt. */
  get retryIn(): number {
    return Math.max(1, Math.ceil(((this.#retryAt ?? 0) - Date.now()) / 1000));
  }

  /** To be called when the line is open. Whether it holds is another question: a server may take each and drop it. */
  opened(): void {
    this.#isOpen = true;
    if (this.#failures > 0) this.#onChange();
  }

  /** To be called when the server has said something. */
  succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#onChange();
  }

  /** To be called after a failed attempt; resolves when the next one is due. */
  wait(): Promise<void> {
    this.#waiting ??= this.#pause();
    return this.#waiting;
  }

  /** Ends the waiting. */
  tryNow(): void {
    this.#wake?.();
  }

  async #pause(): Promise<void> {
    const limit = this.#failures === 0 ? FIRST_MS : Math.min(MAX_MS, BASE_MS * 2 ** this.#failures);
    const delay = Math.random() * limit;
    this.#failures += 1;
    this.#isOpen = false;
    this.#retryAt = Date.now() + delay;
    const heard = new AbortController();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      const { signal } = heard;
      const wake = () => document.visibilityState === "visible" && resolve();
      window.addEventListener("online", wake, { signal });
      document.addEventListener("visibilitychange", wake, { signal });
      const due = setTimeout(resolve, delay);
      // For the seconds that are shown.
      const tick = setInterval(this.#onChange, 1000);
      signal.addEventListener("abort", () => {
        clearTimeout(due);
        clearInterval(tick);
      });
      this.#onChange();
    });
    heard.abort();
    this.#wake = undefined;
    this.#waiting = undefined;
    this.#retryAt = undefined;
    this.#onChange();
  }
}
