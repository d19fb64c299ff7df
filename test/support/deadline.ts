// The real ones also where a test holds the clock.
import { clearTimeout, setTimeout } from "node:timers";
import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Far longer than anything here takes, and less than the 20 seconds that tests give what must not end by itself: a wait
 * that fails tells more than a test that hangs.
 */
export const DEADLINE_MS = 15_000;

/** For what a process does that has to be started first, or ends: with many others beside it that takes far longer. */
export const PROCESS_MS = 60_000;

/** The promise's value, or a failure that says what did not come. */
export async function within<Value>(promise: Promise<Value>, what: string, ms = DEADLINE_MS): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A promise and what settles it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** Holds something back until the test lets it go. */
export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Lets so many turns of the event loop pass: what one side of this process has written, the other side has read by then. */
export async function turns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}
