import type { OpenAI } from "openai";
import type { SseMessage } from "../protocol/sse.ts";
import { toProviderError, UpstreamGarbage } from "./failures.ts";
import { isRecord } from "./json.ts";
import type { ProviderTimes } from "./provider.ts";
import type { ProviderError } from "./provider-error.ts";
import { type RetryClock, realRetryClock, retryDelay } from "./retry.ts";
import { createClient, type UpstreamAddress } from "./upstream-client.ts";
import { UpstreamConnection } from "./upstream-connection.ts";
import { UpstreamFailure } from "./upstream-refusal.ts";

/** A streamed request of the `openai` package. */
export interface UpstreamRequest {
  send(client: OpenAI, options: { signal: AbortSignal }): { asResponse(): Promise<Response> };
  /** Told that the upstream refused the request; `true` when `send` will now send another one. */
  adapt(failure: ProviderError): boolean;
}

export interface UpstreamOptions extends UpstreamAddress {
  /** The provider's name in sentences. */
  label: string;
  times: ProviderTimes;
  clock?: RetryClock;
}

/**
 * The one place where requests to OpenAI-compatible APIs are made. The package builds and sends the
 * request; time limits, retries and the reading of the stream are ours.
 */
export class Upstream {
  readonly label: string;
  readonly #options: UpstreamOptions;
  readonly #clock: RetryClock;
  #client: Promise<OpenAI> | undefined;

  constructor(options: UpstreamOptions) {
    this.label = options.label;
    this.#options = options;
    this.#clock = options.clock ?? realRetryClock;
  }

  /**
   * Sends the request and yields the events of its stream, those of one chunk at a time: a generator
   * that yielded each alone would cost more than reading them. Throws `ProviderError`, or the signal's
   * reason. Leaving the iteration closes the connection.
   */
  async *messages(
    request: UpstreamRequest,
    signal: AbortSignal,
  ): AsyncGenerator<SseMessage[], void> {
    const { connection, first } = await this.#open(request, signal);
    try {
      let messages = first;
      while (messages !== undefined) {
        yield messages;
        messages = await connection.read();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw toProviderError(this.label, error, true);
    } finally {
      connection.close();
    }
  }

  /** Tries until a first event is there: up to then another try cannot be noticed. */
  async #open(request: UpstreamRequest, signal: AbortSignal) {
    const deadline = performance.now() + this.#options.times.firstChunk;
    for (let tried = 1; ; tried++) {
      signal.throwIfAborted();
      const connection = new UpstreamConnection(this.#options.times, deadline, signal);
      try {
        await connection.start((own) => this.#send(request, own));
        return { connection, first: await connection.read() };
      } catch (error) {
        connection.close();
        signal.throwIfAborted();
        const failure = toProviderError(this.label, error);
        if (request.adapt(failure)) continue;
        const delay = retryDelay(failure, tried, this.#clock.random);
        if (delay === undefined || performance.now() + delay >= deadline) throw failure;
        await this.#clock.wait(delay, signal);
      }
    }
  }

  async #send(request: UpstreamRequest, signal: AbortSignal): Promise<Response> {
    this.#client ??= createClient(this.#options, this.#options.times.firstChunk);
    const client = await this.#client;
    try {
      return await request.send(client, { signal }).asResponse();
    } catch (error) {
      // The package wraps what its `fetch` throws; what we threw there tells more.
      throw error instanceof Error && error.cause instanceof Error ? error.cause : error;
    }
  }
}

/**
 * The JSON object that an event carries; `undefined` for `[DONE]`. Throws `ProviderError` for an error
 * object, which both APIs may send in the middle of a stream, and for what is no JSON object.
 */
export function readMessage(
  { event, data }: SseMessage,
  label: string,
): Record<string, unknown> | undefined {
  if (data === "[DONE]") return undefined;
  const json = parse(data, label);
  const isError =
    (json.error !== undefined && json.error !== null) ||
    event === "error" ||
    json.type === "error" ||
    json.object === "error";
  if (isError) throw toProviderError(label, new UpstreamFailure(json));
  return json;
}

function parse(data: string, label: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(data);
  } catch (cause) {
    throw toProviderError(label, new UpstreamGarbage("an event is not JSON", { cause }));
  }
  if (!isRecord(json)) {
    throw toProviderError(label, new UpstreamGarbage("an event is not a JSON object"));
  }
  return json;
}
