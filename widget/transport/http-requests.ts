/** Requests to the server's HTTP API, and what it answers when it refuses. */

import { strings } from "../strings.ts";
import { parseEvent } from "./parse-event.ts";
import { ANSWER_WITHIN_MS, type Endpoint, SILENCE_MS, TransportError } from "./transport.ts";

export class HttpRequests {
  readonly #endpoint: Endpoint;
  readonly answerWithin = ANSWER_WITHIN_MS;
  readonly silence = SILENCE_MS;
  readonly parse = parseEvent;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** Rejects with `unreachable` when no answer came. */
  async fetch(path: string, init: RequestInit): Promise<Response> {
    const key = this.#endpoint.key();
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const headers = { ...init.headers, ...authorization };
    const url = new URL(path, this.#endpoint.server);
    try {
      const response = await fetch(url, { ...init, headers, credentials: "omit" });
      this.#endpoint.onOpen?.();
      return response;
    } catch (cause) {
      throw new TransportError("unreachable", { cause });
    }
  }

  /** Ends a run. Tries once, and says whether the server has heard. */
  cancel(run: string): Promise<boolean> {
    // `keepalive`: it goes out although the page may be closing.
    return this.fetch(`api/chat/runs/${run}/cancel`, { method: "POST", keepalive: true }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  lost(cause?: unknown): TransportError {
    return new TransportError("connection_lost", { cause });
  }

  /** What to say of an answer that cannot be read. */
  get serverError(): string {
    return strings.serverError;
  }
}
