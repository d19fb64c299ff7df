/** The one error model: the stable codes, and what HTTP, events and a client's retry logic need to know of each. */

import type { ConversationState } from "./chat.ts";

interface ErrorTraits {
  /** HTTP status of the answer when the failure comes before the first streamed byte. */
  status: number;
  /** Whether sending the same message again may help. */
  retryable: boolean;
  /** Close code of a socket (RFC 6455, 7.4; 4000 to 4999 are Parley's). Absent: 1011, if it closes at all. */
  close?: number;
}

export const ERRORS = {
  invalid_request: { status: 400, retryable: false },
  invalid_json: { status: 400, retryable: false },
  invalid_state: { status: 400, retryable: false },
  invalid_attachment: { status: 400, retryable: false },
  content_filtered: { status: 400, retryable: false },
  context_too_long: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false, close: 4401 },
  login_required: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false, close: 4403 },
  not_found: { status: 404, retryable: false },
  run_not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  request_timeout: { status: 408, retryable: true, close: 4408 },
  conversation_expired: { status: 409, retryable: false },
  run_in_progress: { status: 409, retryable: true },
  run_expired: { status: 409, retryable: false },
  approval_used: { status: 409, retryable: false },
  approval_expired: { status: 409, retryable: false },
  attachment_too_large: { status: 413, retryable: false },
  request_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  unsupported_attachment: { status: 415, retryable: false },
  rate_limited: { status: 429, retryable: true, close: 4429 },
  internal: { status: 500, retryable: true },
  provider_error: { status: 502, retryable: true },
  provider_auth: { status: 502, retryable: false },
  provider_rate_limited: { status: 502, retryable: true },
  provider_overloaded: { status: 502, retryable: true },
  provider_truncated: { status: 502, retryable: true },
  run_lost: { status: 502, retryable: true },
  provider_timeout: { status: 504, retryable: true },
  overloaded: { status: 503, retryable: true, close: 4503 },
  shutting_down: { status: 503, retryable: true, close: 1001 },
} as const satisfies Record<string, ErrorTraits>;

/** RFC 6455, 7.4.1. */
const INTERNAL_ERROR = 1011;

/** A stable name of what went wrong; clients may branch on it. */
export type ErrorCode = keyof typeof ERRORS;

/** What is wrong with a part of a tool's arguments. */
export interface ArgumentProblem {
  /** JSON pointer into the arguments; "" for all of them. */
  pointer: string;
  /** Continues a sentence after the name of that part: "must be one of …". */
  message: string;
}

/** Body of every HTTP answer with a status of 400 or above. */
export interface ErrorBody {
  /** As in the `error` event. */
  state?: ConversationState;
  continue?: true;
  error: {
    code: ErrorCode;
    message: string;
    /** JSON pointer to the field of the request that is wrong. */
    param?: string;
    /** What is wrong in arguments that the user has changed: at most 8 problems. */
    problems?: ArgumentProblem[];
    /** Whether sending the same request again may help. */
    retryable: boolean;
  };
}

export interface ApiErrorOptions {
  /** JSON pointer to the field of the request that is wrong. */
  param?: string | undefined;
  /** What is wrong within that field. */
  problems?: ArgumentProblem[] | undefined;
  /** Seconds to wait before trying again. */
  retryAfter?: number | undefined;
  /** Overrides `retryable` of the code. */
  retryable?: boolean | undefined;
  /** A sentence for the operator only: for the log, and for the page of a server on loopback without keys. */
  detail?: string | undefined;
  /** Fields beside `error` in the body. */
  beside?: Pick<ErrorBody, "state" | "continue">;
  /** For the log, never for the client. */
  cause?: unknown;
}

/**
 * A failure that the client may know about: `message` is sent as it is, so it must not contain a stack, path, key or provider
 * body. Any other exception is a bug and is sent as a bare `internal`.
 */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly problems: ArgumentProblem[] | undefined;
  readonly retryAfter: number | undefined;
  readonly retryable: boolean;
  readonly detail: string | undefined;
  readonly beside: Pick<ErrorBody, "state" | "continue">;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.problems = options.problems;
    this.retryAfter = options.retryAfter;
    this.retryable = options.retryable ?? ERRORS[code].retryable;
    this.detail = options.detail;
    this.beside = options.beside ?? {};
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** The close code of a socket that corresponds to the HTTP status. */
  get closeCode(): number {
    const { close = INTERNAL_ERROR }: ErrorTraits = ERRORS[this.code];
    return close;
  }
}

/** For the log: without `message`, which may quote the request. */
export function errorFacts({ code, detail }: ApiError): string {
  return detail === undefined ? code : `${code}: ${detail}`;
}

/** Returns an `ApiError` as it is, and hides any other error behind `internal`. */
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

/** The usual notation of a field: `approvals[0].id` for the pointer `/approvals/0/id`. */
export function fieldOf(pointer: string): string {
  return pointer
    .slice(1)
    .replaceAll("/", ".")
    .replace(/\.(\d+)/g, "[$1]");
}

/** An error about a field, which the message names in that notation. */
export function invalidField(param: string, problem: string, code: ErrorCode = "invalid_request"): ApiError {
  return new ApiError(code, `${fieldOf(param)} ${problem}.`, { param });
}

/** The process that gave an answer has ended, or can no longer be reached. */
export function runLost(): ApiError {
  return new ApiError("run_lost", "The answer was lost with the server that gave it. Please try again.");
}

/** The server is stopping. Often another one takes its place at once, so clients may retry soon. */
export function shuttingDown(): ApiError {
  return new ApiError("shutting_down", "The server is stopping. Please try again.", { retryAfter: 1 });
}

export function errorBody({ code, message, retryable, beside, ...where }: ApiError): ErrorBody {
  return { error: { code, message, ...faultOf(where), retryable }, ...beside };
}

/** The fields that say what is wrong in the request. */
export function faultOf({ param, problems }: Pick<ApiErrorOptions, "param" | "problems">) {
  return { ...(param === undefined ? {} : { param }), ...(problems === undefined ? {} : { problems }) };
}
