import type { ErrorCode } from "./errors.ts";

/** WebSocket close codes (RFC 6455, 7.4); 4000 to 4999 are ours. */
export const CLOSE = {
  SHUTTING_DOWN: 1001,
  NOT_UTF8: 1007,
  TOO_LARGE: 1009,
  INTERNAL: 1011,
  /** No key, or one that the server does not know. */
  UNAUTHORIZED: 4401,
  /** A known key in the wrong place, or an origin that is not allowed. */
  FORBIDDEN: 4403,
  /** A large message that was begun did not arrive in time. */
  REQUEST_TIMEOUT: 4408,
  RATE_LIMITED: 4429,
  /** A large message found no room. */
  OVERLOADED: 4503,
} as const;

const CODES: Partial<Record<ErrorCode, number>> = {
  unauthorized: CLOSE.UNAUTHORIZED,
  forbidden: CLOSE.FORBIDDEN,
  request_timeout: CLOSE.REQUEST_TIMEOUT,
  rate_limited: CLOSE.RATE_LIMITED,
  overloaded: CLOSE.OVERLOADED,
  shutting_down: CLOSE.SHUTTING_DOWN,
};

/** The code that says on a socket what an error's status says over HTTP. */
export function closeCodeOf(code: ErrorCode): number {
  return CODES[code] ?? CLOSE.INTERNAL;
}
