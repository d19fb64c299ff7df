import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError } from "../failures/failures.ts";
import type { ProviderError } from "../failures/provider-error.ts";
import type { ProviderTimes } from "../provider.ts";
import { UpstreamConnection } from "./connection.ts";
import { type RetryClock, realRetryClock, retryDelay } from "./retry.ts";

/** A request that is answered by an event stream, whichever package makes it. */
export interface StreamRequest {
  /** Sends it once. What answers with no event stream must reject, best with an `UpstreamRefusal`. */
  send(signal: AbortSignal): Promise<Response>;
  /** Told that the upstream refused the request; `true` when `send` will now send another one. */
  adapt(failure: ProviderError): boolean;
}

export interface StreamOptions {
  /** The provider's name in sentences. */
  label: string;
  times: ProviderTimes;
  clock?: RetryClock;
  /** What a failure means to this provider only; `undefined` leaves it to the common rules. */
  explain?: ExplainFailure | undefined;
}

export type ExplainFailure = (cause: unknown) => ProviderError | undefined;

/**
 * Sends the request and yields the events of its stream, those of one chunk at a time: a generator
 * that yielded each alone would cost more than reading them. Throws `ProviderError`, or the signal's
 * reason. Leaving the iteration closes the connection.
 */
export async function* streamMessages(
  request: StreamRequest,
  options: StreamOptions,
  signal: AbortSignal,
): AsyncGenerator<SseMessage[], void> {
  const { connection, first } = await openStream(request, options, signal);
  try {
    let messages = first;
    while (messages !== undefined) {
      yield messages;
      messages = await connection.read();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw options.explain?.(error) ?? toProviderError(options.label, error, true);
  } finally {
    connection.close();
  }
}

/** Tries until a first event is there: up to then another try cannot be noticed. */
async function openStream(request: StreamRequest, options: StreamOptions, signal: AbortSignal) {
  const { label, times, clock = realRetryClock } = options;
  const deadline = performance.now() + times.firstChunk;
  for (let tried = 1; ; tried++) {
    signal.throwIfAborted();
    const connection = new UpstreamConnection(times, deadline, signal);
    try {
      await connection.start((own) => request.send(own));
      return { connection, first: await connection.read() };
    } catch (error) {
      connection.close();
      signal.throwIfAborted();
      const failure = options.explain?.(error) ?? toProviderError(label, error);
      if (request.adapt(failure)) continue;
      const delay = retryDelay(failure, tried, clock.random);
      if (delay === undefined || performance.now() + delay >= deadline) throw failure;
      await clock.wait(delay, signal);
    }
  }
}
