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
import { type Opened, tryToOpen } from "./tries.ts";

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
export function streamEvents<Event>(
  request: StreamRequest,
  options: StreamOptions,
  reader: StreamReader<Event>,
  signal: AbortSignal,
): AsyncIterable<Event[]> {
  return new StreamedEvents(request, options, reader, signal);
}

const OVER = { done: true, value: undefined } as const;

/** Not a generator: each of its steps takes twice as many promises, and there is one for each token. */
class StreamedEvents<Event> implements AsyncIterableIterator<Event[], undefined> {
  readonly #request: StreamRequest;
  readonly #options: StreamOptions;
  readonly #reader: StreamReader<Event>;
  readonly #signal: AbortSignal;
  #opened: Opened<OpenStream> | undefined;
  /** What the stream said that ends it, once all before was yielded. */
  #failure: { readonly error: unknown } | undefined;
  #goesOn = true;
  #isOver = false;

  constructor(
    request: StreamRequest,
    options: StreamOptions,
    reader: StreamReader<Event>,
    signal: AbortSignal,
  ) {
    this.#request = request;
    this.#options = options;
    this.#reader = reader;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Event[], undefined>> {
    if (this.#isOver) return OVER;
    try {
      if (this.#opened === undefined) {
        this.#opened = await this.#open();
        const said = this.#read(this.#opened.stream.first);
        if (said.length > 0) return { done: false, value: said };
      }
      const { connection } = this.#opened.stream;
      while (this.#goesOn) {
        await connection.news();
        const said = this.#read(this.#next(connection));
        if (said.length > 0) return { done: false, value: said };
      }
      if (this.#failure !== undefined) throw this.#failure.error;
      this.#close();
      this.#signal.throwIfAborted();
      return { done: false, value: this.#reader.end() };
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  async return(): Promise<typeof OVER> {
    this.#close();
    return OVER;
  }

  #open(): Promise<Opened<OpenStream>> {
    const { label, times, clock } = this.#options;
    const explain = (cause: unknown) => this.#explain(cause, false);
    const tries = { times, clock, explain, adapt: this.#request.adapt };
    return tryToOpen((own) => openStream(this.#request, label, own), tries, this.#signal);
  }

  #next(connection: SseConnection): SseMessage[] | undefined {
    try {
      return connection.next();
    } catch (error) {
      this.#signal.throwIfAborted();
      throw this.#explain(error, true);
    }
  }

  /** What stands before a message that is a failure was said. */
  #read(messages: readonly SseMessage[] | undefined): Event[] {
    const said: Event[] = [];
    try {
      this.#goesOn = messages?.every((message) => this.#reader.read(message, said)) ?? false;
    } catch (error) {
      this.#goesOn = false;
      this.#failure = { error };
    }
    return said;
  }

  #explain(cause: unknown, started: boolean): ProviderError {
    return this.#options.explain?.(cause) ?? toProviderError(this.#options.label, cause, started);
  }

  #close(): void {
    this.#isOver = true;
    this.#opened?.line.close();
  }
}

/** A stream that has begun. */
interface OpenStream {
  readonly connection: SseConnection;
  readonly first: SseMessage[] | undefined;
}

/** Rejects also where the stream's first event is that the upstream fails: nothing was said by then. */
async function openStream(
  request: StreamRequest,
  label: string,
  line: UpstreamLine,
): Promise<OpenStream> {
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
