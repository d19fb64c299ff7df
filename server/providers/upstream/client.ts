import type { IncomingMessage } from "node:http";
import type { OpenAI } from "openai";
import { exchange, headersOf, isStream, refusalOf } from "./exchange.ts";

/** Where an OpenAI-compatible API is, and who asks. */
export interface UpstreamAddress {
  /** As the `openai` package takes it: mostly ends in `/v1`. */
  baseUrl: string;
  /** No `Authorization` header is sent without one. A function is asked before each request. */
  apiKey: string | (() => Promise<string>) | undefined;
  organization?: string | undefined;
  project?: string | undefined;
}

/**
 * Makes a client of the `openai` package. The package is loaded here, with the first request: it is by
 * far the largest part of the server, and the start of a server must not wait for it.
 * Everything that it would otherwise read from the process's environment is set: keys and organizations
 * for OpenAI must not travel to another provider.
 */
export async function createClient(address: UpstreamAddress, timeoutMs: number): Promise<OpenAI> {
  const { OpenAI } = await import("openai");
  const { apiKey } = address;
  return new OpenAI({
    baseURL: address.baseUrl,
    // The package demands a key; the header that carries it is set below.
    apiKey: typeof apiKey === "string" ? apiKey : "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    // Here, and not in the fields above, because `OPENAI_CUSTOM_HEADERS` would win over those.
    defaultHeaders: {
      Authorization: typeof apiKey === "string" ? `Bearer ${apiKey}` : null,
      "OpenAI-Organization": address.organization ?? null,
      "OpenAI-Project": address.project ?? null,
    },
    webhookSecret: null,
    logLevel: "off",
    maxRetries: 0,
    timeout: Math.max(1, Math.ceil(timeoutMs)),
    fetch: (input, init) => fetchStream(input, init, SENT_HEADERS),
  });
}

/** What the package itself sets. `OPENAI_CUSTOM_HEADERS` would add others to every provider's requests. */
const SENT_HEADERS =
  /^(?:accept|authorization|content-type|openai-organization|openai-project|user-agent|x-stainless-.*)$/;

/** What a package passes on from its `fetch`: the head of an answer, and where the stream is to be read. */
export class StreamResponse extends Response {
  readonly incoming: IncomingMessage;

  constructor(incoming: IncomingMessage) {
    super(null, { headers: headersOf(incoming) });
    this.incoming = incoming;
  }
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
  const named = [...new Headers(given)].filter(([name]) => sentHeaders.test(name));
  const request = { method, headers: Object.fromEntries(named), body };
  const url = new URL(input instanceof Request ? input.url : input);
  const answer = await exchange(url, request, signal);
  if (isStream(answer, "text/event-stream")) return new StreamResponse(answer);
  throw await refusalOf(answer);
}

/** What a package's request came to. Rejects with what `fetchStream` threw, which the packages wrap. */
export async function streamOf(sent: { asResponse(): Promise<Response> }): Promise<StreamResponse> {
  try {
    const response = await sent.asResponse();
    if (response instanceof StreamResponse) return response;
    throw new TypeError("the package did not pass its answer on");
  } catch (error) {
    throw error instanceof Error && error.cause instanceof Error ? error.cause : error;
  }
}
