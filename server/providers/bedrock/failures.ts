/** AWS's refusals and failures, in the form that `failures.ts` has rules for. */

import type { ApiError } from "../../protocol/errors.ts";
import { asString, isRecord, tryParse } from "../../protocol/json.ts";
import { providerError, TOO_LONG, toProviderError, UpstreamFailure, UpstreamRefusal } from "../failures.ts";

export const LABEL = "AWS Bedrock";

/**
 * The status that each exception stands for. Exceptions inside a stream have no status, and some AWS statuses mean
 * something else elsewhere (at AWS, 424 is the model's own failure, 429 also a model that is still loading).
 * https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
 */
const STATUS: Readonly<Record<string, number>> = {
  AccessDeniedException: 403,
  ExpiredTokenException: 403,
  IncompleteSignatureException: 403,
  InvalidSignatureException: 403,
  UnrecognizedClientException: 403,
  ValidationException: 400,
  ResourceNotFoundException: 404,
  ModelTimeoutException: 408,
  ThrottlingException: 429,
  ServiceQuotaExceededException: 429,
  InternalServerException: 500,
  ModelErrorException: 500,
  ModelStreamErrorException: 500,
  ModelNotReadyException: 503,
  ServiceUnavailableException: 503,
};

/** The subject of a `ValidationException`, which AWS names only in the message. The first match counts. */
const COMPLAINTS: readonly (readonly [code: string, pattern: RegExp])[] = [
  ["context_length_exceeded", TOO_LONG],
  ["model_not_found", /model identifier is invalid|on-demand throughput|inference profile|end of its life/i],
  ["content_filter", /content (?:filter|policy)|blocked by/i],
  ["attachment_refused", /\b(?:image|document|pdf)s?\b/i],
  [
    "unsupported_parameter",
    /temperature|top_?[pk]\b|max_?tokens|maximum tokens|thinking|reasoning|effort|parameter|extraneous key|extra inputs|toolConfig|tool use|tool_choice|system (?:message|prompt)|streaming/i,
  ],
];

/** The refusal with the status and the code that its exception stands for. */
export function namedRefusal(answer: UpstreamRefusal): UpstreamRefusal {
  // A proxy or a wrong address answers with HTML or plain text.
  const json = tryParse(answer.body);
  if (answer.status < 400 || !isRecord(json)) return answer;
  // "ThrottlingException:http://internal.amazon.com/…", or in the body with its namespace before a "#".
  const named = answer.headers.get("x-amzn-errortype") ?? asString(json.__type);
  const type = named.split(":")[0]?.split("#").at(-1) ?? "";
  return refusal(type, asString(json.message) || asString(json.Message), answer.status, answer.headers);
}

function refusal(type: string, message: string, status: number, headers: Headers): UpstreamRefusal {
  const known = (Object.hasOwn(STATUS, type) ? STATUS[type] : undefined) ?? status;
  // The sentence of another status may mean something else: "Too many tokens" of a ThrottlingException is about the rate.
  const code = known === 400 ? (COMPLAINTS.find(([, pattern]) => pattern.test(message))?.[0] ?? "") : "";
  return new UpstreamRefusal(known, headers, JSON.stringify({ type, code, message }));
}

/** Explains failures that only AWS has. */
export function explainFailure(cause: unknown): ApiError | undefined {
  if (cause instanceof UpstreamFailure) {
    // The name of an exception inside a stream, such as "throttlingException".
    const { type, text } = cause.detail;
    const named = refusal(type.charAt(0).toUpperCase() + type.slice(1), text, 500, new Headers());
    return explainFailure(named) ?? toProviderError(LABEL, named);
  }
  if (cause instanceof UpstreamRefusal) {
    if (cause.status === 401 || cause.status === 403) return noCredentials(cause);
    return cause.detail.code === "attachment_refused" ? attachmentRefused(cause) : undefined;
  }
  const isFromSdk = cause instanceof Error && /^(?:CredentialsProvider|TokenProvider)Error$/.test(cause.name);
  return isFromSdk ? noCredentials(cause) : undefined;
}

function attachmentRefused(cause: unknown): ApiError {
  return providerError(
    "invalid_request",
    `${LABEL} does not take one of the attachments with this model. Most of its models take images up to 3.75 MB and 8,000 pixels a side, and some take no files at all.`,
    { cause, message: "The assistant does not take one of the attachments." },
  );
}

function noCredentials(cause: unknown): ApiError {
  return providerError(
    "provider_auth",
    `${LABEL} refused the credentials of this server, or they may not use this model.`,
    { cause },
  );
}
