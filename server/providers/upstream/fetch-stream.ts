import type { IncomingMessage } from "node:http";
import { exchange, headersOf, streamAnswer } from "./exchange.ts";

/** What a package passes on from its `fetch`: the head of an answer, and where the stream is to be read. */
export type StreamResponse = Response & { readonly incoming: IncomingMessage };

/** Not a class: to extend `Response` is to load Node's `fetch` with the start of every server. */
function streamResponse(incoming: IncomingMessage): StreamResponse {
  return Object.assign(new Response(null, { headers: headersOf(incoming) }), { incoming });
}

/**
 * A `fetch` for packages that sends only the headers whose names match, and refuses whatever is no event
 * stream: the packages would read an error's body without a bound and keep only a part of it, and would take
 * an HTML page for an empty stream.
 */
export async function fetchStream(
  input: string | URL | Request,
  { method = "POST", headers: given, body, signal }: RequestInit = {},
  sentHeaders: RegExp,
): Promise<StreamResponse> {
  if (typeof body !== "string" || !signal) throw new TypeError("not a request of a model's API");
  const request = { method, headers: keptHeaders(new Headers(given), sentHeaders), body };
  const url = new URL(input instanceof Request ? input.url : input);
  return streamResponse(await streamAnswer(exchange(url, request, signal)));
}

/** The headers whose names match. */
export function keptHeaders(headers: Headers, names: RegExp): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => names.test(name)));
}

/** What a package's request came to. Rejects with what `fetchStream` threw, which the packages wrap. */
export async function streamOf(sent: { asResponse(): Promise<Response> }): Promise<StreamResponse> {
  try {
    const response = await sent.asResponse();
    if ("incoming" in response) return response as StreamResponse;
    throw new TypeError("the package did not pass its answer on");
  } catch (error) {
    throw error instanceof Error && error.cause instanceof Error ? error.cause : error;
  }
}
