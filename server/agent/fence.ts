/** Ends a synchronous check that takes too long. A timer cannot, because it would have to wait for the check. */

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

/** Only a `node:vm` script has a time limit that also ends the functions it calls, even within a regular expression. */
const CALL = new Script("work()");
let context: Context | undefined;

/** Checks run one after another, so those of one run that are ended may take no more than this in total. */
const MAX_ENDED_MS = 500;
const endedMs = new WeakMap<AbortSignal, number>();

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs checks one after another, each in its own turn of the event loop, so that many checks block other work no longer
 * than one does. Rejects without running the check if `signal` is aborted.
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
      // On a busy machine time passes while the check does not run, which is no fault of the arguments.
      if (attempt === retries || cpuMs() - before > 0.9 * ms) {
        throw new Ended(`kept the server busy for more than ${ms} ms`);
      }
    } finally {
      context.work = undefined;
    }
  }
}

/** For Node before 22.19, which has no `process.threadCpuUsage`. */
const THREAD_STATISTICS = "/proc/thread-self/schedstat";

/**
 * CPU time of this thread, in milliseconds. If that is not known, the CPU time of the whole process: a check may then
 * seem to have used the time of other threads as well, which compile and collect garbage.
 */
export function cpuMs(): number {
  const { threadCpuUsage = process.cpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage === process.cpuUsage && existsSync(THREAD_STATISTICS)) {
    return Number.parseInt(readFileSync(THREAD_STATISTICS, "utf8"), 10) / 1e6;
  }
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1000;
}

/** `instanceof` would not work: the error is from the script's realm, which has its own `Error`. */
function isTimeout(error: unknown): boolean {
  return isRecord(error) && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
