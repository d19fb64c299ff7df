import type { OpenAI } from "openai";
import { formOf, type RequestForm } from "./send-json.ts";

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
 * Has the `openai` package build a request to a path of the API, which then serves for all: building each anew costs
 * more than all else that a request takes. The package is loaded here, since a start must not wait for it.
 * Everything that it would otherwise read from the process's environment is set: keys and organizations
 * for OpenAI must not travel to another provider.
 */
export async function requestForm(address: UpstreamAddress, path: string): Promise<RequestForm> {
  const { OpenAI } = await import("openai");
  const client = createClient(OpenAI, address);
  const built = await client.buildRequest({ method: "post", path, body: {}, stream: true });
  return formOf(built, SENT_HEADERS);
}

function createClient(openai: typeof OpenAI, address: UpstreamAddress): OpenAI {
  const { apiKey } = address;
  return new openai({
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
  });
}

/** What the package itself sets. `OPENAI_CUSTOM_HEADERS` would add others to every provider's requests. */
const SENT_HEADERS =
  /^(?:accept|authorization|content-type|openai-organization|openai-project|user-agent|x-stainless-.*)$/;
