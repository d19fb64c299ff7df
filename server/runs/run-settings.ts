/** What a run is made with. */

import type { RunTransport, RunWatch } from "../agent/run-watch.ts";
import type { TellRun } from "../agent/runner.ts";
import type { Caller } from "../http/caller.ts";
import type { TraceHeaders } from "../http/trace-headers.ts";
import type { ErrorEvent } from "../protocol/events.ts";
import type { Activity } from "./activity.ts";
import type { LogBudget } from "./log-budget.ts";

export interface RunSettings {
  readonly id: string;
  /** Milliseconds for which the run goes on without a reader; 0 ends it at once. */
  readonly graceMs: number;
  /** Longest run, in milliseconds. */
  readonly maxRunMs: number;
  /** Bytes of events that are held for readers to come back. */
  readonly maxBytes: number;
  readonly budget: LogBudget;
  readonly activity: Activity;
  /** Told once that nobody can come back to this run. */
  onGone(): void;
}

/** What a run does. */
export interface RunJob {
  /** Waits until the run may begin; resolves with what must be called when it is over. */
  admit(signal: AbortSignal): Promise<() => void>;
  /** The run itself. Aborting the controller ends it. */
  work(controller: AbortController, tell: TellRun, watch: RunWatch): Promise<void>;
  /** The last event of a run whose `work` failed, or did not end when it was aborted. */
  failed(error: unknown): ErrorEvent;
  /** Called once the run is over, or was refused. */
  onOver(): void;
  /** Called when the run begins: who looks on. */
  watch(): RunWatch;
}

/** What is known of a run before it begins. */
export interface RunStart {
  readonly runId: string;
  readonly requestId: string;
  readonly trace: TraceHeaders;
  readonly transport: RunTransport;
  readonly caller: Caller;
  /** When its message was there, as `performance.now()`. */
  readonly askedAt: number;
}

/** Told of each run that begins; returns who watches it. */
export type WatchRun = (start: RunStart) => RunWatch;
