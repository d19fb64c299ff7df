/** Which runs there are. In memory here; a shared store makes the runs of several processes common to all of them. */

import { randomUUID } from "node:crypto";
import { ApiError } from "../protocol/errors.ts";
import type { Run } from "./run.ts";
import type { RunHandle } from "./run-handle.ts";

export interface RunStore {
  /**
   * Registers a run of this process under its key. If the key is taken, gives the run that has it. A run that the client has
   * not named is known to this process alone.
   */
  claim(key: string, run: Run, isNamed: boolean): Promise<RunHandle>;
  find(key: string): Promise<RunHandle | undefined>;
  /** No client can come back to a run of this process. */
  forget(key: string, run: Run): Promise<void>;
  /**
   * Remembers a name for so long, and says whether it was remembered already: of two processes that mark one name at once,
   * exactly one gets "new". @throws ApiError `overloaded` (503) where `alone` is "refuse"
   */
  mark(key: string, ms: number, kind: MarkKind): Promise<"new" | "known">;
  /** @throws ApiError as `mark` does */
  isMarked(key: string, kind: MarkKind): Promise<boolean>;
  /**
   * The name of what remembers the marks of this kind for so long from now, on its own clock: as soon as it has lost any, its
   * name is another one.
   */
  ledger(ms: number, kind: MarkKind): Promise<string>;
  /** As `mark`, in the ledger of that name alone: "lost" if it is not there any more, or late. @throws ApiError as `mark` does */
  markIn(ledger: string, key: string, kind: MarkKind): Promise<"new" | "known" | "lost">;
  /** The process ends. */
  close(): Promise<void>;
}

/** What names are marked for. */
export interface MarkKind {
  /** Names that are marked for another purpose are other names, and never drive these out. */
  purpose: string;
  /** How many names are remembered. */
  max: number;
  /**
   * While the processes cannot reach what they share, "allow" goes on with the marks of this process alone, and "refuse"
   * rejects: for what must not happen twice. Beyond `max`, "allow" forgets the oldest name, and "refuse" rejects the new one.
   */
  alone: "allow" | "refuse";
}

/** Runs that shall not start, because they were cancelled while their message was on its way. */
export const EARLY_CANCELS: MarkKind = { purpose: "cancels", max: 10_000, alone: "allow" };

/** Decisions of people on tool calls, each of which is carried out at most once. */
export const APPROVALS: MarkKind = { purpose: "approvals", max: 100_000, alone: "refuse" };

/** Longer than a body may take, unless that is set otherwise. */
export const EARLY_CANCEL_MS = 10 * 60_000;

/** It is not known whether the name is marked. The sentence is for people, `detail` for the log. */
export function cannotMark(detail: string): ApiError {
  return new ApiError("overloaded", "This is not possible at the moment. Please try again.", { retryAfter: 1, detail });
}

/** `now` counts milliseconds and never goes back. */
export function createMemoryRunStore(now: () => number = () => performance.now()): RunStore {
  const runs = new Map<string, RunHandle>();
  /** By purpose, the oldest name first, each with the time at which it is forgotten. */
  const marks = new Map<string, Map<string, number>>();

  /** Its marks are lost with the process, and never before. */
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
