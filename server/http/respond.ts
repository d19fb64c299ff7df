import type { ServerResponse } from "node:http";
import type { ApiError } from "../protocol/api-error.ts";
import type { ErrorBody } from "../protocol/errors.ts";

/** Headers of every answer. */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

export function setHeaders(res: ServerResponse, headers: Readonly<Record<string, string | number>>): void {
  for (const name in headers) res.setHeader(name, headers[name] ?? "");
}

export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  res.end(startJson(res, status, body, headers));
}

/** Writes the head. Returns the body, as a text: that leaves in one piece with its head. */
function startJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): string {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    ...headers,
  });
  return text;
}

/** The body that every refused or failed request is answered with. */
export function errorBody(error: ApiError): ErrorBody {
  return {
    error: {
      code: error.code,
      message: error.message,
      ...(error.param === undefined ? {} : { param: error.param }),
    },
  };
}

/** Headers that go with an error's code (RFC 9110: 401 names the scheme, 503 and 429 the wait). */
export function errorHeaders(error: ApiError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  if (error.retryAfter !== undefined) headers["retry-after"] = String(Math.ceil(error.retryAfter));
  return headers;
}

/** How long a refused client may go on sending before its connection is ended with its answer, in milliseconds. */
const LINGER_MS = 5_000;

export function sendError(res: ServerResponse, error: ApiError): void {
  const text = startJson(res, error.status, errorBody(error), errorHeaders(error));
  if (res.req.complete || res.shouldKeepAlive) res.end(text);
  else endWhenRead(res, text);
}

/**
 * Ends an answer whose connection ends with it. While the client still sends, the system would answer with a reset, which
 * takes away what the client has not read yet: so the rest is thrown away first.
 */
function endWhenRead(res: ServerResponse, text: string): void {
  res.write(text);
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  res.req.once("end", end).once("close", end).resume();
}
