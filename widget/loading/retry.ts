/** Loads a file, trying as often as necessary. */

/** The longest pause after a failure, in milliseconds: it doubles with each one, up to a minute. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** The page and the chat each have a Lit of their own, and the policy for Trusted Types allows only one of them. */
const LIT_TWICE = "Add trusted-types lit-html 'allow-duplicates'";

/** Errors of browsers and bundlers for a file that did not arrive; some are events. Any other is thrown by the file. */
const UNREACHABLE = /module|chunk|load|fetch|\[object/i;

/** Whether the file has arrived and thrown this error, which it would do again. Logs the error. */
export function isBroken(error: unknown): boolean {
  const reason = String(error);
  if (UNREACHABLE.test(reason)) return false;
  console.error(/lit-html/.test(reason) ? LIT_TWICE : error);
  return true;
}

/** `attempt` gets the number of failures so far. Resolves with `undefined` when the signal aborts, or `isOver` returns true. */
export async function retry<Result>(
  attempt: (failures: number) => Promise<Result>,
  isOver: (error: unknown) => boolean,
  signal?: AbortSignal,
  onFailure?: () => void,
): Promise<Result | undefined> {
  for (let failures = 0; !signal?.aborted; failures += 1) {
    try {
      return await attempt(failures);
    } catch (error) {
      onFailure?.();
      if (isOver(error)) break;
      await pause(Math.random() * Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS));
    }
  }
  return undefined;
}

/** Ends early when the network is back. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      removeEventListener("online", end);
      resolve();
    };
    setTimeout(end, ms);
    addEventListener("online", end);
  });
}
