import type { OnAnswer } from "../provider.ts";
import { UpstreamRefusal } from "./refusal.ts";

/** Where providers name a request: OpenAI and LiteLLM, Anthropic, AWS, Azure. */
const HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

/** Longest name that is believed to be one. */
const MAX_CHARS = 200;

/** Sends a request, and tells how its answer or refusal is named. */
export async function telling<Answer extends { headers: Headers }>(
  onAnswer: OnAnswer | undefined,
  send: () => Promise<Answer>,
): Promise<Answer> {
  try {
    const answer = await send();
    tell(onAnswer, answer.headers);
    return answer;
  } catch (error) {
    const refusal =
      error instanceof Error && error.cause instanceof UpstreamRefusal ? error.cause : error;
    if (refusal instanceof UpstreamRefusal) tell(onAnswer, refusal.headers);
    throw error;
  }
}

/** Tells the name of a request that stands in these headers, if it does. */
export function tell(onAnswer: OnAnswer | undefined, headers: Headers): void {
  const name = requestNameIn(headers);
  if (name !== undefined) onAnswer?.(name);
}

/** How the provider has named the request that these headers answer. */
export function requestNameIn(headers: Headers): string | undefined {
  const name = HEADERS.map((header) => headers.get(header)).find((value) => value !== null);
  return name && name.length <= MAX_CHARS && /^[\x21-\x7e]+$/.test(name) ? name : undefined;
}
