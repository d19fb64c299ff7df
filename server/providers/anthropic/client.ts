import type { Anthropic, ClientOptions } from "@anthropic-ai/sdk";
import { fetchStream, type StreamResponse, streamOf } from "../upstream/fetch-stream.ts";

/** The class of `@anthropic-ai/sdk` that makes clients. */
export type AnthropicClass = new (options: ClientOptions) => Anthropic;

export interface AnthropicAddress {
  /** As the package takes it: without `/v1`. */
  baseUrl: string;
  apiKey: string;
}

/** The version of the API in which models up to 4.6 still take `temperature`, `top_p` and `top_k`. */
const SAMPLING_VERSION = "2023-06-01";
const VERSION = "2026-10-21";
const SAMPLING_PARAMETERS = ["temperature", "top_p", "top_k"];

/** Requests to the Messages API, made by Anthropic's package. */
export class AnthropicClient {
  readonly #client: Anthropic;

  /** Everything that the package would otherwise read from the process's environment is set. */
  constructor(client: AnthropicClass, { baseUrl, apiKey }: AnthropicAddress, timeoutMs: number) {
    this.#client = new client({
      baseURL: baseUrl,
      apiKey,
      authToken: null,
      webhookKey: null,
      // The package sends the key as a bearer token; gateways, and older ones all, look for this header.
      defaultHeaders: { Authorization: null, "X-Api-Key": apiKey },
      openTelemetry: false,
      logLevel: "off",
      maxRetries: 0,
      timeout: Math.max(1, Math.ceil(timeoutMs)),
      fetch: (input, init) => fetchStream(input, init, SENT_HEADERS),
    });
  }

  /**
   * Sends a streamed request. Not through `messages.create`, which prints a warning with each request to a
   * model that Anthropic is going to retire.
   */
  async send(
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<StreamResponse> {
    const isSampling = SAMPLING_PARAMETERS.some((name) => name in body);
    const headers = { "anthropic-version": isSampling ? SAMPLING_VERSION : VERSION };
    const options = { body, headers, signal, stream: true };
    return streamOf(this.#client.post("/v1/messages", options));
  }
}

/** What the package itself sets. `ANTHROPIC_CUSTOM_HEADERS` would add others. */
const SENT_HEADERS =
  /^(?:accept|anthropic-version|content-type|user-agent|x-api-key|x-stainless-.*)$/;
