// Real timers, even where a test replaces the global ones.
import { clearTimeout, setTimeout } from "node:timers";
import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Much longer than any step of a test takes, but below the limit of 20 seconds per test: a failed wait says more than a
 * test that times out.
 */
export const DEADLINE_MS = 15_000;

/** For waits on a process that starts or ends, which take far longer on a busy machine. */
export const PROCESS_MS = 60_000;

/** Returns the promise's value; after `ms` milliseconds, rejects with an error that names `what`. */
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

/** A promise and the function that resolves it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** A gate at which code can wait until the test opens it. */
export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Waits for a number of turns of the event loop: enough for data written in this process to arrive in this process. */
export async function turns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}
