/** How AWS refuses and fails, brought to the shape that `failures/failures.ts` has sentences for. */

import { isRecord } from "../../protocol/is-record.ts";
import { toProviderError, truncated, UpstreamGarbage } from "../failures/failures.ts";
import { ProviderError } from "../failures/provider-error.ts";
import { text } from "../text.ts";
import { UpstreamRefusal } from "../upstream/refusal.ts";

/** The provider's name in sentences. */
export const LABEL = "AWS Bedrock";

/**
 * The status that each exception stands for. Inside a stream they come without one, and some statuses of
 * AWS mean something else elsewhere (424 is the model's own failure, 429 also a model that is still loading).
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

/** What a `ValidationException` is about; AWS says it only in its sentence. The first that fits counts. */
const COMPLAINTS: readonly (readonly [code: string, pattern: RegExp])[] = [
  [
    "context_length_exceeded",
    /(?:input|prompt) is too long|input tokens|maximum context length|exceed context limit|context window/i,
  ],
  ["model_not_found", /model identifier is invalid|on-demand throughput|inference profile|end of its life/i],
  ["content_filter", /content (?:filter|policy)|blocked by/i],
  ["attachment_refused", /\b(?:image|document|pdf)s?\b/i],
  [
    "unsupported_parameter",
    /temperature|top_?[pk]\b|max_?tokens|maximum tokens|thinking|reasoning|effort|parameter|extraneous key|extra inputs|toolConfig|tool use|tool_choice|system (?:message|prompt)|streaming/i,
  ],
];

/** An HTTP answer that is no event stream. */
export function httpRefusal(answer: UpstreamRefusal): UpstreamRefusal {
  const { status, headers } = answer;
  const json = parse(answer.body);
  // "ThrottlingException:http://internal.amazon.com/…", or in the body with its name space before a "#".
  const named = headers.get("x-amzn-errortype") ?? (isRecord(json) ? text(json.__type) : "");
  const type = named.split(":")[0]?.split("#").at(-1) ?? "";
  if (status < 400 || !isRecord(json)) return answer;
  return refusal(type, text(json.message) || text(json.Message), { status, headers });
}

/** What the package threw: an exception inside the stream, missing credentials, or bytes it cannot read. */
export function sdkFailure(error: unknown, answered: boolean): unknown {
  if (!(error instanceof Error)) return error;
  if (/^(?:CredentialsProvider|TokenProvider)Error$/.test(error.name)) return noCredentials(error);
  const type = error.name.charAt(0).toUpperCase() + error.name.slice(1);
  if (Object.hasOwn(STATUS, type)) return refusal(type, error.message);
  if (!answered) return error;
  if (error.message.startsWith("Truncated event message")) return truncated(LABEL, error);
  return new UpstreamGarbage("the stream cannot be decoded", { cause: error });
}

/** The failure as a client may see it. `started`: the answer had begun. */
export function toBedrockError(error: unknown, started = false): ProviderError {
  if (!(error instanceof UpstreamRefusal)) return toProviderError(LABEL, error, started);
  if (error.detail.code === "attachment_refused") {
    return new ProviderError(
      "invalid_request",
      `${LABEL} does not take one of the attachments with this model. Most of its models take images up to 3.75 MB and 8,000 pixels a side, and some take no files at all.`,
      { cause: error },
    );
  }
  if (error.status === 401 || error.status === 403) return noCredentials(error);
  return toProviderError(LABEL, error, started);
}

function noCredentials(cause: unknown): ProviderError {
  return new ProviderError(
    "provider_auth",
    `${LABEL} refused the credentials of this server, or they may not use this model.`,
    { cause },
  );
}

function refusal(type: string, message: string, { status = 500, headers = new Headers() } = {}): UpstreamRefusal {
  const known = (Object.hasOwn(STATUS, type) ? STATUS[type] : undefined) ?? status;
  // Only there: "Too many tokens" of a ThrottlingException, for one, is about the rate.
  const code = known === 400 ? complaintOf(message) : "";
  return new UpstreamRefusal(known, headers, JSON.stringify({ type, code, message }));
}

function complaintOf(message: string): string {
  return COMPLAINTS.find(([, pattern]) => pattern.test(message))?.[0] ?? "";
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // A page of HTML or plain text, from a proxy or a wrong address.
    return undefined;
  }
}
