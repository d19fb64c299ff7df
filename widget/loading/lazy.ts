/** Parts of the element that are loaded when they are first needed, and again after a failure. */

import { missingParts } from "./missing.ts";
import { isBroken, retry } from "./retry.ts";

/** Does something while the page has nothing else to do. Safari has no idle callbacks. */
export const whenIdle: (work: () => void) => void =
  globalThis.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 100));

export interface Lazy<Module> {
  /** Loads it now, once for all callers. Rejects if that fails; the next call tries again, unless the file is broken or gone. */
  load(): Promise<Module>;
  /** Loads it, trying as often as necessary. Resolves with `undefined` when the signal aborts, or if it is broken or gone. */
  loadEventually(signal?: AbortSignal, onFailure?: () => void): Promise<Module | undefined>;
}

/** `load` imports a literal address, for the build to see it; `exported` is the name of an export of that module. */
export function lazy<Module>(load: () => Promise<Module>, exported?: keyof Module): Lazy<Module> {
  let loading: Promise<Module> | undefined;
  /** Number of failures in a row while online. */
  let failures = 0;
  let failedUrl: string | undefined;
  /** Whether another request would be useless. */
  let isOver = false;

  async function tryOnce(): Promise<Module> {
    try {
      const module = await (failedUrl ? loadAgain(`${failedUrl}#${Date.now()}`) : load());
      missingParts.loaded(part);
      return module;
    } catch (error) {
      await failed(error);
      if (!isOver) loading = undefined;
      throw error;
    }
  }

  async function failed(error: unknown): Promise<void> {
    if (isBroken(error)) {
      isOver = true;
      missingParts.block(part);
      return;
    }
    // After a failure a browser may never request a module again, except under another address.
    failedUrl = /module: (http[^\s#]+)\S*$/.exec(String(error))?.[1];
    failures = navigator.onLine === false ? 0 : failures + 1;
    if (failures > 0) isOver = await missingParts.failed(part, failures, /http[^\s#)]+/.exec(String(error))?.[0]);
  }

  /** Bundlers must not resolve this import. Some have other files at this address, which are no modules of ours. */
  async function loadAgain(url: string): Promise<Module> {
    const module = await import(/* webpackIgnore: true */ /* @vite-ignore */ url);
    if (exported && !(exported in module)) throw new Error("module");
    return module;
  }

  function loadNow(): Promise<Module> {
    loading ??= tryOnce();
    return loading;
  }

  const part: Lazy<Module> = {
    load: loadNow,
    loadEventually: (signal, onFailure) => retry(loadNow, () => isOver, signal, onFailure),
  };
  return part;
}
