import { ProviderError, type ProviderErrorCode } from "./failures/provider-error.ts";
import type { Tell } from "./provider.ts";

/** A model with its model string. */
export interface Candidate<Model> {
  readonly name: string;
  readonly model: Model;
}

/** How long a model that failed is asked last, where it did not say how long. */
const REST_SECONDS = 30;

/** However long it says: it may have recovered. */
const LONGEST_REST_SECONDS = 300;

/** What another model may mend. The message's own faults and an expired conversation are the same everywhere. */
const MENDED: readonly ProviderErrorCode[] = [
  "provider_error",
  "provider_auth",
  "provider_rate_limited",
  "provider_overloaded",
  "provider_truncated",
  "provider_timeout",
];

/** Told to the log: who failed, how, and who is asked in its place. */
class ModelFailover extends Error {
  override readonly name = "ModelFailover";
  readonly code = "model_failover";
}

/** Asks one model after another until one says something. */
export class Failover<Model> {
  readonly #candidates: readonly Candidate<Model>[];
  /** Until when a model that failed is asked last, as `performance.now()`: nobody waits for it each time. */
  readonly #restsUntil = new Map<Candidate<Model>, number>();

  constructor(candidates: readonly Candidate<Model>[]) {
    this.#candidates = candidates;
  }

  /**
   * Tells what the first model says that says anything, with a `failover` event for each that failed before. Rejects with
   * what a model did that had begun, or that no other can mend; when all fail, the failure of the first.
   */
  async ask<Event>(
    request: (model: Model, name: string, tell: Tell<Event>) => Promise<void>,
    signal: AbortSignal,
    tell: Tell<Event | { type: "failover"; report: Error }>,
  ): Promise<void> {
    let failure: unknown;
    const order = this.#order();
    for (const [index, candidate] of order.entries()) {
      let hasBegun = false;
      try {
        await request(candidate.model, candidate.name, (events) => {
          hasBegun = true;
          return tell(events);
        });
        this.#restsUntil.delete(candidate);
        return;
      } catch (error) {
        if (hasBegun || signal.aborted || !mayBeMended(error)) throw error;
        this.#rest(candidate, error);
        failure ??= error;
        const next = order[index + 1];
        if (next === undefined) throw failure;
        const text = `${candidate.name} failed, ${next.name} is asked in its place`;
        await tell([{ type: "failover", report: new ModelFailover(text, { cause: error }) }]);
      }
    }
  }

  #order(): Candidate<Model>[] {
    const now = performance.now();
    const rests = (candidate: Candidate<Model>) => (this.#restsUntil.get(candidate) ?? 0) > now;
    return [...this.#candidates.filter((candidate) => !rests(candidate)), ...this.#candidates.filter(rests)];
  }

  #rest(candidate: Candidate<Model>, { retryAfter = REST_SECONDS }: ProviderError): void {
    const seconds = Math.min(retryAfter, LONGEST_REST_SECONDS);
    this.#restsUntil.set(candidate, performance.now() + seconds * 1000);
  }
}

function mayBeMended(error: unknown): error is ProviderError {
  return error instanceof ProviderError && MENDED.some((code) => code === error.code);
}
