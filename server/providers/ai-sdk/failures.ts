/** How the packages of the AI SDK fail. Each copy of a package has classes of its own, so errors are known by their names. */

import type { ApiError } from "../../protocol/errors.ts";
import { asString, isRecord, type Json } from "../../protocol/json.ts";
import { nameSubject } from "../anthropic/provider.ts";
import { providerError, toProviderError, UpstreamFailure, UpstreamGarbage, UpstreamRefusal } from "../failures.ts";
import { geminiFailure } from "../gemini/gemini.ts";

/** A part of the answer was not what the package expects; mostly it is of a newer kind. */
const UNKNOWN_PARTS = new Set(["AI_TypeValidationError", "AI_InvalidResponseDataError"]);

/** Their messages quote the answer. */
const GARBAGE = new Set([...UNKNOWN_PARTS, "AI_JSONParseError", "AI_EmptyResponseBodyError"]);

/** Whether the answer may be whole without the part that this error stands for. */
export function isUnknownPart(error: unknown): boolean {
  return error instanceof Error && UNKNOWN_PARTS.has(error.name);
}

/** What a package threw, or put into its stream, as an error that `../failures.ts` has rules for. */
export function upstreamError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) {
    return new UpstreamFailure(isRecord(thrown) && !("error" in thrown) ? { error: thrown } : thrown);
  }
  const { name, message, cause } = thrown;
  const { statusCode: status, responseHeaders, responseBody } = thrown as unknown as Json;
  if (typeof status === "number" && status >= 300) {
    const headers = new Headers(isRecord(responseHeaders) ? (responseHeaders as Record<string, string>) : {});
    return new UpstreamRefusal(status, headers, asString(responseBody) || JSON.stringify({ message }));
  }
  if (GARBAGE.has(name)) return new UpstreamGarbage(`the package reports an ${name}`);
  if (name !== "AI_APICallError") return thrown;
  // The error itself holds the whole request.
  return cause instanceof Error ? upstreamError(cause) : new UpstreamGarbage(message);
}

const NOT_SET_UP = new Set(["AI_LoadAPIKeyError", "AI_LoadSettingError"]);
const NOT_TAKEN = new Set(["AI_UnsupportedFunctionalityError", "AI_InvalidPromptError", "AI_InvalidArgumentError"]);

/** What only a package means by a failure, or the API behind it. `label`: the model's `provider`. */
export function explainFailure(label: string, cause: unknown): ApiError | undefined {
  if (cause instanceof UpstreamRefusal && label.startsWith("anthropic")) nameSubject(cause.detail);
  if (label.startsWith("google")) {
    const failure = geminiFailure(label, cause);
    if (failure !== undefined) return failure;
  }
  if (!(cause instanceof Error)) return undefined;
  const { name, message } = cause;
  if (NOT_SET_UP.has(name)) return providerError("provider_auth", `${label} is not set up: ${message}`, { cause });
  if (NOT_TAKEN.has(name)) {
    const detail = `The package of ${label} does not take this message: ${message}`;
    return providerError("invalid_request", detail, { cause, retryable: false });
  }
  // What broke a stream.
  const known = upstreamError(cause);
  return known === cause ? undefined : toProviderError(label, known);
}
