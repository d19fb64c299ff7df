import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";
import type { Server } from "ws";
import { ApiError } from "../protocol/api-error.ts";
import { closeCodeOf } from "../protocol/close-codes.ts";
import { toErrorEvent } from "../protocol/error-event.ts";
import { requestIdOf } from "./exchange.ts";
import { splitLargeFrames } from "./frame-splitter.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { CLOSE_GRACE_MS, SocketLine } from "./socket-line.ts";
import { type ToldSocket, toldSocketOf } from "./told-socket.ts";

const PING_MS = 30_000;

/** Accepts WebSockets for the server, keeps them alive and closes them at the end. */
export class SocketServer {
  readonly #maxPayload: number;
  /** Made with the first handshake, since loading `ws` is a fifth of a start. */
  #server: Handshakes | undefined;
  /** For those who may not enter: nothing of what they send is kept. */
  #refusing: Handshakes | undefined;
  readonly #lines = new Set<SocketLine>();
  /** The same for all lines. */
  readonly #onClosed = [(line: SocketLine) => void this.#lines.delete(line)];
  readonly #sendMs: number;
  /** Who was let in meanwhile comes too late. */
  #isClosed = false;
  /** From the first line on. */
  #ping: NodeJS.Timeout | undefined;

  /** Bytes of one message, and milliseconds for which a peer may take nothing of what is sent. */
  constructor(maxPayload: number, sendMs: number) {
    this.#maxPayload = maxPayload;
    this.#sendMs = sendMs;
  }

  /** Loads `ws`, which the first handshake would have to wait for. */
  prepare(): void {
    this.#server ??= handshakes(this.#maxPayload);
  }

  /** Completes the handshake; a faulty one is answered with 400. */
  accept(req: IncomingMessage, socket: Duplex, head: Buffer, use: (line: SocketLine) => void): void {
    if (this.#isClosed) {
      refuseUpgrade(req, socket, new ApiError("shutting_down", "The server is stopping."));
      return;
    }
    this.#server ??= handshakes(this.#maxPayload);
    this.#server.handleUpgrade(req, socket, head, (accepted) => {
      const line = this.#lineOf(accepted, socket);
      splitLargeFrames(socket, this.#maxPayload, line);
      use(line);
    });
  }

  /** A browser cannot read the status of a failed upgrade, so the refusal is said on the socket. */
  acceptAndRefuse(req: IncomingMessage, socket: Duplex, head: Buffer, error: ApiError): void {
    const code = closeCodeOf(error.code);
    this.#refusing ??= handshakes(MAX_REFUSED_PAYLOAD);
    this.#refusing.handleUpgrade(req, socket, head, (refused) => {
      const line = new SocketLine(refused, socket, CLOSE_GRACE_MS, []);
      line.reply(toErrorEvent(error));
      line.close(code, error.code);
    });
  }

  /** Closes every socket, and cuts those that do not answer the close frame. */
  async closeAll(code: number, reason: string): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ping);
    const open = [...this.#lines];
    const closed = open.map((line) => new Promise<void>((resolve) => line.onClose(() => resolve())));
    // Those that do not answer are cut by their lines.
    for (const line of open) line.close(code, reason);
    await Promise.all(closed);
  }

  /** Apart from the handshake, whose request and all that came with it closures made there would keep. */
  #lineOf(accepted: ToldSocket, socket: Duplex): SocketLine {
    const line = new SocketLine(accepted, socket, this.#sendMs, this.#onClosed);
    this.#lines.add(line);
    this.#ping ??= setInterval(() => this.#pingAll(), PING_MS).unref();
    return line;
  }

  #pingAll(): void {
    for (const line of this.#lines) if (!line.ping()) line.cut();
  }
}

/** Frames that a refused peer sends before it reads our close frame are read to their end, so they stay small. */
const MAX_REFUSED_PAYLOAD = 1024;

/** A message of 64 MiB in frames of 16 KiB, as browsers send it; and what `FrameSplitter` makes of larger frames. */
const MAX_FRAGMENTS = 4096 + 2048;

/** The same in reads of 1 kB from the network. */
const MAX_BUFFERED_CHUNKS = 65_536;

type Handshakes = Server<ReturnType<typeof toldSocketOf>>;

function handshakes(maxPayload: number): Handshakes {
  // Not imported: the first import of a CommonJS package makes Node load a parser for them, which takes longer than `ws` itself.
  const ws: typeof import("ws") = createRequire(import.meta.url)("ws");
  const server: Handshakes = new ws.WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    // The lines are kept here.
    clientTracking: false,
    WebSocket: toldSocketOf(ws.WebSocket),
    // A message in pieces of one byte would take 15 times its size.
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_BUFFERED_CHUNKS,
    // Pings are answered by the line, which knows whether anybody takes the answers.
    autoPong: false,
  });
  server.on("headers", (headers, req) => {
    headers.push(`x-request-id: ${requestIdOf(req)}`);
  });
  server.on("wsClientError", (error, socket, req) => {
    refuseUpgrade(req, socket, new ApiError("invalid_request", `${error.message}.`));
  });
  return server;
}
