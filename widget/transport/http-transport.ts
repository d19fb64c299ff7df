/** Runs over `POST /api/chat` with Server-Sent Events, for networks that block WebSocket. */

import { ERRORS } from "../../server/protocol/errors.ts";
import type { ErrorEvent, StreamEvent } from "../../server/protocol/events.ts";
import { SseDecoder } from "../../server/protocol/sse.ts";
import { strings } from "../strings.ts";
import { errorCode, isObject, parseEvent } from "./parse-event.ts";
import {
  type ChatTransport,
  type ChatTurn,
  type Endpoint,
  isTerminal,
  TransportError,
} from "./transport.ts";

export class HttpTransport implements ChatTransport {
  readonly #endpoint: Endpoint;
  #request: AbortController | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  async *run(turn: ChatTurn, signal: AbortSignal): AsyncGenerator<StreamEvent> {
    const request = new AbortController();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop, { once: true });
    this.#request = request;
    try {
      const response = await this.#post(turn, request.signal);
      if (response.ok && response.body) yield* readEvents(response.body);
      else yield await readRefusal(response);
    } catch (error) {
      // Hanging up is how a client stops over HTTP; what was said stays with the reader.
      if (!request.signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      request.abort();
    }
  }

  async clear(): Promise<void> {
    this.#request?.abort();
  }

  async check(): Promise<undefined> {
    return undefined;
  }

  close(): void {
    this.#request?.abort();
  }

  async #post(turn: ChatTurn, signal: AbortSignal): Promise<Response> {
    const key = this.#endpoint.key();
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const { message, state, attachments } = turn;
    try {
      return await fetch(new URL("api/chat", this.#endpoint.server), {
        method: "POST",
        headers: { "content-type": "application/json", ...authorization },
        body: JSON.stringify({ message, stream: true, state, attachments }),
        credentials: "omit",
        signal,
      });
    } catch (cause) {
      throw new TransportError("unreachable", { cause });
    }
  }
}

async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new SseDecoder();
  const text = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw new TransportError("connection_lost", { cause });
    });
    if (done) throw new TransportError("connection_lost");
    for (const { data } of decoder.feed(text.decode(value, { stream: true }))) {
      const event = parseEvent(data);
      if (event === undefined || event.type === "cleared") continue;
      yield event;
      if (isTerminal(event)) return;
    }
  }
}

/** Turns an HTTP error into the event that a stream would have carried. */
async function readRefusal(response: Response): Promise<ErrorEvent> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = isObject(body) ? body.error : undefined;
  const fields = isObject(error) ? error : {};
  const code = errorCode(fields.code);
  const message = fields.message;
  return {
    type: "error",
    data: typeof message === "string" ? message : strings.serverError,
    code,
    retryable: ERRORS[code].retryable,
  };
}
