import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError } from "../failures/failures.ts";
import type { ExplainFailure, ProviderError } from "../failures/provider-error.ts";
import type { OnAnswer, ProviderTimes } from "../provider.ts";
import { SseConnection } from "./connection.ts";
import type { StreamAnswer } from "./exchange.ts";
import type { UpstreamLine } from "./line.ts";
import { reportedFailure } from "./message.ts";
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
export interface StreamReader<Event> {
  /** Adds what a message says to `said`. `false`: what follows does not matter. Throws `ProviderError`. */
  read(message: SseMessage, said: Event[]): boolean;
  /** What is said at the end, which is something. Throws `ProviderError` where the stream was cut. */
  end(): Event[];
}

/**
 * Sends the request and yields what the reader makes of its stream, that of one chunk at a time. Throws
 * `ProviderError`, or the signal's reason. Leaving the iteration closes the connection.
 */
export async function* streamEvents<Event>(
  request: StreamRequest,
  options: StreamOptions,
  reader: StreamReader<Event>,
  signal: AbortSignal,
): AsyncGenerator<Event[], void> {
  const { label, times, clock } = options;
  const explain = (cause: unknown, started = false) =>
    options.explain?.(cause) ?? toProviderError(label, cause, started);
  const tries = { times, clock, explain, adapt: request.adapt };
  const { line, stream } = await tryToOpen((own) => openStream(request, label, own), tries, signal);
  try {
    let messages = stream.first;
    while (messages !== undefined) {
      const { said, goesOn, failure } = readAll(reader, messages);
      if (said.length > 0) yield said;
      if (failure !== undefined) throw failure.error;
      if (!goesOn) break;
      try {
        await stream.connection.news();
        messages = stream.connection.next();
      } catch (error) {
        signal.throwIfAborted();
        throw explain(error, true);
      }
    }
  } finally {
    line.close();
  }
  signal.throwIfAborted();
  yield reader.end();
}

/** What stands before a message that is a failure was said. */
function readAll<Event>(reader: StreamReader<Event>, messages: readonly SseMessage[]) {
  const said: Event[] = [];
  try {
    const goesOn = messages.every((message) => reader.read(message, said));
    return { said, goesOn, failure: undefined };
  } catch (error) {
    return { said, goesOn: false, failure: { error } };
  }
}

/** Rejects also where the stream's first event is that the upstream fails: nothing was said by then. */
async function openStream(request: StreamRequest, label: string, line: UpstreamLine) {
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
