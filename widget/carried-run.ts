/** One run as its client sees it: a single stream of events, over as many lines as it takes. */

import type { ErrorEvent } from "../server/protocol/events.ts";
import type { Connection } from "./connection.ts";
import {
  type CancellingTransport,
  type ChatTurn,
  isTerminal,
  type RunEvent,
  type RunPosition,
  TransportError,
} from "./transport/transport.ts";

export interface RunOptions {
  readonly transport: CancellingTransport;
  readonly connection: Connection;
  /** What to send; absent where that is impossible, because the message's files are gone. */
  readonly turn: Omit<ChatTurn, "run"> | undefined;
  /** For a run that an earlier page began. */
  readonly position?: RunPosition | undefined;
}

export class CarriedRun {
  readonly #options: RunOptions;
  readonly #id: string;
  readonly #stop = new AbortController();
  #last: number;
  /** Whether the server may know of the run: it is asked for what is missing, and not to begin again. */
  #sent: boolean;

  constructor(options: RunOptions) {
    const { position } = options;
    this.#options = options;
    this.#id = position?.run ?? mintRunId();
    this.#last = position?.after ?? 0;
    this.#sent = position !== undefined;
  }

  /** The run, and its last event that was yielded. */
  get position(): RunPosition {
    return { run: this.#id, after: this.#last };
  }

  /** What the server's log calls the run: the beginning of its name, since all of it could open the run. */
  get reference(): string {
    return this.#id.slice(0, 8);
  }

  /** Asks the server to end the run. Nothing more is sent; what is still said is yielded. */
  stop(): void {
    this.#stop.abort();
    this.#options.connection.tryNow();
  }

  /**
   * Yields each event once and in order; `done` or `error` is the last, unless the run was stopped. Waits out
   * lost lines, however long that takes. May be read again after an error that another key makes good.
   */
  async *events(): AsyncGenerator<RunEvent> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        for await (const event of this.#open()) {
          this.#options.connection.succeeded();
          if (!this.#isNews(event)) continue;
          yield event;
          if (isTerminal(event)) return;
        }
        if (signal.aborted) return;
      } catch (error) {
        if (!(error instanceof TransportError) || error.code === "unreadable") throw error;
        // What broke before the server could hear it is sent again; anything else is asked for.
        if (error.code !== "unreachable") this.#sent = true;
        // Dialling tells.
        if (error.code === "silent") continue;
      }
      if (!signal.aborted) await this.#options.connection.wait();
    }
    if (this.#sent) void this.#options.transport.cancel(this.#id);
  }

  #open(): AsyncIterable<RunEvent> {
    const { transport, turn } = this.#options;
    return turn && !this.#sent
      ? transport.run({ run: this.#id, ...turn }, this.#stop.signal)
      : transport.resume(this.position, this.#stop.signal);
  }

  #isNews(event: RunEvent): boolean {
    const first = this.#last === 0;
    // A refusal of what was asked: the server has begun nothing.
    this.#sent = event.id !== undefined || event.type !== "error" || !first;
    if (isForgotten(event) && first && this.#options.turn) return false;
    if (event.id === undefined) return true;
    // A line that was taken up again may repeat what the last one had still brought.
    if (event.id <= this.#last) return false;
    this.#last = event.id;
    return true;
  }
}

/** Whether the server no longer holds the run, or what is missing of it. */
export function isForgotten(event: RunEvent): event is ErrorEvent {
  return event.type === "error" && /^run_(not_found|expired)$/.test(event.code);
}

/** Names a run before the server knows it: 128 random bits, also without HTTPS, where `randomUUID` is missing. */
function mintRunId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
