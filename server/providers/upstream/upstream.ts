import { Late } from "../../node/late.ts";
import type { ProviderError } from "../failures/provider-error.ts";
import type { OnAnswer, Tell } from "../provider.ts";
import { requestForm, type UpstreamAddress } from "./client.ts";
import type { StreamAnswer } from "./exchange.ts";
import { type RequestForm, sendJson } from "./send-json.ts";
import { type StreamOptions, type StreamReader, streamEvents } from "./stream.ts";

/** A streamed request of an OpenAI-compatible API. */
export interface UpstreamRequest {
  /** As it is sent now. */
  body(): Readonly<Record<string, unknown>>;
  /** Told that the upstream refused the request; `true` when `body` is another one now. */
  adapt(failure: ProviderError): boolean;
  readonly onAnswer?: OnAnswer | undefined;
}

export interface UpstreamOptions extends UpstreamAddress, StreamOptions {}

/** Where streams are asked for, behind the base URL. */
export type UpstreamPath = "/chat/completions" | "/responses";

/**
 * The one place where requests to OpenAI-compatible APIs are made. The `openai` package says what a request is like;
 * sending it, time limits, retries and the reading of the stream are ours.
 */
export class Upstream {
  readonly label: string;
  readonly #options: UpstreamOptions;
  readonly #form: Late<RequestForm>;

  constructor(path: UpstreamPath, options: UpstreamOptions) {
    this.label = options.label;
    this.#options = options;
    this.#form = new Late(() => requestForm(options, path));
  }

  /** Makes what all requests share. */
  async prepare(): Promise<void> {
    await this.#form.come();
  }

  /** Tells what the reader makes of the request's stream, as `streamEvents` does. */
  events<Event>(
    request: UpstreamRequest,
    reader: StreamReader<Event>,
    signal: AbortSignal,
    tell: Tell<Event>,
  ): Promise<void> {
    const stream = {
      send: (own: AbortSignal) => this.#send(request, own),
      adapt: (failure: ProviderError) => request.adapt(failure),
      onAnswer: request.onAnswer,
    };
    return streamEvents(stream, this.#options, reader, signal, tell);
  }

  async #send(request: UpstreamRequest, signal: AbortSignal): Promise<StreamAnswer> {
    const { to, headers } = await this.#form.part;
    const { apiKey } = this.#options;
    const authorized =
      typeof apiKey === "function" ? { ...headers, authorization: `Bearer ${await apiKey()}` } : headers;
    return sendJson({ to, headers: authorized }, request.body(), signal);
  }
}
