/** Every way in which the model's side fails, told in our own words. Bodies, keys and URLs stay in `cause`. */

import { ProviderError, type ProviderErrorCode } from "./provider-error.ts";
import { readRetryAfter } from "./retry-after.ts";
import { type FailureDetail, UpstreamFailure, UpstreamRefusal } from "./upstream-refusal.ts";

/** The upstream sent nothing for too long. */
export class UpstreamTimeout extends Error {
  override readonly name = "UpstreamTimeout";
  readonly ms: number;
  readonly started: boolean;

  /** `started`: the stream had begun. */
  constructor(ms: number, started: boolean) {
    super(`upstream sent nothing for ${ms} ms`);
    this.ms = ms;
    this.started = started;
  }
}

/** The upstream's stream cannot be read as the API's. */
export class UpstreamGarbage extends Error {
  override readonly name = "UpstreamGarbage";
}

/** The failure as a client may see it. `label` is the provider's name in sentences. */
export function toProviderError(label: string, cause: unknown, started = false): ProviderError {
  if (cause instanceof ProviderError) return cause;
  if (cause instanceof UpstreamRefusal) return fromRefusal(label, cause);
  if (cause instanceof UpstreamFailure) {
    return classify(label, { status: statusOf(cause.detail), detail: cause.detail, cause });
  }
  if (cause instanceof UpstreamTimeout) {
    const seconds = `${Math.round(cause.ms / 100) / 10} seconds`;
    const message = cause.started
      ? `${label} stopped sending in the middle of its answer for ${seconds}. Please try again.`
      : `${label} did not answer within ${seconds}. Please try again.`;
    return new ProviderError("provider_timeout", message, { cause });
  }
  if (cause instanceof UpstreamGarbage) {
    const message = `${label} sent an answer that could not be read. Please try again.`;
    return new ProviderError("provider_error", message, { cause });
  }
  return fromConnection(label, cause, started);
}

/** The stream ended, cleanly or not, before the model said that it was finished. */
export function truncated(label: string, cause?: unknown): ProviderError {
  const message = `${label} broke off its answer before the end. Please try again.`;
  return new ProviderError("provider_truncated", message, { cause });
}

function fromRefusal(label: string, refusal: UpstreamRefusal): ProviderError {
  const { status, headers, detail } = refusal;
  if (status >= 300 && status < 400) {
    return new ProviderError(
      "provider_error",
      `${label} answered with a redirect, which is not followed: its base URL must be the final one.`,
      { cause: refusal, retryable: false },
    );
  }
  if (status < 300) {
    // Some servers answer 200 with a JSON error instead of a stream.
    if (/"error"\s*:/.test(refusal.body.slice(0, 200)) && (detail.text || detail.code) !== "") {
      return classify(label, { status: statusOf(detail), detail, cause: refusal });
    }
    return new ProviderError(
      "provider_error",
      `${label} did not answer with an event stream: its base URL probably is wrong.`,
      { cause: refusal, retryable: false },
    );
  }
  return classify(label, { status, detail, retryAfter: readRetryAfter(headers), cause: refusal });
}

interface Failure {
  status: number;
  detail: FailureDetail;
  retryAfter?: number | undefined;
  cause: unknown;
}

function classify(label: string, failure: Failure): ProviderError {
  const { status, detail, retryAfter, cause } = failure;
  const as = (code: ProviderErrorCode, message: string, retryable?: boolean) =>
    new ProviderError(code, message, { cause, retryable, retryAfter });
  if (isExpired(status, detail)) {
    return as("conversation_expired", `${label} no longer has this conversation. Start a new one.`);
  }
  if (status === 402 || says(detail, "insufficient_quota")) {
    const message = `${label} reports that the account of this server has used up its quota or credit.`;
    return as("provider_rate_limited", message, false);
  }
  if (isTooLong(detail) && status < 500) {
    const message = "The conversation is too long for the model. Start a new one, or send less.";
    return as("invalid_request", message);
  }
  if (status === 401 || status === 403) {
    return as(
      "provider_auth",
      `${label} refused the API key of this server, or the key may not use this model.`,
    );
  }
  if (status === 404 || isUnknownModel(detail)) {
    const message = `${label} does not know the model that this agent is set to, or its base URL is wrong.`;
    return as("provider_error", message, false);
  }
  if (status === 429) {
    const message = `${label} is getting too many requests right now. Please try again in a while.`;
    return as("provider_rate_limited", message);
  }
  if (status === 408 || status === 504) {
    return as("provider_timeout", `${label} took too long to answer. Please try again.`);
  }
  if (status === 503 || status === 529) {
    return as("provider_error", `${label} is overloaded right now. Please try again in a while.`);
  }
  if (status >= 500)
    return as("provider_error", `${label} had an internal error. Please try again.`);
  const [code, message] = blame(label, status, detail);
  return as(code, message, false);
}

/** Whose fault a status of the 400s is: the message's, or that of how the agent is set up. */
function blame(
  label: string,
  status: number,
  detail: FailureDetail,
): ["invalid_request" | "provider_error", string] {
  if (status === 413) {
    return ["invalid_request", `${label} cannot take a message with attachments this large.`];
  }
  if (says(detail, "content_policy_violation", "content_filter", "invalid_prompt")) {
    return ["invalid_request", `${label} refused this message under its usage policy.`];
  }
  const blamesInput = detail.param === "" || /^(?:messages|input)\b/.test(detail.param);
  const blamesSetup = says(detail, ...SETUP_CODES) && !/^(?:messages|input)\b/.test(detail.param);
  if ((status === 400 || status === 422) && blamesInput && !blamesSetup) {
    return ["invalid_request", `${label} does not take this message or one of its attachments.`];
  }
  return [
    "provider_error",
    `${label} refused the request: the settings of this agent do not suit it.`,
  ];
}

const SETUP_CODES = [
  "unsupported_parameter",
  "unknown_parameter",
  "unsupported_value",
  "invalid_function_parameters",
];

function says({ code, type }: FailureDetail, ...names: string[]): boolean {
  return names.includes(code) || names.includes(type);
}

function isExpired(status: number, detail: FailureDetail): boolean {
  if (says(detail, "previous_response_not_found")) return true;
  return detail.param === "previous_response_id" && status < 500 && !says(detail, ...SETUP_CODES);
}

/** OpenAI and LiteLLM have a code for it, llama.cpp another; vLLM and others only a sentence. */
function isTooLong(detail: FailureDetail): boolean {
  if (says(detail, "context_length_exceeded", "exceed_context_size_error")) return true;
  return /maximum context length|ContextWindowExceeded|prompt is too long/i.test(detail.text);
}

/** A LiteLLM proxy answers 400 for a model that it has no route for. */
function isUnknownModel(detail: FailureDetail): boolean {
  return says(detail, "model_not_found") || /^[^{]*invalid model name/i.test(detail.text);
}

/** The HTTP status that an error without one would have had. */
function statusOf({ code, type }: FailureDetail): number {
  const status = Number(code);
  if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  const name = `${code} ${type}`;
  if (/rate_limit|too_many_requests|throttl/i.test(name)) return 429;
  if (/overloaded|unavailable/i.test(name)) return 503;
  if (/authentication|invalid_api_key|permission/i.test(name)) return 401;
  if (/not_found/i.test(name)) return 404;
  if (/timeout/i.test(name)) return 504;
  if (/invalid|image|context_length|content_policy|content_filter/i.test(name)) return 400;
  return 500;
}

function fromConnection(label: string, cause: unknown, started: boolean): ProviderError {
  const codes = causeChain(cause);
  if (codes.some((code) => /TIMEDOUT|TIMEOUT|TimeoutError/.test(code))) {
    return new ProviderError("provider_timeout", `${label} took too long. Please try again.`, {
      cause,
    });
  }
  if (started) return truncated(label, cause);
  return new ProviderError("provider_error", `${label} could not be reached. Please try again.`, {
    cause,
  });
}

/** The codes and names along an error's causes: `fetch` puts the socket's error two levels deep. */
export function causeChain(error: unknown): string[] {
  const names: string[] = [];
  let current = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth++) {
    names.push(current.constructor.name, current.name);
    if ("code" in current) names.push(String(current.code));
    // Node tries IPv6 and IPv4 and then reports both failures together.
    if (current instanceof AggregateError) current = current.errors[0];
    else current = current.cause;
  }
  return names;
}
