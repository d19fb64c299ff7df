import type { WebSocket } from "ws";

/** Whom a socket tells what happens. */
export interface SocketWatcher {
  /** The pieces of a binary message, or a text in one. */
  message(data: Buffer | readonly Buffer[], isBinary: boolean): void;
  pinged(data: Buffer): void;
  ponged(): void;
  closed(): void;
}

/** A socket of `ws` that tells one watcher, and nobody else. */
export interface ToldSocket extends WebSocket {
  watcher: SocketWatcher | undefined;
}

/** `Base` is the class of `ws`, which is loaded late. */
export function toldSocketOf(Base: typeof WebSocket) {
  return class extends Base implements ToldSocket {
    watcher: SocketWatcher | undefined;

    /** All that `ws` says goes through here, so no listeners have to be kept: for each of many sockets 700 bytes. */
    override emit(event: string | symbol, first?: unknown, second?: unknown): boolean {
      const { watcher } = this;
      switch (event) {
        case "message":
          watcher?.message(first as Buffer | Buffer[], second as boolean);
          break;
        case "ping":
          watcher?.pinged(first as Buffer);
          break;
        case "pong":
          watcher?.ponged();
          break;
        case "close":
          watcher?.closed();
      }
      // Of "error", too: ws has answered a protocol error with the right close code by itself.
      return true;
    }
  };
}
