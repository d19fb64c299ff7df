/** Time that passes when a test says so. */

import type { TestContext } from "node:test";

export interface StoppedClock {
  /** Lets so many milliseconds pass at once: what is due by then happens, the earliest first. */
  tick(ms: number): void;
}

/**
 * Holds every time-out of this process until the test lets time pass: a slow machine then changes nothing.
 * Unlike those of `t.mock.timers`, the time-outs can be wound up again on every supported Node (`refresh`).
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
    // Otherwise a connection of Node's `fetch`, which has cleared it, would end the process later.
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
