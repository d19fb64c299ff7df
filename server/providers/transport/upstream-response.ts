import { finished, type Readable } from "node:stream";
import { asString, type Json } from "../../protocol/json.ts";
import { UpstreamGarbage, UpstreamTimeout } from "../failures.ts";
import type { TransportLimits } from "../provider.ts";
import type { StreamedAnswer } from "./fetch.ts";

/** Largest answer of one model turn: a bound against an endless one, far beyond any other. */
export const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** So much may arrive before it is read. */
const HIGH_WATER_BYTES = 64 * 1024;

/** What an object in a stream counts, beside its text. */
const OBJECT_BYTES = 64;

/** How long a stream may take to end after the answer's last event, so that its connection can be used again. */
const LINGER_MS = 100;

/** How long the usage and the end of the stream are waited for, once the model has finished: some servers leave it open. */
const FINISHED_MS = 2_000;

/** What a stream brings at once. */
export type Packet = Buffer | Json;

function sizeOf(packet: Packet): number {
  return Buffer.isBuffer(packet) ? packet.byteLength : OBJECT_BYTES + asString(packet.delta).length;
}

/**
 * One try of a request, and the packets that answer it: bytes, or objects of a stream that has been read already. Waiting has a limit: until the first byte, and then between two packets.
 * Comments that an upstream sends to keep the connection alive count, too. The time that a slow client takes does not.
 */
export class UpstreamResponse {
  readonly #limits: TransportLimits;
  readonly #signal: AbortSignal;
  readonly #request = new AbortController();
  #stream: Readable | undefined;
  /** Bytes of all that was read. */
  #bytes = 0;
  #arrived: Packet[] = [];
  #arrivedBytes = 0;
  #isWaiting = true;
  #isIdleTimer = false;
  #timer: NodeJS.Timeout;
  /** What ended the answer before its end, if not the upstream. */
  #failure: { readonly reason: unknown } | undefined;
  /** The stream is over, with its error if it broke off. */
  #end: { readonly error: unknown } | undefined;
  /** The model has finished: whatever happens to the connection now, the answer is there. */
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

  /** Sends the request and waits for the head of its answer. A sender that does not listen to its signal is not waited for. */
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

  /** All that has arrived and was not read yet; `undefined` if nothing has. Throws where the connection broke, or a limit was reached. */
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

  /** Resolves when there may be something to read, or the answer is over. Called only after `read` has found nothing. */
  change(): Promise<void> {
    this.#watch();
    return new Promise(this.#onChange);
  }

  /** The model has finished. What may follow has a moment from now on, also where comments go on coming. */
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

  /** Must be called in the end. After the last event of a complete answer, its connection is kept for another request. */
  close(isComplete: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    clearTimeout(this.#timer);
    if (this.#end !== undefined) return;
    if (isComplete) this.#drain();
    else this.#fail(new Error("the answer is not read any further"));
  }

  /** The rest may come for a moment. */
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
    // For a sender that did not listen to its signal.
    if (this.#failure !== undefined) stream.destroy();
  }

  readonly #onData = (packet: Packet): void => {
    if (this.#isDraining) return;
    this.#arrived.push(packet);
    this.#arrivedBytes += sizeOf(packet);
    // Its reader waits for a slow client.
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

  /** Limits the wait that begins now. The timer of a wait is only wound up again for the next one. */
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
