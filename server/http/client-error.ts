import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError } from "../protocol/api-error.ts";
import { newRequestId } from "./new-id.ts";
import { endWithError } from "./raw-answer.ts";

/**
 * Answers what Node's parser refused before there was a request, in the same JSON as everything else.
 * `current` is the last response of the connection: into one that has begun nothing may be written.
 */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  current: ServerResponse | undefined,
): void {
  // Either the answer has begun, or it was given before the request's body was there.
  const answering = current?.headersSent === true && !(current.writableFinished && current.req.complete);
  if (error.code === "ECONNRESET" || !socket.writable || answering) {
    socket.destroy();
    return;
  }
  const [status, failure] = failureOf(error.code);
  endWithError(socket, status, newRequestId(), failure);
}

function failureOf(code: string | undefined): [status: number, failure: ApiError] {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return [408, new ApiError("request_timeout", "The request did not arrive in time.")];
    case "HPE_HEADER_OVERFLOW":
      return [431, new ApiError("invalid_request", "The request's headers are too large.")];
    default:
      return [400, new ApiError("invalid_request", "This is not valid HTTP.")];
  }
}
