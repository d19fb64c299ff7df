import type { IncomingMessage } from "node:http";
import type { OnAnswer } from "../provider.ts";
import { UpstreamRefusal } from "./refusal.ts";

/** Where providers name a request: OpenAI and LiteLLM, Anthropic, AWS, Azure. */
const HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

/** Headers of an answer, or of a refusal. */
type NamingHeaders = Headers | IncomingMessage["headers"];

/** Longest name that is believed to be one. */
const MAX_CHARS = 200;

/** Sends a request, and tells how its answer or refusal is named. */
export async function telling<Answer extends { incoming: IncomingMessage }>(
  onAnswer: OnAnswer | undefined,
  send: () => Promise<Answer>,
): Promise<Answer> {
  try {
    const answer = await send();
    tell(onAnswer, answer.incoming.headers);
    return answer;
  } catch (error) {
    const refusal = error instanceof Error && error.cause instanceof UpstreamRefusal ? error.cause : error;
    if (refusal instanceof UpstreamRefusal) tell(onAnswer, refusal.headers);
    throw error;
  }
}

/** Tells the name of a request that stands in these headers, if it does. */
export function tell(onAnswer: OnAnswer | undefined, headers: NamingHeaders): void {
  const name = requestNameIn(headers);
  if (name !== undefined) onAnswer?.(name);
}

/** How the provider has named the request that these headers answer. */
export function requestNameIn(headers: NamingHeaders): string | undefined {
  for (const header of HEADERS) {
    const name = headers instanceof Headers ? headers.get(header) : headers[header];
    if (typeof name !== "string") continue;
    return name.length <= MAX_CHARS && /^[\x21-\x7e]+$/.test(name) ? name : undefined;
  }
  return undefined;
}
