/** Loading a file as often as it takes. */

/** The longest pause after a failure, in milliseconds: it doubles with each one, up to a minute. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** The page and the chat have a Lit each, and a policy for Trusted Types that allows only one of them. */
const LIT_TWICE = "Add trusted-types lit-html 'allow-duplicates'";

/** How browsers and bundlers say that a file did not come; some throw an event. The rest is thrown by the file. */
const UNREACHABLE = /module|chunk|load|fetch|\[object/i;

/** Whether the file came, and has thrown this: it would do so again. The console says it. */
export function isBroken(error: unknown): boolean {
  const reason = String(error);
  if (UNREACHABLE.test(reason)) return false;
  console.error(/lit-html/.test(reason) ? LIT_TWICE : error);
  return true;
}

/** `attempt` gets the number of failures so far. Resolves without a result when the signal aborts, or when `isOver` says so of an error. */
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
