import type { ServerResponse } from "node:http";
import type { EncodedEvent } from "../protocol/encoded-event.ts";
import { encodeFrame, KEEP_ALIVE_FRAME } from "../protocol/sse.ts";
import { cutConnection, SendClock } from "./send-clock.ts";

export interface EventStreamTimes {
  /** Silence, in milliseconds, before a comment is sent. */
  readonly keepAliveMs: number;
  /** How long the peer may take nothing, in milliseconds, before its connection is cut. */
  readonly sendMs: number;
}

/** A response that carries Server-Sent Events. */
export class EventStream {
  readonly #res: ServerResponse;
  readonly #clock: SendClock;
  readonly #keepAliveMs: number;
  #keepAlive: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /** `onDrain` is called whenever a full line can take more. */
  constructor(res: ServerResponse, { keepAliveMs, sendMs }: EventStreamTimes, onDrain: () => void) {
    this.#res = res;
    this.#keepAliveMs = keepAliveMs;
    this.#clock = new SendClock(sendMs, () => this.cut());
    res.on("drain", () => {
      this.#clock.stop();
      onDrain();
    });
    res.once("close", () => {
      clearInterval(this.#keepAlive);
      this.#clock.stop();
    });
  }

  /** Sends the head at once: the first event may take long. */
  open(headers: Readonly<Record<string, string>>): void {
    this.#res.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // Asks nginx and its kind not to hold tokens back.
      "x-accel-buffering": "no",
      ...headers,
    });
    this.#res.flushHeaders();
    this.#keepAlive = setInterval(() => {
      if (!this.#res.writableNeedDrain) this.#send(KEEP_ALIVE_FRAME);
    }, this.#keepAliveMs);
  }

  /** Sends events in one write. `false`: the line is full until `onDrain`. */
  write(events: readonly EncodedEvent[]): boolean {
    if (this.#isOver) return true;
    this.#keepAlive?.refresh();
    let frames = "";
    for (const event of events) frames += encodeFrame(event);
    return this.#hasBegun ? this.#send(frames) : this.#sendFirst(frames);
  }

  end(): void {
    if (this.#isOver) return;
    clearInterval(this.#keepAlive);
    this.#res.end();
    this.#clock.start(this.#res.writableLength);
  }

  /** Ends the connection at once, whatever still waits to be sent. */
  cut(): void {
    cutConnection(this.#res.socket);
    this.#res.destroy();
  }

  /** Now: otherwise Node gathers what is written until everything else of this turn is done. */
  #sendFirst(text: string): boolean {
    this.#hasBegun = true;
    const { socket } = this.#res;
    socket?.cork();
    const canTakeMore = this.#send(text);
    socket?.uncork();
    return canTakeMore;
  }

  #send(text: string): boolean {
    if (this.#res.write(text)) return true;
    this.#clock.start(this.#res.writableLength);
    return false;
  }

  get #isOver(): boolean {
    return this.#res.destroyed || this.#res.writableEnded;
  }
}
