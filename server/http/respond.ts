/** Answers of every kind but files: JSON, errors and event streams, and the headers of CORS. */

import { once } from "node:events";
import { type ServerResponse, STATUS_CODES } from "node:http";
import { Socket } from "node:net";
import type { Duplex, Writable } from "node:stream";
import type { OriginHeaders, Origins } from "../auth/origins.ts";
import { type ApiError, errorBody } from "../protocol/errors.ts";
import { KEEP_ALIVE_FRAME } from "../protocol/sse.ts";
import type { RequestContext } from "./request.ts";

/** Headers of every answer. */
export const COMMON_HEADERS = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };

const EXPOSED_HEADERS = "mcp-session-id, x-request-id, x-run-id, retry-after";

/** Lets pages of allowed origins read the answer, never with credentials. Replaces CORS headers of a host's server. */
export function setCorsHeaders(origins: Origins, headers: OriginHeaders, res: ServerResponse): void {
  const { origin } = headers;
  for (const name of res.getHeaderNames()) if (name.startsWith("access-control-")) res.removeHeader(name);
  if (origins.areAllAllowed) {
    res.setHeader("access-control-allow-origin", "*");
  } else {
    res.setHeader("vary", "origin");
    if (origin === undefined || origins.judge(headers) === "refused") return;
    res.setHeader("access-control-allow-origin", origin);
  }
  res.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
}

/** How long a browser may cache a preflight, in seconds: Chromium's maximum. */
const MAX_AGE_SECONDS = 7200;

export function setPreflightHeaders(methods: readonly string[], res: ServerResponse): void {
  res.setHeader("access-control-allow-methods", methods.join(", "));
  res.setHeader(
    "access-control-allow-headers",
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-request-id, x-user-token",
  );
  res.setHeader("access-control-max-age", MAX_AGE_SECONDS);
}

export function sendJson(res: ServerResponse, status: number, body: object): void {
  res.end(startJson(res, status, body));
}

/** Writes the head, and returns the body. */
function startJson(res: ServerResponse, status: number, body: object): string {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  });
  return text;
}

/** The one place where an error becomes an HTTP answer. */
export function sendError({ req, res, errorBody: bodyOf }: RequestContext, error: ApiError, lingerMs: number): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(errorHeaders(error))) res.setHeader(name, value);
  const text = startJson(res, error.status, bodyOf(error));
  if (req.complete || res.shouldKeepAlive) res.end(text);
  else endWhenRead(res, text, lingerMs);
}

/** Headers that belong to an error's code: 401 names the scheme, 429 and 503 the time to wait (RFC 9110). */
function errorHeaders({ code, retryAfter }: ApiError): Record<string, string> {
  return {
    ...(code === "unauthorized" ? { "www-authenticate": "Bearer" } : {}),
    ...(retryAfter === undefined ? {} : { "retry-after": String(Math.ceil(retryAfter)) }),
  };
}

/**
 * Ends an answer and its connection. Closing while the client still sends would make the system send a reset, which
 * discards what the client has not read yet: so the rest of the body is read first, as long as it keeps arriving.
 */
function endWhenRead(res: ServerResponse, text: string, lingerMs: number): void {
  const { req } = res;
  res.write(text);
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, lingerMs);
  req.on("data", () => timer.refresh());
  req.once("end", end).once("close", end).resume();
}

/** Sends an error on a connection without a `ServerResponse`, such as a refused upgrade, and ends the connection. */
export function sendRawError(
  socket: Duplex,
  error: ApiError,
  { requestId, lingerMs, status = error.status, headers = {} }: RawErrorOptions,
): void {
  const body = JSON.stringify(errorBody(error));
  const sent = {
    ...COMMON_HEADERS,
    ...errorHeaders(error),
    ...headers,
    connection: "close",
    "x-request-id": requestId,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", body].join("\r\n"));
  // A client that does not hang up would keep the connection half open.
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(timer));
}

export interface RawErrorOptions {
  requestId: string;
  /** How long the client may take to hang up. */
  lingerMs: number;
  /** Overrides the status of the error. */
  status?: number;
  headers?: Record<string, string>;
}

/** Calls `listener` once the connection is closed, or at once if it is closed already. */
export function whenClosed(res: ServerResponse, listener: () => void): void {
  if (res.destroyed) listener();
  else res.once("close", listener);
}

/** Extends the time limit by the bytes already queued, so that a large answer can finish on a slow connection. */
const BYTES_PER_SECOND = 256 * 1024;

/** Disconnects a client that takes too long to read the queued bytes. Returns a function that stops the timer. */
export function limitSending(stream: Writable, maxMs: number, disconnectNow: () => void): () => void {
  const timer = setTimeout(disconnectNow, maxMs + (stream.writableLength / BYTES_PER_SECOND) * 1000);
  return () => clearTimeout(timer);
}

/** Resolves when more can be written, or the stream has closed. Disconnects a client that does not read in time. */
export async function waitForDrain(stream: Writable, maxMs: number, disconnectNow: () => void): Promise<void> {
  // A closed stream emits no "drain".
  if (!stream.writableNeedDrain || stream.destroyed) return;
  const stopClock = limitSending(stream, maxMs, disconnectNow);
  const ended = new AbortController();
  const options = { signal: ended.signal };
  // An error closes the stream, too.
  await Promise.race([once(stream, "drain", options), once(stream, "close", options)]).catch(() => {});
  ended.abort();
  stopClock();
}

/** Ends a connection at once. A reset also frees the data that the system still buffers for it. */
export function disconnect(connection: Duplex | null): void {
  try {
    if (connection instanceof Socket) connection.resetAndDestroy();
  } catch {
    // Only TCP has resets: TLS and Unix sockets refuse them.
  }
  connection?.destroy();
}

export interface EventStreamTimes {
  /** Idle time before a comment is sent, which keeps proxies from closing the connection. */
  keepAliveMs: number;
  /** How long the client may read nothing before it is disconnected. */
  sendMs: number;
}

/**
 * Answers with Server-Sent Events: each batch is one write, and the next is read when the client has caught up. The
 * headers are sent at once, since the first event may take long.
 */
export async function sendEventStream<Event>(
  res: ServerResponse,
  { keepAliveMs, sendMs }: EventStreamTimes,
  batches: AsyncIterable<Event[]>,
  encode: (event: Event) => string,
): Promise<void> {
  res.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    // Asks proxies such as nginx not to buffer events.
    "x-accel-buffering": "no",
  });
  res.flushHeaders();
  const keepAlive = setInterval(() => {
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE_FRAME);
  }, keepAliveMs);
  const disconnectNow = () => {
    disconnect(res.socket);
    res.destroy();
  };
  try {
    for await (const events of batches) {
      const text = events.map(encode).join("");
      if (text === "") continue;
      res.write(text);
      keepAlive.refresh();
      if (res.writableNeedDrain) await waitForDrain(res, sendMs, disconnectNow);
    }
  } finally {
    clearInterval(keepAlive);
  }
  res.end();
}
