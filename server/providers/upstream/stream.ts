import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError } from "../failures/failures.ts";
import type { ExplainFailure, ProviderError } from "../failures/provider-error.ts";
import type { OnAnswer, ProviderTimes, Tell } from "../provider.ts";
import { SseConnection } from "./connection.ts";
import type { StreamAnswer } from "./exchange.ts";
import type { UpstreamLine } from "./line.ts";
import { reportedFailure } from "./message.ts";
import { MessagePump, type MessageReader } from "./message-pump.ts";
import { telling } from "./request-id.ts";
import type { RetryClock } from "./retry.ts";
import { tryToOpen } from "./tries.ts";

/** A request that is answered by an event stream, whichever package makes it. */
export interface StreamRequest {
  /** Sends it once. What answers with no event stream must reject, best with an `UpstreamRefusal`. */
  readonly send: (signal: AbortSignal) => Promise<StreamAnswer>;
  /** Told that the upstream refused the request; `true` when `send` will now send another one. */
  readonly adapt: (failure: ProviderError) => boolean;
  readonly onAnswer?: OnAnswer | undefined;
}

export interface StreamOptions {
  /** The provider's name in sentences. */
  label: string;
  times: ProviderTimes;
  clock?: RetryClock;
  /** What a failure means to this provider only; `undefined` leaves it to the common rules. */
  explain?: ExplainFailure | undefined;
}

/** What is made of the messages of one stream. */
export interface StreamReader<Event> extends MessageReader<Event> {
  /** What is said at the end, which is something. Throws `ProviderError` where the stream was cut. */
  end(): Event[];
}

/**
 * Sends the request and tells what the reader makes of its stream, that of one chunk at a time. Rejects with a
 * `ProviderError`, the signal's reason, or what `tell` threw. Its connection is given up by then.
 */
export async function streamEvents<Event>(
  request: StreamRequest,
  options: StreamOptions,
  reader: StreamReader<Event>,
  signal: AbortSignal,
  tell: Tell<Event>,
): Promise<void> {
  const { label, times, clock } = options;
  const explain = (cause: unknown, started: boolean) =>
    options.explain?.(cause) ?? toProviderError(label, cause, started);
  const tries = {
    times,
    clock,
    explain: (cause: unknown) => explain(cause, false),
    adapt: request.adapt,
  };
  const { line, stream } = await tryToOpen((own) => openStream(request, label, own), tries, signal);
  const broken = (cause: unknown) => {
    signal.throwIfAborted();
    throw explain(cause, true);
  };
  try {
    await new MessagePump(stream.connection, reader, tell, broken).run(stream.first);
  } finally {
    line.close();
  }
  signal.throwIfAborted();
  await tell(reader.end());
}

/** A stream that has begun. */
interface OpenStream {
  readonly connection: SseConnection;
  readonly first: SseMessage[] | undefined;
}

/** Rejects also where the stream's first event is that the upstream fails: nothing was said by then. */
async function openStream(request: StreamRequest, label: string, line: UpstreamLine): Promise<OpenStream> {
  const connection = new SseConnection(line);
  await connection.start((own) => telling(request.onAnswer, () => request.send(own)));
  let first: SseMessage[] | undefined = [];
  while (first?.length === 0) {
    await connection.news();
    first = connection.next();
  }
  const failure = first?.[0] && reportedFailure(first[0], label);
  if (failure !== undefined) throw failure;
  return { connection, first };
}
