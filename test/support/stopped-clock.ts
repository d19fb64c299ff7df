/** Timers that fire only when a test advances the time. */

import type { TestContext } from "node:test";

export interface StoppedClock {
  /** Advances the time by `ms` milliseconds and runs the timers that are due, the earliest first. */
  tick(ms: number): void;
}

/**
 * Replaces all timeouts of this process until the end of the test, so that a slow machine changes nothing. Unlike the
 * timers of `t.mock.timers`, these support `refresh` on every supported Node.
 */
export function stopClock(t: TestContext): StoppedClock {
  const waiting = new Set<HeldTimeout>();
  let now = 0;

  class HeldTimeout {
    readonly call: () => void;
    readonly #ms: number;
    due = 0;

    constructor(call: () => void, ms: number) {
      this.call = call;
      this.#ms = ms;
      this.refresh();
    }

    refresh(): this {
      this.due = now + this.#ms;
      waiting.add(this);
      return this;
    }

    close(): void {
      waiting.delete(this);
    }

    ref = (): this => this;
    unref = (): this => this;
  }

  t.mock.method(
    globalThis,
    "setTimeout",
    <Given extends unknown[]>(call: (...given: Given) => void, ms = 0, ...given: Given) =>
      new HeldTimeout(() => call(...given), ms),
  );
  const { clearTimeout: clearReal } = globalThis;
  t.mock.method(globalThis, "clearTimeout", (timer: NodeJS.Timeout | HeldTimeout | undefined) => {
    if (timer instanceof HeldTimeout) timer.close();
    // Otherwise a real timer of Node's `fetch` would fire later and end the process.
    else clearReal(timer);
  });

  return {
    tick(ms) {
      const end = now + ms;
      for (;;) {
        const next = [...waiting].sort((a, b) => a.due - b.due).at(0);
        if (next === undefined || next.due > end) break;
        now = next.due;
        next.close();
        next.call();
      }
      now = end;
    },
  };
}
