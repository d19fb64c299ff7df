/** Who looks on while an agent works, for logs and metrics. What it does is quick, and never throws. */

import type { Usage } from "../protocol/chat.ts";
import type { StreamEvent } from "../protocol/events.ts";
import type { TurnFinish } from "../providers/provider.ts";

/** How a run's answer is sent. */
export type RunTransport = "json" | "sse" | "ws";

/** Watches one run. */
export interface RunWatch {
  /** Told of every event, in order, before any client has it. */
  event(event: StreamEvent): void;
  /** A model request begins. */
  turn(): TurnWatch;
  /** Told of what failed, with its cause. */
  failure(error: unknown): void;
  /** The run is over. If no event before was its last one, nobody was left to read it. */
  end(): void;
}

/** Watches one model request. */
export interface TurnWatch {
  /** The provider has answered, and named the request so; the last of several tries counts. */
  answered(requestId: string): void;
  /** A fallback model is asked in place of the one that failed so. */
  failedOver(report: Error): void;
  /** `model` is that of an agent with fallback models which has answered. */
  end(finish: TurnFinish, usage: Usage | undefined, model: string | undefined): void;
  failed(error: unknown): void;
  /** Called in any case, last: without an end or a failure before, the request was given up. */
  close(): void;
}

const UNWATCHED_TURN: TurnWatch = {
  answered() {},
  failedOver() {},
  end() {},
  failed() {},
  close() {},
};

/** For a run that nobody watches. */
export const UNWATCHED: RunWatch = {
  event() {},
  turn: () => UNWATCHED_TURN,
  failure() {},
  end() {},
};
