import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { ApiError } from "../protocol/api-error.ts";
import { errorBody } from "./respond.ts";

/** Answers what Node's parser refused before there was a request, in the same JSON as everything else. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, failure] = failureOf(error.code);
  const body = JSON.stringify(errorBody(failure));
  socket.end(
    [
      `HTTP/1.1 ${status}`,
      "connection: close",
      `x-request-id: ${randomUUID()}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n"),
  );
}

function failureOf(code: string | undefined): [status: string, failure: ApiError] {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return [
        "408 Request Timeout",
        new ApiError("request_timeout", "The request did not arrive in time."),
      ];
    case "HPE_HEADER_OVERFLOW":
      return [
        "431 Request Header Fields Too Large",
        new ApiError("invalid_request", "The request's headers are too large."),
      ];
    default:
      return ["400 Bad Request", new ApiError("invalid_request", "This is not valid HTTP.")];
  }
}
