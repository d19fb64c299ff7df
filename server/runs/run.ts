import { type AgentRun, Loop } from "../agent/loop.ts";
import { type AbortKind, abortTimeoutError, RunAborted } from "../agent/run-aborted.ts";
import type { Release } from "../limits/limiter.ts";
import type { RunEvent, RunObserver } from "../observe/run-observer.ts";
import type { StreamEvent, ThinkingEvent, TokenEvent } from "../protocol/events.ts";
import type { EventLog, LogBudget } from "./event-log.ts";
import type { RunHandle, RunReader } from "./run-handle.ts";

export interface RunOptions {
  id: string;
  digest: string;
  log: EventLog;
  budget: LogBudget;
  /** How long the run continues without a reader, and its events stay after its end; 0: it ends with its connection. */
  graceMs: number;
  maxMs: number;
  /** Counts what a shutdown waits for: the run itself, and each of its readers. */
  inFlight: { enter(): void; leave(): void };
  /** Called once, when no client can come back to the run. */
  onForgotten(): void;
}

/** What a run does. */
export interface RunWork {
  run: AgentRun;
  /** Waits until the run may begin. @throws ApiError, or anything after an abort */
  admit(signal: AbortSignal): Promise<Release>;
  /** Called when the run begins. */
  observe(): RunObserver;
}

/** The abort reason of every ended run. Created once: the stack of an error takes a fiftieth of a short answer's time. */
const OVER = new RunAborted("gone");

/** How long an aborted run may take to end. A run that reacts to its signal takes milliseconds. */
const ABORT_TIMEOUT_MS = 1000;

/** One answer in the making. It belongs to no connection: clients come and go as readers of its log. */
export class Run implements RunHandle {
  readonly id: string;
  readonly digest: string;
  readonly started: Promise<void>;
  readonly log: EventLog;
  readonly #options: RunOptions;
  readonly #controller = new AbortController();
  #onStart: (refusal?: unknown) => void = () => {};
  #onAbortTimeout: () => void = () => {};
  #abortTimer: NodeJS.Timeout | undefined;
  #graceTimer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #isForgotten = false;
  /** Whether the observer has got a piece of text or thinking. */
  #hasSpoken = false;
  /** UTF-16 units of text that clients have got since the last event of a tool. */
  #chars = 0;

  constructor(options: RunOptions) {
    this.id = options.id;
    this.digest = options.digest;
    this.#options = options;
    this.log = options.log;
    this.started = new Promise((resolve, reject) => {
      this.#onStart = (refusal) => (refusal === undefined ? resolve() : reject(refusal));
    });
    // Prevents an unhandled rejection: no client may be waiting for the start.
    this.started.catch(() => {});
  }

  get isEnded(): boolean {
    return this.log.isEnded;
  }

  /** Aborted, with a `RunAborted` as its reason, when the run is to end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Does the work at the pace of the readers. Resolves when the run is over; never rejects. */
  async perform(work: RunWork): Promise<void> {
    const { inFlight } = this.#options;
    inFlight.enter();
    try {
      const release = await this.#admit(work);
      await this.#runWork(work).finally(release);
    } catch (refusal) {
      this.#onStart(refusal);
      this.#end();
    } finally {
      inFlight.leave();
    }
  }

  async read(after: number | "oldest"): Promise<RunReader> {
    const { inFlight } = this.#options;
    const reader = this.log.read(after, () => {
      inFlight.leave();
      this.#readerClosed();
    });
    inFlight.enter();
    if (!this.log.isEnded) clearTimeout(this.#graceTimer);
    return reader;
  }

  async stop(): Promise<boolean> {
    if (!this.log.isEnded) {
      this.#isStopped = true;
      this.abort("stopped");
    }
    return this.#isStopped;
  }

  /** Ends the run as the kind says; its readers get the last event. */
  abort(kind: AbortKind): void {
    if (!this.log.isEnded) {
      this.#controller.abort(new RunAborted(kind));
      this.#abortTimer ??= setTimeout(() => this.#onAbortTimeout(), ABORT_TIMEOUT_MS);
    }
    // The run may be waiting for its readers.
    this.log.wakeWriter();
  }

  discard(): void {
    this.abort("gone");
    this.#forget();
  }

  /** A run that is aborted while it waits begins nevertheless, so that its last event reports its end. */
  async #admit(work: RunWork): Promise<Release> {
    const { signal } = this.#controller;
    try {
      return await work.admit(signal);
    } catch (error) {
      if (signal.aborted) return () => {};
      throw error;
    }
  }

  async #runWork({ run, observe }: RunWork): Promise<void> {
    const observer = observe();
    const loop = new Loop(run, observer);
    this.#onStart();
    const timeLimit = setTimeout(() => this.abort("timeout"), this.#options.maxMs).unref();
    const abortTimeout = new Promise<never>((_resolve, reject) => {
      this.#onAbortTimeout = () => reject(abortTimeoutError(this.signal, run.settings.runSeconds));
    });
    try {
      await Promise.race([this.#write(loop.events(), observer), abortTimeout]);
    } catch (error) {
      this.#append([loop.failed(error)], observer);
    } finally {
      clearTimeout(timeLimit);
      observer.end(loop.words);
      this.#end();
    }
  }

  async #write(batches: AsyncIterable<RunEvent[]>, observer: RunObserver): Promise<void> {
    const { signal } = this.#controller;
    for await (const events of batches) {
      // The run may have ended without waiting for the model, after `ABORT_TIMEOUT_MS`.
      if (this.log.isEnded) return;
      if (!this.#isForgotten) this.#append(events, observer);
      // An aborted run writes little more, and its end does not wait for readers.
      while (this.log.isFull && !signal.aborted) await this.log.change();
    }
  }

  #append(events: RunEvent[], observer: RunObserver): void {
    if (events.length === 0) return;
    // Most batches are text or thinking: nothing in them is hidden, and the observer needs no more than the first piece.
    const isText = events.every(isPiece);
    if (!isText || !this.#hasSpoken) observer.events(events);
    this.#hasSpoken ||= isText;
    const shown = isText ? events : events.flatMap((event) => this.#forClients(event));
    if (isText) for (const event of events) if (event.type === "token") this.#chars += event.data.length;
    if (shown.length > 0) this.log.append(shown);
  }

  /** An event as clients get it: without what a tool hides, and with the position of a source. */
  #forClients(event: RunEvent): StreamEvent[] {
    if (event.type === "hidden") return event.shown === undefined ? [] : this.#forClients(event.shown);
    if (event.type === "mark") return [event.placed(this.#chars)];
    if (event.type === "token") this.#chars += event.data.length;
    else if (/^tool_(?:call|result|approval)$/.test(event.type)) this.#chars = 0;
    if (event.type !== "unsaid") return [event];
    this.#chars -= event.data.length;
    return [{ ...event, type: "thinking" }];
  }

  #end(): void {
    const { graceMs, budget } = this.#options;
    clearTimeout(this.#abortTimer);
    clearTimeout(this.#graceTimer);
    this.log.end();
    // Ends what is left of the model's request and of the tools: nothing may outlive the run.
    this.#controller.abort(OVER);
    if (this.#isForgotten) return;
    if (graceMs === 0 || this.log.lastId === 0) {
      this.#forget();
    } else {
      this.#graceTimer = setTimeout(this.#forget, graceMs).unref();
      budget.offer(this.#forget);
    }
  }

  readonly #forget = (): void => {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    clearTimeout(this.#graceTimer);
    this.#options.budget.withdraw(this.#forget);
    this.#options.onForgotten();
    this.log.forget();
  };

  #readerClosed(): void {
    if (this.log.isEnded || this.log.readers > 0) return;
    const { graceMs } = this.#options;
    if (graceMs === 0) this.discard();
    else this.#graceTimer = setTimeout(() => this.discard(), graceMs).unref();
  }
}

function isPiece(event: RunEvent): event is TokenEvent | ThinkingEvent {
  return event.type === "token" || event.type === "thinking";
}
