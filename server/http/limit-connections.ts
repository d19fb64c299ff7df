import type { Server } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Closes each connection beyond `max` at once. In a worker of node:cluster `maxConnections` does not: there a
 * connection too many goes back to the primary process, which hands it out again, and so on for as long as it lasts.
 */
export function limitConnections(http: Server, max: number): void {
  const open = new Set<Duplex>();
  http.prependListener("connection", (socket: Duplex) => {
    // One that was put back to be read again has been counted.
    if (open.has(socket)) return;
    if (open.size >= max) {
      socket.destroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
}
