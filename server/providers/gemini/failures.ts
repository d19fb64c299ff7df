/** What Google's refusals mean beyond their HTTP status. */

import { ProviderError } from "../failures/provider-error.ts";
import { UpstreamFailure, UpstreamRefusal } from "../upstream/refusal.ts";
import { readRetryAfter } from "../upstream/retry-after.ts";

/** A refusal that the common rules would take for something else; `undefined` for all others. */
export function geminiFailure(label: string, cause: unknown): ProviderError | undefined {
  if (!(cause instanceof UpstreamRefusal) && !(cause instanceof UpstreamFailure)) return undefined;
  const { code, text } = cause.detail;
  const status = cause instanceof UpstreamRefusal ? cause.status : Number(code);
  // A wrong key is a bad request here, not 401.
  if (status === 400 && /API key (?:not valid|expired|not found)|API_KEY_INVALID/i.test(text)) {
    const message = `${label} refused the API key of this server.`;
    return new ProviderError("provider_auth", message, { cause });
  }
  if (status === 400 && /location is not supported/i.test(text)) {
    const message = `${label} cannot be used from the country in which this server runs.`;
    return new ProviderError("provider_auth", message, { cause });
  }
  if (status === 429) {
    const message = `${label} is getting too many requests right now. Please try again in a while.`;
    return new ProviderError("provider_rate_limited", message, {
      cause,
      retryAfter: retryDelay(cause),
    });
  }
  return undefined;
}

/** Google names the wait in the body, as `RetryInfo`; a gateway before it may do so in the header. */
function retryDelay(cause: UpstreamRefusal | UpstreamFailure): number | undefined {
  const body = cause instanceof UpstreamRefusal ? cause.body : JSON.stringify(cause.body);
  const seconds = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1];
  if (seconds !== undefined) return Math.ceil(Number(seconds));
  return cause instanceof UpstreamRefusal ? readRetryAfter(cause.headers) : undefined;
}
