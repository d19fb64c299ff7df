/** Parts of the element that are loaded when they are first needed, and again after they could not be loaded. */

/** The longest pause before the second try, in milliseconds. It doubles with each further one, up to a minute. */
const RETRY_MS = 1_000;
const MAX_DOUBLINGS = 6;

export interface Lazy<Module> {
  /** The module, once it has been loaded. */
  readonly module: Module | undefined;
  /** Loads it now, once for all callers. Rejects if that fails; the next call tries again. */
  load(): Promise<Module>;
  /** Loads it, however often that has to be tried. Resolves without it when the signal aborts. */
  loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined>;
}

/** `load` imports a literal address, for the build to see it. */
export function lazy<Module>(load: () => Promise<Module>): Lazy<Module> {
  let module: Module | undefined;
  let loading: Promise<Module> | undefined;
  let failures = 0;
  let failedUrl: string | undefined;

  async function tryOnce(): Promise<Module> {
    try {
      module = await (failedUrl === undefined ? load() : import(`${failedUrl}#${failures}`));
      return module as Module;
    } catch (error) {
      failures += 1;
      // A mistake in the module, and not on the way to it: the page's author has to know.
      if (failures === 1 && !/module/i.test(String(error))) console.error(error);
      // Chromium never requests a module again that it could not load, except under another address.
      failedUrl ??= /https?:[^\s#]+/.exec(String(error))?.[0];
      loading = undefined;
      throw error;
    }
  }

  function loadNow(): Promise<Module> {
    loading ??= tryOnce();
    return loading;
  }

  async function loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined> {
    for (let tries = 0; !signal?.aborted; tries++) {
      try {
        return await loadNow();
      } catch {
        onFailure?.();
        await pause(Math.random() * RETRY_MS * 2 ** Math.min(tries, MAX_DOUBLINGS), signal);
      }
    }
    return undefined;
  }

  return {
    get module() {
      return module;
    },
    load: loadNow,
    loadEventually,
  };
}

/** Ends early when the network is back. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    signal?.addEventListener("abort", end);
  });
}
