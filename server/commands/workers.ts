/** `parley start --workers`: several processes that serve one port, and the one that looks after them. */

import cluster, { type Worker } from "node:cluster";
import type { Environment } from "../config/settings.ts";
import { collectWorkerMetrics } from "../observe/worker-metrics.ts";
import { onHangup } from "../process-life.ts";

/** A worker that ends without a signal is replaced after this time, and after twice as long each further time. */
const FIRST_RESTART_MS = 500;
const MAX_RESTART_MS = 30_000;

/** A worker that served for so long was healthy. */
const HEALTHY_MS = 60_000;

/** Starts workers with the arguments of this process and these variables, replaces those that end, and hands signals on. Never resolves. */
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
      // A mistake that stops one worker at the start would stop all, each with the same sentence.
      for (let index = 1; index < count; index++) fork();
    });
    // One that is still starting dies of the signal that stops all, which is no failure.
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
      // One that is still starting would die of it, and may have read its files before they changed.
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
