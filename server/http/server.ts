/** `node:http` with its quirks: time limits, broken HTTP, proxies' requests, offers of other protocols, and the end. */

import { createServer, type IncomingMessage, type Server, type ServerOptions, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Settings } from "../config/settings.ts";
import { ApiError } from "../protocol/errors.ts";
import { type Handler, offersWebSocket } from "./dispatch.ts";
import { newRequestId, requestId } from "./request.ts";
import { type RawErrorOptions, sendRawError } from "./respond.ts";

type HttpSettings = Pick<Settings, "headerSeconds" | "bodySeconds" | "maxConnections">;

/**
 * A server for a handler. Node's own defaults have changed between majors, so every figure is set. `lingerMs`: how long a
 * client may keep a connection open that is over.
 */
export function createHttpServer(
  handler: Handler,
  { headerSeconds, bodySeconds, maxConnections }: HttpSettings,
  lingerMs: number,
): Server {
  const options: ServerOptions & UpgradeChoice = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: headerSeconds * 1000,
    requestTimeout: bodySeconds * 1000,
    // Above the idle time of common load balancers, or they reuse a connection that was just closed.
    keepAliveTimeout: 75_000,
    connectionsCheckingInterval: Math.min(5_000, headerSeconds * 1000),
    // Judged with every other request, so that the refusal looks like every other.
    requireHostHeader: false,
    noDelay: true,
    shouldUpgradeCallback: offersWebSocket,
  };
  const server = createServer(options);
  server.maxConnections = maxConnections;
  server.on("request", handler.request);
  // Without these, Node answers `Expect` by itself, before key and length are judged.
  server.on("checkContinue", handler.request);
  server.on("checkExpectation", handler.request);
  server.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!handler.upgrade(req, socket, head)) serveWithoutOffer(server, req, socket, head);
  });
  server.on("connect", (req: IncomingMessage, socket: Duplex) => {
    if (handler.responses.isWaiting(socket)) {
      socket.destroy();
      return;
    }
    socket.on("error", () => socket.destroy());
    const error = new ApiError("method_not_allowed", "This server is not a proxy. Send a path, not a full address.");
    const headers = { allow: "GET, HEAD, POST, OPTIONS" };
    sendRawError(socket, error, { requestId: requestId(req), lingerMs, headers });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable || handler.responses.isAnswering(socket)) socket.destroy();
    else answerClientError(error, socket, { requestId: newRequestId(), lingerMs });
  });
  return server;
}

/** Lets the last bytes leave, and then cuts whatever is still connected. */
export function closeServer(http: Server, lingerMs: number): Promise<void> {
  return new Promise((resolve) => {
    http.close(() => resolve());
    http.closeIdleConnections();
    setTimeout(() => http.closeAllConnections(), lingerMs).unref();
  });
}

/** Answers what Node's parser has refused before there was a request. */
function answerClientError({ code }: NodeJS.ErrnoException, socket: Duplex, options: RawErrorOptions): void {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      sendRawError(socket, new ApiError("request_timeout", "The request did not arrive in time."), options);
      break;
    case "HPE_HEADER_OVERFLOW": {
      const error = new ApiError("invalid_request", "The request's headers are too large.");
      sendRawError(socket, error, { ...options, status: 431 });
      break;
    }
    default:
      sendRawError(socket, new ApiError("invalid_request", "This is not valid HTTP."), options);
  }
}

/** Headers that offer another protocol; RFC 7540, 3.2.1 for the last. */
const OFFER = new Set(["connection", "upgrade", "http2-settings"]);

/** Newer versions of Node ask which offers are "upgrade" events. The types of Node 20 do not have it. */
interface UpgradeChoice {
  shouldUpgradeCallback(req: IncomingMessage): boolean;
}

/**
 * Serves a request that offers another protocol than WebSocket as if it had not (RFC 9110, 7.8): the HTTP client of Java
 * and `curl --http2` offer h2c with each plain request. A Node that does not ask `shouldUpgradeCallback` emits "upgrade" for
 * every offer and stops reading, so the request is put back without it, to be read again.
 */
export function serveWithoutOffer(server: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (!req.complete || req.readableLength > 0) {
    // While the body arrives, what Node hands over is no socket, and nothing can be read after it.
    if (socket !== req.socket) socket.on("error", () => socket.destroy());
    answerWithoutOffer(server, req, socket === req.socket);
    return;
  }
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] as string;
    if (!OFFER.has(name.toLowerCase())) lines.push(`${name}: ${req.rawHeaders[index + 1]}`);
  }
  if (/\bclose\b/i.test(req.headers.connection ?? "")) lines.push("connection: close");
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  readOn(server, socket);
}

/** From Node 26 on, the body of such a request comes with the request, and so only a response is missing. */
function answerWithoutOffer(server: Server, req: IncomingMessage, canGoOn: boolean): void {
  const { socket } = req;
  const res = new ServerResponse(req);
  res.shouldKeepAlive = canGoOn && !/\bclose\b/i.test(req.headers.connection ?? "");
  res.assignSocket(socket);
  // Node has taken its own listener away, and without one a connection that breaks would end the process.
  const destroy = () => socket.destroy();
  socket.on("error", destroy);
  res.once("finish", () => {
    res.detachSocket(socket);
    if (!res.shouldKeepAlive) {
      socket.destroySoon();
      return;
    }
    socket.off("error", destroy);
    readOn(server, socket);
  });
  server.emit("request", req, res);
}

function readOn(server: Server, socket: Duplex): void {
  server.emit("encrypted" in socket ? "secureConnection" : "connection", socket);
}
