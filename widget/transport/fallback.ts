/** WebSocket where it works, HTTP where something between browser and server blocks it. */

import type { ErrorEvent } from "../../server/protocol/events.ts";
import { HttpTransport } from "./http.ts";
import { type Endpoint, type RunEvent, type RunRequest, type Transport, TransportError } from "./transport.ts";
import { WebSocketTransport } from "./websocket.ts";

/** One bad minute of a deployment must not mean HTTP for the rest of the day. */
const PROBE_EVERY_MS = 5 * 60_000;

export class FallbackTransport implements Transport {
  readonly #socket: WebSocketTransport;
  readonly #http: HttpTransport;
  #isSocketBlocked = false;
  #probeAt = 0;

  constructor(endpoint: Endpoint) {
    this.#socket = new WebSocketTransport(endpoint);
    this.#http = new HttpTransport(endpoint);
  }

  run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    return this.#overEither((transport) => transport.run(request, onEvent, signal));
  }

  async clear(): Promise<void> {
    await Promise.all([this.#socket.clear(), this.#http.clear()]);
  }

  cancel(run: string): Promise<boolean> {
    return this.#http.cancel(run);
  }

  check(): Promise<ErrorEvent | undefined> {
    return this.#overEither((transport) => transport.check());
  }

  /** As `check`, over a socket alone: its answers can be read where the browser keeps others from the page. */
  checkSocket(): Promise<ErrorEvent | undefined> {
    return this.#socket.check();
  }

  close(): void {
    this.#socket.close();
    this.#http.close();
  }

  /** An `unreachable` socket has sent nothing, so nothing is sent twice. A server that is down answers neither. */
  async #overEither<Result>(start: (transport: Pick<Transport, "run" | "check">) => Promise<Result>): Promise<Result> {
    if (this.#isSocketBlocked) {
      this.#probe();
      return start(this.#http);
    }
    try {
      return await start(this.#socket);
    } catch (error) {
      if (!isUnreachable(error)) throw error;
    }
    this.#isSocketBlocked = true;
    this.#probeAt = Date.now() + PROBE_EVERY_MS;
    try {
      return await start(this.#http);
    } catch (error) {
      if (isUnreachable(error)) this.#isSocketBlocked = false;
      throw error;
    }
  }

  /** Tries the socket now and then while messages go over HTTP, so that none of them waits for it. */
  #probe(): void {
    if (Date.now() < this.#probeAt) return;
    this.#probeAt = Date.now() + PROBE_EVERY_MS;
    this.#socket.connect().then(
      () => {
        this.#isSocketBlocked = false;
      },
      () => undefined,
    );
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof TransportError && error.code === "unreachable";
}
