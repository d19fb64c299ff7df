/** Finds runs by their key. In memory here; a shared store does so for the runs of several processes. */

import { randomUUID } from "node:crypto";
import { ApiError } from "../protocol/errors.ts";
import type { Run } from "./run.ts";
import type { RunHandle } from "./run-handle.ts";

export interface RunStore {
  /**
   * Registers a run of this process under its key. If the key is taken, resolves with the run that has it. A run that
   * the client has not named is known to this process only.
   */
  claim(key: string, run: Run, isNamed: boolean): Promise<RunHandle>;
  find(key: string): Promise<RunHandle | undefined>;
  /** Removes a run of this process that no client can come back to. */
  forget(key: string, run: Run): Promise<void>;
  /**
   * Remembers a name for `ms`, and resolves with whether it was remembered already: of two processes that mark one name
   * at once, exactly one gets "new". @throws ApiError `overloaded` (503) where `alone` is "refuse"
   */
  mark(key: string, ms: number, kind: MarkKind): Promise<"new" | "known">;
  /** @throws ApiError as `mark` does */
  isMarked(key: string, kind: MarkKind): Promise<boolean>;
  /**
   * The name of the ledger that remembers marks of this kind for `ms` from now, by its own clock. As soon as it has
   * lost a mark, its name changes.
   */
  ledger(ms: number, kind: MarkKind): Promise<string>;
  /** As `mark`, in this ledger alone: "lost" if it no longer exists or has expired. @throws ApiError as `mark` does */
  markIn(ledger: string, key: string, kind: MarkKind): Promise<"new" | "known" | "lost">;
  /** Called when the process ends. */
  close(): Promise<void>;
}

/** A purpose for which names are marked, and its limits. */
export interface MarkKind {
  /** Each purpose has its own names: those of another purpose never evict them. */
  purpose: string;
  /** How many names are remembered. */
  max: number;
  /**
   * While the shared store cannot be reached, "allow" uses the marks of this process only, and "refuse" rejects, for
   * what must not happen twice. Beyond `max`, "allow" forgets the oldest name, and "refuse" rejects the new one.
   */
  alone: "allow" | "refuse";
}

/** Runs that must not start, because they were cancelled before their message arrived. */
export const EARLY_CANCELS: MarkKind = { purpose: "cancels", max: 10_000, alone: "allow" };

/** People's decisions on tool calls; each is applied at most once. */
export const APPROVALS: MarkKind = { purpose: "approvals", max: 100_000, alone: "refuse" };

/** Longer than a body may take, unless that is set otherwise. */
export const EARLY_CANCEL_MS = 10 * 60_000;

/** The error if it is not known whether a name is marked. The sentence is for people, `detail` for the log. */
export function cannotMark(detail: string): ApiError {
  return new ApiError("overloaded", "This is not possible at the moment. Please try again.", { retryAfter: 1, detail });
}

/** `now` counts milliseconds and never goes back. */
export function createMemoryRunStore(now: () => number = () => performance.now()): RunStore {
  const runs = new Map<string, RunHandle>();
  /** By purpose: names, the oldest first, each with the time at which it is forgotten. */
  const marks = new Map<string, Map<string, number>>();

  /** The id of this process' ledger, which loses marks only when the process ends. */
  const ledger = randomUUID();

  function markIn(name: string, key: string, kind: MarkKind): "new" | "known" | "lost" {
    const [id, until] = name.split(".");
    const ms = Number(until) - now();
    return id === ledger && ms > 0 ? mark(key, ms, kind) : "lost";
  }

  const isMarked = (key: string, { purpose }: MarkKind) => (marks.get(purpose)?.get(key) ?? 0) > now();

  function mark(key: string, ms: number, kind: MarkKind): "new" | "known" {
    const { purpose, max, alone } = kind;
    const known = isMarked(key, kind);
    const names = marks.get(purpose) ?? new Map<string, number>();
    marks.set(purpose, names);
    names.delete(key);
    if (names.size >= max) for (const [name, until] of names) if (until <= now()) names.delete(name);
    if (names.size >= max) {
      if (alone === "refuse") throw cannotMark(`There are ${max} ${purpose} already.`);
      for (const oldest of names.keys()) if (names.size >= max) names.delete(oldest);
    }
    names.set(key, now() + ms);
    return known ? "known" : "new";
  }

  return {
    async claim(key, run) {
      const owner = runs.get(key);
      if (owner !== undefined) return owner;
      runs.set(key, run);
      return run;
    },

    find: async (key) => runs.get(key),

    async forget(key, run) {
      // The name may belong to another run by now.
      if (runs.get(key) === run) runs.delete(key);
    },

    mark: async (...args) => mark(...args),
    isMarked: async (...args) => isMarked(...args),
    ledger: async (ms) => `${ledger}.${Math.floor(now() + ms)}`,
    markIn: async (...args) => markIn(...args),

    async close() {},
  };
}
