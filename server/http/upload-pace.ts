import { ApiError } from "../protocol/api-error.ts";

/** Milliseconds over which it is measured: a mobile network may say nothing for a while. */
const WINDOW_MS = 10_000;

/**
 * Watches one large message while it has its turn: others wait for that, so it must come at some pace. A message
 * that keeps this pace for the whole of its time may still be too late; that is another limit.
 */
export class UploadPace {
  readonly #bytesPerSecond: number;
  readonly #onTooSlow: (error: ApiError) => void;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `bytesPerSecond`: on average of 10 seconds; 0 is any pace. `onTooSlow` is called at most once per `start`. */
  constructor(bytesPerSecond: number, onTooSlow: (error: ApiError) => void) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#onTooSlow = onTooSlow;
  }

  /** From here on it may come. */
  start(): void {
    this.stop();
    if (this.#bytesPerSecond > 0) this.#watch();
  }

  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** All of it is there, or nothing more is taken. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #watch(): void {
    this.#bytes = 0;
    this.#timer = setTimeout(() => {
      if (this.#bytes * 1000 >= this.#bytesPerSecond * WINDOW_MS) this.#watch();
      else this.#onTooSlow(this.#tooSlow());
    }, WINDOW_MS);
  }

  #tooSlow(): ApiError {
    return new ApiError(
      "request_timeout",
      `The message came too slowly: large ones must bring ${this.#bytesPerSecond} bytes per second.`,
    );
  }
}
