/** A time limit around what others do: the code of a project, or another server. */

/** Why `within` has not waited any longer. */
export class Late extends Error {
  constructor(ms: number) {
    super(`took longer than ${ms / 1000} seconds`);
  }
}

/** While something blocks the event loop no answer can come, so a pause of any length counts as one of several ticks. */
const TICKS = 5;

/**
 * Gives what the work comes to. Rejects after so many milliseconds, with `Late`, and when `outer` is aborted, with its
 * reason: the work's own signal is aborted then, and what it comes to later is dropped.
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
