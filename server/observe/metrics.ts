/** What `GET /metrics` shows, and its text format. */

import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LimitName } from "../limits/message-limits.ts";
import type { RequestEntry } from "./log.ts";
import type { Decision, RunEntry, StepEntry } from "./run-observer.ts";

/** Upper bounds of buckets, in seconds. */
const FIRST_TOKEN = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const RUN = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const STEP = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export interface MetricsOptions {
  /** The agent's model string, which may change while the server runs. */
  model(): string;
  /** Whether a tool has its own series. Other names, which a model can make up, are counted as "other". */
  isTool(name: string): boolean;
  openSockets(): number;
  /** Whether Redis can be reached. Absent if none is used. */
  redisUp?: (() => boolean) | undefined;
  /** The MCP servers that all users share, and whether each is up. */
  toolServers?(): readonly { readonly server: string; readonly isUp: boolean }[];
}

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics({ model, isTool, openSockets, redisUp, toolServers = () => [] }: MetricsOptions) {
  const registry = new Registry();
  let queued = 0;
  const requests = registry.counter(
    "parley_requests_total",
    "Answered requests, and sockets that were closed, by method, route and status.",
  );
  const errors = registry.counter("parley_errors_total", "Errors that were sent to clients, by code.");
  const limits = registry.counter("parley_limited_total", "Refusals because of a limit, by limit.");
  const refusedLogins = registry.counter(
    "parley_refused_logins_total",
    "Messages, ratings, resumes and cancels for which authenticate threw Unauthorized.",
  );
  const hooks = registry.counter(
    "parley_hooks_total",
    "Calls of onRunEnd and onFeedback, by hook and outcome: done, failed, timeout or dropped.",
  );
  const toolServerTimes = registry.histogram(
    "parley_mcp_call_duration_seconds",
    "Tool calls on MCP servers, by server and outcome: ok or error.",
    STEP,
  );
  registry.gauges("parley_mcp_up", "1 while an MCP server is there that all users share, else 0.", () =>
    toolServers().map(({ server, isUp }) => [{ server }, Number(isUp)]),
  );
  const runMetrics = createRunMetrics(registry, isTool, errors);
  registry.gauge("parley_runs_queued", "Messages that wait in the queue.", () => queued);
  registry.gauge("parley_sockets_open", "WebSockets that are open.", openSockets);
  if (redisUp !== undefined)
    registry.gauge("parley_redis_up", "1 while Redis is there, else 0.", () => Number(redisUp()));
  registry.gauges("parley_info", "What is served.", () => [[{ model: model() }, 1]]);
  addProcessMetrics(registry);
  const stopMeasuring = addEventLoopDelay(registry);

  return {
    ...runMetrics,
    request({ method, route, status }: RequestEntry): void {
      requests.add(1, { method, route, status: String(status) });
    },
    /** Counts an error that was sent to a client outside of a stream. Errors in streams are counted with their runs. */
    error: (code: string) => errors.add(1, { code }),
    limited: (limit: LimitName) => limits.add(1, { limit }),
    loginRefused: () => refusedLogins.add(1),
    toolServer: (server: string, outcome: string, ms: number) =>
      toolServerTimes.observe(ms / 1000, { server, outcome }),
    hook: (hook: string, outcome: string) => hooks.add(1, { hook, outcome }),
    /** A message begins (1) or ends (-1) to wait in the queue. */
    queued(change: 1 | -1): void {
      queued += change;
    },
    families: () => registry.families(),
    close: stopMeasuring,
  };
}

function createRunMetrics(registry: Registry, isTool: (name: string) => boolean, errors: Counter) {
  let running = 0;
  registry.gauge("parley_runs_running", "Runs in progress.", () => running);
  const runs = registry.counter(
    "parley_runs_total",
    "Runs that are over, by transport and end: a finish reason, an error code, or gone.",
  );
  const tokens = registry.counter(
    "parley_tokens_total",
    "Tokens of runs, as the provider reports them, by direction and model.",
  );
  const tokenDetails = registry.counter(
    "parley_token_details_total",
    "Tokens from a cache, into a cache and of thinking, by detail and model.",
  );
  const costs = registry.counter("parley_cost_usd_total", "What model requests cost, by model, where it has a price.");
  const runTimes = registry.histogram("parley_run_duration_seconds", "From the message to the last event.", RUN);
  const firstTokenTimes = registry.histogram(
    "parley_run_first_token_seconds",
    "From the message to the first piece of text or thinking.",
    FIRST_TOKEN,
  );
  const queueTimes = registry.histogram("parley_run_queue_seconds", "How long runs waited in the queue.", STEP);
  const modelTimes = registry.histogram(
    "parley_model_request_duration_seconds",
    "Model requests, by outcome: a finish reason, an error code, or aborted.",
    RUN,
  );
  const approvals = registry.counter(
    "parley_approvals_total",
    "Tool calls that people have decided upon, by tool and decision: approved or declined.",
  );
  const nameOf = (tool: string) => (isTool(tool) ? tool : "other");
  const toolTimes = registry.histogram("parley_tool_duration_seconds", "Tool calls, by tool and status.", STEP);

  return {
    begin(): undefined {
      running += 1;
    },
    run(entry: RunEntry) {
      const { end, firstTokenMs } = entry;
      const { transport, isStreamed } = entry.start;
      running -= 1;
      runs.add(1, { transport, end });
      // Otherwise the error is the answer to the request and is counted there.
      if (entry.failed && isStreamed) errors.add(1, { code: end });
      runTimes.observe(entry.ms / 1000);
      queueTimes.observe(entry.queueMs / 1000);
      if (firstTokenMs !== undefined) firstTokenTimes.observe(firstTokenMs / 1000);
    },
    step({ kind, name, outcome, ms, usage, cost }: StepEntry) {
      if (kind === "tool") toolTimes.observe(ms / 1000, { tool: nameOf(name), status: outcome });
      else modelTimes.observe(ms / 1000, { outcome });
      const { estimated, ...counts } = usage ?? {};
      const labels = { model: name, ...(estimated ? { estimated: "true" } : {}) };
      for (const [field, count] of Object.entries(counts)) {
        const kindOfToken = field.replace(/_tokens$/, "");
        if (kindOfToken === "input" || kindOfToken === "output")
          tokens.add(count, { direction: kindOfToken, ...labels });
        else tokenDetails.add(count, { detail: kindOfToken, ...labels });
      }
      if (cost !== undefined) costs.add(cost, labels);
    },
    approval: (tool: string, decision: Decision) => approvals.add(1, { tool: nameOf(tool), decision }),
  };
}

/** Uses the names of Prometheus' own client libraries, so that existing dashboards work. */
function addProcessMetrics(registry: Registry): void {
  const cpuSeconds = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  const startedAt = Date.now() / 1000 - process.uptime();
  const memory = process.memoryUsage;
  registry.gauge("process_cpu_seconds_total", "Processor time of the process, in seconds.", cpuSeconds, "counter");
  registry.gauge("process_start_time_seconds", "When the process started, in Unix time.", () => startedAt);
  registry.gauge("process_resident_memory_bytes", "Memory of the process.", memory.rss);
  registry.gauge("process_open_fds", "Open file descriptors; Linux only.", openFiles);
  registry.gauge("nodejs_heap_size_used_bytes", "Heap in use.", () => memory().heapUsed);
  registry.gauge("nodejs_heap_size_total_bytes", "Heap that was taken.", () => memory().heapTotal);
  registry.gauge("nodejs_external_memory_bytes", "Memory beside the heap.", () => memory().external);
}

/** Returns a function that stops the measurement. */
function addEventLoopDelay(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const add = (part: string, name: string, read: () => number) => {
    const help = `${name} of the event loop's delays since the last scrape, in seconds.`;
    // Without a sample yet, the mean is not a number.
    registry.gauge(`nodejs_eventloop_lag_${part}_seconds`, help, () => Math.max(0, read() / 1e9) || 0);
  };
  add("mean", "Mean", () => delay.mean);
  add("p50", "Median", () => delay.percentile(50));
  add("p99", "99th percentile", () => delay.percentile(99));
  // Read last, because it resets the delays: the next scrape shows those from then on.
  add("max", "Longest", () => {
    const { max } = delay;
    delay.reset();
    return max;
  });
  return () => void delay.disable();
}

function openFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined; // Not Linux.
  }
}

type Labels = Readonly<Record<string, string>>;
type Kind = "counter" | "gauge" | "histogram";
type Samples = (readonly [name: string, value: number])[];

/** One metric with its current values, as plain data that can be sent between processes. */
export interface Family {
  /** The HELP and TYPE lines before its samples. */
  head: string;
  samples: Samples;
}

/** A page in Prometheus' text format (0.0.4). */
export function renderMetrics(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ head, samples }) => head + samples.map(([name, value]) => `${name} ${value}\n`).join(""))
    .join("");
}

export interface Counter {
  /** `by` is not negative. */
  add(by: number, labels?: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/**
 * Counters, gauges and histograms for Prometheus. `prom-client` is not used, because it depends on `@opentelemetry/api`, which
 * must stay optional. Each name is registered once; label values must come from sets that do not grow.
 */
export class Registry {
  readonly #families: { head: string; read(): Samples }[] = [];

  counter(name: string, help: string): Counter {
    const values = new Map<string, number>();
    this.#register(name, help, "counter", () => [...values]);
    return {
      add(by, labels = {}) {
        const sample = sampleName(name, labels);
        values.set(sample, (values.get(sample) ?? 0) + by);
      },
    };
  }

  /** `read` is called for each page; if it returns `undefined`, the gauge is left out. */
  gauge(name: string, help: string, read: () => number | undefined, kind: Kind = "gauge"): void {
    this.#register(name, help, kind, () => {
      const value = read();
      return value === undefined ? [] : [[name, value]];
    });
  }

  /** A gauge with a value for each of several labels. */
  gauges(name: string, help: string, read: () => (readonly [labels: Labels, value: number])[]): void {
    this.#register(name, help, "gauge", () => read().map(([labels, value]) => [sampleName(name, labels), value]));
  }

  /** `bounds` are the upper bounds of the buckets, ascending, without the infinite one. */
  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const all = new Map<string, Series>();
    this.#register(name, help, "histogram", () =>
      [...all.values()].flatMap((one) => histogramSamples(name, bounds, one)),
    );
    return {
      observe(value, labels = {}) {
        const key = sampleName(name, labels);
        const one = all.get(key) ?? { labels, buckets: bounds.map(() => 0), count: 0, sum: 0 };
        all.set(key, one);
        one.count += 1;
        one.sum += value;
        one.buckets = one.buckets.map((count, index) => (value <= (bounds[index] as number) ? count + 1 : count));
      },
    };
  }

  families(): Family[] {
    return this.#families.map(({ head, read }) => ({ head, samples: read() }));
  }

  #register(name: string, help: string, kind: Kind, read: () => Samples): void {
    this.#families.push({ head: `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`, read });
  }
}

/** The values of a histogram for one set of labels. */
interface Series {
  readonly labels: Labels;
  /** Each counts the values that are at most its bound. */
  buckets: number[];
  count: number;
  sum: number;
}

function histogramSamples(name: string, bounds: readonly number[], { labels, buckets, count, sum }: Series) {
  const bucket = (le: string) => sampleName(`${name}_bucket`, { ...labels, le });
  return [
    ...buckets.map((value, index) => [bucket(String(bounds[index])), value] as const),
    [bucket("+Inf"), count] as const,
    [sampleName(`${name}_sum`, labels), sum] as const,
    [sampleName(`${name}_count`, labels), count] as const,
  ];
}

function sampleName(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
