import { ERRORS, type ErrorCode } from "./errors.ts";

export interface ApiErrorOptions {
  /** JSON pointer to the field of the request that is wrong. */
  param?: string;
  /** Seconds to wait before trying again. */
  retryAfter?: number | undefined;
  /** Overrides what the code says of retrying. */
  retryable?: boolean | undefined;
  /** For the log, never for the client. */
  cause?: unknown;
}

/**
 * A failure that the client may know of: `message` goes out as it is, so it holds no stack, path, key
 * or provider body. Any other exception is a bug and leaves as a bare `internal`.
 */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfter: number | undefined;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.retryAfter = options.retryAfter;
    this.retryable = options.retryable ?? ERRORS[code].retryable;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

/** Shows an `ApiError` as it is and hides everything else. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError("internal", "Something went wrong on the server. Please try again.", {
    cause: error,
  });
}

/** 400 for a field that has the wrong type or value. */
export function invalidRequest(param: string, message: string): ApiError {
  return new ApiError("invalid_request", message, { param });
}
