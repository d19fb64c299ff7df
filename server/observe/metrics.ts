import type { RequestEntry, RunEntry, StepEntry } from "./entries.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { Registry } from "./registry.ts";
import type { RunSink } from "./run-record.ts";

/** Upper ends of buckets, in seconds. */
const FIRST_TOKEN = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const RUN = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const STEP = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export interface MetricsOptions {
  /** Model string of the agent. */
  model: string;
  /** Tools that have a series of their own; a model can make up any other name. */
  tools: readonly string[];
  /** Sockets that are open now. */
  sockets(): number;
}

/** Counts what the observers are told, for `GET /metrics`. */
export class Metrics implements Omit<RunSink, "failure"> {
  readonly #registry = new Registry();
  readonly #tools: ReadonlySet<string>;
  readonly #stop: () => void;
  #running = 0;
  #queued = 0;
  readonly #requests = this.#registry.counter(
    "parley_requests_total",
    "Answered requests, and sockets that were closed, by method, route and status.",
  );
  /** As many as it has series. */
  readonly #answered = new Map<string, { value: number }>();
  readonly #errors = this.#registry.counter("parley_errors_total", "Errors that clients were told, by code.");
  readonly #limited = this.#registry.counter("parley_limited_total", "What was refused because of a limit, by limit.");
  readonly #runs = this.#registry.counter(
    "parley_runs_total",
    "Runs that are over, by transport and end: a finish reason, an error code, or gone.",
  );
  readonly #tokens = this.#registry.counter(
    "parley_tokens_total",
    "Tokens of runs, as the provider reports them, by direction and model.",
  );
  readonly #duration = this.#registry.histogram(
    "parley_run_duration_seconds",
    "From the message to the last event.",
    RUN,
  );
  readonly #firstToken = this.#registry.histogram(
    "parley_run_first_token_seconds",
    "From the message to the first piece of text or thinking.",
    FIRST_TOKEN,
  );
  readonly #queue = this.#registry.histogram("parley_run_queue_seconds", "For which runs waited for their turn.", STEP);
  readonly #turns = this.#registry.histogram(
    "parley_model_request_duration_seconds",
    "Model requests, by outcome: a finish reason, an error code, or aborted.",
    RUN,
  );
  readonly #toolTimes = this.#registry.histogram(
    "parley_tool_duration_seconds",
    "Tool calls, by tool and status.",
    STEP,
  );

  constructor({ model, tools, sockets }: MetricsOptions) {
    this.#tools = new Set(tools);
    const registry = this.#registry;
    registry.gauge("parley_runs_running", "Runs in progress.", () => this.#running);
    registry.gauge("parley_runs_queued", "Messages that wait for their turn.", () => this.#queued);
    registry.gauge("parley_sockets_open", "WebSockets that are open.", sockets);
    registry.gauge("parley_info", "What is served.", () => 1, { labels: { model } });
    this.#stop = addProcessMetrics(registry);
  }

  request({ method, route, status }: RequestEntry): void {
    // With each request: so what its labels stand for is looked up in a text, and not made anew.
    const name = `${status} ${method} ${route}`;
    let tally = this.#answered.get(name);
    if (tally === undefined) {
      tally = this.#requests.of({ method, route, status: String(status) });
      this.#answered.set(name, tally);
    }
    tally.value++;
  }

  /** An error that a client was told. */
  error(code: string): void {
    this.#errors.add(1, { code });
  }

  /** Something was refused because of a limit. */
  limited(limit: string): void {
    this.#limited.add(1, { limit });
  }

  queued(by: 1 | -1): void {
    this.#queued += by;
  }

  runBegins(): void {
    this.#running++;
  }

  run(entry: RunEntry): void {
    const { transport, end, model, inputTokens = 0, outputTokens = 0, firstTokenMs } = entry;
    this.#running--;
    this.#runs.add(1, { transport, end });
    // As JSON the error is the answer to the request, and counted there.
    if (entry.failed && transport !== "json") this.error(end);
    this.#tokens.add(inputTokens, { direction: "input", model });
    this.#tokens.add(outputTokens, { direction: "output", model });
    this.#duration.observe(entry.ms / 1000);
    this.#queue.observe(entry.queueMs / 1000);
    if (firstTokenMs !== undefined) this.#firstToken.observe(firstTokenMs / 1000);
  }

  step({ kind, name, outcome, ms }: StepEntry): void {
    if (kind === "model") this.#turns.observe(ms / 1000, { outcome });
    else {
      const tool = this.#tools.has(name) ? name : "other";
      this.#toolTimes.observe(ms / 1000, { tool, status: outcome });
    }
  }

  render(): string {
    return this.#registry.render();
  }

  close(): void {
    this.#stop();
  }
}
