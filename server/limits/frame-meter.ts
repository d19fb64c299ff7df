import { ApiError } from "../protocol/api-error.ts";
import { RateLimiter } from "./rate-limiter.ts";

/** Refused frames in a row after which a peer is not a hasty person but a broken or hostile program. */
const MAX_REFUSED_FRAMES = 20;

/** The rate of one socket. */
export class FrameMeter {
  readonly #perMinute: () => number;
  /** Made with the first frame: many sockets say nothing. */
  #rate: RateLimiter | undefined;
  #refused = 0;

  constructor(perMinute: () => number) {
    this.#perMinute = perMinute;
  }

  /** @throws ApiError `rate_limited` */
  count(): void {
    this.#rate ??= new RateLimiter();
    const wait = this.#rate.take("", this.#perMinute());
    this.#refused = wait > 0 ? this.#refused + 1 : 0;
    if (wait > 0) throw tooOften("Too many messages came on this connection.", wait);
  }

  /** Whether the peer goes on although it was told to wait. */
  get isAbused(): boolean {
    return this.#refused >= MAX_REFUSED_FRAMES;
  }
}

export function tooOften(message: string, waitMs: number): ApiError {
  return new ApiError("rate_limited", message, { retryAfter: Math.ceil(waitMs / 1000) });
}
