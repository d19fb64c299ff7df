import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { ClearedEvent, ErrorEvent } from "../protocol/events.ts";
import { FrameIntake, type IntakeListener, type IntakeRules } from "./frame-intake.ts";
import { cutConnection, SendClock } from "./send-clock.ts";
import { type TextMessage, textFrames } from "./text-frames.ts";

/** How long a peer may take to answer our close frame before its connection is cut, in milliseconds. */
export const CLOSE_GRACE_MS = 2_000;

/** Answers to commands that may wait in a full line. Who sends more commands than it reads answers is cut. */
const MAX_WAITING_REPLIES = 100;

/** One accepted socket: events out, frames in. */
export class SocketLine {
  readonly #socket: WebSocket;
  readonly #connection: Duplex;
  readonly #sendMs: number;
  /** Made when the line is full for the first time: most never are, and there are many. */
  #clock: SendClock | undefined;
  #onDrain: (() => void) | undefined;
  #awaitsDrain = false;
  #isAlive = true;
  #waitingReplies = 0;
  /** The last ping that came while the line was full; RFC 6455, 5.5.3: answering it answers all before. */
  #unanswered: Buffer | undefined;

  /** `connection` is what the socket was made of. A peer that takes nothing for `sendMs` is cut. */
  constructor(socket: WebSocket, connection: Duplex, sendMs: number) {
    this.#socket = socket;
    this.#connection = connection;
    this.#sendMs = sendMs;
    // ws has answered a protocol error with the right close code by itself; what is left is not to crash.
    socket.on("error", ignore);
    socket.on("ping", (data) => this.#answerPing(data));
    socket.on("pong", () => {
      this.#isAlive = true;
    });
    socket.on("close", () => this.#clock?.stop());
  }

  /** Asks the peer whether it is still there. `false`: it has not answered the last time. */
  ping(): boolean {
    // A ping would wait behind all else; the line itself cuts a peer that takes nothing.
    // And a large message that waits for its turn holds up a peer's pong, too.
    if (this.isFull || this.#socket.isPaused) return true;
    if (!this.#isAlive) return false;
    this.#isAlive = false;
    this.#socket.ping();
    return true;
  }

  /** Whether the peer takes less than is sent. */
  get isFull(): boolean {
    return this.#connection.writableNeedDrain;
  }

  /** Sends a run's events, a frame each, in one write. `false`: the line is full until `onDrain`. */
  write(events: readonly TextMessage[]): boolean {
    if (!this.#isOpen) return true;
    this.#connection.write(textFrames(events));
    this.#watch();
    return !this.isFull;
  }

  /** Answers a command. Nothing is sent, and nothing thrown, once the socket is closing. */
  reply(event: ErrorEvent | ClearedEvent): void {
    if (!this.#isOpen) return;
    if (this.isFull && ++this.#waitingReplies > MAX_WAITING_REPLIES) {
      this.cut();
      return;
    }
    this.#socket.send(JSON.stringify(event));
    this.#watch();
  }

  /** Messages come one at a time: the next one when the listener is done with the last. */
  onMessage(rules: IntakeRules, listener: IntakeListener): void {
    new FrameIntake(this.#socket, this.#connection, rules, listener);
  }

  onClose(listener: () => void): void {
    this.#socket.on("close", listener);
  }

  /** Calls back whenever a full line can take more. One listener only. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  /** `code` is one of `CLOSE`. A peer that does not answer is cut: what it sends meanwhile is still gathered. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
    const timer = setTimeout(() => this.cut(), CLOSE_GRACE_MS).unref();
    this.#socket.on("close", () => clearTimeout(timer));
  }

  /** Ends the connection at once, whatever still waits to be sent. */
  cut(): void {
    cutConnection(this.#connection);
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  #watch(): void {
    if (!this.isFull) return;
    this.#clock ??= new SendClock(this.#sendMs, () => this.cut());
    this.#clock.start(this.#connection.writableLength);
    if (this.#awaitsDrain) return;
    this.#awaitsDrain = true;
    this.#connection.once("drain", () => this.#drained());
  }

  #drained(): void {
    this.#awaitsDrain = false;
    this.#clock?.stop();
    this.#waitingReplies = 0;
    if (this.#unanswered !== undefined) this.#answerPing(this.#unanswered);
    this.#onDrain?.();
  }

  #answerPing(data: Buffer): void {
    this.#unanswered = this.isFull ? data : undefined;
    if (this.isFull) this.#watch();
    else if (this.#isOpen) this.#socket.pong(data);
  }
}

function ignore(): void {}
