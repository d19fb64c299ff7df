/** Every way in which the model's side fails, told in our own words. Bodies, keys and URLs stay in `cause`. */

import { isCompressed, UpstreamFailure, UpstreamRefusal } from "../upstream/refusal.ts";
import { readRetryAfter } from "../upstream/retry-after.ts";
import { classify, statusOf } from "./classify.ts";
import { ProviderError } from "./provider-error.ts";

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

/** Statuses with which waiting helps: a gateway may put `Retry-After` on every refusal. */
const WAITS = new Set([429, 503, 529]);

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
    const message = isCompressed(headers.get("content-encoding"))
      ? `${label} answered with a compressed stream: whatever stands before it must not compress it.`
      : `${label} did not answer with an event stream: its base URL probably is wrong.`;
    return new ProviderError("provider_error", message, { cause: refusal, retryable: false });
  }
  const retryAfter = WAITS.has(status) ? readRetryAfter(headers) : undefined;
  return classify(label, { status, detail, retryAfter, cause: refusal });
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

/** The codes and names along an error's causes: packages wrap the socket's error. */
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
