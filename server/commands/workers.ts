/** `parley start --workers`: several processes that serve one port, and their supervisor. */

import cluster, { type Worker } from "node:cluster";
import type { Environment } from "../config/settings.ts";
import { collectWorkerMetrics } from "../observe/worker-metrics.ts";
import { onHangup } from "../process-life.ts";

/** A worker that ends without a signal is replaced after this time, and after twice as long each further time. */
const FIRST_RESTART_MS = 500;
const MAX_RESTART_MS = 30_000;

/** A worker that ran for this long was healthy: the next restart is quick again. */
const HEALTHY_MS = 60_000;

/** Starts workers with this process' arguments and these variables, replaces them, and forwards signals. Never resolves. */
export function superviseWorkers(count: number, env: Environment): Promise<never> {
  let isStopping = false;
  let hasServed = false;
  let restartMs = FIRST_RESTART_MS;
  const serving = new Set<Worker>();

  function fork(): void {
    const startedAt = performance.now();
    const worker = cluster.fork(env);
    worker.once("listening", () => {
      serving.add(worker);
      if (hasServed) return;
      hasServed = true;
      // A mistake that stops the first worker at its start would stop each of them, with the same message.
      for (let index = 1; index < count; index++) fork();
    });
    // A worker that is still starting is killed by the signal that stops all, which is not a failure.
    worker.once("exit", (code) => {
      onExit(worker, isStopping && !serving.has(worker) ? 0 : (code ?? 1), startedAt);
      serving.delete(worker);
    });
  }

  function onExit(worker: Worker, code: number, startedAt: number): void {
    if (isStopping || !hasServed) {
      process.exitCode ||= code;
      if (workers().length === 0) process.exit();
      return;
    }
    if (performance.now() - startedAt > HEALTHY_MS) restartMs = FIRST_RESTART_MS;
    process.stderr.write(`parley: worker ${worker.process.pid} ended and is replaced.\n`);
    setTimeout(() => {
      if (!isStopping) fork();
    }, restartMs);
    restartMs = Math.min(restartMs * 2, MAX_RESTART_MS);
  }

  const signalAll = (signal: NodeJS.Signals) => {
    for (const worker of workers()) worker.process.kill(signal);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      isStopping = true;
      // All may have died, and wait to be replaced.
      if (workers().length === 0) process.exit();
      signalAll(signal);
    });
  }
  onHangup(() => {
    for (const worker of workers()) {
      const reload = () => worker.process.kill("SIGHUP");
      // A worker that is still starting would be killed by it, and may have read its files before they changed.
      if (serving.has(worker)) reload();
      else worker.once("listening", reload);
    }
  });
  collectWorkerMetrics();
  fork();
  return new Promise(() => {});
}

function workers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}
