import type { OpenAI } from "openai";
import { MAX_REFUSAL_BYTES, UpstreamRefusal } from "./refusal.ts";

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
    // "error" would lose the abort signal on Node 20 after a garbage collection; a 3xx is refused below.
    fetchOptions: { redirect: "manual" },
    fetch: fetchEventStream,
  });
}

/** What the package itself sets. `OPENAI_CUSTOM_HEADERS` would add others to every provider's requests. */
const SENT_HEADERS =
  /^(?:accept|authorization|content-type|openai-organization|openai-project|user-agent|x-stainless-.*)$/;

/** The `fetch` that the package is given. */
function fetchEventStream(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  return fetchStream(input, init, SENT_HEADERS);
}

/**
 * A `fetch` for packages that sends only the named headers, and refuses whatever is no event stream: the
 * packages would read an error's body without a bound and keep only a part of it, and would take an HTML
 * page for an empty stream.
 */
export async function fetchStream(
  input: string | URL | Request,
  init: RequestInit | undefined,
  sentHeaders: RegExp,
): Promise<Response> {
  const headers = new Headers(init?.headers);
  for (const name of [...headers.keys()]) if (!sentHeaders.test(name)) headers.delete(name);
  const response = await fetch(input, { ...init, headers });
  const type = response.headers.get("content-type") ?? "";
  if (response.ok && /^text\/event-stream\b/i.test(type)) return response;
  throw new UpstreamRefusal(response.status, response.headers, await readStart(response));
}

/** The first bytes of a body; the rest is not read, and its connection is closed. */
async function readStart(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let start = "";
  let bytes = 0;
  while (bytes < MAX_REFUSAL_BYTES) {
    const { value, done } = await reader.read();
    if (done) return start + decoder.decode();
    bytes += value.byteLength;
    start += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return start;
}
