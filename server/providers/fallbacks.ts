/** Fallback models: when one fails, the next is asked. */

import { ConfigError } from "../errors.ts";
import { ApiError } from "../protocol/errors.ts";
import { createProvider } from "./create-provider.ts";
import { isModelFault, UpstreamRefusal } from "./failures.ts";
import type { Model, Provider } from "./provider.ts";
import { isRefusedContent } from "./transport/request.ts";

/** A provider and the model string from which it was made. */
export interface NamedProvider {
  readonly name: string;
  readonly provider: Provider;
}

/**
 * Combines several providers into one: each request goes to the first model, and to the next if that fails before its
 * first output. It accepts the files that all of them accept, and its states are those of the first.
 * @throws ConfigError for models that cannot continue each other's conversations
 */
export function withFallbacks(first: NamedProvider, others: readonly NamedProvider[]): Provider {
  const { id, label, stateKind } = first.provider;
  const odd = others.find(({ provider }) => provider.stateKind !== stateKind);
  if (odd !== undefined) {
    throw new ConfigError(
      `fallbacks names "${odd.name}", which cannot continue a conversation of "${first.name}", because OpenAI stores the conversation of one of them. Set store: false, so that the client keeps the whole history.`,
    );
  }
  const all = [first, ...others];
  const mediaTypes = first.provider.mediaTypes.filter((type) =>
    others.every(({ provider }) => provider.mediaTypes.includes(type)),
  );
  const models = all.map(({ name }) => name);
  const citesResults = all.every(({ provider }) => provider.citesResults);
  return createProvider({ id, label, mediaTypes, models, citesResults }, stateKind, oneOf(all));
}

/** How long a failed model is asked last if its error names no time. */
const REST_SECONDS = 30;

/** The limit for the time that its error names: the model may recover earlier. */
const LONGEST_REST_SECONDS = 300;

/** For the log: the model that failed, its failure, and the model that is asked next. */
class ModelFailover extends Error {
  override readonly name = "ModelFailover";
  readonly code = "model_failover";
}

/** Asks one model after another until one says something. When all fail, the failure of the first counts. */
function oneOf(candidates: readonly NamedProvider[]): Model {
  /** Until when a failed model is asked last, as `performance.now()`, so that not every message waits for it. */
  const restsUntil = new Map<NamedProvider, number>();

  function inOrder(): NamedProvider[] {
    const now = performance.now();
    const rests = (candidate: NamedProvider) => (restsUntil.get(candidate) ?? 0) > now;
    return [...candidates.filter((candidate) => !rests(candidate)), ...candidates.filter(rests)];
  }

  return async function* (request, signal) {
    let failure: unknown;
    const order = inOrder();
    for (const [index, candidate] of order.entries()) {
      let hasBegun = false;
      try {
        yield [{ type: "model", model: candidate.name }];
        for await (const batch of candidate.provider.model(request, signal)) {
          hasBegun = true;
          yield batch;
        }
        restsUntil.delete(candidate);
        return;
      } catch (error) {
        if (hasBegun || signal.aborted || !mayBeMended(error)) throw error;
        const seconds = Math.min(error.retryAfter ?? REST_SECONDS, LONGEST_REST_SECONDS);
        if (!isOfMessage(error.cause)) restsUntil.set(candidate, performance.now() + seconds * 1000);
        failure ??= error;
        const next = order[index + 1];
        if (next === undefined) throw failure;
        const text = `${candidate.name} failed, ${next.name} is asked instead`;
        yield [{ type: "report", report: new ModelFailover(text, { cause: error }) }];
      }
    }
  };
}

/**
 * Whether the failure belongs to one message: its content, its size, or what the model wrote for it. Other messages may
 * still succeed, and the words of the refusal may be the visitor's own.
 */
function isOfMessage(cause: unknown): boolean {
  return isRefusedContent(cause) || isModelFault(cause) || (cause instanceof UpstreamRefusal && cause.status === 413);
}

/** Whether another model may help: it cannot if the message is at fault or the conversation has expired. */
function mayBeMended(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code.startsWith("provider_");
}
