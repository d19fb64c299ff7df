/** One page of metrics for several workers: each may be asked by Prometheus, and answers for all of them. */

import cluster, { type Worker } from "node:cluster";

/** What workers and their supervisor say to each other. */
type Message =
  | { type: "collect-metrics"; id: number }
  | { type: "collected-metrics"; id: number; page: string }
  | { type: "render-metrics"; id: number }
  | { type: "rendered-metrics"; id: number; page: string };

/** A worker that does not answer in time is left out. */
const ANSWER_MS = 1000;

/** In a worker: gives the page of all workers. */
export function pageOfAllWorkers(render: () => string): () => Promise<string> {
  const waiting = new Map<number, (page: string) => void>();
  let lastId = 0;
  process.on("message", (message: Message) => {
    if (message.type === "render-metrics") process.send?.({ type: "rendered-metrics", id: message.id, page: render() });
    if (message.type === "collected-metrics") waiting.get(message.id)?.(message.page);
  });
  return () =>
    new Promise((resolve) => {
      const id = ++lastId;
      const settle = (page: string) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(page);
      };
      const timer = setTimeout(() => settle(render()), 2 * ANSWER_MS);
      waiting.set(id, settle);
      process.send?.({ type: "collect-metrics", id });
    });
}

/** In the supervisor: asks all workers when one of them is asked. */
export function collectWorkerMetrics(): void {
  let lastId = 0;
  const waiting = new Map<number, (page: string) => void>();
  const pageOf = (worker: Worker) =>
    new Promise<string>((resolve) => {
      const id = ++lastId;
      const settle = (page: string) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(page);
      };
      const timer = setTimeout(() => settle(""), ANSWER_MS);
      waiting.set(id, settle);
      // A worker may have died a moment ago: without a listener the error would end the supervisor.
      worker.send({ type: "render-metrics", id }, (error) => error && settle(""));
    });
  cluster.on("message", (asker: Worker, message: Message) => {
    if (message.type === "rendered-metrics") waiting.get(message.id)?.(message.page);
    if (message.type !== "collect-metrics") return;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected() === true);
    void Promise.all(workers.map((worker) => pageOf(worker as Worker))).then((pages) => {
      const answer = { type: "collected-metrics", id: message.id, page: mergePages(pages) };
      if (asker.isConnected()) asker.send(answer, () => {});
    });
  });
}

/** Of these the largest or the smallest value counts, of all others the sum. */
const LARGEST = /^nodejs_eventloop_lag/;
const SMALLEST = /^(?:process_start_time_seconds|parley_redis_up)\b/;

/** Joins pages in Prometheus' text format, series by series. */
export function mergePages(pages: readonly string[]): string {
  const comments = new Set<string>();
  const values = new Map<string, number>();
  const order: string[] = [];
  for (const line of pages.flatMap((page) => page.split("\n"))) {
    if (line === "") continue;
    if (line.startsWith("#")) {
      if (!comments.has(line)) order.push(line);
      comments.add(line);
      continue;
    }
    const end = line.lastIndexOf(" ");
    const [series, value] = [line.slice(0, end), Number(line.slice(end + 1))];
    const before = values.get(series);
    values.set(series, before === undefined ? value : joined(series, before, value));
    if (before === undefined) order.push(series);
  }
  return `${grouped(order, values).join("\n")}\n`;
}

function joined(series: string, one: number, other: number): number {
  if (LARGEST.test(series)) return Math.max(one, other);
  return SMALLEST.test(series) ? Math.min(one, other) : one + other;
}

/** A series that only a later page has stands with those of its metric, as the format demands. */
function grouped(order: readonly string[], values: ReadonlyMap<string, number>): string[] {
  const metrics = new Map<string, string[]>();
  for (const entry of order) {
    const name = entry.startsWith("#") ? (entry.split(" ")[2] ?? "") : metricOf(entry, metrics);
    const lines = metrics.get(name) ?? [];
    lines.push(entry.startsWith("#") ? entry : `${entry} ${values.get(entry)}`);
    metrics.set(name, lines);
  }
  return [...metrics.values()].flat();
}

/** `parley_run_duration_seconds_bucket{le="1"}` belongs to `parley_run_duration_seconds`. */
function metricOf(series: string, known: ReadonlyMap<string, unknown>): string {
  const name = series.replace(/\{.*$/, "");
  const base = name.replace(/_(?:bucket|sum|count)$/, "");
  return known.has(base) ? base : name;
}
