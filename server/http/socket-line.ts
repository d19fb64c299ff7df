import type { WebSocket } from "ws";
import type { SocketEvent } from "../protocol/events.ts";

/** Bytes that may wait in one socket before the run is held back. */
const HIGH_WATER_BYTES = 64 * 1024;

/** One accepted socket: events out, frames in. */
export class SocketLine {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    // ws has answered a protocol error with the right close code by itself; what is left is not to crash.
    socket.on("error", () => {});
  }

  /** Resolves when more may be sent. Nothing is sent, and nothing thrown, once the socket is closing. */
  async send(event: SocketEvent): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    const text = JSON.stringify(event);
    if (socket.bufferedAmount < HIGH_WATER_BYTES) {
      socket.send(text);
      return;
    }
    await new Promise<void>((resolve) => {
      socket.send(text, () => resolve());
    });
  }

  onMessage(listener: (data: Buffer, isBinary: boolean) => void): void {
    this.#socket.on("message", (data, isBinary) => listener(asBuffer(data), isBinary));
  }

  onClose(listener: () => void): void {
    this.#socket.once("close", listener);
  }

  /** `code` is one of `CLOSE`. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }
}

function asBuffer(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
