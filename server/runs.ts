import { RunAbort } from "./agent/run-abort.ts";
import type { Caller } from "./http/caller.ts";
import { ApiError } from "./protocol/api-error.ts";
import type { RunHandle } from "./routes/service.ts";

/** Keeps count of the runs in progress, so that a shutdown can wait for them and end the rest. */
export class Runs {
  readonly #running = new Set<AbortController>();
  #draining = false;
  #onIdle: (() => void) | undefined;

  get draining(): boolean {
    return this.#draining;
  }

  begin(_caller: Caller): RunHandle {
    if (this.#draining) {
      throw new ApiError("shutting_down", "The server is stopping. Please try again.", {
        retryAfter: 1,
      });
    }
    const controller = new AbortController();
    this.#running.add(controller);
    return {
      controller,
      end: () => {
        this.#running.delete(controller);
        if (this.#running.size === 0) this.#onIdle?.();
      },
    };
  }

  /** Refuses new runs, waits up to `ms` for those in progress, then ends each with an `error` event. */
  async drain(ms: number): Promise<void> {
    this.#draining = true;
    if (await this.#idleWithin(ms)) return;
    for (const controller of this.#running) controller.abort(new RunAbort("shutting_down"));
    await this.#idleWithin(LAST_EVENT_MS);
  }

  #idleWithin(ms: number): Promise<boolean> {
    if (this.#running.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}

/** For the last event of each run to be written. */
const LAST_EVENT_MS = 1_000;
