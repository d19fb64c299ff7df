/** What a run is made with. */

import type { StreamEvent } from "../protocol/events.ts";
import type { Activity } from "./activity.ts";
import type { LogBudget } from "./log-budget.ts";
import type { TurnQueue } from "./turn-queue.ts";

export interface RunSettings {
  readonly id: string;
  /** Milliseconds for which the run goes on without a reader; 0 ends it at once. */
  readonly graceMs: number;
  /** Longest run, in milliseconds. */
  readonly maxRunMs: number;
  /** Bytes of events that are held for readers to come back. */
  readonly maxBytes: number;
  readonly budget: LogBudget;
  readonly turns: TurnQueue;
  readonly activity: Activity;
  /** Told of what should not have happened. */
  report(error: unknown): void;
  /** Told once that nobody can come back to this run. */
  onGone(): void;
}

/** What a run does. */
export interface RunJob {
  /** Waits until the run may begin; resolves with what must be called when it is over. */
  admit(signal: AbortSignal): Promise<() => void>;
  /** The run itself. Aborting the controller ends it, and it aborts the controller when it is left. */
  events(controller: AbortController): AsyncIterable<StreamEvent>;
}
