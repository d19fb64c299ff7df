/** `parley dev --trace`: each request to a model, and its answer, as one line of JSON in `.parley/trace.jsonl`. */

import { RunAborted } from "../agent/run-aborted.ts";
import { describeFailure } from "../observe/describe-failure.ts";
import type { Log } from "../observe/log.ts";
import type { RunSink, RunStart, SentTry } from "../observe/run-observer.ts";
import { type Json, tryParse } from "../protocol/json.ts";
import { UpstreamRefusal } from "../providers/failures.ts";
import type { AnswerHead, SentRequest, TryObserver, TryOutcome } from "../providers/provider.ts";
import { TraceFile } from "./folder.ts";
import { type Strike, strikeAcross, type TracedEvent, traced, tracedHeaders, tracedUrl } from "./trace-values.ts";

/** A request that was written to the trace. */
export interface TracedRequest {
  readonly start: RunStart;
  readonly model: string;
  readonly end: TryOutcome["type"];
  /** The HTTP status of the answer, where it is known. */
  readonly status: number | undefined;
  readonly ms: number;
  /** File and line, relative to the working directory: `.parley/trace.jsonl:17`. */
  readonly place: string;
}

interface TraceParts {
  /** The project's folder. */
  readonly folder: string;
  /** The model string of the agent at the start. */
  readonly model: string;
  readonly log: Log;
  onTraced(request: TracedRequest): void;
}

/** The name of the model if the agent has its own `run`. */
const OWN_RUN = "run";

export class Trace implements RunSink {
  readonly #parts: TraceParts;
  readonly #file: TraceFile;
  /** Whether the last request could not be written. */
  #isBroken = false;
  #hasSaidElsewhere = false;

  /** @throws ConfigError where the file cannot be written */
  constructor(parts: TraceParts) {
    this.#parts = parts;
    this.#file = new TraceFile(parts.folder);
    if (parts.model === OWN_RUN) this.#sayElsewhere();
    else parts.log.notice(`Each request to a model and its answer go to ${this.#file.path}.`);
  }

  /** Warns here, too, since a reload may bring an agent with its own `run`. */
  begin({ model }: RunStart): undefined {
    if (model === OWN_RUN) this.#sayElsewhere();
  }

  sending(start: RunStart, sent: SentTry): TryObserver {
    const { log } = this.#parts;
    return new TracedTry(start, sent, log, (record) => this.#write(start, record));
  }

  #sayElsewhere(): void {
    if (this.#hasSaidElsewhere) return;
    this.#hasSaidElsewhere = true;
    this.#parts.log.warning(
      "--trace writes nothing of this agent: its run asks its models itself, so their requests are not Parley's.",
    );
  }

  #write(start: RunStart, record: () => TraceRecord): void {
    const { log, onTraced } = this.#parts;
    try {
      const whole = record();
      const place = `${this.#file.path}:${this.#file.append(JSON.stringify(whole))}`;
      this.#isBroken = false;
      const { provider, model, end, answer, ms } = whole;
      onTraced({ start, model: `${provider}/${model}`, end, status: answer?.status, ms, place });
    } catch (error) {
      if (this.#isBroken) return;
      this.#isBroken = true;
      const why = error instanceof Error ? error.message : String(error);
      log.warning(
        `--trace could not write a request (${why}). The agent goes on answering. Later requests are written if possible.`,
      );
    }
  }
}

/** One line of the file. What is unknown is absent. */
interface TraceRecord {
  /** When the request was sent. */
  readonly time: string;
  readonly run: string;
  readonly conversation: string;
  /** The model request of the run, and the attempt to send it, fallback models included; both count from 1. */
  readonly turn: number;
  readonly attempt: number;
  readonly provider: string;
  readonly model: string;
  readonly request: {
    readonly method?: string | undefined;
    readonly url?: string | undefined;
    readonly headers?: Json | undefined;
    readonly body: unknown;
  };
  /** Absent if none came. Has `events` or, if it is not a stream, `body`. */
  readonly answer:
    | {
        readonly status?: number | undefined;
        readonly headers: Json;
        readonly events?: readonly TimedEvent[];
        /** How many events before the last ten are left out, because they were too many. */
        readonly events_left_out?: number | undefined;
        readonly body?: unknown;
      }
    | undefined;
  readonly end: TryOutcome["type"];
  /** The failure as the log describes it, with the provider's words. */
  readonly error: string | undefined;
  /** Why the request was aborted: `stopped`, `gone`, `timeout`, … */
  readonly reason: string | undefined;
  /** From the request to the first event, and to the end. */
  readonly first_ms: number | undefined;
  readonly ms: number;
}

interface TimedEvent extends TracedEvent {
  /** Since the request. */
  readonly ms: number;
}

/** Of an answer with more UTF-16 units the middle is left out, since the answer stays in memory until its end. */
const MAX_EVENT_CHARS = 8_000_000;
/** How many last events are always kept: they tell how the answer ended, and its usage. */
const LAST_EVENTS = 10;

/** Records one attempt without its secrets, and writes it at the end. */
class TracedTry implements TryObserver {
  readonly #start: RunStart;
  readonly #sent: SentTry;
  readonly #strike: Strike;
  readonly #find: Log["findSecrets"];
  readonly #write: (record: () => TraceRecord) => void;
  #sentAt = 0;
  #time = "";
  #request: TraceRecord["request"] | undefined;
  #head: AnswerHead | undefined;
  readonly #events: TimedEvent[] = [];
  /** The last events beyond the limit, unchanged. */
  readonly #last: TimedEvent[] = [];
  #chars = 0;
  #leftOut = 0;
  #firstMs: number | undefined;
  #isOver = false;

  constructor(start: RunStart, sent: SentTry, log: Log, write: (record: () => TraceRecord) => void) {
    this.#start = start;
    this.#sent = sent;
    this.#strike = log.strike;
    this.#find = log.findSecrets;
    this.#write = write;
  }

  sent({ method, url, headers, body }: SentRequest): void {
    this.#sentAt = performance.now();
    this.#time = new Date().toISOString();
    this.#request = {
      method,
      url: url && tracedUrl(url, this.#strike),
      headers: headers && tracedHeaders(Object.entries(headers), this.#strike),
      body: this.#kept(body),
    };
  }

  streams(head: AnswerHead): void {
    this.#head = head;
  }

  message(event: string, data: string | Json): void {
    const ms = this.#elapsedMs();
    this.#firstMs ??= ms;
    // Server-Sent Events without a name are a `message`, and an object has its own type.
    const named = { ms, ...(event === "message" || typeof data !== "string" ? {} : { event }) };
    if (this.#chars > MAX_EVENT_CHARS) {
      this.#last.push({ ...named, data });
      if (this.#last.length > LAST_EVENTS) this.#leftOut += this.#last.splice(0, 1).length;
      return;
    }
    const kept = this.#kept(data);
    this.#chars += typeof data === "string" ? data.length : JSON.stringify(kept).length;
    this.#events.push({ ...named, data: kept });
  }

  ended(outcome: TryOutcome): void {
    const request = this.#request;
    if (this.#isOver || request === undefined) return;
    this.#isOver = true;
    const ms = this.#elapsedMs();
    this.#write(() => this.#record(request, outcome, ms));
  }

  /** JSON that was sent or received, parsed, or other text; both without secrets. */
  #kept(body: unknown): unknown {
    const text = body instanceof Uint8Array ? Buffer.from(body).toString() : body;
    return traced(typeof text === "string" ? (tryParse(text) ?? text) : text, this.#strike);
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#sentAt);
  }

  #record(request: TraceRecord["request"], outcome: TryOutcome, ms: number): TraceRecord {
    const { runId, conversation } = this.#start;
    const { turn, attempt, id, model } = this.#sent;
    return {
      time: this.#time,
      run: runId,
      conversation,
      turn,
      attempt,
      provider: id,
      model,
      request,
      answer: this.#answer(outcome),
      end: outcome.type,
      error: outcome.type === "failed" ? describeFailure(outcome.error, true, this.#strike) : undefined,
      reason: outcome.type === "aborted" ? reasonOf(outcome.reason) : undefined,
      first_ms: this.#firstMs,
      ms,
    };
  }

  #answer(outcome: TryOutcome): TraceRecord["answer"] {
    const refusal = outcome.type === "failed" ? refusalIn(outcome.error) : undefined;
    const head = this.#head ?? refusal;
    if (head === undefined) return undefined;
    const { status } = head;
    const headers = tracedHeaders(head.headers, this.#strike);
    if (this.#head === undefined) return { status, headers, body: this.#kept(refusal?.body ?? "") };
    const events = [...this.#events, ...this.#last.map((event) => ({ ...event, data: this.#kept(event.data) }))];
    strikeAcross(events, this.#find);
    return { status, headers, events, events_left_out: this.#leftOut || undefined };
  }
}

/** The response of a failure, if it was not a stream. */
function refusalIn(error: unknown): UpstreamRefusal | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof UpstreamRefusal ? cause : undefined;
}

function reasonOf(reason: unknown): string | undefined {
  return reason instanceof RunAborted ? reason.kind : undefined;
}
