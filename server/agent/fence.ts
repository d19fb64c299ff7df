/** Ends a check that takes too long, whatever it does: a promise's time limit cannot, because it would have to wait for the check. */

import { existsSync, readFileSync } from "node:fs";
import { type Context, createContext, Script } from "node:vm";
import { isRecord } from "../protocol/json.ts";

/** Why a check was ended. */
export class Ended extends Error {}

interface Limit {
  /** How long the check may keep everything else waiting, in milliseconds. */
  readonly ms: number;
  /** How often a check may start again, with more time each time, if other processes used the processor meanwhile. */
  readonly retries: number;
}

/** Only a script of `node:vm` has a time limit, which ends what it calls, too, even within a regular expression. */
const CALL = new Script("work()");
let context: Context | undefined;

/** All checks wait for one another, so the ended ones of one run may not take more than this of the time of the others. */
const MAX_ENDED_MS = 500;
const endedMs = new WeakMap<AbortSignal, number>();

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a check between two ticks of the event loop, one after the other: many do not keep others waiting longer than one.
 * A check whose run is over, by its signal, is left out.
 */
export function fenced<Value>(check: () => Value, limit: Limit, signal?: AbortSignal): Promise<Value> {
  const own = last.then(async () => {
    signal?.throwIfAborted();
    const spent = signal === undefined ? 0 : (endedMs.get(signal) ?? 0);
    if (spent >= MAX_ENDED_MS) throw new Ended("came after others that kept the server busy");
    await new Promise(setImmediate);
    try {
      return run(check, limit);
    } catch (error) {
      if (signal !== undefined && error instanceof Ended) endedMs.set(signal, spent + limit.ms);
      throw error;
    }
  });
  last = own.catch(() => {});
  return own;
}

/** @throws Ended, or what the check throws */
function run<Value>(work: () => Value, { ms, retries }: Limit): Value {
  context ??= createContext({});
  for (let attempt = 0; ; attempt++) {
    const before = cpuMs();
    try {
      context.work = work;
      return CALL.runInContext(context, { timeout: ms * (attempt + 1) });
    } catch (error) {
      if (!isTimeout(error)) throw error;
      // On a busy machine the time passes without the check: that is no fault of the arguments.
      if (attempt === retries || cpuMs() - before > 0.9 * ms) {
        throw new Ended(`kept the server busy for more than ${ms} ms`);
      }
    } finally {
      context.work = undefined;
    }
  }
}

/** Before Node 22.19, which asks the system for the time of one thread. */
const THREAD_STATISTICS = "/proc/thread-self/schedstat";

/**
 * CPU time that this thread has had, in milliseconds. Where that is not known, it is that of the whole process: with its other
 * threads, which compile and collect garbage, a check may seem to have had what they had.
 */
export function cpuMs(): number {
  const { threadCpuUsage = process.cpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage === process.cpuUsage && existsSync(THREAD_STATISTICS)) {
    return Number.parseInt(readFileSync(THREAD_STATISTICS, "utf8"), 10) / 1e6;
  }
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1000;
}

/** The error is of the script's realm, which has an `Error` of its own. */
function isTimeout(error: unknown): boolean {
  return isRecord(error) && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
