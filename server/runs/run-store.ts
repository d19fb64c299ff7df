/** Which runs there are. In memory here; a shared store makes the runs of several processes common to all of them. */

import type { Run, RunHandle } from "./run.ts";

export interface RunStore {
  /**
   * Registers a run of this process under its key. If the key is taken, gives the run that has it. A run that the client has
   * not named is known to this process alone.
   */
  claim(key: string, run: Run, isNamed: boolean): Promise<RunHandle>;
  find(key: string): Promise<RunHandle | undefined>;
  /** No client can come back to a run of this process. */
  forget(key: string, run: Run): Promise<void>;
  /** Remembers that a run shall not start: its message may still be on its way. */
  cancelEarly(key: string): Promise<void>;
  /** May be asked again, because a message can be sent twice. */
  isCancelledEarly(key: string): Promise<boolean>;
  /** The process ends. */
  close(): Promise<void>;
}

export const MAX_EARLY_CANCELS = 10_000;

/** Longer than a body may take, unless that is set otherwise. */
export const EARLY_CANCEL_MS = 10 * 60_000;

/** `now` counts milliseconds and never goes back. */
export function createMemoryRunStore(now: () => number = () => performance.now()): RunStore {
  const runs = new Map<string, RunHandle>();
  /** The oldest first, each with the time at which it is forgotten. */
  const cancels = new Map<string, number>();

  return {
    async claim(key, run) {
      const owner = runs.get(key);
      if (owner !== undefined) return owner;
      runs.set(key, run);
      return run;
    },

    find: async (key) => runs.get(key),

    async forget(key, run) {
      // The name may belong to another run by now.
      if (runs.get(key) === run) runs.delete(key);
    },

    async cancelEarly(key) {
      cancels.delete(key);
      for (const [oldest, until] of cancels) {
        if (until > now() && cancels.size < MAX_EARLY_CANCELS) break;
        cancels.delete(oldest);
      }
      cancels.set(key, now() + EARLY_CANCEL_MS);
    },

    isCancelledEarly: async (key) => (cancels.get(key) ?? 0) > now(),

    async close() {},
  };
}
