import type { WebSocket } from "ws";
import { ApiError, toApiError } from "../protocol/api-error.ts";
import { LARGE_BYTES, type LargeBodies } from "./body.ts";
import { ReadGate } from "./read-gate.ts";
import type { MemoryHold, RequestMemory } from "./request-memory.ts";
import { UploadPace } from "./upload-pace.ts";

export interface IntakeRules {
  readonly large: LargeBodies;
  readonly memory: RequestMemory;
  /** For one large message to arrive, in milliseconds. */
  readonly messageMs: number;
  /** Bytes per second that it must bring while it has its turn; 0: any pace. */
  readonly minRate: number;
}

export interface IntakeListener {
  /** Asked as soon as a message is there; `false` drops it. */
  mayTake(): boolean;
  /** Given one message at a time, in their order; `memory` counts its bytes until this is done. Must not reject. */
  take(data: Buffer | readonly Buffer[], isBinary: boolean, memory: MemoryHold): Promise<void>;
  /** A large message got no turn, or did not arrive in time: nothing more can be taken. */
  stalled(error: ApiError): void;
}

/**
 * Takes one socket's messages in. `ws` gathers a message before it hands it over, so a large one is seen by the bytes
 * that arrive: reading pauses until its turn has come, as with a body, and while it is worked on.
 */
export class FrameIntake {
  readonly #socket: WebSocket;
  readonly #rules: IntakeRules;
  readonly #address: string;
  readonly #listener: IntakeListener;
  /** Made for the first large message, as is the pace: most sockets say little, and there are many. */
  #gone: AbortController | undefined;
  #pace: UploadPace | undefined;
  /** Bytes since the last whole message. */
  #arrived = 0;
  #memory: Held | undefined;
  #turn: Promise<() => void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  /** Made when the socket says something: most say nothing. */
  #gate: ReadGate | undefined;
  /** Nothing more is taken: the line is being closed. */
  #stalled = false;

  /** `address` is where the client is. */
  constructor(socket: WebSocket, rules: IntakeRules, address: string, listener: IntakeListener) {
    this.#socket = socket;
    this.#rules = rules;
    this.#address = address;
    this.#listener = listener;
  }

  /** The socket is closed. */
  close(): void {
    this.#gone?.abort();
    this.#memory?.release();
    // In the middle of a message; one that is being worked on ends its turn itself.
    if (this.#timer !== undefined) this.#endTurn();
  }

  /** Bytes came. */
  count(bytes: number): void {
    if (this.#stalled) return;
    this.#arrived += bytes;
    this.#pace?.count(bytes);
    this.#reading.count(bytes);
    this.#memory ??= holdOf(this.#rules.memory);
    try {
      this.#memory.hold.grow(bytes);
    } catch (error) {
      this.#stall(toApiError(error));
      return;
    }
    if (this.#arrived <= LARGE_BYTES || this.#turn !== undefined) return;
    const { large, messageMs, minRate } = this.#rules;
    this.#gone ??= new AbortController();
    const { signal } = this.#gone;
    this.#pace ??= new UploadPace(minRate, (error) => this.#stall(error));
    const pace = this.#pace;
    this.#reading.close();
    this.#timer = setTimeout(() => this.#stall(tooSlow()), messageMs);
    this.#turn = large.enter(this.#address, signal);
    this.#turn.then(
      () => {
        if (this.#timer !== undefined) pace.start();
        this.#reading.open();
      },
      (error: unknown) => {
        if (!signal.aborted) this.#stall(toApiError(error));
      },
    );
  }

  /** A message is there. */
  take(data: Buffer | readonly Buffer[], isBinary: boolean): void {
    const { hold, release } = this.#memory ?? holdOf(this.#rules.memory);
    this.#memory = undefined;
    this.#arrived = 0;
    this.#stopTimers();
    if (this.#stalled || !this.#listener.mayTake()) {
      release();
      this.#endTurn();
      return;
    }
    const isLarge = this.#turn !== undefined;
    if (isLarge) this.#reading.close();
    const work = async (before: Promise<void> | undefined) => {
      await before;
      await this.#listener.take(data, isBinary, hold);
      release();
      if (!isLarge) return;
      this.#endTurn();
      this.#reading.open();
    };
    this.#work = work(this.#work);
  }

  /** A paused socket would not hear the peer's answer to the close frame. */
  #stall(error: ApiError): void {
    if (this.#stalled) return;
    this.#stalled = true;
    // It waits in no line any more.
    this.#gone?.abort();
    this.#endTurn();
    this.#reading.release();
    this.#listener.stalled(error);
  }

  get #reading(): ReadGate {
    this.#gate ??= new ReadGate(this.#socket);
    return this.#gate;
  }

  #endTurn(): void {
    this.#stopTimers();
    this.#turn?.then(
      (leave) => leave(),
      () => {},
    );
    this.#turn = undefined;
  }

  #stopTimers(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pace?.stop();
  }
}

interface Held {
  readonly hold: MemoryHold;
  release(): void;
}

function holdOf(memory: RequestMemory): Held {
  const hold = memory.hold();
  return { hold, release: hold.share() };
}

function tooSlow(): ApiError {
  return new ApiError("request_timeout", "The message did not arrive in time.");
}
