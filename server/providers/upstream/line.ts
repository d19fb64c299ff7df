import type { IncomingMessage } from "node:http";
import { finished } from "node:stream";
import { UpstreamGarbage, UpstreamTimeout } from "../failures/failures.ts";
import type { ProviderTimes } from "../provider.ts";

/** Largest stream of one model turn. Far beyond any answer: a bound against an endless one. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How long a stream that nobody reads on may take to end by itself, so that its connection can be used again. */
const LINGER_MS = 100;

/** Bytes that may wait to be read before the upstream is held back. */
const HIGH_WATER_BYTES = 64 * 1024;

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
  /** What came and was not read yet. */
  #pieces: Buffer[] = [];
  #waiting = 0;
  #bytes = 0;
  /** Set when the answer is over, with why where it broke off. */
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  /** Ends the wait for the head of an answer, whether or not the request listens to its signal. */
  #refuse: ((reason: unknown) => void) | undefined;
  /** For all waits one after the other: it counts only while there is one. */
  #timer: NodeJS.Timeout | undefined;
  #isIdleTimer = false;
  #watched = false;
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
    this.#watch();
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#refuse = reject;
        send(signal).then(resolve, reject);
      });
    } catch (error) {
      throw this.#failure ?? error;
    } finally {
      this.#watched = false;
    }
  }

  /** Takes the answer whose body `read` is to read. */
  take(answer: IncomingMessage): void {
    this.#answer = answer;
    // What came with the head is here by now: a listener would be told of it in the next tick, and piece by piece.
    const start: Buffer | null = answer.read();
    if (start !== null) this.#arrived(start);
    answer.on("data", (piece: Buffer) => this.#arrived(piece));
    finished(answer, { writable: false }, (error) => {
      this.#end = { error };
      this.#wake?.();
    });
    if (this.#closed) this.#cut();
  }

  /** The next bytes; `undefined` at their end. */
  async read(): Promise<Buffer | undefined> {
    await this.news();
    return this.next();
  }

  /** Fulfilled when there is something for `next`; `undefined` when there is now. */
  news(): Promise<void> | undefined {
    if (this.hasNews) return undefined;
    this.#watch();
    return new Promise<void>(this.#onNews);
  }

  /** Whether there is something for `next`, its exception included. */
  get hasNews(): boolean {
    return this.#pieces.length > 0 || this.#end !== undefined || this.#closed;
  }

  /**
   * Has the listener told of all news from now on, in place of `news`: for whom every token counts, since a promise is
   * felt in each. `wait` says that it has taken all there is.
   */
  follow(listener: () => void): void {
    this.#wake = listener;
  }

  /** Limits the wait for the next news, which begins now. */
  wait(): void {
    this.#watch();
  }

  /** As `read`, once there are news. */
  next(): Buffer | undefined {
    this.#watched = false;
    // A cut may end a pending read quietly.
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#pieces.length === 0) {
      this.#failure = this.#end?.error ?? undefined;
      if (this.#failure !== undefined) throw this.#failure;
      this.#closed = true;
      clearTimeout(this.#timer);
      return undefined;
    }
    // Mostly there is one: it leaves the list, which is not made anew with each token.
    const next = this.#pieces.length === 1 ? this.#pieces.pop() : Buffer.concat(this.#pieces);
    if (this.#pieces.length > 0) this.#pieces = [];
    this.#bytes += this.#waiting;
    this.#waiting = 0;
    if (this.#bytes > MAX_STREAM_BYTES) {
      this.#failure = new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
      throw this.#failure;
    }
    if (this.#answer?.isPaused()) this.#answer.resume();
    return next;
  }

  /** Must be called in the end, whatever happened before. */
  close(): void {
    this.#signal.removeEventListener("abort", this.#cut);
    clearTimeout(this.#timer);
    if (this.#closed) return;
    if (this.#answer === undefined || this.#failure !== undefined) this.#cut();
    else this.#linger(this.#answer);
  }

  #arrived(piece: Buffer): void {
    if (this.#closed) return;
    this.#pieces.push(piece);
    this.#waiting += piece.byteLength;
    if (this.#waiting >= HIGH_WATER_BYTES) this.#answer?.pause();
    this.#wake?.();
  }

  readonly #onNews = (wake: () => void): void => {
    this.#wake = wake;
  };

  /** Limits the wait that begins now. A timer that was set once is only wound up again. */
  #watch(): void {
    this.#watched = true;
    const isIdleTimer = this.#bytes > 0;
    if (isIdleTimer && this.#isIdleTimer) {
      this.#timer?.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#isIdleTimer = isIdleTimer;
    // The deadline may have passed since the last try was judged; Node 24 warns of a negative time.
    const left = Math.max(0, this.#deadline - performance.now());
    this.#timer = setTimeout(this.#late, isIdleTimer ? this.#times.idle : left);
  }

  readonly #late = (): void => {
    if (!this.#watched) return;
    const { idle, firstChunk } = this.#times;
    this.#failure ??= new UpstreamTimeout(this.#isIdleTimer ? idle : firstChunk, this.#isIdleTimer);
    this.#cut();
  };

  readonly #cut = (): void => {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#signal.aborted) this.#failure ??= this.#signal.reason;
    this.#request.abort(this.#failure);
    this.#refuse?.(this.#request.signal.reason);
    this.#answer?.destroy();
    this.#wake?.();
  };

  /** Nobody reads on: the rest may come for a while, so that the connection can be used again. */
  #linger(answer: IncomingMessage): void {
    this.#closed = true;
    this.#pieces = [];
    if (this.#end !== undefined) return;
    const timer = setTimeout(this.#cut, LINGER_MS);
    finished(answer, { writable: false }, () => clearTimeout(timer));
    answer.resume();
  }
}
