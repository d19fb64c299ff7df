import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** Headers that make the offer; RFC 7540, 3.2.1 for the last. */
const OFFER = new Set(["connection", "upgrade", "http2-settings"]);

/**
 * Serves a request that offers another protocol than WebSocket as if it had not (RFC 9110, 7.8): the HTTP
 * client of Java and `curl --http2` offer h2c with each plain request. Node hands every offer to the
 * "upgrade" listener and has stopped reading, so the request is put back without it, to be read again.
 */
export function ignoreUpgrade(http: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] ?? "";
    if (!OFFER.has(name.toLowerCase())) lines.push(`${name}: ${req.rawHeaders[at + 1]}`);
  }
  if (/\bclose\b/i.test(req.headers.connection ?? "")) lines.push("connection: close");
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  http.emit("connection", socket);
}
