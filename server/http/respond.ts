import type { ServerResponse } from "node:http";
import type { ApiError } from "../protocol/api-error.ts";
import type { ErrorBody } from "../protocol/errors.ts";

/** Headers of every answer. */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  res.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": bytes.length,
    "cache-control": "no-store",
    ...headers,
  });
  res.end(bytes);
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

export function sendError(res: ServerResponse, error: ApiError): void {
  sendJson(res, error.status, errorBody(error), errorHeaders(error));
}
