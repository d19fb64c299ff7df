/** A large message on its way in, as a body or on a socket: it waits for a slot and keeps it until it has been read. */

import type { MessageLimits, Release } from "../limits/message-limits.ts";
import { ApiError } from "../protocol/errors.ts";

/** From here on a message is large. */
export const LARGE_BYTES = 1024 * 1024;

export interface UploadRules {
  limits: Pick<MessageLimits, "admitUpload">;
}

export class Upload {
  readonly #rules: UploadRules;
  readonly #address: string;
  readonly #ended = new AbortController();
  #slot: Promise<void> | undefined;
  #release: Release | undefined;

  constructor(rules: UploadRules, address: string) {
    this.#rules = rules;
    this.#address = address;
  }

  /** Waits for a slot; a second call waits for the same one. @throws ApiError `overloaded` */
  begin(): Promise<void> {
    this.#slot ??= this.#occupySlot();
    return this.#slot;
  }

  /** Releases the slot, or stops waiting for it. */
  end(): void {
    if (!this.#ended.signal.aborted) this.#ended.abort(cutOff());
    this.#release?.();
  }

  async #occupySlot(): Promise<void> {
    this.#release = await this.#rules.limits.admitUpload(this.#address, this.#ended.signal);
    if (this.#ended.signal.aborted) this.#release();
  }
}

export function cutOff(): ApiError {
  return new ApiError("invalid_request", "The request body ended too early.");
}
