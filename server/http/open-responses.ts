import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * The responses of each connection that are not over. With pipelining (RFC 9112, 9.3.2) there are several, and before Node
 * 24 only the first one gets `close` when the connection is gone: the others would wait for their client for ever.
 */
export class OpenResponses {
  readonly #open = new WeakMap<Duplex, Set<ServerResponse>>();
  readonly #last = new WeakMap<Duplex, ServerResponse>();

  add(res: ServerResponse): void {
    const { socket } = res.req;
    const open = this.#open.get(socket) ?? this.#watch(socket);
    open.add(res);
    this.#last.set(socket, res);
    res.once("close", () => open.delete(res));
  }

  /** Whether an answer has begun, or was given before its request's body was there: nothing may be written into it. */
  isAnswering(socket: Duplex): boolean {
    const last = this.#last.get(socket);
    return last?.headersSent === true && !(last.writableFinished && last.req.complete);
  }

  /** Whether an answer is not over. */
  isWaiting(socket: Duplex): boolean {
    return (this.#open.get(socket)?.size ?? 0) > 0;
  }

  #watch(socket: Duplex): Set<ServerResponse> {
    const open = new Set<ServerResponse>();
    this.#open.set(socket, open);
    socket.once("close", () => {
      for (const res of open) res.destroy();
      // Responses that got `close` from Node have left the set by then.
      setImmediate(() => {
        for (const res of open) res.emit("close");
      });
    });
    return open;
  }
}
