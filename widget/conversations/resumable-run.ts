/** One run as the session sees it: a single stream of events, over as many connections as it takes. */

import { isTerminal } from "../../server/protocol/events.ts";
import {
  type RunEvent,
  type RunPosition,
  type RunRequest,
  type StartRequest,
  type Transport,
  TransportError,
} from "../transport/transport.ts";
import type { ReconnectPolicy } from "./reconnect-policy.ts";

export interface RunOptions {
  readonly id: string;
  readonly transport: Transport;
  readonly reconnect: ReconnectPolicy;
  /** What to send; absent where that is impossible, because the message's files are gone. */
  readonly start: Omit<StartRequest, "run"> | undefined;
  /** The position of a run that an earlier page load started. */
  readonly position?: RunPosition | undefined;
  /** The metadata sent with each message. */
  readonly metadata?: () => Pick<StartRequest, "metadata">;
}

export class ResumableRun {
  readonly #options: RunOptions;
  readonly id: string;
  readonly #stop = new AbortController();
  #after: number;
  /** Whether the server may know the run. If so, it is asked for the missing events instead of starting again. */
  wasSent: boolean;
  #resumed: Promise<void> = Promise.resolve();
  #isLeft = false;
  /** Present while the run is paused. */
  #endPause: (() => void) | undefined;

  constructor(options: RunOptions) {
    const { id, position } = options;
    this.#options = options;
    this.id = id;
    this.#after = position?.after ?? 0;
    this.wasSent = position !== undefined;
  }

  /** The run, and the number of its last event that was reported. */
  get position(): RunPosition {
    return { run: this.id, after: this.#after };
  }

  /** How the server's log names the run: only the start of the id, because the whole id gives access to the run. */
  get reference(): string {
    return this.id.slice(0, 8);
  }

  /** Whether it is a message that the server has not accepted. */
  get isUnsent(): boolean {
    const { start } = this.#options;
    return start !== undefined && !start.approvals && !start.continue && !this.wasSent;
  }

  /** Asks the server to end the run. Nothing more is sent; events that are still on their way are reported. */
  stop(): void {
    this.#stop.abort();
    this.resume();
    this.#options.reconnect.retryNow();
  }

  /** Opens no connection until `resume`. The run continues at the server, which keeps its events for a while. */
  pause(): void {
    if (this.#endPause) return;
    this.#resumed = new Promise((resolve) => {
      this.#endPause = resolve;
    });
  }

  resume(): void {
    this.#endPause?.();
    this.#endPause = undefined;
  }

  /** Stops following the run, which continues at the server. The caller has to close the connection. */
  leave(): void {
    this.#isLeft = true;
    this.resume();
    this.#options.reconnect.retryNow();
  }

  /**
   * Reports each event once and in order, and resolves after `done` or `error`, or after `stop` without one. Waits out
   * lost connections, however long that takes. May be called again after an error that another key can fix. Throws
   * `TransportError` only for `unreadable`.
   */
  async follow(onEvent: (event: RunEvent) => void): Promise<void> {
    const { transport, reconnect } = this.#options;
    const { signal } = this.#stop;
    for (;;) {
      await this.#resumed;
      if (signal.aborted || this.#isLeft) break;
      let hasEnded = false;
      try {
        await transport.run(
          this.#request(),
          (event) => {
            reconnect.succeeded();
            if (!this.#isNew(event)) return;
            hasEnded = isTerminal(event);
            onEvent(event);
          },
          signal,
        );
        if (hasEnded || signal.aborted || this.#isLeft) return;
      } catch (error) {
        if (!(error instanceof TransportError) || error.code === "unreadable") throw error;
        // A message that did not reach the server is sent again; otherwise the missing events are asked for.
        if (error.code !== "unreachable") this.wasSent = true;
        // Only a new connection shows whether the old one is dead.
        if (error.code === "silent") continue;
      }
      if (!signal.aborted && !this.#isLeft) await reconnect.wait();
    }
    if (this.wasSent && !this.#isLeft) void transport.cancel(this.id);
  }

  #request(): RunRequest {
    const { start, metadata } = this.#options;
    return start && !this.wasSent ? { run: this.id, ...start, ...metadata?.() } : this.position;
  }

  #isNew(event: RunEvent): boolean {
    const isFirst = this.#after === 0;
    // After a refusal the server has started nothing.
    this.wasSent = event.id !== undefined || event.type !== "error" || !isFirst;
    // The message was lost with its connection: it is sent again.
    if (isRunLost(event) && isFirst && this.#options.start) return false;
    if (event.id === undefined) return true;
    // A new connection may repeat what the old one had still delivered.
    if (event.id <= this.#after) return false;
    this.#after = event.id;
    return true;
  }
}

/** Whether the server no longer has the run, or the missing part of it. */
export function isRunLost(event: RunEvent): boolean {
  return event.type === "error" && /^run_(not_found|expired)$/.test(event.code);
}

/** 128 random bits as text. `crypto.randomUUID` is missing on pages without HTTPS. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
