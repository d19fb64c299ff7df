/** WebSocket close codes (RFC 6455, 7.4); 4000 to 4999 are ours. */
export const CLOSE = {
  SHUTTING_DOWN: 1001,
  TOO_LARGE: 1009,
  INTERNAL: 1011,
  /** No key, or one that the server does not know. */
  UNAUTHORIZED: 4401,
  /** A known key in the wrong place, or an origin that is not allowed. */
  FORBIDDEN: 4403,
  RATE_LIMITED: 4429,
} as const;
