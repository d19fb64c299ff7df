import type { OpenAI } from "openai";
import type { ProviderError } from "../failures/provider-error.ts";
import type { OnAnswer } from "../provider.ts";
import { createClient, type StreamResponse, streamOf, type UpstreamAddress } from "./client.ts";
import { type StreamOptions, type StreamReader, streamEvents } from "./stream.ts";

/** What the package is told of one request, to be passed on to it as it is. */
export interface SendOptions {
  signal: AbortSignal;
  headers?: Record<string, string>;
}

/** A streamed request of the `openai` package. */
export interface UpstreamRequest {
  send(client: OpenAI, options: SendOptions): { asResponse(): Promise<Response> };
  /** Told that the upstream refused the request; `true` when `send` will now send another one. */
  adapt(failure: ProviderError): boolean;
  readonly onAnswer?: OnAnswer | undefined;
}

export interface UpstreamOptions extends UpstreamAddress, StreamOptions {}

/**
 * The one place where requests to OpenAI-compatible APIs are made. The package builds and sends the
 * request; time limits, retries and the reading of the stream are ours.
 */
export class Upstream {
  readonly label: string;
  readonly #options: UpstreamOptions;
  #client: Promise<OpenAI> | undefined;

  constructor(options: UpstreamOptions) {
    this.label = options.label;
    this.#options = options;
  }

  /** What the reader makes of the request's stream, as `streamEvents` yields it. */
  events<Event>(
    request: UpstreamRequest,
    reader: StreamReader<Event>,
    signal: AbortSignal,
  ): AsyncGenerator<Event[], void> {
    const stream = {
      send: (own: AbortSignal) => this.#send(request, own),
      adapt: (failure: ProviderError) => request.adapt(failure),
      onAnswer: request.onAnswer,
    };
    return streamEvents(stream, this.#options, reader, signal);
  }

  async #send(request: UpstreamRequest, signal: AbortSignal): Promise<StreamResponse> {
    this.#client ??= createClient(this.#options, this.#options.times.firstChunk);
    const client = await this.#client;
    const { apiKey } = this.#options;
    const headers =
      typeof apiKey === "function" ? { Authorization: `Bearer ${await apiKey()}` } : undefined;
    const options = { signal, ...(headers === undefined ? {} : { headers }) };
    return streamOf(request.send(client, options));
  }
}
