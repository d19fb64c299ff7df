/** `node:http` with its quirks: time limits, malformed HTTP, proxy requests, upgrades to other protocols, and closing. */

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
 * Creates a server for a handler. Node's defaults have changed between major versions, so every limit is set.
 * `lingerMs`: how long a client may keep a connection open after the server has ended it.
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
    // `refuseFaultyRequest` checks it, so that the error has the same format as all others.
    requireHostHeader: false,
    noDelay: true,
    shouldUpgradeCallback: offersWebSocket,
  };
  const server = createServer(options);
  server.maxConnections = maxConnections;
  server.on("request", handler.request);
  // Without these, Node answers `Expect` by itself, before key and length are checked.
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

/** Lets open responses finish within `lingerMs`, then closes all remaining connections. */
export function closeServer(http: Server, lingerMs: number): Promise<void> {
  return new Promise((resolve) => {
    http.close(() => resolve());
    http.closeIdleConnections();
    setTimeout(() => http.closeAllConnections(), lingerMs).unref();
  });
}

/** Answers an error of Node's parser, which comes before there is a request. */
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

/** Headers that offer another protocol; for the last one see RFC 7540, 3.2.1. */
const OFFER = new Set(["connection", "upgrade", "http2-settings"]);

/** An option of newer Node versions: which offers emit "upgrade". The types of Node 20 lack it. */
interface UpgradeChoice {
  shouldUpgradeCallback(req: IncomingMessage): boolean;
}

/**
 * Serves a request that offers another protocol than WebSocket as a plain request (RFC 9110, 7.8): Java's HTTP client
 * and `curl --http2` offer h2c with each plain request. A Node without `shouldUpgradeCallback` emits "upgrade" for
 * every offer and stops reading, so the request is put back without the offer, to be parsed again.
 */
export function serveWithoutOffer(server: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (!req.complete || req.readableLength > 0) {
    // While the body arrives, Node passes a stream that is no socket, and no request can be read after it.
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

/** Since Node 26 the body of such a request is part of the request, so only a response is missing. */
function answerWithoutOffer(server: Server, req: IncomingMessage, canGoOn: boolean): void {
  const { socket } = req;
  const res = new ServerResponse(req);
  res.shouldKeepAlive = canGoOn && !/\bclose\b/i.test(req.headers.connection ?? "");
  res.assignSocket(socket);
  // Node has removed its own error listener, and without one a broken connection would crash the process.
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
