/**
 * Maps every failure of a model or its server to one of our codes. Visitors read a sentence without the vendor's name
 * or the operator's causes. The error's `detail` has both; its `cause`, for the log, has all that the provider said.
 */

import { ApiError, type ApiErrorOptions, type ErrorCode } from "../protocol/errors.ts";
import { asString, isRecord, records, tryParse } from "../protocol/json.ts";

const NOT_SET_UP = "The assistant is not set up correctly. Please tell the owner of this site.";

/** What visitors read. */
const SENTENCES = {
  provider_error: "The assistant has a problem right now. Please try again.",
  provider_auth: NOT_SET_UP,
  provider_rate_limited: "The assistant is getting too many requests right now. Please try again in a while.",
  provider_overloaded: "The assistant is overloaded right now. Please try again in a while.",
  provider_truncated: "The answer broke off before its end. Please try again.",
  provider_timeout: "The assistant took too long to answer. Please try again.",
  conversation_expired: "This conversation is no longer kept. Please start a new one.",
  invalid_request: "The assistant does not take this message or one of its attachments.",
  content_filtered: "This message was refused under a usage policy.",
  context_too_long: "The conversation is too long for the assistant. Start a new one, or send less.",
} satisfies Partial<Record<ErrorCode, string>>;

/** Codes that a provider's failure can have. */
export type ProviderErrorCode = keyof typeof SENTENCES;

/** Failures for which a repeat cannot help, because the operator has to do something first. */
const FINAL_SENTENCES: Partial<Record<ProviderErrorCode, string>> = {
  provider_error: NOT_SET_UP,
  provider_rate_limited: "The assistant cannot answer right now. Please tell the owner of this site.",
};

/** One day, in seconds: a client's timers cannot wait without limit. */
const MAX_RETRY_AFTER = 86_400;

export interface ProviderErrorOptions extends Pick<ApiErrorOptions, "cause" | "retryable" | "retryAfter"> {
  /** Overrides the sentence that belongs to the code. */
  message?: string | undefined;
}

/** `detail`: what happened, in a sentence for the operator; it may name the provider. */
export function providerError(code: ProviderErrorCode, detail: string, options: ProviderErrorOptions = {}): ApiError {
  const { cause, retryable, retryAfter, message } = options;
  const sentence = (retryable === false ? FINAL_SENTENCES[code] : undefined) ?? SENTENCES[code];
  return new ApiError(code, message ?? sentence, {
    cause,
    retryable,
    retryAfter: retryAfter === undefined ? undefined : Math.min(retryAfter, MAX_RETRY_AFTER),
    detail,
  });
}

/** The contents of the various error bodies in one shape; "" where a body lacks the field. */
export interface FailureDetail {
  code: string;
  type: string;
  param: string;
  text: string;
}

/** An answer that is not an event stream: an error status, a redirect, or a body of another kind. */
export class UpstreamRefusal extends Error {
  override readonly name = "UpstreamRefusal";
  readonly status: number;
  readonly headers: Headers;
  /** The start of the body. For the log and for classifying; never for a client. */
  readonly body: string;
  readonly detail: FailureDetail;
  /** The provider's id of the request. */
  readonly requestId: string | undefined;

  constructor(status: number, headers: Headers, body: string) {
    // Without the body: the `openai` package reads any error text with "timed out" as a timeout.
    super(`the upstream answered with HTTP status ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
    // HTML or plain text: the whole body is the message.
    const json = tryParse(body);
    this.detail = readDetail(json === undefined ? body : json);
    this.requestId = requestIdOf(headers);
  }
}

/** An error that an event inside a stream reports; the HTTP status was 200. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly body: unknown;
  readonly detail: FailureDetail;

  constructor(body: unknown) {
    super("the upstream reported an error inside the stream");
    this.body = body;
    this.detail = readDetail(body);
  }
}

/** The upstream sent nothing for too long. `started`: its answer had begun. */
export class UpstreamTimeout extends Error {
  override readonly name = "UpstreamTimeout";
  readonly ms: number;
  readonly started: boolean;

  constructor(ms: number, started: boolean) {
    super(`the upstream sent nothing for ${ms} ms`);
    this.ms = ms;
    this.started = started;
  }
}

/** The upstream's stream does not have the form of the API. */
export class UpstreamGarbage extends Error {
  override readonly name = "UpstreamGarbage";
}

/** The model wrote something that its server could not read. The message names it: "a tool call". */
export class MalformedOutput extends Error {
  override readonly name = "MalformedOutput";
}

/** The stream ended before the model reported that it was finished. The message completes the sentence for the log. */
export class UpstreamTruncation extends Error {
  override readonly name = "UpstreamTruncation";
}

/**
 * Whether a message or a body reports an error. An event or a chunk of an answer has a `type` or `choices`; a message
 * with neither, but with a sentence, is one of the errors that `readDetail` reads.
 */
export function reportsFailure(body: unknown, event = ""): boolean {
  const message = unwrapped(body);
  if (!isRecord(message)) return event === "error";
  const { error, type, object, choices, detail } = message;
  if ((error !== undefined && error !== null) || [event, type, object].includes("error")) return true;
  if (type !== undefined || choices !== undefined) return false;
  return Array.isArray(detail) || isRecord(detail) || SENTENCE_FIELDS.some((name) => asString(message[name]) !== "");
}

/** Google wraps its errors in a list. */
export function unwrapped(body: unknown): unknown {
  return Array.isArray(body) ? body[0] : body;
}

const SENTENCE_FIELDS = ["message", "error_message", "error_msg", "msg", "detail"];

/**
 * Reads `{error: {message, type, code, param}}` (OpenAI, LiteLLM), `{error: "..."}` (Ollama), the same fields without a
 * wrapper (vLLM), `{error_type, error_message}` and its like, `{detail: ...}` (FastAPI), and any of them in a list (Gemini).
 */
function readDetail(body: unknown): FailureDetail {
  const first = unwrapped(body);
  const outer = isRecord(first) ? first : { message: first };
  const error = outer.error ?? (isRecord(outer.detail) ? outer.detail : outer);
  // A short `error` may come with a sentence: `{error: "Bad Request", message: "..."}`.
  const inner = isRecord(error) ? error : { ...outer, message: joined(asString(error), asString(outer.message)) };
  const [fault, ...others] = records(inner.detail);
  const code = inner.code ?? inner.error_code ?? inner.status_code;
  return {
    code: typeof code === "number" ? String(code) : asString(code),
    type: asString(inner.type) || asString(inner.error_type),
    param: asString(inner.param) || (others.length === 0 ? placeOf(fault) : ""),
    text: joined(sentenceOf(inner), rawOf(inner)),
  };
}

/** The sentence without the part of the request that FastAPI quotes: a user could have written anything there. */
function sentenceOf(error: Record<string, unknown>): string {
  const sentence = SENTENCE_FIELDS.map((name) => asString(error[name])).find(Boolean) ?? "";
  const faults = records(error.detail).map((fault) => joined(placeOf(fault), asString(fault.msg)));
  return joined(sentence, ...faults).replace(/\binput_value=.*?, input_type=/gs, "input_type=");
}

function joined(...texts: string[]): string {
  return texts.filter(Boolean).join(" ");
}

/** The place of a mistake, as FastAPI names it: `["body", "messages", 0]`. */
function placeOf(fault: Record<string, unknown> | undefined): string {
  const place: unknown[] = Array.isArray(fault?.loc) ? fault.loc : [];
  return place.filter((name) => name !== "body").join(".");
}

/** The original error of the provider behind OpenRouter. */
function rawOf({ metadata }: Record<string, unknown>): string {
  return isRecord(metadata) ? asString(metadata.raw) : "";
}

/** Headers in which providers name a request: OpenAI and LiteLLM, Anthropic, AWS, Azure. */
const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

/** The provider's id of the request, from the headers of its answer. */
export function requestIdOf(headers: Headers): string | undefined {
  const id = REQUEST_ID_HEADERS.map((name) => headers.get(name)).find((value) => value !== null);
  return id !== undefined && id !== null && /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined;
}

/** Whole seconds to wait, from OpenAI's finer `retry-after-ms` or from `Retry-After`, which may be a date. */
export function readRetryAfter(headers: Headers, now = Date.now()): number | undefined {
  const milliseconds = headers.get("retry-after-ms")?.trim();
  if (milliseconds && /^\d+(\.\d+)?$/.test(milliseconds)) return Math.ceil(Number(milliseconds) / 1000);
  // A LiteLLM proxy passes its provider's headers on with this prefix.
  const value = (headers.get("retry-after") ?? headers.get("llm_provider-retry-after"))?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value));
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

/** Requests ask for no compression, because it can hold an event back until later ones arrive. */
export function isCompressed(headers: Headers): boolean {
  return !/^(?:identity)?$/i.test((headers.get("content-encoding") ?? "").trim());
}

/** Whether the upstream refused the request because of this parameter; it can then be sent again without it. */
export function blamesParameter({ detail: { param, text } }: UpstreamRefusal, name: string): boolean {
  return param === "" ? text.includes(name) : param === name || param.startsWith(`${name}.`);
}

/** Whether the model's output was at fault, not the request: a second try mostly gives another output. */
export function isModelFault(cause: unknown): boolean {
  const isReported = cause instanceof UpstreamRefusal || cause instanceof UpstreamFailure;
  return (
    cause instanceof MalformedOutput || (isReported && MODEL_FAULT.test(`${cause.detail.code} ${cause.detail.text}`))
  );
}

/** The words of Groq (its errors contain the output as `failed_generation`), Cerebras, Ollama and Gemini. */
const MODEL_FAULT =
  /\bfailed_generation\b|tool_use_failed|tool call validation failed|failed to (?:call a function|generate tool_?calls)|error parsing tool call|malformed[ _]function[ _]call/i;

/** Explains failures with a special meaning at one provider; `undefined` leaves them to the common rules. */
export type ExplainFailure = (cause: unknown) => ApiError | undefined;

/** The failure as a client may see it. `label` is the provider's name; `started`: its answer had begun. */
export function toProviderError(label: string, thrown: unknown, started = false): ApiError {
  const cause = upstreamCause(thrown);
  if (cause instanceof ApiError) return cause;
  if (cause instanceof UpstreamRefusal) return fromRefusal(label, cause);
  if (cause instanceof UpstreamFailure) return classify(label, cause);
  if (cause instanceof UpstreamTimeout) {
    const seconds = `${Math.round(cause.ms / 100) / 10} seconds`;
    const detail = cause.started
      ? `${label} stopped sending in the middle of its answer for ${seconds}.`
      : `${label} did not answer within ${seconds}.`;
    return providerError("provider_timeout", detail, { cause });
  }
  if (cause instanceof UpstreamGarbage) {
    return providerError("provider_error", `${label} sent an answer that could not be read.`, { cause });
  }
  if (cause instanceof UpstreamTruncation) return truncated(label, cause.message);
  if (cause instanceof MalformedOutput) {
    return providerError("provider_error", `The model wrote ${cause.message} that ${label} could not read.`, { cause });
  }
  if (causeNames(cause).some((name) => /TIMEDOUT|TIMEOUT|TimeoutError/.test(name))) {
    return providerError("provider_timeout", `${label} took too long.`, { cause });
  }
  if (started) return truncated(label, "its connection ended with an error", cause);
  return providerError("provider_error", `${label} could not be reached.`, { cause });
}

/** Finds our own error among the causes: the `openai` package wraps what our `fetch` throws. */
export function upstreamCause(thrown: unknown): unknown {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof ApiError || error instanceof UpstreamRefusal || error instanceof UpstreamTimeout) return error;
  }
  return thrown;
}

/** The codes and names along an error's causes. */
export function causeNames(thrown: unknown): string[] {
  const names: string[] = [];
  let error = thrown;
  for (let depth = 0; error instanceof Error && depth < 8; depth++) {
    names.push(error.constructor.name, error.name);
    if ("code" in error) names.push(String(error.code));
    // Node tries IPv6 and IPv4 and then reports both failures together.
    error = error instanceof AggregateError ? error.errors[0] : error.cause;
  }
  return names;
}

function truncated(label: string, how: string, cause?: unknown): ApiError {
  return providerError("provider_truncated", `${label} broke off its answer: ${how}.`, { cause });
}

/** Only for these statuses does waiting help: a gateway may send `Retry-After` with every refusal. */
const WAITS = new Set([429, 503, 529]);

function fromRefusal(label: string, refusal: UpstreamRefusal): ApiError {
  const { status, headers, detail } = refusal;
  if (status >= 300 && status < 400) {
    const redirect = `${label} answered with a redirect, which is not followed: its base URL must be the final one.`;
    return providerError("provider_error", redirect, { cause: refusal, retryable: false });
  }
  if (status < 300) {
    const isPacked = isCompressed(headers);
    // Some servers answer 200 with a JSON error instead of a stream.
    const isError = reportsFailure(tryParse(refusal.body)) && (detail.text || detail.code) !== "";
    if (isError && !isPacked) return classify(label, refusal, statusOf(detail));
    const problem = isPacked
      ? `${label} answered with a compressed stream: the proxy or gateway before it must not compress it.`
      : `${label} did not answer with an event stream: its base URL probably is wrong.`;
    return providerError("provider_error", problem, { cause: refusal, retryable: false });
  }
  const retryAfter = WAITS.has(status) ? readRetryAfter(headers) : undefined;
  return classify(label, refusal, status, retryAfter);
}

/** The classification of a failure. */
interface Verdict extends Pick<ProviderErrorOptions, "retryable" | "message"> {
  code: ProviderErrorCode;
  /** Completes the sentence that begins with the provider's name. */
  detail: string;
}

/** The failure as one of our codes. `retryAfter`: seconds. */
function classify(
  label: string,
  cause: UpstreamRefusal | UpstreamFailure,
  status = statusOf(cause.detail),
  retryAfter?: number,
): ApiError {
  const verdict =
    judgeModel(cause) ??
    judgeLength(status, cause.detail) ??
    judgeRequest(status, cause.detail) ??
    judgeStatus(status, cause.detail);
  const { code, detail, retryable, message } = verdict;
  return providerError(code, `${label} ${detail}`, { cause, retryable, message, retryAfter });
}

/** Servers answer 400 to malformed output of the model, as if the request were at fault. */
function judgeModel(cause: unknown): Verdict | undefined {
  if (!isModelFault(cause)) return undefined;
  return { code: "provider_error", detail: "could not read what the model wrote, such as a malformed tool call." };
}

/** Servers report an overlong conversation with any status, even 500. Rate limits mention tokens too: they are excluded. */
function judgeLength(status: number, detail: FailureDetail): Verdict | undefined {
  const isOfRate = status === 429 || says(detail, "rate_limit_exceeded");
  const isInWords = !isOfRate && TOO_LONG.test(detail.text) && !OUTPUT_LIMIT.test(detail.text);
  if (!isInWords && !says(detail, ...TOO_LONG_CODES)) return undefined;
  return { code: "context_too_long", detail: "says that the conversation is too long for the model." };
}

/** Faults of the request that providers report with different statuses; `undefined`: the status decides. */
function judgeRequest(status: number, detail: FailureDetail): Verdict | undefined {
  if (status >= 500) return undefined;
  const { param, text } = detail;
  if (
    says(detail, "previous_response_not_found") ||
    (param === "previous_response_id" && !says(detail, ...SETUP_CODES))
  ) {
    return { code: "conversation_expired", detail: "no longer has this conversation." };
  }
  if (says(detail, ...FILTER_CODES) || FILTERED.test(text)) {
    return { code: "content_filtered", detail: "refused this message under its usage policy." };
  }
  return undefined;
}

function judgeStatus(status: number, detail: FailureDetail): Verdict {
  const { param, text } = detail;
  if (status === 402 || says(detail, "insufficient_quota")) {
    const sentence = "reports that the account of this server has used up its quota or credit.";
    return { code: "provider_rate_limited", detail: sentence, retryable: false };
  }
  // A LiteLLM proxy without a database answers a wrong key with 400, because it cannot look the key up.
  if (status === 401 || status === 403 || says(detail, "no_db_connection")) {
    const sentence = "refused the API key of this server, or the key may not use this model.";
    return { code: "provider_auth", detail: sentence };
  }
  // A LiteLLM proxy answers 400 for a model that it has no route for.
  if (status === 404 || says(detail, "model_not_found") || /^[^{]*invalid model name/i.test(text)) {
    const sentence = "does not know the model that this agent is set to, or its base URL is wrong.";
    return { code: "provider_error", detail: sentence, retryable: false };
  }
  if (isOverloaded(status, detail)) return { code: "provider_overloaded", detail: "is overloaded right now." };
  // Groq answers 413 to a single request that exceeds the tokens allowed per minute.
  if (status === 429 || says(detail, "rate_limit_exceeded")) {
    return { code: "provider_rate_limited", detail: "is getting too many requests right now." };
  }
  if (status === 408 || status === 504) return { code: "provider_timeout", detail: "took too long to answer." };
  if (status >= 500) return { code: "provider_error", detail: "had an internal error." };
  if (status === 413) {
    const sentence = "cannot take a message with attachments this large.";
    return { code: "invalid_request", detail: sentence, retryable: false, message: `The assistant ${sentence}` };
  }
  if ((status === 400 || status === 422) && (/^(?:messages|input)\b/.test(param) || !blamesSetup(detail))) {
    const sentence = "does not take this message or one of its attachments.";
    return { code: "invalid_request", detail: sentence, retryable: false };
  }
  const sentence = "refused the request: the settings of this agent do not suit it.";
  return { code: "provider_error", detail: sentence, retryable: false };
}

/** OpenAI and Anthropic have codes for overload; a LiteLLM proxy passes only the word on, in a plain 500. */
function isOverloaded(status: number, detail: FailureDetail): boolean {
  if (status === 503 || status === 529 || says(detail, "server_is_overloaded", "overloaded_error")) return true;
  return status >= 500 && /\boverloaded\b/i.test(detail.text);
}

function says({ code, type }: FailureDetail, ...names: string[]): boolean {
  return names.includes(code) || names.includes(type);
}

const SETUP_CODES = ["unsupported_parameter", "unknown_parameter", "unsupported_value", "invalid_function_parameters"];

/** The codes of OpenAI and compatible servers, llama.cpp, GitHub Copilot and Zhipu. */
const TOO_LONG_CODES = [
  "context_length_exceeded",
  "exceed_context_size_error",
  "model_max_prompt_tokens_exceeded",
  "1261",
];

/** Similar sentences about the output limit, which comes from the agent's settings. */
const OUTPUT_LIMIT = /\bmax_\w*tokens\b\W*\d*\W*must be at most|\bmaximum tokens you requested/i;

/** The prompt as the subject of a sentence, up to the verb: "input length (9 tokens) ". */
const PROMPT = String.raw`\b(?:prompt|input)(?: tokens?| token count| (?:token )?length)?(?: of)?(?: \(?[a-z ]*\d+[a-z ]*\)?)?(?: is)? `;

const CONTEXT = String.raw`\bcontext[ _-]?(?:length|size|window|limit)`;

/** The sentences for a prompt that is too long, each below the servers that write it. */
export const TOO_LONG = new RegExp(
  [
    // OpenAI, Azure, DeepSeek, vLLM, OpenRouter, Groq, xAI: "maximum context length is", "maximum prompt length is".
    String.raw`\bmax(?:imum)? (?:context|prompt|(?:allowed )?input) length\b`,
    // OpenAI, Anthropic, llama.cpp, SGLang, Mistral, Fireworks, Ollama: "exceeds the context window", "longer than the …".
    String.raw`\b(?:exceed\w*|too (?:long|large)|(?:longer|greater) than)\b[^.]{0,60}${CONTEXT}`,
    // llama.cpp, LM Studio, MiniMax, vLLM, LiteLLM: "Context size has been exceeded", "context length of only".
    `${CONTEXT}(?: has been| of| is)? ?(?:exceed|only)`,
    // Anthropic, Bedrock, Gemini, Moonshot, Zhipu, SGLang, OpenAI: "prompt is too long", "input token count (9) exceeds".
    String.raw`${PROMPT}(?:too long|longer than|exceeds?\b[^.]{0,60}\b(?:tokens?|length|context))`,
    // GitHub Copilot: the subject names the tokens, and the limit is just a number.
    String.raw`\b(?:prompt|input) (?:tokens?|length)\b[^.]{0,30} exceeds?\b`,
    // Groq, Cerebras, vLLM.
    "reduce the length of the (?:messages|prompt|input)",
    // Text Generation Inference and Together; DashScope; Moonshot; Cohere; Vertex AI; LM Studio.
    String.raw`\binputs\b.? (?:tokens \+|must have less)|less than the context length|input length should be|length of all messages|exceeded model token limit`,
    String.raw`too many (?:tokens: (?:total number|size limit)|input tokens)|token count is \d+ but|\bn_keep\b`,
  ].join("|"),
  "i",
);

/** OpenAI's codes for text and images, and Azure's. */
const FILTER_CODES = [
  "content_policy_violation",
  "content_filter",
  "invalid_prompt",
  "bio_policy",
  "cyber_policy",
  "image_content_policy_violation",
];

/** LiteLLM's words for a refused content, whichever provider it asked. */
const FILTERED = /ContentPolicyViolation|ResponsibleAIPolicyViolation/;

/** LiteLLM names an unsupported parameter only in a sentence, as several servers do an output limit. */
function blamesSetup(detail: FailureDetail): boolean {
  const inWords = /UnsupportedParamsError|\bmax_?(?:completion_?|output_?)?tokens\b|maximum tokens you requested/i;
  return says(detail, ...SETUP_CODES) || detail.param !== "" || inWords.test(detail.text);
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
  if (/invalid|validation|bad_?request|image|context_length|_policy|content_filter/i.test(name)) return 400;
  return 500;
}
