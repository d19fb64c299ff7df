/** What Prometheus' own clients tell of a process, by their names, so that existing dashboards fit. */

import { readdirSync } from "node:fs";
import type { IntervalHistogram } from "node:perf_hooks";
import type { Registry } from "./registry.ts";

/** Milliseconds between two looks at the event loop. */
const RESOLUTION_MS = 10;

/** Milliseconds until that is done: the start itself is one long delay, and has not to wait for this. */
const BEGIN_MS = 250;

const NANOSECONDS = 1e9;

/** Returns what stops the measuring. */
export function addProcessMetrics(registry: Registry): () => void {
  const gauge: Registry["gauge"] = (...metric) => registry.gauge(...metric);
  gauge(
    "process_cpu_seconds_total",
    "Processor time of the process, in seconds.",
    () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
    { kind: "counter" },
  );
  const startedAt = Date.now() / 1000 - process.uptime();
  gauge("process_start_time_seconds", "When the process started, in Unix time.", () => startedAt);
  gauge("process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
  gauge("process_open_fds", "Open file descriptors; Linux only.", openFiles);
  const heap = () => process.memoryUsage();
  gauge("nodejs_heap_size_used_bytes", "Heap in use.", () => heap().heapUsed);
  gauge("nodejs_heap_size_total_bytes", "Heap that was taken.", () => heap().heapTotal);
  gauge("nodejs_external_memory_bytes", "Memory beside the heap.", () => heap().external);
  return addEventLoopDelay(registry);
}

function addEventLoopDelay(registry: Registry): () => void {
  let delay: IntervalHistogram | undefined;
  const begin = () => {
    const { monitorEventLoopDelay } = process.getBuiltinModule("node:perf_hooks");
    delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    delay.enable();
  };
  const timer = setTimeout(begin, BEGIN_MS).unref();
  const seconds = (nanoseconds = 0) => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / NANOSECONDS) : 0);
  const what = "of the event loop's delays since the last scrape, in seconds.";
  registry.gauge("nodejs_eventloop_lag_mean_seconds", `Mean ${what}`, () => seconds(delay?.mean));
  registry.gauge("nodejs_eventloop_lag_p50_seconds", `Median ${what}`, () => seconds(delay?.percentile(50)));
  registry.gauge("nodejs_eventloop_lag_p99_seconds", `99th percentile ${what}`, () => seconds(delay?.percentile(99)));
  // Read last: the next scrape tells of what comes from here on.
  registry.gauge("nodejs_eventloop_lag_max_seconds", `Longest ${what}`, () => {
    const longest = seconds(delay?.max);
    delay?.reset();
    return longest;
  });
  return () => {
    clearTimeout(timer);
    delay?.disable();
  };
}

function openFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}
