import type { Socket } from "node:net";
import type { RawData, WebSocket } from "ws";
import type { MemoryBudget, MessageMemory } from "../limits/memory-budget.ts";
import type { MessageLimits, SocketRate } from "../limits/message-limits.ts";
import { ApiError, toApiError } from "../protocol/errors.ts";
import { LARGE_BYTES, Upload, type UploadRules } from "./upload.ts";

export interface ReceivingOptions extends UploadRules {
  limits: MessageLimits;
  memory: MemoryBudget;
  /** For one large message to arrive. */
  messageMs: number;
}

export interface SocketMessage {
  data: Buffer;
  isBinary: boolean;
  /** Counts the bytes of the message until the listener is done with it, or longer if it is shared. */
  memory: MessageMemory;
}

export interface MessageListener {
  /** Called with one message at a time: the next one comes when the promise has resolved. It must not reject. */
  message(message: SocketMessage): Promise<void>;
}

/** What the client is answered when its message is not taken. */
export interface MessageReplies {
  sendError(error: ApiError): void;
  closeWith(error: ApiError): void;
}

/** Bytes of a client's control frame without its payload: two of head, four of mask. */
const CONTROL_FRAME_BYTES = 6;

/**
 * Receives the messages of one socket. `ws` collects a message before it hands it over, so a large one is noticed by the
 * bytes that arrive: the socket is paused until there is a slot for it, and while it is worked on.
 */
export class MessageReceiver {
  readonly #ws: WebSocket;
  readonly #address: string;
  readonly #listener: MessageListener;
  readonly #replies: MessageReplies;
  readonly #options: ReceivingOptions;
  readonly #rate: SocketRate;
  /** Bytes of the message that is arriving. Control frames, which may come between its fragments, do not count. */
  #arrived = 0;
  #memory: MessageMemory | undefined;
  #upload: Upload | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The message before. */
  #work: Promise<void> | undefined;
  #isStopped = false;

  /** `socket` is the connection that `ws` was made of; `address` is the client's. */
  constructor(
    ws: WebSocket,
    socket: Socket,
    address: string,
    listener: MessageListener,
    replies: MessageReplies,
    options: ReceivingOptions,
  ) {
    this.#ws = ws;
    this.#address = address;
    this.#listener = listener;
    this.#replies = replies;
    this.#options = options;
    this.#rate = options.limits.socketRate();
    // Before the listener of `ws`, which finds frames in these bytes and emits the events below.
    socket.prependListener("data", (chunk: Buffer) => this.#count(chunk.length));
    ws.on("ping", (data) => this.#discount(data));
    ws.on("pong", (data) => this.#discount(data));
    ws.on("message", (data: RawData, isBinary) => this.#take(data as Buffer, isBinary));
  }

  /** Takes nothing more: the socket is closed, or is being closed. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#upload?.end();
    // The only share of what has arrived.
    this.#memory?.share()();
    this.#ws.resume();
  }

  #count(bytes: number): void {
    if (this.#isStopped) return;
    this.#arrived += bytes;
    this.#upload?.count(bytes);
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
    this.#upload?.count(-bytes);
  }

  #waitForSlot(): void {
    this.#timer = setTimeout(() => this.#refuse(notInTime()), this.#options.messageMs);
    this.#upload = new Upload(this.#options, this.#address, (error) => this.#refuse(error));
    this.#ws.pause();
    this.#upload.begin().then(
      () => this.#ws.resume(),
      (error: unknown) => this.#refuse(toApiError(error)),
    );
  }

  /** A whole message has arrived. */
  #take(data: Buffer, isBinary: boolean): void {
    const upload = this.#upload;
    const memory = this.#memory ?? this.#options.memory.openMessage();
    const release = memory.share();
    clearTimeout(this.#timer);
    upload?.arrived();
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
    // What was sent before the close is not acted upon either: the client could not be answered.
    if (!this.#isStopped) await this.#listener.message(message);
  }

  #isWithinRate(): boolean {
    try {
      this.#rate.count();
      return true;
    } catch (error) {
      if (this.#rate.isAbused) this.#refuse(toApiError(error));
      else this.#replies.sendError(toApiError(error));
      return false;
    }
  }

  /** Nothing more can be received. */
  #refuse(error: ApiError): void {
    if (!this.#isStopped) this.#replies.closeWith(error);
  }
}

function notInTime(): ApiError {
  return new ApiError("request_timeout", "The message did not arrive in time.");
}
