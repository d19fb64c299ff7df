/** Parts of the element that are loaded when they are first needed, and again after they could not be loaded. */

/** The longest pause after a failure, in milliseconds: it doubles with each one, up to a minute. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;

/** The page and the chat have a Lit each, and a policy for Trusted Types that allows only one of them. */
const LIT_TWICE = "Add trusted-types lit-html 'allow-duplicates'";

export interface Lazy<Module> {
  /** Loads it now, once for all callers. Rejects if that fails; the next call tries again, unless the file is broken or gone. */
  load(): Promise<Module>;
  /** Loads it, however often that has to be tried. Resolves without it when the signal aborts, or if it is broken or gone. */
  loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined>;
}

/** Hears of what cannot be loaded: `missing.ts`, with the chat. */
export interface Watcher {
  /** A file could not be loaded, so many times in a row, or is broken. Resolves with whether it is gone for good. */
  failed(part: object, failures: number, url?: string): Promise<boolean>;
  loaded(part: object): void;
}

let watcher: Watcher | undefined;

export function watchLoading(by: Watcher): void {
  watcher = by;
}

/** How browsers and bundlers say that a file did not come; some throw an event. The rest is thrown by the file. */
const UNREACHABLE = /module|chunk|load|fetch|\[object/i;

/** `load` imports a literal address, for the build to see it; `exported` is the name of an export of that module. */
export function lazy<Module>(load: () => Promise<Module>, exported?: keyof Module): Lazy<Module> {
  let loading: Promise<Module> | undefined;
  let failures = 0;
  let failedUrl: string | undefined;
  /** Whether nothing would come of another request. */
  let isOver = false;

  async function tryOnce(): Promise<Module> {
    try {
      const module = await (failedUrl ? loadAgain(`${failedUrl}#${Date.now()}`) : load());
      watcher?.loaded(part);
      return module;
    } catch (error) {
      await failed(error);
      if (!isOver) loading = undefined;
      throw error;
    }
  }

  async function failed(error: unknown): Promise<void> {
    const reason = String(error);
    const isBroken = !UNREACHABLE.test(reason);
    if (isBroken) console.error(/lit-html/.test(reason) ? LIT_TWICE : error);
    // A browser may never request a module again that it could not load, except under another address.
    failedUrl = /module: (http[^\s#]+)\S*$/.exec(reason)?.[1];
    failures = isOffline() ? 0 : isBroken ? Number.POSITIVE_INFINITY : failures + 1;
    const url = isBroken ? "" : /http[^\s#)]+/.exec(reason)?.[0];
    const isGone = failures > 0 && (await watcher?.failed(part, failures, url));
    isOver = isBroken || isGone === true;
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
        if (isOver) return undefined;
        await pause(
          isOffline() ? MAX_RETRY_MS : Math.random() * Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS),
          signal,
        );
      }
    }
    return undefined;
  }

  const part = { load: loadNow, loadEventually };
  return part;
}

function isOffline(): boolean {
  return navigator.onLine === false;
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
