/** WebSocket where it works, HTTP where something between browser and server blocks it. */

import { cancelRun } from "./fetch.ts";
import type { HttpTransport } from "./http.ts";
import { type Endpoint, type RunEvent, type RunRequest, type Transport, TransportError } from "./transport.ts";
import { WebSocketTransport } from "./websocket.ts";

/** A proxy that swallows the upgrade never answers. Nothing was sent so far: HTTP is used, the socket keeps trying. */
const HTTP_AFTER_MS = 1_500;

/** A socket that takes longer than most to open may be blocked: the code for HTTP is loaded in the meantime. */
const LOAD_HTTP_AFTER_MS = 300;

/** One bad minute of a deployment must not mean HTTP for the rest of the day. */
const PROBE_EVERY_MS = 5 * 60_000;

export class FallbackTransport implements Transport {
  readonly #socket: WebSocketTransport;
  readonly #loadHttp: () => Promise<typeof HttpTransport>;
  #http: HttpTransport | undefined;
  readonly #endpoint: Endpoint;
  #isSocketBlocked: boolean;
  #probeAt = 0;
  /** Ends the waiting for the socket. */
  #closing = new AbortController();

  constructor(endpoint: Endpoint, loadHttp: () => Promise<typeof HttpTransport>) {
    this.#loadHttp = loadHttp;
    this.#endpoint = endpoint;
    this.#isSocketBlocked = endpoint.isSocketBlocked?.() ?? false;
    this.#socket = new WebSocketTransport(endpoint);
  }

  /** Opens the connection before it is needed. */
  prepare(): void {
    (this.#isSocketBlocked ? this.#overHttp() : this.#dial()).catch(() => undefined);
  }

  cancel(run: string): Promise<boolean> {
    return cancelRun(this.#endpoint, run);
  }

  close(): void {
    this.#closing.abort();
    this.#closing = new AbortController();
    this.#socket.close();
    this.#http?.close();
  }

  /** A socket that is not open has sent nothing, so nothing is sent twice. A server that is down answers neither. */
  async run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    const { signal: closed } = this.#closing;
    if (this.#isSocketBlocked) this.#probe();
    else {
      if (await this.#opensInTime(signal)) return this.#socket.run(request, onEvent, signal);
      this.#probeAt = Date.now() + PROBE_EVERY_MS;
      this.#setSocketBlocked(true);
    }
    try {
      const http = await this.#overHttp();
      if (closed.aborted || signal.aborted) throw new TransportError("unreachable");
      await http.run(request, onEvent, signal);
    } catch (error) {
      if (error instanceof TransportError && error.code === "unreachable") this.#setSocketBlocked(false);
      throw error;
    }
  }

  /** Rejects with `unreachable` when the transport is closed, or the signal aborts, before the result is known. */
  async #opensInTime(signal: AbortSignal): Promise<boolean> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const opened = this.#dial().then(
      () => true,
      () => false,
    );
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, HTTP_AFTER_MS - this.#socket.openingForMs, false);
    });
    const end = new Promise<boolean>((_, reject) => {
      const leave = () => reject(new TransportError("unreachable"));
      if (ended.aborted) leave();
      else ended.addEventListener("abort", leave);
    });
    return Promise.race([opened, late, end]).finally(() => clearTimeout(timer));
  }

  /** Resolves when the socket is open, and so not blocked. */
  async #dial(): Promise<void> {
    const prepareHttp = () => void this.#overHttp().catch(() => undefined);
    const timer = setTimeout(prepareHttp, LOAD_HTTP_AFTER_MS);
    try {
      await this.#socket.connect();
      this.#setSocketBlocked(false);
    } catch (error) {
      prepareHttp();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #overHttp(): Promise<HttpTransport> {
    const Http = await this.#loadHttp().catch((cause: unknown) => {
      throw new TransportError("unreachable", { cause });
    });
    this.#http ??= new Http(this.#endpoint);
    return this.#http;
  }

  /** Tries the socket now and then while messages go over HTTP, so that none of them waits for it. */
  #probe(): void {
    if (Date.now() < this.#probeAt) return;
    this.#probeAt = Date.now() + PROBE_EVERY_MS;
    this.#dial().catch(() => undefined);
  }

  #setSocketBlocked(isBlocked: boolean): void {
    if (isBlocked === this.#isSocketBlocked) return;
    this.#isSocketBlocked = isBlocked;
    this.#endpoint.onSocketBlocked?.(isBlocked);
  }
}
