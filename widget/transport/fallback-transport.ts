/** WebSocket where it works, HTTP where something between browser and server blocks it. */

import type { ErrorEvent } from "../../server/protocol/events.ts";
import { loadChunk } from "../lazy-chunk.ts";
import { HttpRequests } from "./http-requests.ts";
import { SocketTransport } from "./socket-transport.ts";
import {
  type CancellingTransport,
  type ChatTransport,
  type ChatTurn,
  type Endpoint,
  type RunEvent,
  type RunPosition,
  TransportError,
} from "./transport.ts";

type HttpChunk = typeof import("../chunks/http.ts");

/** Servers whose socket could not be opened; remembered for the page's life, for all elements on it. */
const withoutSocket = new Set<string>();

export class FallbackTransport implements CancellingTransport {
  readonly #server: string;
  readonly #socket: SocketTransport;
  readonly #requests: HttpRequests;
  readonly #loadHttp: () => Promise<HttpChunk | undefined>;
  #http: ChatTransport | undefined;
  readonly #serverAnswers: () => Promise<boolean>;

  /** `serverAnswers` tells a blocked socket from a server that is down. */
  constructor(
    endpoint: Endpoint,
    serverAnswers: () => Promise<boolean>,
    loadHttp: () => Promise<HttpChunk | undefined> = () => loadChunk("http"),
  ) {
    this.#server = endpoint.server.href;
    this.#socket = new SocketTransport(endpoint);
    this.#requests = new HttpRequests(endpoint);
    this.#loadHttp = loadHttp;
    this.#serverAnswers = serverAnswers;
  }

  get unsent(): number {
    return (this.#http ?? this.#socket).unsent;
  }

  run(turn: ChatTurn, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#either((transport) => transport.run(turn, signal), signal);
  }

  resume(position: RunPosition, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#either((transport) => transport.resume(position, signal), signal);
  }

  cancel(run: string): Promise<boolean> {
    return this.#requests.cancel(run);
  }

  async clear(): Promise<void> {
    await Promise.all([this.#socket.clear(), this.#http?.clear()]);
  }

  async check(): Promise<ErrorEvent | undefined> {
    if (!withoutSocket.has(this.#server)) {
      try {
        return await this.#socket.check();
      } catch (error) {
        await this.#giveUpSocket(error);
      }
    }
    // Only a run can tell.
    return undefined;
  }

  close(): void {
    this.#socket.close();
    this.#http?.close();
  }

  async *#either(
    start: (transport: ChatTransport) => AsyncIterable<RunEvent>,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent> {
    if (!withoutSocket.has(this.#server)) {
      try {
        return yield* start(this.#socket);
      } catch (error) {
        await this.#giveUpSocket(error);
      }
    }
    this.#http ??= await this.#overHttp();
    if (!signal.aborted) yield* start(this.#http);
  }

  async #overHttp(): Promise<ChatTransport> {
    const chunk = await this.#loadHttp();
    if (!chunk) throw new TransportError("unreachable");
    return new chunk.HttpTransport(this.#requests);
  }

  /** `unreachable` comes before anything of the message was sent, so nothing is sent twice. */
  async #giveUpSocket(error: unknown): Promise<void> {
    const mayBeBlocked = error instanceof TransportError && error.code === "unreachable";
    if (!mayBeBlocked || !(await this.#serverAnswers())) throw error;
    withoutSocket.add(this.#server);
  }
}
