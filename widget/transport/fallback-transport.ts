/** WebSocket where it works, HTTP where something between browser and server blocks it. */

import type { ErrorEvent, StreamEvent } from "../../server/protocol/events.ts";
import { HttpTransport } from "./http-transport.ts";
import { SocketTransport } from "./socket-transport.ts";
import { type ChatTransport, type ChatTurn, type Endpoint, TransportError } from "./transport.ts";

/** Servers whose socket could not be opened; remembered for the page's life, for all elements on it. */
const withoutSocket = new Set<string>();

export class FallbackTransport implements ChatTransport {
  readonly #server: string;
  readonly #socket: SocketTransport;
  readonly #http: HttpTransport;
  readonly #serverAnswers: () => Promise<boolean>;

  /** `serverAnswers` tells a blocked socket from a server that is down. */
  constructor(endpoint: Endpoint, serverAnswers: () => Promise<boolean>) {
    this.#server = endpoint.server.href;
    this.#socket = new SocketTransport(endpoint);
    this.#http = new HttpTransport(endpoint);
    this.#serverAnswers = serverAnswers;
  }

  async *run(turn: ChatTurn, signal: AbortSignal): AsyncGenerator<StreamEvent> {
    if (!withoutSocket.has(this.#server)) {
      try {
        return yield* this.#socket.run(turn, signal);
      } catch (error) {
        await this.#giveUpSocket(error);
      }
    }
    if (!signal.aborted) yield* this.#http.run(turn, signal);
  }

  async clear(): Promise<void> {
    await Promise.all([this.#socket.clear(), this.#http.clear()]);
  }

  async check(): Promise<ErrorEvent | undefined> {
    if (!withoutSocket.has(this.#server)) {
      try {
        return await this.#socket.check();
      } catch (error) {
        await this.#giveUpSocket(error);
      }
    }
    return this.#http.check();
  }

  close(): void {
    this.#socket.close();
    this.#http.close();
  }

  /** `unreachable` comes before anything of the message was sent, so nothing is sent twice. */
  async #giveUpSocket(error: unknown): Promise<void> {
    const mayBeBlocked = error instanceof TransportError && error.code === "unreachable";
    if (!mayBeBlocked || !(await this.#serverAnswers())) throw error;
    withoutSocket.add(this.#server);
  }
}
