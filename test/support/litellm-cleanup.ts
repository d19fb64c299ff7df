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
    async end() {
      const failures: unknown[] = [];
      for (const cleanup of cleanups.splice(0)) {
        try {
          await cleanup();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
