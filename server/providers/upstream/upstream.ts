import type { OpenAI } from "openai";
import type { SseMessage } from "../../protocol/sse.ts";
import { toProviderError, UpstreamGarbage } from "../failures/failures.ts";
import type { ProviderError } from "../failures/provider-error.ts";
import { isRecord } from "../json.ts";
import { createClient, type StreamResponse, streamOf, type UpstreamAddress } from "./client.ts";
import { UpstreamFailure } from "./refusal.ts";
import { type ExplainFailure, type StreamOptions, streamMessages } from "./stream.ts";

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

  /** The events of the request's stream, as `streamMessages` yields them. */
  messages(request: UpstreamRequest, signal: AbortSignal): AsyncGenerator<SseMessage[], void> {
    const stream = {
      send: (own: AbortSignal) => this.#send(request, own),
      adapt: (failure: ProviderError) => request.adapt(failure),
    };
    return streamMessages(stream, this.#options, signal);
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

/**
 * The JSON object that an event carries; `undefined` for `[DONE]`. Throws `ProviderError` for an error
 * object, which both APIs may send in the middle of a stream, and for what is no JSON object.
 */
export function readMessage(
  { event, data }: SseMessage,
  label: string,
  explain?: ExplainFailure,
): Record<string, unknown> | undefined {
  if (data === "[DONE]") return undefined;
  const json = parse(data, label);
  const isError =
    (json.error !== undefined && json.error !== null) ||
    event === "error" ||
    json.type === "error" ||
    json.object === "error";
  if (isError) {
    const failure = new UpstreamFailure(json);
    throw explain?.(failure) ?? toProviderError(label, failure);
  }
  return json;
}

function parse(data: string, label: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(data);
  } catch (cause) {
    throw toProviderError(label, new UpstreamGarbage("an event is not JSON", { cause }));
  }
  // Google wraps its errors in a list.
  const event: unknown = Array.isArray(json) && json.length === 1 ? json[0] : json;
  if (!isRecord(event)) {
    throw toProviderError(label, new UpstreamGarbage("an event is not a JSON object"));
  }
  return event;
}
