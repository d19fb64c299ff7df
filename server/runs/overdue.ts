import { abortKind } from "../agent/run-abort.ts";
import { ApiError } from "../protocol/api-error.ts";

/** How long a run that was told to end may take to do so. One that listens takes milliseconds. */
const PATIENCE_MS = 1_000;

/**
 * Waits for work that must end when the signal is aborted, and not for ever if it does not: a model that does
 * not listen must not keep a place that others wait for. @throws ApiError that says how such a run ends.
 */
export async function endsWhenAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort = () => {};
  const overdue = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      timer = setTimeout(() => reject(endOf(signal)), PATIENCE_MS);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  // Nobody waits any more for how it ends.
  work.catch(() => {});
  try {
    await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function endOf(signal: AbortSignal): ApiError {
  switch (abortKind(signal)) {
    case "shutting_down":
      return new ApiError("shutting_down", "The server is stopping. Please try again.", {
        retryAfter: 1,
      });
    case "revoked":
      return new ApiError("unauthorized", "This key may no longer be used.");
    default:
      return new ApiError("provider_timeout", "The model did not stop when it was told to.");
  }
}
