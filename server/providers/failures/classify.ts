/** What a status and an error body mean, as one of our codes and sentences. */

import type { FailureDetail } from "../upstream/refusal.ts";
import { ProviderError, type ProviderErrorCode } from "./provider-error.ts";

/** A refusal or a reported failure of a provider. */
export interface Failure {
  /** HTTP status, or the one that `statusOf` finds. */
  status: number;
  detail: FailureDetail;
  /** Seconds. */
  retryAfter?: number | undefined;
  cause: unknown;
}

/** The failure in our words. `label` is the provider's name in sentences. */
export function classify(label: string, failure: Failure): ProviderError {
  const { status, detail, retryAfter, cause } = failure;
  const [code, message, retryable] =
    blameState(label, status, detail) ??
    blameMessage(label, status, detail) ??
    blameAccount(label, status, detail) ??
    blameProvider(label, status, detail) ??
    blameRequest(label, status, detail);
  return new ProviderError(code, message, { cause, retryable, retryAfter });
}

/** The third part overrides what the code says of retrying. */
type Verdict = [code: ProviderErrorCode, message: string, retryable?: boolean];

function blameState(label: string, status: number, detail: FailureDetail): Verdict | undefined {
  if (!isExpired(status, detail)) return undefined;
  return ["conversation_expired", `${label} no longer has this conversation. Start a new one.`];
}

/** Providers word these in many ways, but they always mean that another message is needed. */
function blameMessage(label: string, status: number, detail: FailureDetail): Verdict | undefined {
  if (status >= 500) return undefined;
  if (isTooLong(detail)) {
    const message = "The conversation is too long for the model. Start a new one, or send less.";
    return ["context_too_long", message];
  }
  if (isFiltered(detail)) {
    return ["content_filtered", `${label} refused this message under its usage policy.`];
  }
  return undefined;
}

function blameAccount(label: string, status: number, detail: FailureDetail): Verdict | undefined {
  if (status === 402 || says(detail, "insufficient_quota")) {
    const message = `${label} reports that the account of this server has used up its quota or credit.`;
    return ["provider_rate_limited", message, false];
  }
  // A LiteLLM proxy without a database says of a wrong key that it cannot look it up, as a 400.
  if (status === 401 || status === 403 || says(detail, "no_db_connection")) {
    const message = `${label} refused the API key of this server, or the key may not use this model.`;
    return ["provider_auth", message];
  }
  if (status === 404 || isUnknownModel(detail)) {
    const message = `${label} does not know the model that this agent is set to, or its base URL is wrong.`;
    return ["provider_error", message, false];
  }
  return undefined;
}

function blameProvider(label: string, status: number, detail: FailureDetail): Verdict | undefined {
  if (isOverloaded(status, detail)) {
    const message = `${label} is overloaded right now. Please try again in a while.`;
    return ["provider_overloaded", message];
  }
  if (status === 429) {
    const message = `${label} is getting too many requests right now. Please try again in a while.`;
    return ["provider_rate_limited", message];
  }
  if (status === 408 || status === 504) {
    return ["provider_timeout", `${label} took too long to answer. Please try again.`];
  }
  if (status >= 500) {
    return ["provider_error", `${label} had an internal error. Please try again.`];
  }
  return undefined;
}

/** Whose fault a status of the 400s is: the message's, or that of how the agent is set up. */
function blameRequest(label: string, status: number, detail: FailureDetail): Verdict {
  if (status === 413) {
    const message = `${label} cannot take a message with attachments this large.`;
    return ["invalid_request", message, false];
  }
  const blamesInput = /^(?:messages|input)\b/.test(detail.param);
  const blamesSetup = says(detail, ...SETUP_CODES) || detail.param !== "" || isUnsupported(detail);
  if ((status === 400 || status === 422) && (blamesInput || !blamesSetup)) {
    const message = `${label} does not take this message or one of its attachments.`;
    return ["invalid_request", message, false];
  }
  const message = `${label} refused the request: the settings of this agent do not suit it.`;
  return ["provider_error", message, false];
}

const SETUP_CODES = ["unsupported_parameter", "unknown_parameter", "unsupported_value", "invalid_function_parameters"];

function says({ code, type }: FailureDetail, ...names: string[]): boolean {
  return names.includes(code) || names.includes(type);
}

function isExpired(status: number, detail: FailureDetail): boolean {
  if (says(detail, "previous_response_not_found")) return true;
  return detail.param === "previous_response_id" && status < 500 && !says(detail, ...SETUP_CODES);
}

/** OpenAI and LiteLLM have a code for it, llama.cpp another; the others only a sentence each. */
function isTooLong(detail: FailureDetail): boolean {
  if (says(detail, "context_length_exceeded", "exceed_context_size_error")) return true;
  return TOO_LONG.test(detail.text);
}

/** LiteLLM knows of many models what they take, and names the rest only in a sentence. */
function isUnsupported(detail: FailureDetail): boolean {
  return /UnsupportedParamsError/.test(detail.text);
}

/** In this order: vLLM and its kin, LiteLLM, Anthropic, Gemini, Bedrock, Groq. */
const TOO_LONG =
  /maximum context length|ContextWindowExceeded|prompt is too long|token count .* exceeds the maximum number of tokens|input is too long|reduce the length of the (?:messages|prompt)/i;

/** OpenAI's codes for text and images, Azure's, and LiteLLM's sentence for all of its providers. */
function isFiltered(detail: FailureDetail): boolean {
  if (says(detail, ...FILTER_CODES)) return true;
  return /ContentPolicyViolation|ResponsibleAIPolicyViolation/.test(detail.text);
}

const FILTER_CODES = [
  "content_policy_violation",
  "content_filter",
  "invalid_prompt",
  "bio_policy",
  "cyber_policy",
  "image_content_policy_violation",
];

/** OpenAI and Anthropic have codes for it; a LiteLLM proxy passes the word on inside a plain 500. */
function isOverloaded(status: number, detail: FailureDetail): boolean {
  if (status === 503 || status === 529) return true;
  if (says(detail, "server_is_overloaded", "overloaded_error")) return true;
  return status >= 500 && /\boverloaded\b/i.test(detail.text);
}

/** A LiteLLM proxy answers 400 for a model that it has no route for. */
function isUnknownModel(detail: FailureDetail): boolean {
  return says(detail, "model_not_found") || /^[^{]*invalid model name/i.test(detail.text);
}

/** The HTTP status that an error without one would have had. */
export function statusOf({ code, type }: FailureDetail): number {
  const status = Number(code);
  if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  const name = `${code} ${type}`;
  if (/rate_limit|too_many_requests|slow_down|throttl/i.test(name)) return 429;
  if (/overloaded|unavailable/i.test(name)) return 503;
  if (/authentication|invalid_api_key|permission/i.test(name)) return 401;
  if (/not_found/i.test(name)) return 404;
  if (/timeout/i.test(name)) return 504;
  if (/invalid|image|context_length|_policy|content_filter/i.test(name)) return 400;
  return 500;
}
