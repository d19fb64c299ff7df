import { SseDecoder, type SseMessage } from "../../protocol/sse.ts";
import { UpstreamGarbage, UpstreamTimeout } from "../failures/failures.ts";
import type { ProviderTimes } from "../provider.ts";

/** Largest stream of one model turn. Far beyond any answer: a bound against an endless one. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How long a stream that nobody reads on may take to end by itself, so that its connection can be used again. */
const LINGER_MS = 100;

/**
 * One request and the event stream that answers it. Each wait has its own limit, measured on raw bytes:
 * a comment that an upstream sends to keep the line alive counts as a sign of life.
 */
export class UpstreamConnection {
  readonly #signal: AbortSignal;
  readonly #times: ProviderTimes;
  /** When the first byte must be there: retries of one turn share it. */
  readonly #deadline: number;
  readonly #request = new AbortController();
  readonly #sse = new SseDecoder();
  readonly #utf8 = new TextDecoder();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #bytes = 0;
  #closed = false;
  #timeout: UpstreamTimeout | undefined;

  /** Aborting the signal closes the connection at once. `deadline` is a time of `performance.now()`. */
  constructor(times: ProviderTimes, deadline: number, signal: AbortSignal) {
    this.#times = times;
    this.#deadline = deadline;
    this.#signal = signal;
    signal.addEventListener("abort", this.#cut, { once: true });
  }

  /** Sends the request and waits for the head of its answer. */
  async start(send: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    const sent = send(this.#request.signal).then((response) => {
      this.#reader = response.body?.getReader();
      if (this.#closed) this.#cut();
    });
    const timer = this.#watch();
    try {
      await Promise.race([sent, rejection(this.#request.signal)]);
    } catch (error) {
      throw this.#timeout ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The next events of the stream; `undefined` at its end. */
  async read(): Promise<SseMessage[] | undefined> {
    for (;;) {
      const bytes = await this.#readBytes();
      // A cut may end a pending read quietly.
      this.#signal.throwIfAborted();
      if (this.#timeout !== undefined) throw this.#timeout;
      if (bytes === undefined) {
        this.#closed = true;
        return undefined;
      }
      const messages = this.#decode(bytes);
      if (messages.length > 0) return messages;
    }
  }

  /** Must be called in the end, whatever happened before. */
  close(): void {
    this.#signal.removeEventListener("abort", this.#cut);
    if (this.#closed) return;
    if (this.#reader === undefined) this.#cut();
    else void this.#linger(this.#reader);
  }

  async #readBytes(): Promise<Uint8Array | undefined> {
    const timer = this.#watch();
    try {
      return (await this.#reader?.read())?.value;
    } catch (error) {
      throw this.#timeout ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  #decode(bytes: Uint8Array): SseMessage[] {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > MAX_STREAM_BYTES) {
      throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    }
    try {
      return this.#sse.feed(this.#utf8.decode(bytes, { stream: true }));
    } catch (cause) {
      throw new UpstreamGarbage("the stream holds an event without end", { cause });
    }
  }

  #watch(): NodeJS.Timeout {
    const started = this.#bytes > 0;
    const limit = started ? this.#times.idle : this.#deadline - performance.now();
    return setTimeout(() => {
      const { idle, firstChunk } = this.#times;
      this.#timeout = new UpstreamTimeout(started ? idle : firstChunk, started);
      this.#cut();
    }, limit);
  }

  /** `fetch` may lose an abort while nothing refers to its request: the reader is cancelled as well. */
  readonly #cut = (): void => {
    this.#closed = true;
    this.#request.abort(this.#signal.reason);
    this.#reader?.cancel().catch(() => {
      // The stream failed before: there is nothing left to close.
    });
  };

  async #linger(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const timer = setTimeout(this.#cut, LINGER_MS);
    try {
      while (!(await reader.read()).done);
    } catch {
      // The connection broke after the last event that mattered.
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Never fulfilled: rejects when the signal, which belongs to one request only, is aborted. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
