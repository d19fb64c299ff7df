import type { IncomingMessage } from "node:http";
import { UpstreamGarbage, UpstreamTimeout } from "../failures/failures.ts";
import type { ProviderTimes } from "../provider.ts";

/** Largest stream of one model turn. Far beyond any answer: a bound against an endless one. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How long a stream that nobody reads on may take to end by itself, so that its connection can be used again. */
const LINGER_MS = 100;

/**
 * One request and the bytes that answer it. Each wait has its own limit, measured on raw bytes: a comment
 * that an upstream sends to keep the line alive, and a part of a frame, count as signs of life.
 */
export class UpstreamLine {
  readonly #signal: AbortSignal;
  readonly #times: ProviderTimes;
  /** When the first byte must be there: retries of one turn share it. */
  readonly #deadline: number;
  readonly #request = new AbortController();
  #answer: IncomingMessage | undefined;
  #pieces: AsyncIterator<Buffer> | undefined;
  #bytes = 0;
  #closed = false;
  #failure: unknown;

  /** Aborting the signal closes the line at once. `deadline` is a time of `performance.now()`. */
  constructor(times: ProviderTimes, deadline: number, signal: AbortSignal) {
    this.#times = times;
    this.#deadline = deadline;
    this.#signal = signal;
    signal.addEventListener("abort", this.#cut, { once: true });
  }

  /** Why the bytes ended, where it was not the upstream that ended them. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Aborted with the line: for the request that is sent on it. */
  get signal(): AbortSignal {
    return this.#request.signal;
  }

  /** Whether an answer has begun. */
  get isAnswered(): boolean {
    return this.#answer !== undefined;
  }

  /** Waits for what `send` makes of the request. Its signal is aborted with the line. */
  async open<Answer>(send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { signal } = this.#request;
    const timer = this.#watch();
    try {
      return await Promise.race([send(signal), rejection(signal)]);
    } catch (error) {
      throw this.#failure ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes the answer whose body `read` is to read. */
  take(answer: IncomingMessage): void {
    this.#answer = answer;
    this.#pieces = answer[Symbol.asyncIterator]();
    if (this.#closed) this.#cut();
  }

  /** The next bytes; `undefined` at their end. */
  async read(): Promise<Uint8Array | undefined> {
    const timer = this.#watch();
    try {
      const next = await this.#pieces?.next();
      // A cut may end a pending read quietly.
      if (this.#failure !== undefined) throw this.#failure;
      if (next === undefined || next.done) {
        this.#closed = true;
        return undefined;
      }
      this.#bytes += next.value.byteLength;
      if (this.#bytes <= MAX_STREAM_BYTES) return next.value;
      throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    } catch (error) {
      this.#failure ??= error;
      throw this.#failure;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Must be called in the end, whatever happened before. */
  close(): void {
    this.#signal.removeEventListener("abort", this.#cut);
    if (this.#closed) return;
    if (this.#pieces === undefined || this.#failure !== undefined) this.#cut();
    else void this.#linger(this.#pieces);
  }

  #watch(): NodeJS.Timeout {
    const started = this.#bytes > 0;
    const limit = started ? this.#times.idle : this.#deadline - performance.now();
    return setTimeout(() => {
      const { idle, firstChunk } = this.#times;
      this.#failure ??= new UpstreamTimeout(started ? idle : firstChunk, started);
      this.#cut();
    }, limit);
  }

  readonly #cut = (): void => {
    this.#closed = true;
    if (this.#signal.aborted) this.#failure ??= this.#signal.reason;
    this.#request.abort(this.#failure);
    this.#answer?.destroy();
  };

  async #linger(pieces: AsyncIterator<Buffer>): Promise<void> {
    const timer = setTimeout(this.#cut, LINGER_MS);
    try {
      while (!(await pieces.next()).done);
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
