import { ApiError, type ApiErrorOptions } from "../../protocol/api-error.ts";
import type { ErrorCode } from "../../protocol/errors.ts";

/** Codes that a provider's failure can have. */
export type ProviderErrorCode = Extract<
  ErrorCode,
  | "provider_error"
  | "provider_auth"
  | "provider_rate_limited"
  | "provider_overloaded"
  | "provider_truncated"
  | "provider_timeout"
  | "conversation_expired"
  | "invalid_request"
  | "content_filtered"
  | "context_too_long"
>;

/**
 * The model's side failed. `message` is for people and written by us: nothing of the provider's body
 * goes into it, for that may hold keys or prompts. The cause is for the log.
 */
export class ProviderError extends ApiError {
  override readonly name = "ProviderError";

  constructor(code: ProviderErrorCode, message: string, options: ApiErrorOptions = {}) {
    const { retryAfter } = options;
    super(code, message, {
      ...options,
      ...(retryAfter === undefined ? {} : { retryAfter: Math.min(retryAfter, MAX_RETRY_AFTER) }),
    });
  }
}

/** A day, in seconds: what a provider asks for beyond that is no time that a client's timers know. */
const MAX_RETRY_AFTER = 86_400;

/** What a failure means to one provider only; `undefined` leaves it to the common rules. */
export type ExplainFailure = (cause: unknown) => ProviderError | undefined;

/** The project or its environment is not set up; the message says what to do. Stops the start. */
export class SetupError extends Error {
  override readonly name = "SetupError";
}
