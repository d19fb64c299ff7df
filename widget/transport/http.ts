/** Runs over `POST /api/chat` with Server-Sent Events, for networks that block WebSocket. Loaded where one does. */

import { type ErrorEvent, isTerminal } from "../../server/protocol/events.ts";
import { toJson } from "../../server/protocol/json.ts";
import { SseDecoder } from "../../server/protocol/sse.ts";
import { cancelRun, fetchFrom } from "./fetch.ts";
import { errorCodeOf, parseEvent, retryAfter } from "./parse-event.ts";
import {
  ANSWER_WITHIN_MS,
  type Endpoint,
  isResume,
  type RunEvent,
  type RunRequest,
  SILENCE_MS,
  type Transport,
  TransportError,
} from "./transport.ts";

export class HttpTransport implements Transport {
  readonly #endpoint: Endpoint;
  /** The connection of the current run. */
  #connection: AbortController | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  async run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const connection = new AbortController();
    this.#connection = connection;
    let deadline: ReturnType<typeof setTimeout> | undefined;
    const askToStop = () => {
      const abort = () => connection.abort();
      deadline = setTimeout(abort, ANSWER_WITHIN_MS);
      // If the server does not know the run, it has sent no event so far.
      void this.cancel(request.run).then((isReceived) => isReceived || abort());
    };
    signal.addEventListener("abort", askToStop, { signal: connection.signal });
    try {
      const response = await this.#open(request, connection.signal);
      if (isEventStream(response) && response.body) await this.#read(response.body, onEvent, connection);
      else onEvent(await refusalOf(response));
    } finally {
      clearTimeout(deadline);
      connection.abort();
    }
  }

  cancel(run: string): Promise<boolean> {
    return cancelRun(this.#endpoint, run);
  }

  close(): void {
    this.#connection?.abort();
  }

  #open(request: RunRequest, signal: AbortSignal): Promise<Response> {
    if (isResume(request)) {
      const headers = { "last-event-id": String(request.after) };
      return fetchFrom(this.#endpoint, `api/chat/runs/${request.run}`, { headers, signal });
    }
    const headers = { "content-type": "application/json" };
    const body = toJson({ ...request, stream: true });
    return fetchFrom(this.#endpoint, "api/chat", { method: "POST", headers, body, signal });
  }

  async #read(
    body: ReadableStream<Uint8Array>,
    onEvent: (event: RunEvent) => void,
    controller: AbortController,
  ): Promise<void> {
    const reader = body.getReader();
    const decoder = new SseDecoder();
    const text = new TextDecoder();
    for (;;) {
      const silence = setTimeout(() => controller.abort(), SILENCE_MS);
      const { done, value } = await reader
        .read()
        .catch((cause: unknown) => {
          throw new TransportError("connection_lost", { cause });
        })
        .finally(() => clearTimeout(silence));
      if (done) throw new TransportError("connection_lost");
      for (const { data } of decoder.feed(text.decode(value, { stream: true }))) {
        const event = parseEvent(data);
        if (event === undefined || event.type === "cleared") continue;
        onEvent(event);
        if (isTerminal(event)) return;
      }
    }
  }
}

function isEventStream({ ok, headers }: Response): boolean {
  return ok && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** An HTTP error as the event that a stream would have carried. @throws TransportError if it is no error of Parley */
export async function refusalOf(response: Response): Promise<ErrorEvent> {
  const body = await response.json().catch(() => undefined);
  if (!body?.error && response.status < 500) throw new TransportError("unreadable");
  const { code, message = "", retryable = response.status >= 500 } = body?.error ?? {};
  return {
    type: "error",
    data: String(message),
    code: errorCodeOf(code),
    retryable: retryable === true,
    ...retryAfter(response.headers.get("retry-after")),
  };
}
