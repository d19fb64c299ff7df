import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { ApiError } from "../protocol/api-error.ts";
import { COMMON_HEADERS, errorBody, errorHeaders } from "./respond.ts";

/** For the peer to read the answer and to hang up, in milliseconds. Nothing else ends a connection half closed. */
const LINGER_MS = 2_000;

/** Answers on a connection that has no `ServerResponse`, in the form of every other refusal, and ends it. */
export function endWithError(socket: Duplex, status: number, requestId: string, error: ApiError): void {
  const body = JSON.stringify(errorBody(error));
  const headers = {
    ...COMMON_HEADERS,
    ...errorHeaders(error),
    connection: "close",
    "x-request-id": requestId,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", body].join("\r\n"));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(timer));
}
