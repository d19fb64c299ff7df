/** Whether the server can be reached, and when to try again: exponential back-off with full jitter. */

const BASE_MS = 1_000;
const MAX_MS = 30_000;
/** The first attempt after a loss comes almost at once, but not from all clients in the same moment. */
const FIRST_MS = 250;

/** `online`: as far as known, the server answers. */
export type ConnectionState = "online" | "connecting" | "waiting";

export class ReconnectPolicy {
  /** Whether the page has no network, as far as it knows. */
  isOffline = false;
  readonly #onChange: () => void;
  #failures = 0;
  /** Whether the connection is open again; the failures count until an event arrives over it. */
  #isOpen = false;
  #retryAt: number | undefined;
  #waiting: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  /** `onChange` is also called each second while `retryIn` counts down. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** A single failure is not shown: the attempt that follows at once usually succeeds. */
  get state(): ConnectionState {
    if (this.#failures < 2 || this.#isOpen) return "online";
    return this.#retryAt === undefined ? "connecting" : "waiting";
  }

  /** Seconds until the next attempt. */
  get retryIn(): number {
    return Math.max(1, Math.ceil(((this.#retryAt ?? 0) - Date.now()) / 1_000));
  }

  /** To be called when a connection is open. It may still break at once, as with a proxy that drops each one. */
  opened(): void {
    this.#isOpen = true;
    if (this.#failures > 0) this.#onChange();
  }

  /** To be called when an event has arrived. */
  succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#onChange();
  }

  /** To be called after a failed attempt. Resolves when the next one is due. */
  wait(): Promise<void> {
    this.#waiting ??= this.#backOff();
    return this.#waiting;
  }

  /** Ends the wait: the network is back, the page is in view, the user asks for it, or the run was stopped. */
  retryNow(): void {
    this.#wake?.();
  }

  async #backOff(): Promise<void> {
    const limit = this.#failures === 0 ? FIRST_MS : Math.min(MAX_MS, BASE_MS * 2 ** this.#failures);
    const delay = Math.random() * limit;
    this.#failures += 1;
    this.#isOpen = false;
    this.#retryAt = Date.now() + delay;
    const tick = setInterval(this.#onChange, 1_000);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delay);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#onChange();
    });
    clearInterval(tick);
    this.#wake = undefined;
    this.#waiting = undefined;
    this.#retryAt = undefined;
    this.#onChange();
  }
}
