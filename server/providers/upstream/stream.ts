import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError } from "../failures/failures.ts";
import type { ExplainFailure, ProviderError } from "../failures/provider-error.ts";
import type { ProviderTimes } from "../provider.ts";
import type { StreamResponse } from "./client.ts";
import { SseConnection } from "./connection.ts";
import type { UpstreamLine } from "./line.ts";
import { reportedFailure } from "./message.ts";
import type { RetryClock } from "./retry.ts";
import { tryToOpen } from "./tries.ts";

/** A request that is answered by an event stream, whichever package makes it. */
export interface StreamRequest {
  /** Sends it once. What answers with no event stream must reject, best with an `UpstreamRefusal`. */
  readonly send: (signal: AbortSignal) => Promise<StreamResponse>;
  /** Told that the upstream refused the request; `true` when `send` will now send another one. */
  readonly adapt: (failure: ProviderError) => boolean;
}

export interface StreamOptions {
  /** The provider's name in sentences. */
  label: string;
  times: ProviderTimes;
  clock?: RetryClock;
  /** What a failure means to this provider only; `undefined` leaves it to the common rules. */
  explain?: ExplainFailure | undefined;
}

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
  const { label, times, clock } = options;
  const explain = (cause: unknown, started = false) =>
    options.explain?.(cause) ?? toProviderError(label, cause, started);
  const tries = { times, clock, explain, adapt: request.adapt };
  const { line, stream } = await tryToOpen((own) => openStream(request, label, own), tries, signal);
  try {
    let messages = stream.first;
    while (messages !== undefined) {
      yield messages;
      messages = await stream.connection.read();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw explain(error, true);
  } finally {
    line.close();
  }
}

/** Rejects also where the stream's first event is that the upstream fails: nothing was said by then. */
async function openStream(request: StreamRequest, label: string, line: UpstreamLine) {
  const connection = new SseConnection(line);
  await connection.start(request.send);
  const first = await connection.read();
  const failure = first?.[0] && reportedFailure(first[0], label);
  if (failure !== undefined) throw failure;
  return { connection, first };
}
