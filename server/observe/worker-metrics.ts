/** One page of metrics for several workers: Prometheus may ask any of them, which answers for all. */

import cluster, { type Worker } from "node:cluster";
import { within } from "../config/within.ts";
import type { Family } from "./metrics.ts";

/** Messages between workers and their supervisor. */
type Message =
  | { type: "collect-metrics" | "read-metrics"; id: number }
  | { type: "collected-metrics" | "own-metrics"; id: number; families: Family[] };

/** A worker that does not answer in time is left out. */
const ANSWER_MS = 1000;

/** Questions to other processes, which wait for their answers for a limited time. */
class Questions {
  readonly #waiting = new Map<number, (families: Family[]) => void>();
  #lastId = 0;

  /** `send` asks under this id. Without an answer in time, resolves with `otherwise()`. */
  ask(send: (id: number) => void, maxMs: number, otherwise: () => Family[]): Promise<Family[]> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<Family[]>((resolve) => this.#waiting.set(id, resolve));
    const asking = () => {
      send(id);
      return answered;
    };
    return within(asking, maxMs)
      .catch(otherwise)
      .finally(() => this.#waiting.delete(id));
  }

  answer(id: number, families: Family[]): void {
    this.#waiting.get(id)?.(families);
  }
}

/** In a worker: returns a function that asks for the metrics of all workers. */
export function metricsOfAllWorkers(read: () => Family[]): () => Promise<Family[]> {
  const questions = new Questions();
  process.on("message", (message: Message) => {
    if (message.type === "read-metrics") process.send?.({ type: "own-metrics", id: message.id, families: read() });
    if (message.type === "collected-metrics") questions.answer(message.id, message.families);
  });
  return () => questions.ask((id) => process.send?.({ type: "collect-metrics", id }), 2 * ANSWER_MS, read);
}

/** In the supervisor: asks all workers when one of them is asked. */
export function collectWorkerMetrics(): void {
  const questions = new Questions();
  const metricsOf = (worker: Worker) =>
    questions.ask(
      // A worker may just have died: without this callback, the error would end the supervisor.
      (id) => worker.send({ type: "read-metrics", id }, (error) => error && questions.answer(id, [])),
      ANSWER_MS,
      () => [],
    );
  cluster.on("message", async (asker: Worker, message: Message) => {
    if (message.type === "own-metrics") questions.answer(message.id, message.families);
    if (message.type !== "collect-metrics") return;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected() === true);
    const all = await Promise.all(workers.map((worker) => metricsOf(worker as Worker)));
    const answer = { type: "collected-metrics", id: message.id, families: mergeFamilies(all.flat()) };
    if (asker.isConnected()) asker.send(answer, () => {});
  });
}

/** Of these series, the largest or the smallest value is used; all others are added up. */
const LARGEST = /^nodejs_eventloop_lag/;
const SMALLEST = /^(?:process_start_time_seconds|parley_redis_up|parley_mcp_up)\b/;

/** Joins the metrics of several processes, series by series. */
function mergeFamilies(all: readonly Family[]): Family[] {
  const merged = new Map<string, Map<string, number>>();
  for (const { head, samples } of all) {
    const values = merged.get(head) ?? new Map<string, number>();
    merged.set(head, values);
    for (const [series, value] of samples) values.set(series, joined(series, values.get(series), value));
  }
  return [...merged].map(([head, values]) => ({ head, samples: [...values] }));
}

function joined(series: string, before: number | undefined, value: number): number {
  if (before === undefined) return value;
  if (LARGEST.test(series)) return Math.max(before, value);
  return SMALLEST.test(series) ? Math.min(before, value) : before + value;
}
