/** A large message on its way in, as a body or on a socket: it waits for a slot, and then has to come at some pace. */

import type { MessageLimits, Release } from "../limits/message-limits.ts";
import { ApiError } from "../protocol/errors.ts";

/** From here on a message is large. */
export const LARGE_BYTES = 1024 * 1024;

/** The time over which the pace is measured: a mobile network may be silent for a while. */
const WINDOW_MS = 10_000;

export interface UploadRules {
  limits: Pick<MessageLimits, "admitUpload">;
  /** Bytes per second; 0: any pace. */
  minRate: number;
}

export class Upload {
  readonly #rules: UploadRules;
  readonly #address: string;
  readonly #onTooSlow: (error: ApiError) => void;
  readonly #ended = new AbortController();
  #slot: Promise<void> | undefined;
  #release: Release | undefined;
  #isArriving = true;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `onTooSlow` is called at most once. */
  constructor(rules: UploadRules, address: string, onTooSlow: (error: ApiError) => void) {
    this.#rules = rules;
    this.#address = address;
    this.#onTooSlow = onTooSlow;
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Waits for a slot; a second call waits for the same one. @throws ApiError `overloaded` */
  begin(): Promise<void> {
    this.#slot ??= this.#occupySlot();
    return this.#slot;
  }

  /** Bytes have arrived. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** All of the message has arrived. It keeps its slot until it has been read. */
  arrived(): void {
    this.#isArriving = false;
    clearTimeout(this.#timer);
  }

  /** Gives the slot back, or waits for it no longer. */
  end(): void {
    this.arrived();
    if (!this.isEnded) this.#ended.abort(cutOff());
    this.#release?.();
  }

  async #occupySlot(): Promise<void> {
    this.#release = await this.#rules.limits.admitUpload(this.#address, this.#ended.signal);
    if (this.isEnded) this.#release();
    else this.#measure();
  }

  #measure(): void {
    const { minRate } = this.#rules;
    if (minRate === 0 || !this.#isArriving) return;
    this.#bytes = 0;
    this.#timer = setTimeout(() => {
      if (this.#bytes * 1000 >= minRate * WINDOW_MS) this.#measure();
      else this.#onTooSlow(tooSlow(minRate));
    }, WINDOW_MS);
  }
}

function tooSlow(minRate: number): ApiError {
  return new ApiError(
    "request_timeout",
    `The message arrived too slowly. Large messages must arrive at ${minRate} bytes per second or more.`,
  );
}

export function cutOff(): ApiError {
  return new ApiError("invalid_request", "The request body ended too early.");
}
