import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** On the connection itself: a weak map costs each collection of garbage something for each entry. */
const QUEUED = Symbol("queued answers");

interface Queueing extends Socket {
  [QUEUED]?: Set<ServerResponse>;
}

/**
 * Emits "close" on an answer whose connection is gone before its turn on it came (RFC 9112, 9.3.2: pipelining).
 * Before Node 24 only the answer that has the connection is told; one behind it would wait for its client for good.
 */
export function tellOfClosing(res: ServerResponse): void {
  // With the connection, Node's own "close" comes with it.
  if (res.socket !== null) return;
  const connection: Queueing = res.req.socket;
  connection[QUEUED] ??= queueOf(connection);
  const queued = connection[QUEUED];
  queued.add(res);
  const forget = () => queued.delete(res);
  res.once("socket", forget).once("close", forget);
}

function queueOf(connection: Socket): Set<ServerResponse> {
  const queued = new Set<ServerResponse>();
  connection.once("close", () => {
    for (const res of queued) res.destroy();
    // From Node 24 on it tells them itself.
    setImmediate(() => {
      for (const res of queued) res.emit("close");
    });
  });
  return queued;
}
