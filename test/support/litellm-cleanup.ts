import { closeAll } from "./at-end.ts";
import type { Cleanup } from "./start-server.ts";

/** A lifetime that a test ends itself, for what takes a test's context to clean up with. */
export interface Lifetime extends Cleanup {
  /** Cleans up, the latest first, and goes on when something of it fails; then fails with the first failure. */
  end(): Promise<void>;
}

export function openLifetime(): Lifetime {
  const cleanups: (() => unknown)[] = [];
  return {
    after(cleanup?: unknown) {
      if (typeof cleanup === "function") cleanups.unshift(() => cleanup());
    },
    end: () => closeAll(cleanups.splice(0)),
  };
}
