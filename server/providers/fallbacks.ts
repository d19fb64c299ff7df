/** Several models that stand in for each other. */

import { ConfigError } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import type { ProviderErrorCode } from "./failures.ts";
import { HistoryProvider } from "./history.ts";
import { StoredProvider } from "./openai/provider.ts";
import type { Model, ModelEvent, Provider } from "./provider.ts";

/** A provider with the model string that it was made of. */
export interface NamedProvider {
  readonly name: string;
  readonly provider: Provider;
}

/**
 * One provider of several: each request goes to the first model, and to the next where that fails before it says anything. It
 * takes the files that all of them take, and its states are those of the first.
 * @throws ConfigError for models that cannot continue each other's conversations
 */
export function withFallbacks(first: NamedProvider, others: readonly NamedProvider[]): Provider {
  const all = [first, ...others];
  const { id, label } = first.provider;
  const mediaTypes = first.provider.mediaTypes.filter((type) =>
    others.every(({ provider }) => provider.mediaTypes.includes(type)),
  );
  const facts = { id, label, mediaTypes, models: all.map(({ name }) => name) };
  const histories = all.flatMap(({ name, provider }) =>
    provider instanceof HistoryProvider ? [{ name, model: provider.model }] : [],
  );
  if (histories.length === all.length) return new HistoryProvider(facts, new FallbackModel(histories));
  const stored = all.flatMap(({ name, provider }) =>
    provider instanceof StoredProvider ? [{ name, model: provider.model }] : [],
  );
  if (stored.length === all.length) return new StoredProvider(facts, new FallbackModel(stored));
  const odd = others.find(({ provider }) => provider.stateKind !== first.provider.stateKind);
  throw new ConfigError(
    `fallbacks names "${odd?.name}", which cannot continue a conversation of "${first.name}", because OpenAI stores the conversation of one of them. Set store: false, so that the client keeps the whole history.`,
  );
}

/** A model with its model string. */
interface Candidate<Request> {
  readonly name: string;
  readonly model: Model<Request>;
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

/** For the log: the model that failed, its failure, and the model that is asked next. */
class ModelFailover extends Error {
  override readonly name = "ModelFailover";
  readonly code = "model_failover";
}

/** Asks one model after another until one says something. When all fail, the failure of the first counts. */
class FallbackModel<Request> implements Model<Request> {
  readonly #candidates: readonly Candidate<Request>[];
  /** Until when a model that failed is asked last, as `performance.now()`: not every message has to wait for it. */
  readonly #restsUntil = new Map<Candidate<Request>, number>();

  constructor(candidates: readonly Candidate<Request>[]) {
    this.#candidates = candidates;
  }

  async *stream(request: Request, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    let failure: unknown;
    const order = this.#order();
    for (const [index, candidate] of order.entries()) {
      let hasBegun = false;
      try {
        for await (const batch of candidate.model.stream(request, signal)) {
          hasBegun = true;
          yield signed(batch, candidate.name);
        }
        this.#restsUntil.delete(candidate);
        return;
      } catch (error) {
        if (hasBegun || signal.aborted || !mayBeMended(error)) throw error;
        this.#rest(candidate, error);
        failure ??= error;
        const next = order[index + 1];
        if (next === undefined) throw failure;
        const text = `${candidate.name} failed, ${next.name} is asked instead`;
        yield [{ type: "failover", report: new ModelFailover(text, { cause: error }) }];
      }
    }
  }

  #order(): Candidate<Request>[] {
    const now = performance.now();
    const rests = (candidate: Candidate<Request>) => (this.#restsUntil.get(candidate) ?? 0) > now;
    return [...this.#candidates.filter((candidate) => !rests(candidate)), ...this.#candidates.filter(rests)];
  }

  #rest(candidate: Candidate<Request>, { retryAfter = REST_SECONDS }: ApiError): void {
    const seconds = Math.min(retryAfter, LONGEST_REST_SECONDS);
    this.#restsUntil.set(candidate, performance.now() + seconds * 1000);
  }
}

/** Adds to the end which model has answered. */
function signed(batch: ModelEvent[], model: string): ModelEvent[] {
  if (batch.at(-1)?.type !== "end") return batch;
  return batch.map((event) => (event.type === "end" ? { ...event, model } : event));
}

function mayBeMended(error: unknown): error is ApiError {
  return error instanceof ApiError && MENDED.some((code) => code === error.code);
}
