import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Added for what already waits: a large answer on a slow line is no stalled one. */
const BYTES_PER_SECOND = 256 * 1024;

/**
 * Cuts a connection whose peer does not take what was sent: the time runs from when the line was full until
 * it is empty again.
 */
export class SendClock {
  readonly #limitMs: number;
  readonly #cut: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number, cut: () => void) {
    this.#limitMs = limitMs;
    this.#cut = cut;
  }

  /** `waiting` in bytes. A clock that runs is not set again. */
  start(waiting: number): void {
    const ms = this.#limitMs + (waiting / BYTES_PER_SECOND) * 1000;
    this.#timer ??= setTimeout(this.#cut, ms).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Ends a connection at once. A reset frees what the system holds for it, too. */
export function cutConnection(socket: Duplex | null): void {
  if (socket instanceof Socket) socket.resetAndDestroy();
  else socket?.destroy();
}
