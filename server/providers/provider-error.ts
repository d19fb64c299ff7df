import type { ErrorCode } from "../protocol/errors.ts";

/** Codes that a provider's failure can have. */
export type ProviderErrorCode = Extract<
  ErrorCode,
  | "provider_error"
  | "provider_auth"
  | "provider_rate_limited"
  | "provider_truncated"
  | "provider_timeout"
  | "conversation_expired"
  | "invalid_request"
>;

/**
 * The model's side failed. `message` is for people and written by us: nothing of the provider's body
 * goes into it, for that may hold keys or prompts. The cause is for the log.
 */
export class ProviderError extends Error {
  readonly code: ProviderErrorCode;
  /** Seconds that the provider asked to wait. */
  readonly retryAfter: number | undefined;
  /** Overrides what the code says of retrying. */
  readonly retryable: boolean | undefined;

  constructor(
    code: ProviderErrorCode,
    message: string,
    options: { cause?: unknown; retryAfter?: number; retryable?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "ProviderError";
    this.code = code;
    this.retryAfter = options.retryAfter;
    this.retryable = options.retryable;
  }
}

/** The project or its environment is not set up; the message says what to do. Stops the start. */
export class SetupError extends Error {
  override readonly name = "SetupError";
}
