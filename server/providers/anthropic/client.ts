import type { Anthropic, ClientOptions } from "@anthropic-ai/sdk";
import { Late } from "../../node/late.ts";
import type { StreamAnswer } from "../upstream/exchange.ts";
import { formOf, type RequestForm, sendJson } from "../upstream/send-json.ts";

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

/** Requests to the Messages API. Anthropic's package builds one for each version of the API; sending them is ours. */
export class AnthropicClient {
  readonly #client: Anthropic;
  readonly #form = new Late(() => this.#build(VERSION));
  readonly #samplingForm = new Late(() => this.#build(SAMPLING_VERSION));

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
    });
  }

  /** Makes what most requests share. */
  async prepare(): Promise<void> {
    await this.#form.come();
  }

  /** Sends a streamed request. */
  async send(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<StreamAnswer> {
    const isSampling = SAMPLING_PARAMETERS.some((name) => name in body);
    const form = isSampling ? this.#samplingForm : this.#form;
    return sendJson(await form.part, body, signal);
  }

  async #build(version: string): Promise<RequestForm> {
    const headers = { "anthropic-version": version };
    const options = {
      method: "post",
      path: "/v1/messages",
      body: {},
      stream: true,
      headers,
    } as const;
    return formOf(await this.#client.buildRequest(options), SENT_HEADERS);
  }
}

/** What the package itself sets. `ANTHROPIC_CUSTOM_HEADERS` would add others. */
const SENT_HEADERS = /^(?:accept|anthropic-version|content-type|user-agent|x-api-key|x-stainless-.*)$/;
