import { finished, type Readable } from "node:stream";
import { asString, type Json } from "../../protocol/json.ts";
import { UpstreamGarbage, UpstreamTimeout } from "../failures.ts";
import type { TransportLimits } from "../provider.ts";
import type { StreamedAnswer } from "./fetch.ts";

/** The largest answer of one model turn: a protection against endless ones, far above any real answer. */
export const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How much may arrive unread before the stream is paused. */
const HIGH_WATER_BYTES = 64 * 1024;

/** The size that is assumed for an object in a stream, without its text. */
const OBJECT_BYTES = 64;

/** How long a stream may take to end after the answer's last event, so that its connection can be used again. */
const LINGER_MS = 100;

/** How long the usage and the stream's end are awaited once the model has finished: some servers leave the stream open. */
const FINISHED_MS = 2_000;

/** One chunk of a stream. */
export type Packet = Buffer | Json;

function sizeOf(packet: Packet): number {
  return Buffer.isBuffer(packet) ? packet.byteLength : OBJECT_BYTES + asString(packet.delta).length;
}

/**
 * One try of a request, and the packets of its answer: bytes, or objects that a package has parsed. Waits for the first
 * byte and then for each packet, keep-alive comments included, are limited. The time of a slow client does not count.
 */
export class UpstreamResponse {
  readonly #limits: TransportLimits;
  readonly #signal: AbortSignal;
  readonly #request = new AbortController();
  #stream: Readable | undefined;
  /** Bytes read so far. */
  #bytes = 0;
  #arrived: Packet[] = [];
  #arrivedBytes = 0;
  #isWaiting = true;
  #isIdleTimer = false;
  #timer: NodeJS.Timeout;
  /** Why we ended the answer early, if we did: a time limit, an abort or `close`. */
  #failure: { readonly reason: unknown } | undefined;
  /** The stream has ended, with its error if it broke off. */
  #end: { readonly error: unknown } | undefined;
  /** The model has finished: errors of the connection no longer matter. */
  #isFinished = false;
  #isDraining = false;
  #isClosed = false;
  #wake: () => void = () => {};

  /** Aborting the signal closes the connection at once. `deadline`: for the first byte, as `performance.now()`. */
  constructor(limits: TransportLimits, deadline: number, signal: AbortSignal) {
    this.#limits = limits;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = setTimeout(this.#onTimeout, Math.max(0, deadline - performance.now()));
  }

  /** Sends the request and waits for the head of its answer, but not for a sender that ignores its signal. */
  async open(send: (signal: AbortSignal) => Promise<StreamedAnswer>): Promise<StreamedAnswer> {
    const sending = send(this.#request.signal).then((answer) => {
      this.#take(answer.stream);
      return answer;
    });
    try {
      await Promise.race([sending, new Promise<void>(this.#onChange)]);
    } catch (error) {
      throw this.#failure === undefined ? error : this.#failure.reason;
    }
    if (this.#failure !== undefined) throw this.#failure.reason;
    return sending;
  }

  /** All unread packets; `undefined` if there are none. Throws if the connection broke, or a limit was reached. */
  read(): Packet[] | undefined {
    this.#isWaiting = false;
    if (this.#failure !== undefined) throw this.#failure.reason;
    if (this.#arrived.length > 0) return this.#takeArrived();
    if (this.#end?.error && !this.#isFinished) throw this.#end.error;
    return undefined;
  }

  /** Whether all of the answer was read. */
  get isEnded(): boolean {
    return this.#end !== undefined && this.#arrived.length === 0;
  }

  /** Resolves when there may be something to read, or the answer has ended. Called only after `read` has found nothing. */
  change(): Promise<void> {
    this.#watch();
    return new Promise(this.#onChange);
  }

  /** Called when the model has finished: the rest may take `FINISHED_MS` from now, even if comments keep coming. */
  endSoon(): void {
    this.#isFinished = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // The time that a slow client takes does not count.
      if (!this.#isWaiting) return void this.#timer.refresh();
      this.#stream?.destroy();
      this.#end ??= { error: undefined };
      this.#wake();
    }, FINISHED_MS);
  }

  /** Must be called at the end. After the last event of a complete answer, the connection is kept for another request. */
  close(isComplete: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    clearTimeout(this.#timer);
    if (this.#end !== undefined) return;
    if (isComplete) this.#drain();
    else this.#fail(new Error("the answer is not read any further"));
  }

  /** Lets the rest of the stream arrive, for `LINGER_MS` at most. */
  #drain(): void {
    this.#isDraining = true;
    this.#timer = setTimeout(() => this.#stream?.destroy(), LINGER_MS);
    this.#stream?.resume();
  }

  #take(stream: Readable): void {
    stream.on("data", this.#onData);
    finished(stream, { writable: false }, (error) => {
      this.#end = { error };
      if (this.#isDraining) clearTimeout(this.#timer);
      this.#wake();
    });
    this.#stream = stream;
    // The sender ignored its signal.
    if (this.#failure !== undefined) stream.destroy();
  }

  readonly #onData = (packet: Packet): void => {
    if (this.#isDraining) return;
    this.#arrived.push(packet);
    this.#arrivedBytes += sizeOf(packet);
    // The reader is waiting for a slow client.
    if (this.#arrivedBytes > HIGH_WATER_BYTES) this.#stream?.pause();
    this.#wake();
  };

  #takeArrived(): Packet[] {
    const packets = this.#arrived;
    this.#bytes += this.#arrivedBytes;
    this.#arrived = [];
    this.#arrivedBytes = 0;
    if (this.#bytes > MAX_STREAM_BYTES) {
      throw new UpstreamGarbage(`the stream is longer than ${MAX_STREAM_BYTES} bytes`);
    }
    if (this.#stream?.isPaused()) this.#stream.resume();
    return packets;
  }

  /** Limits the wait that begins now. The timer of one wait is refreshed for the next. */
  #watch(): void {
    this.#isWaiting = true;
    if (this.#isFinished) return;
    if (this.#isIdleTimer) {
      this.#timer.refresh();
    } else if (this.#bytes > 0) {
      clearTimeout(this.#timer);
      this.#isIdleTimer = true;
      this.#timer = setTimeout(this.#onTimeout, this.#limits.idleMs);
    }
  }

  readonly #onChange = (resolve: () => void): void => {
    this.#wake = resolve;
  };

  readonly #onTimeout = (): void => {
    if (!this.#isWaiting) return;
    const { firstChunkMs, idleMs } = this.#limits;
    this.#fail(new UpstreamTimeout(this.#isIdleTimer ? idleMs : firstChunkMs, this.#isIdleTimer));
  };

  readonly #onAbort = (): void => this.#fail(this.#signal.reason);

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    clearTimeout(this.#timer);
    this.#request.abort(reason);
    this.#stream?.destroy();
    this.#wake();
  }
}
