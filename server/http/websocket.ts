/** WebSockets, by `ws` as it is. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { Credentials } from "../auth/access.ts";
import type { MemoryBudget, MessageMemory } from "../limits/memory-budget.ts";
import type { MessageLimits, SocketRate } from "../limits/message-limits.ts";
import { ApiError, ERRORS, type ErrorCode, shuttingDown, toApiError } from "../protocol/errors.ts";
import { errorEvent, type SocketEvent } from "../protocol/events.ts";
import { LARGE_BYTES, Upload, type UploadRules } from "./body.ts";
import { requestId } from "./request.ts";
import { disconnect, sendRawError, waitForDrain } from "./respond.ts";

const PING_MS = 30_000;

/** The largest message accepted on a refused socket: the client may have sent one before it reads the refusal. */
const MAX_REFUSED_BYTES = 1024;

/** Twice the fragments of a 64 MiB message as browsers send it, in fragments of 16 KiB. */
const MAX_FRAGMENTS = 8192;

/** Enough for 64 MiB in reads of 1 KiB from the network. */
const MAX_BUFFERED_CHUNKS = 65_536;

/** Replies to commands that may be queued for a client that does not read. */
const MAX_WAITING_REPLIES = 100;

export interface SocketOptions extends UploadRules {
  limits: MessageLimits;
  memory: MemoryBudget;
  /** How long a large message may take to arrive. */
  messageMs: number;
  /** The largest message. */
  maxBytes: number;
  /** How long a client may read nothing before it is disconnected. */
  sendMs: number;
  /** How long a client may take to answer our close frame. */
  lingerMs: number;
  /** Called with each error that a client is sent outside of a run. */
  onError(code: ErrorCode): void;
}

/** The arguments of Node's `upgrade` event. */
export interface Upgrade {
  req: IncomingMessage;
  socket: Socket;
  head: Buffer;
}

export class WebSockets {
  readonly #options: SocketOptions;
  readonly #server: WebSocketServer;
  /** For clients that are refused. */
  readonly #refusingServer: WebSocketServer;
  readonly #connections = new Set<WebSocketConnection>();
  readonly #pings: NodeJS.Timeout;
  #isClosed = false;

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#server = createServer(options.maxBytes, options.lingerMs);
    this.#refusingServer = createServer(MAX_REFUSED_BYTES, options.lingerMs);
    this.#pings = setInterval(() => this.#pingAll(), PING_MS).unref();
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Completes the handshake, and calls `use` at once, before a message can arrive. Answers a faulty handshake with 400. */
  accept(
    { req, socket, head }: Upgrade,
    credentials: Credentials,
    use: (connection: WebSocketConnection) => void,
  ): void {
    if (this.#isClosed) {
      sendRawError(socket, shuttingDown(), { requestId: requestId(req), lingerMs: this.#options.lingerMs });
      return;
    }
    this.#server.handleUpgrade(req, socket, head, (ws) => {
      const connection = new WebSocketConnection(ws, socket, credentials, this.#options);
      this.#connections.add(connection);
      ws.once("close", () => this.#connections.delete(connection));
      use(connection);
    });
  }

  /** Accepts the upgrade, sends an error event and closes: a browser could not read the status of a refused upgrade. */
  refuse({ req, socket, head }: Upgrade, error: ApiError): void {
    this.#refusingServer.handleUpgrade(req, socket, head, (ws) => {
      ws.on("error", () => {});
      ws.send(JSON.stringify(errorEvent(error)));
      ws.close(error.closeCode, error.code);
    });
  }

  /** Closes every socket whose credentials `authorize` now refuses by throwing. Returns how many were closed. */
  recheck(authorize: (credentials: Credentials) => void): number {
    let closed = 0;
    for (const connection of this.#connections) {
      try {
        authorize(connection.credentials);
      } catch (error) {
        connection.closeWith(toApiError(error));
        closed++;
      }
    }
    return closed;
  }

  /** Resolves when all sockets are closed. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#pings);
    const closed = [...this.#connections].map((connection) => connection.closed);
    for (const connection of this.#connections) connection.close(ERRORS.shutting_down.close, "shutting_down");
    await Promise.all(closed);
  }

  #pingAll(): void {
    for (const connection of this.#connections) connection.ping();
  }
}

function createServer(maxPayload: number, lingerMs: number): WebSocketServer {
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_BUFFERED_CHUNKS,
    // `WebSocketConnection` answers pings, so that replies do not pile up for a client that does not read.
    autoPong: false,
    closeTimeout: lingerMs,
  };
  const server = new WebSocketServer(options);
  server.on("headers", (headers, req) => headers.push(`x-request-id: ${requestId(req)}`));
  server.on("wsClientError", (error, socket, req) => {
    const refusal = new ApiError("invalid_request", `${error.message}.`);
    sendRawError(socket, refusal, { requestId: requestId(req), lingerMs });
  });
  return server;
}

export interface SocketMessage {
  data: Buffer;
  isBinary: boolean;
  /** Counts the bytes of the message until the listener is done with it, or longer if it is shared. */
  memory: MessageMemory;
}

export interface SocketListener {
  /** Called with one message at a time, the next once the promise has resolved. Must not reject. */
  message(message: SocketMessage): Promise<void>;
  close(): void;
}

/** One client's socket. */
export class WebSocketConnection {
  readonly credentials: Credentials;
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #options: SocketOptions;
  #receiver: MessageReceiver | undefined;
  #isAlive = true;
  /** Present while the client reads more slowly than the server sends. */
  #drained: Promise<void> | undefined;
  #waitingReplies = 0;
  /** The last ping that has not been answered. Answering it answers all before it (RFC 6455, 5.5.3). */
  #unansweredPing: Buffer | undefined;

  /** `socket` is the connection below `ws`. */
  constructor(ws: WebSocket, socket: Socket, credentials: Credentials, options: SocketOptions) {
    this.#ws = ws;
    this.#socket = socket;
    this.credentials = credentials;
    this.#options = options;
    ws.on("pong", () => {
      this.#isAlive = true;
    });
    ws.on("ping", (data) => this.#answerPing(data));
    // `ws` closes the connection with the right code by itself, such as after a message that is too large.
    ws.on("error", () => {});
  }

  get closed(): Promise<void> {
    return new Promise((resolve) => this.#ws.once("close", () => resolve()));
  }

  /** Whether the socket is closing or closed. What the client still sends is ignored (RFC 6455, 7.1.7). */
  get isClosing(): boolean {
    return this.#ws.readyState !== this.#ws.OPEN;
  }

  listen(listener: SocketListener): void {
    const receiver = new MessageReceiver(this, { ws: this.#ws, socket: this.#socket }, listener, this.#options);
    this.#receiver = receiver;
    this.#ws.on("close", () => {
      receiver.stop();
      listener.close();
    });
  }

  /** Answers a command. A client that sends commands and does not read the answers is disconnected. */
  sendJson(event: SocketEvent): void {
    if (this.#socket.writableNeedDrain && ++this.#waitingReplies > MAX_WAITING_REPLIES) {
      this.disconnect();
      return;
    }
    this.#ws.send(JSON.stringify(event));
    void this.#whenDrained();
  }

  sendError(error: ApiError): void {
    this.#options.onError(error.code);
    this.sendJson(errorEvent(error));
  }

  /** Sends one frame per text, all in one write. Returns a promise if the client has to catch up before more is sent. */
  sendAll(texts: readonly string[]): Promise<void> | undefined {
    this.#socket.cork();
    for (const text of texts) this.#ws.send(text);
    this.#socket.uncork();
    return this.#whenDrained();
  }

  /** Disconnects a client that did not answer the last ping. */
  ping(): void {
    // A ping would wait behind everything queued, and a socket paused for a large message receives no pong.
    if (this.#socket.writableNeedDrain || this.#ws.isPaused) return;
    if (!this.#isAlive) {
      this.disconnect();
      return;
    }
    this.#isAlive = false;
    this.#ws.ping();
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason);
    // A paused socket would not receive the client's close frame.
    this.#receiver?.stop();
  }

  /** Sends the error, then closes the socket with its code. */
  closeWith(error: ApiError): void {
    this.sendError(error);
    this.close(error.closeCode, error.code);
  }

  /** Ends the connection at once, whatever still waits to be sent. */
  disconnect(): void {
    disconnect(this.#socket);
  }

  /** `undefined` if more can be sent now; otherwise resolves when the client has caught up or disconnected. */
  #whenDrained(): Promise<void> | undefined {
    if (!this.#socket.writableNeedDrain) return undefined;
    this.#drained ??= waitForDrain(this.#socket, this.#options.sendMs, () => this.disconnect()).then(() => {
      this.#drained = undefined;
      this.#waitingReplies = 0;
      if (this.#unansweredPing !== undefined) this.#answerPing(this.#unansweredPing);
    });
    return this.#drained;
  }

  #answerPing(data: Buffer): void {
    if (this.#socket.writableNeedDrain) {
      this.#unansweredPing = data;
      void this.#whenDrained();
    } else {
      this.#unansweredPing = undefined;
      this.#ws.pong(data);
    }
  }
}

/** Bytes of a client's control frame without its payload: two of head, four of mask. */
const CONTROL_FRAME_BYTES = 6;

/**
 * Receives the messages of one socket. `ws` emits a message only when it is complete, so a large one is detected by counting
 * bytes as they arrive: the socket is paused until a slot is free, and again while the message is processed.
 */
class MessageReceiver {
  readonly #connection: WebSocketConnection;
  readonly #ws: WebSocket;
  readonly #listener: SocketListener;
  readonly #options: SocketOptions;
  readonly #rate: SocketRate;
  /** Bytes of the message that is arriving. Control frames, which may come between its fragments, do not count. */
  #arrived = 0;
  #memory: MessageMemory | undefined;
  #upload: Upload | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Processing of the latest message; the next one waits for it. */
  #work: Promise<void> | undefined;
  #isStopped = false;

  constructor(
    connection: WebSocketConnection,
    { ws, socket }: { ws: WebSocket; socket: Socket },
    listener: SocketListener,
    options: SocketOptions,
  ) {
    this.#connection = connection;
    this.#ws = ws;
    this.#listener = listener;
    this.#options = options;
    this.#rate = options.limits.socketRate();
    // Runs before the listener of `ws`, which finds frames in these bytes and emits the events below.
    socket.prependListener("data", (chunk: Buffer) => this.#count(chunk.length));
    ws.on("ping", (data) => this.#discount(data));
    ws.on("pong", (data) => this.#discount(data));
    ws.on("message", (data: RawData, isBinary) => this.#take(data as Buffer, isBinary));
  }

  /** Ignores everything received from now on: the socket is closed or closing. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#upload?.end();
    this.#memory?.drop();
    this.#ws.resume();
  }

  #count(bytes: number): void {
    if (this.#isStopped) return;
    this.#arrived += bytes;
    this.#memory ??= this.#options.memory.openMessage();
    try {
      this.#memory.growTo(this.#arrived);
    } catch (error) {
      this.#refuse(toApiError(error));
      return;
    }
    if (this.#arrived > LARGE_BYTES && this.#upload === undefined) this.#waitForSlot();
  }

  #discount(data: Buffer): void {
    const bytes = data.length + CONTROL_FRAME_BYTES;
    this.#arrived = Math.max(this.#arrived - bytes, 0);
  }

  #waitForSlot(): void {
    this.#timer = setTimeout(() => this.#refuse(notInTime()), this.#options.messageMs);
    this.#upload = new Upload(this.#options, this.#connection.credentials.address);
    this.#ws.pause();
    this.#upload.begin().then(
      () => this.#ws.resume(),
      (error: unknown) => this.#refuse(toApiError(error)),
    );
  }

  /** Handles a complete message. */
  #take(data: Buffer, isBinary: boolean): void {
    const upload = this.#upload;
    const memory = this.#memory ?? this.#options.memory.openMessage();
    const release = memory.share();
    clearTimeout(this.#timer);
    this.#arrived = 0;
    this.#upload = undefined;
    this.#memory = undefined;
    const end = () => {
      upload?.end();
      release();
    };
    if (this.#isStopped || !this.#isWithinRate()) {
      end();
      return;
    }
    if (upload !== undefined) this.#ws.pause();
    this.#work = this.#handle({ data, isBinary, memory }, this.#work).then(() => {
      end();
      if (upload !== undefined) this.#ws.resume();
    });
  }

  async #handle(message: SocketMessage, before: Promise<void> | undefined): Promise<void> {
    await before;
    // Messages received before the close are dropped, too: they could no longer be answered.
    if (!this.#isStopped) await this.#listener.message(message);
  }

  #isWithinRate(): boolean {
    try {
      this.#rate.count();
      return true;
    } catch (error) {
      if (this.#rate.isAbused) this.#refuse(toApiError(error));
      else this.#connection.sendError(toApiError(error));
      return false;
    }
  }

  /** Closes the socket: after such an error nothing more can be received. */
  #refuse(error: ApiError): void {
    if (!this.#isStopped) this.#connection.closeWith(error);
  }
}

function notInTime(): ApiError {
  return new ApiError("request_timeout", "The message did not arrive in time.");
}
