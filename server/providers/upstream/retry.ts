import { setTimeout as sleep } from "node:timers/promises";
import { statusOf } from "../failures/classify.ts";
import { causeChain } from "../failures/failures.ts";
import type { ProviderError } from "../failures/provider-error.ts";
import { UpstreamFailure, UpstreamRefusal } from "./refusal.ts";

/** How many requests one model turn may take at most. */
export const MAX_TRIES = 3;

/** What a retry needs of the world; tests bring their own. */
export interface RetryClock {
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** As `Math.random`. */
  random(): number;
}

export const realRetryClock: RetryClock = {
  wait: async (ms, signal) => {
    await sleep(ms, undefined, { signal });
  },
  random: Math.random,
};

const RETRIED_STATUS = new Set([408, 429, 500, 502, 503, 504, 529]);
const RETRIED_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "EAI_AGAIN"]);

/** A person waits for the answer: beyond this the provider's own figure is passed on instead. */
const LONGEST_WAIT_SECONDS = 2;

/**
 * Milliseconds to wait before the same request is worth another try; `undefined` when it is not.
 * Only for failures before the first event: what a user has seen cannot be taken back.
 */
export function retryDelay(failure: ProviderError, tried: number, random: () => number): number | undefined {
  if (tried >= MAX_TRIES || !failure.retryable || !isTransient(failure.cause)) return undefined;
  if (failure.retryAfter !== undefined) {
    if (failure.retryAfter > LONGEST_WAIT_SECONDS) return undefined;
    // Never sooner than asked for, and all who were asked for the same not at once.
    return failure.retryAfter * 1000 + random() * 250;
  }
  // Full jitter, 250 ms and then 500 ms on average: clients that failed together do not return together.
  return random() * 500 * 2 ** (tried - 1);
}

function isTransient(cause: unknown): boolean {
  if (cause instanceof UpstreamFailure) return RETRIED_STATUS.has(statusOf(cause.detail));
  if (cause instanceof UpstreamRefusal) {
    return RETRIED_STATUS.has(cause.status) && cause.headers.get("x-should-retry") !== "false";
  }
  return causeChain(cause).some((code) => RETRIED_CODES.has(code));
}
