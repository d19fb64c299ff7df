import type { ServerResponse } from "node:http";
import type { EncodedEvent } from "../protocol/encoded-event.ts";
import { encodeFrame, KEEP_ALIVE_FRAME } from "../protocol/sse.ts";
import { PromptBody } from "./prompt-body.ts";
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
  readonly #body: PromptBody;
  readonly #clock: SendClock;
  readonly #keepAliveMs: number;
  #keepAlive: NodeJS.Timeout | undefined;
  /** When something was last sent, as `performance.now()`: to wind the timer up anew costs more with each token. */
  #sentAt = 0;

  /** `onDrain` is called whenever a full line can take more. */
  constructor(res: ServerResponse, { keepAliveMs, sendMs }: EventStreamTimes, onDrain: () => void) {
    this.#res = res;
    this.#keepAliveMs = keepAliveMs;
    this.#clock = new SendClock(sendMs, () => this.cut());
    this.#body = new PromptBody(res, () => {
      this.#clock.stop();
      onDrain();
    });
    res.once("close", () => {
      clearTimeout(this.#keepAlive);
      this.#clock.stop();
    });
  }

  /** Sends the head at once, since the first event may take long; nothing to a client that has left meanwhile. */
  open(headers: Readonly<Record<string, string>>): void {
    if (this.#isOver) return;
    this.#res.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // Asks nginx and its kind not to hold tokens back.
      "x-accel-buffering": "no",
      ...headers,
    });
    this.#res.flushHeaders();
    this.#sentAt = performance.now();
    this.#keepAlive = setTimeout(this.#breakSilence, this.#keepAliveMs);
  }

  /** Sends events in one write. `false`: the line is full until `onDrain`. */
  write(events: readonly EncodedEvent[]): boolean {
    if (this.#isOver) return true;
    this.#sentAt = performance.now();
    let frames = "";
    let bytes = 0;
    for (const event of events) {
      frames += encodeFrame(event);
      // What a frame holds beside its JSON is ASCII.
      bytes += event.bytes - event.json.length;
    }
    return this.#send(frames, bytes + frames.length);
  }

  end(): void {
    if (this.#isOver) return;
    clearTimeout(this.#keepAlive);
    this.#res.end();
    this.#clock.start(this.#res.writableLength);
  }

  /** Ends the connection at once, whatever still waits to be sent. */
  cut(): void {
    cutConnection(this.#res.socket);
    this.#res.destroy();
  }

  readonly #breakSilence = (): void => {
    const now = performance.now();
    if (now - this.#sentAt >= this.#keepAliveMs) {
      this.#sentAt = now;
      if (!this.#body.isFull) this.#send(KEEP_ALIVE_FRAME, KEEP_ALIVE_FRAME.length);
    }
    // Never less than a millisecond, which is how exact the system's timers are.
    const left = Math.max(1, this.#sentAt + this.#keepAliveMs - now);
    this.#keepAlive = setTimeout(this.#breakSilence, left);
  };

  #send(text: string, bytes: number): boolean {
    if (this.#body.write(text, bytes)) return true;
    this.#clock.start(this.#res.writableLength);
    return false;
  }

  get #isOver(): boolean {
    return this.#res.destroyed || this.#res.writableEnded;
  }
}
