import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { ApiError } from "../protocol/api-error.ts";
import { CLOSE } from "../protocol/close-codes.ts";
import { requestIdOf } from "./exchange.ts";
import { errorBody } from "./respond.ts";
import { SocketLine } from "./socket-line.ts";

const PING_MS = 30_000;

/** How long a peer may take to answer our close frame before its connection is cut. */
const CLOSE_GRACE_MS = 2_000;

/** Accepts WebSockets for the server, keeps them alive and closes them at the end. */
export class SocketServer {
  readonly #server: WebSocketServer;
  readonly #answered = new WeakSet<WebSocket>();
  readonly #ping: NodeJS.Timeout;

  constructor(maxPayload: number) {
    this.#server = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
    this.#server.on("headers", (headers, req) => {
      headers.push(`x-request-id: ${requestIdOf(req)}`);
    });
    this.#server.on("wsClientError", (error, socket, req) => {
      refuseUpgrade(req, socket, new ApiError("invalid_request", `${error.message}.`));
    });
    this.#ping = setInterval(() => this.#pingAll(), PING_MS).unref();
  }

  /** Completes the handshake; a faulty one is answered with 400. */
  accept(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    use: (line: SocketLine) => void,
  ): void {
    this.#server.handleUpgrade(req, socket, head, (accepted) => {
      this.#answered.add(accepted);
      accepted.on("pong", () => this.#answered.add(accepted));
      use(new SocketLine(accepted));
    });
  }

  /** A browser cannot read the status of a failed upgrade, so the refusal is said on the socket. */
  acceptAndRefuse(req: IncomingMessage, socket: Duplex, head: Buffer, error: ApiError): void {
    const code = error.code === "unauthorized" ? CLOSE.UNAUTHORIZED : CLOSE.FORBIDDEN;
    this.accept(req, socket, head, (line) => {
      void line.send({ type: "error", data: error.message, code: error.code, retryable: false });
      line.close(code, error.code);
    });
  }

  /** Closes every socket, and cuts those that do not answer the close frame. */
  async closeAll(code: number, reason: string): Promise<void> {
    clearInterval(this.#ping);
    const open = [...this.#server.clients];
    const closed = open.map((client) => new Promise((resolve) => client.once("close", resolve)));
    for (const client of open) client.close(code, reason);
    const cut = setTimeout(() => {
      for (const client of open) client.terminate();
    }, CLOSE_GRACE_MS);
    await Promise.all(closed);
    clearTimeout(cut);
  }

  #pingAll(): void {
    for (const client of this.#server.clients) {
      if (!this.#answered.delete(client)) client.terminate();
      else client.ping();
    }
  }
}

/** Answers an upgrade request over plain HTTP. */
export function refuseUpgrade(req: IncomingMessage, socket: Duplex, error: ApiError): void {
  const body = JSON.stringify(errorBody(error));
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
      "connection: close",
      `x-request-id: ${requestIdOf(req)}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n"),
  );
}
