/** A time limit around what others do: the code of a project, or another server. */

/** The error of `within` when the time is up. */
export class Late extends Error {
  constructor(ms: number) {
    super(`took longer than ${ms / 1000} seconds`);
  }
}

/** While the event loop is blocked no answer can come, so a pause of any length counts as one of several ticks. */
const TICKS = 5;

/**
 * Resolves or rejects as `work` does. Rejects with `Late` after `ms`, and with the reason of `outer` when that is
 * aborted: the signal of `work` is aborted then, and its later result is dropped.
 */
export async function within<Value>(
  work: (signal: AbortSignal) => Value | PromiseLike<Value>,
  ms: number,
  outer?: AbortSignal,
): Promise<Value> {
  const late = new AbortController();
  const signal = outer === undefined ? late.signal : AbortSignal.any([outer, late.signal]);
  signal.throwIfAborted();
  let ticks = 0;
  const timer = setTimeout(() => {
    if (++ticks === TICKS) late.abort(new Late(ms));
    else timer.refresh();
  }, ms / TICKS);
  let giveUp = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(signal.reason);
    signal.addEventListener("abort", giveUp);
  });
  try {
    return await Promise.race([aborted, (async () => work(signal))()]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }
}
