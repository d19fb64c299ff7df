/**
 * Runs over `POST /api/chat` with Server-Sent Events, for networks that block WebSocket. A chunk: it is loaded where
 * no socket can be opened.
 */

import { ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import { SseDecoder } from "../../server/protocol/sse.ts";
import type { HttpRequests } from "../transport/http-requests.ts";
import type { ChatTransport, ChatTurn, RunEvent, RunPosition } from "../transport/transport.ts";

export class HttpTransport implements ChatTransport {
  readonly #http: HttpRequests;
  #request: AbortController | undefined;
  #run: string | undefined;
  /** Whether a message leaves: a browser tells when an answer begins, and nothing of the request before. */
  #isSending = false;

  /** `http` is of the script that loads this chunk: it brings nothing that is there already. */
  constructor(http: HttpRequests) {
    this.#http = http;
  }

  get unsent(): number {
    return this.#isSending ? Infinity : 0;
  }

  run(turn: ChatTurn, signal: AbortSignal): AsyncGenerator<RunEvent> {
    const body = JSON.stringify({ ...turn, stream: true });
    return this.#read(turn.run, signal, "api/chat", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
  }

  resume({ run, after }: RunPosition, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#read(run, signal, `api/chat/runs/${run}`, {
      headers: { "last-event-id": String(after) },
    });
  }

  async clear(): Promise<void> {
    const run = this.#run;
    this.close();
    if (run !== undefined) await this.#http.cancel(run);
  }

  async check(): Promise<undefined> {
    return undefined;
  }

  close(): void {
    this.#request?.abort();
  }

  async *#read(run: string, stopped: AbortSignal, path: string, init: RequestInit): AsyncGenerator<RunEvent> {
    if (stopped.aborted) return;
    const request = new AbortController();
    const { signal } = request;
    let deadline: ReturnType<typeof setTimeout> | undefined;
    const stop = () => {
      if (signal.aborted) return;
      const hangUp = () => request.abort();
      deadline = setTimeout(hangUp, this.#http.answerWithin);
      // A run that was not known yet has answered nothing so far.
      void this.#http.cancel(run).then((heard) => heard || hangUp());
    };
    stopped.addEventListener("abort", stop, { once: true });
    this.#request = request;
    this.#run = run;
    this.#isSending = init.body !== undefined;
    try {
      const response = await this.#http.fetch(path, { ...init, signal });
      this.#isSending = false;
      if (response.ok && response.body) yield* this.#events(response.body, request);
      else yield await this.#refusal(response);
    } finally {
      this.#isSending = false;
      clearTimeout(deadline);
      stopped.removeEventListener("abort", stop);
      request.abort();
      if (this.#request === request) this.#run = undefined;
    }
  }

  /** Turns an HTTP error into the event that a stream would have carried. */
  async #refusal(response: Response): Promise<RunEvent> {
    const body = await response.json().catch(() => undefined);
    const { code: given, message = this.#http.serverError } = body?.error ?? {};
    const code: ErrorCode = Object.hasOwn(ERRORS, given) ? given : "internal";
    return { type: "error", data: String(message), code, retryable: ERRORS[code].retryable };
  }

  async *#events(body: ReadableStream<Uint8Array>, request: AbortController): AsyncGenerator<RunEvent> {
    const decoder = new SseDecoder();
    const text = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const silence = setTimeout(() => request.abort(), this.#http.silence);
      const { done, value } = await reader
        .read()
        .catch((cause: unknown) => {
          throw this.#http.lost(cause);
        })
        .finally(() => clearTimeout(silence));
      if (done) throw this.#http.lost();
      for (const { data } of decoder.feed(text.decode(value, { stream: true }))) {
        const event = this.#http.parse(data);
        if (event === undefined || event.type === "cleared") continue;
        yield event;
        if (event.type === "done" || event.type === "error") return;
      }
    }
  }
}
