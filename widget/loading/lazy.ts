/** Parts of the element that are loaded when they are first needed, and again after they could not be loaded. */

/** The longest pause after a failure, in milliseconds: it doubles with each one, up to a minute. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;

/** The page and the chat have a Lit each, and a policy for Trusted Types that allows only one of them. */
const LIT_TWICE = "Add trusted-types lit-html 'allow-duplicates'";

export interface Lazy<Module> {
  /** Loads it now, once for all callers. Rejects if that fails; the next call tries again, unless the file is broken. */
  load(): Promise<Module>;
  /** Loads it, however often that has to be tried. Resolves without it when the signal aborts, or if it is broken. */
  loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined>;
}

/** How browsers and bundlers say that a file did not come; some throw an event. The rest is thrown by the file. */
const UNREACHABLE = /module|chunk|load|fetch|\[object/i;

/** `load` imports a literal address, for the build to see it; `exported` is the name of an export of that module. */
export function lazy<Module>(load: () => Promise<Module>, exported?: keyof Module): Lazy<Module> {
  let loading: Promise<Module> | undefined;
  let failures = 0;
  let failedUrl: string | undefined;
  let isBroken = false;

  async function tryOnce(): Promise<Module> {
    try {
      return await (failedUrl ? loadAgain(`${failedUrl}#${failures}`) : load());
    } catch (error) {
      const reason = String(error);
      isBroken = !UNREACHABLE.test(reason);
      if (isBroken) console.error(/lit-html/.test(reason) ? LIT_TWICE : error);
      else loading = undefined;
      failures += 1;
      // Chromium up to 150 or so never requests a module again that it could not load, except under another address.
      failedUrl = /module: (http\S+)$/.exec(reason)?.[1];
      throw error;
    }
  }

  /** Bundlers shall not look for a file of this name. What some of them have written there is no module of ours. */
  async function loadAgain(url: string): Promise<Module> {
    const module = await import(/* webpackIgnore: true */ /* @vite-ignore */ url);
    if (exported && !(exported in module)) throw new Error("module");
    return module;
  }

  function loadNow(): Promise<Module> {
    loading ??= tryOnce();
    return loading;
  }

  async function loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined> {
    while (!signal?.aborted) {
      try {
        return await loadNow();
      } catch {
        onFailure?.();
        if (isBroken) return undefined;
        await pause(Math.random() * Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS), signal);
      }
    }
    return undefined;
  }

  return { load: loadNow, loadEventually };
}

/** Ends early when the network is back. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      removeEventListener("online", end);
      resolve();
    };
    setTimeout(end, ms);
    addEventListener("online", end);
    signal?.addEventListener("abort", end);
  });
}
