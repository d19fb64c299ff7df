/** Calls the hooks that run after the answer. Only a shutdown waits for them. Loaded if an agent has such a hook. */

import { Late, within } from "../config/within.ts";
import type { FailedRun } from "../observe/log.ts";
import type { RunEntry } from "../observe/run-observer.ts";
import { type Hooks, hookFailure } from "./hooks.ts";
import { recordOf } from "./run-record.ts";

type LateHook = keyof Pick<Hooks, "onRunEnd" | "onFeedback">;

export type HookOutcome = "done" | "failed" | "timeout" | "dropped";

/** One call of a hook. */
interface Job {
  readonly hook: LateHook;
  /** For the log. */
  readonly about: FailedRun;
  call(): unknown;
  /** Keeps open what the agent's module has opened until the hook has run. */
  readonly life: { use(): () => void };
}

interface Waiting extends Job {
  leave(): void;
}

export interface HookQueueParts {
  readonly maxMs: number;
  count(hook: LateHook, outcome: HookOutcome): void;
  warn(sentence: string): void;
  fail(error: unknown, about: FailedRun): void;
}

const MAX_RUNNING = 8;
const MAX_WAITING = 1_000;

export class HookQueue {
  readonly #parts: HookQueueParts;
  #waiting: Waiting[] = [];
  readonly #running = new Set<Waiting>();
  #hasWarned = false;
  #onIdle: (() => void) | undefined;

  constructor(parts: HookQueueParts) {
    this.#parts = parts;
  }

  /** Queues the call, which never runs synchronously. Returns `false`, and drops the call, if the queue is full. */
  add(job: Job): boolean {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#parts.count(job.hook, "dropped");
      this.#warnOnce(job.hook);
      return false;
    }
    this.#waiting.push({ ...job, leave: job.life.use() });
    setImmediate(() => this.#next());
    return true;
  }

  /** Queues the hook with the record of a run that has ended. */
  addRun(onRunEnd: NonNullable<Hooks["onRunEnd"]>, entry: RunEntry, life: Job["life"]): boolean {
    return this.add({ hook: "onRunEnd", about: entry.start, life, call: () => onRunEnd(recordOf(entry)) });
  }

  /** Resolves when all hooks have run. After the time limit of one hook, the rest is dropped. */
  async drain(): Promise<void> {
    if (this.#isIdle) return;
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    await within(() => idle, this.#parts.maxMs).catch(() => this.#abandon());
  }

  get #isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  #next(): void {
    if (this.#running.size >= MAX_RUNNING) return;
    const job = this.#waiting.shift();
    if (job === undefined) return;
    this.#running.add(job);
    void this.#call(job).then((outcome) => {
      if (!this.#running.delete(job)) return;
      this.#parts.count(job.hook, outcome);
      job.leave();
      if (this.#isIdle) this.#onIdle?.();
      else this.#next();
    });
  }

  async #call(job: Waiting): Promise<HookOutcome> {
    try {
      await within(job.call, this.#parts.maxMs);
      return "done";
    } catch (error) {
      if (this.#running.has(job)) this.#fail(job, error);
      return error instanceof Late ? "timeout" : "failed";
    }
  }

  #fail({ hook, about }: Waiting, error: unknown): void {
    this.#parts.fail(hookFailure(hook, error), about);
  }

  /** Drops all calls, because the process ends. */
  #abandon(): void {
    const { count, warn, maxMs } = this.#parts;
    const dropped = this.#waiting.splice(0);
    if (dropped.length > 0) warn(`${dropped.length} calls of hooks were dropped, because the server has stopped.`);
    for (const job of dropped) count(job.hook, "dropped");
    for (const job of this.#running) {
      count(job.hook, "timeout");
      this.#fail(job, new Late(maxMs));
    }
    for (const job of [...dropped, ...this.#running]) job.leave();
    this.#running.clear();
  }

  #warnOnce(hook: LateHook): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#parts.warn(
      `${hook} is slower than messages come: ${MAX_WAITING} calls wait, and more are dropped. Make it quicker, or hand over to a queue of your own; /metrics counts them.`,
    );
  }
}
