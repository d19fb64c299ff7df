import type { Duplex } from "node:stream";
import type { ClearedEvent, ErrorEvent } from "../protocol/events.ts";
import { FrameIntake, type IntakeListener, type IntakeRules } from "./frame-intake.ts";
import { cutConnection, SendClock } from "./send-clock.ts";
import { type TextMessage, textFrames } from "./text-frames.ts";
import type { SocketWatcher, ToldSocket } from "./told-socket.ts";

/** How long a peer may take to answer our close frame before its connection is cut, in milliseconds. */
export const CLOSE_GRACE_MS = 2_000;

/** Answers to commands that may wait in a full line. Who sends more commands than it reads answers is cut. */
const MAX_WAITING_REPLIES = 100;

/** Who is served on a line. */
export interface LineListener extends IntakeListener {
  /** A full line can take more. */
  drained(): void;
  /** The line is closed. */
  closed(): void;
}

/** Told of a line that is closed. */
export type OnClosed = (line: SocketLine) => void;

/**
 * One accepted socket: events out, frames in. There are many and most are idle, so what tells a line of something is a
 * method: a closure and its place in a list of listeners are a tenth of a kilobyte.
 */
export class SocketLine implements SocketWatcher {
  readonly #socket: ToldSocket;
  readonly #connection: Duplex;
  readonly #sendMs: number;
  /** Made when the line is full for the first time: most never are, and there are many. */
  #clock: SendClock | undefined;
  #listener: LineListener | undefined;
  #intake: FrameIntake | undefined;
  /** Made anew when one is added: an array that grows keeps room for sixteen. */
  #onClosed: readonly OnClosed[];
  #closing: NodeJS.Timeout | undefined;
  #isText = false;
  #awaitsDrain = false;
  #isAlive = true;
  #waitingReplies = 0;
  /** The last ping that came while the line was full; RFC 6455, 5.5.3: answering it answers all before. */
  #unanswered: Buffer | undefined;

  /** `connection` is what the socket was made of. A peer that takes nothing for `sendMs` is cut. */
  constructor(socket: ToldSocket, connection: Duplex, sendMs: number, onClosed: readonly OnClosed[]) {
    this.#socket = socket;
    this.#connection = connection;
    this.#sendMs = sendMs;
    this.#onClosed = onClosed;
    socket.watcher = this;
    socket.binaryType = "fragments";
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

  /**
   * Has one listener told of all that comes from `address`. Messages come one at a time: the next one when the listener is
   * done with the last.
   */
  serve(listener: LineListener, rules: IntakeRules, address: string): void {
    this.#listener = listener;
    this.#intake = new FrameIntake(this.#socket, rules, address, listener);
  }

  onClose(told: OnClosed): void {
    this.#onClosed = [...this.#onClosed, told];
  }

  /** Bytes came, of whatever. */
  received(bytes: number): void {
    this.#intake?.count(bytes);
  }

  /** The next binary message is a text: see `FrameSplitter`. */
  textBegins(): void {
    this.#isText = true;
  }

  /** @internal By the socket. */
  message(data: Buffer | readonly Buffer[], isBinary: boolean): void {
    const isText = !isBinary || this.#isText;
    this.#isText = false;
    this.#intake?.take(data, !isText);
  }

  /** @internal By the socket. */
  pinged(data: Buffer): void {
    this.#answerPing(data);
  }

  /** @internal By the socket. */
  ponged(): void {
    this.#isAlive = true;
  }

  /** @internal By the socket. */
  closed(): void {
    clearTimeout(this.#closing);
    this.#clock?.stop();
    this.#intake?.close();
    for (const told of this.#onClosed) told(this);
    this.#listener?.closed();
  }

  /** `code` is one of `CLOSE`. A peer that does not answer is cut: what it sends meanwhile is still gathered. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
    // Whoever has it closed again gives the peer no more time.
    this.#closing ??= setTimeout(() => this.cut(), CLOSE_GRACE_MS).unref();
  }

  /** Whether `close` was called. What comes from now on is nothing to act on (RFC 6455, 7.1.7). */
  get isClosing(): boolean {
    return this.#closing !== undefined;
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
    this.#listener?.drained();
  }

  #answerPing(data: Buffer): void {
    this.#unanswered = this.isFull ? data : undefined;
    if (this.isFull) this.#watch();
    else if (this.#isOpen) this.#socket.pong(data);
  }
}
