import type { ApiError } from "./api-error.ts";
import type { ErrorEvent } from "./events.ts";

/** A failure as an event: of a stream that has begun, or of a socket. */
export function toErrorEvent({ message, code, retryable, retryAfter }: ApiError): ErrorEvent {
  return {
    type: "error",
    data: message,
    code,
    retryable,
    ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
  };
}
