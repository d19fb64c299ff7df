import { type AbortKind, RunAbort } from "../agent/run-abort.ts";
import type { RunWatch } from "../agent/run-watch.ts";
import type { StreamEvent } from "../protocol/events.ts";
import { endsWhenAborted } from "./overdue.ts";
import { furthest, Reading } from "./reading.ts";
import type { EventSink, RunAccess } from "./run-access.ts";
import { checkAfter, endsWith, nearEndOf, type RunExtent } from "./run-extent.ts";
import { RunLog } from "./run-log.ts";
import type { RunJob, RunSettings } from "./run-settings.ts";

/** Bytes that may wait for the quickest reader before the model is held back. */
const HIGH_WATER_BYTES = 64 * 1024;

/**
 * One run with its log and its readers. It goes on whoever reads: while somebody does, the model is held back when even the
 * quickest reader lags behind; while nobody does, when the log is full.
 */
export class Run implements RunAccess {
  readonly id: string;
  /** Resolves when the run begins; rejects with the `ApiError` of a refusal. */
  readonly admitted: Promise<void>;
  readonly #settings: RunSettings;
  readonly #log: RunLog;
  readonly #controller = new AbortController();
  readonly #readings = new Set<Reading>();
  #grace: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #gone = false;
  /** Was told to end. Asked with each token: the signal's own getter is not cheap. */
  #isAborted = false;
  #cancelled = false;

  constructor(settings: RunSettings, job: RunJob) {
    this.id = settings.id;
    this.#settings = settings;
    this.#log = new RunLog(settings.budget);
    const place = this.#enter(job);
    this.admitted = place.then(() => {});
    // Whoever reads the run hears of a refusal; when nobody does any more, nobody has to.
    this.admitted.catch(() => {});
    void this.#live(place, job);
  }

  /** Which events are held. */
  get extent(): RunExtent {
    return this.#log;
  }

  get hasEnded(): boolean {
    return this.#log.closed;
  }

  /** Whether it has ended and `after` is its last event, so that nothing is left to read. */
  hasEndedWith(after: number): boolean {
    return endsWith(this.#log, after);
  }

  /** Number of the event before the last one, or the newest so far: for who needs the end only. */
  get nearEnd(): number {
    return nearEndOf(this.#log);
  }

  /**
   * Reads the events that follow `after`, once `resume` is called. @throws ApiError `run_expired` if they are
   * no longer held, `invalid_request` if there is no event of that number.
   */
  attach(after: number, sink: EventSink): Reading {
    checkAfter(this.#log, after);
    if (!this.#log.closed) clearTimeout(this.#grace);
    const reading = new Reading(this.#log, after, sink, {
      onProgress: () => this.#progress(),
      onDetach: () => this.#detach(reading),
    });
    this.#readings.add(reading);
    this.#settings.activity.enter();
    return reading;
  }

  /** Ends the run with `done`, `finish_reason: "stopped"`. Tells whether that was done in time, now or before. */
  cancel(): boolean {
    if (!this.#log.closed) {
      this.#cancelled = true;
      this.abort("stopped");
    }
    return this.#cancelled;
  }

  /** Ends the run as the kind says; "gone" also forgets what is held of a run that has ended. */
  abort(kind: AbortKind): void {
    if (!this.#log.closed) {
      this.#isAborted = true;
      this.#controller.abort(RunAbort.of(kind));
    }
    if (kind === "gone" && !this.#gone) {
      this.#gone = true;
      clearTimeout(this.#grace);
      this.#settings.budget.withdraw(this.#giveUp);
      this.#settings.onGone();
      this.#trim();
    }
    this.#wake?.();
  }

  async #enter(job: RunJob): Promise<() => void> {
    const { signal } = this.#controller;
    try {
      return await job.admit(signal);
    } catch (error) {
      // A run that was ended while it waited says so as any other does: by its last event.
      if (signal.aborted) return () => {};
      throw error;
    }
  }

  async #live(place: Promise<() => void>, job: RunJob): Promise<void> {
    const { activity } = this.#settings;
    activity.enter();
    let leave: (() => void) | undefined;
    let watch: RunWatch | undefined;
    try {
      leave = await place;
      watch = job.watch();
      await endsWhenAborted(this.#work(job, watch), this.#controller.signal);
    } catch (error) {
      // Before it began, who asked for the run hears of the refusal.
      if (watch !== undefined) {
        watch.failure(error);
        this.#append([job.failed(error)], watch);
      }
    } finally {
      watch?.end();
      this.#close();
      leave?.();
      job.onOver();
      activity.leave();
    }
  }

  async #work(job: RunJob, watch: RunWatch): Promise<void> {
    const timer = setTimeout(() => this.abort("timeout"), this.#settings.maxRunMs).unref();
    const tell = (events: readonly StreamEvent[]) => {
      // Nobody reads on, or nobody waited for it any longer.
      if (this.#gone || this.#log.closed) return undefined;
      this.#append(events, watch);
      // What came together leaves together, at once.
      for (const reading of this.#readings) reading.flush();
      this.#trim();
      return this.#mustWait() ? this.#room() : undefined;
    };
    try {
      await job.work(this.#controller, tell, watch);
    } finally {
      clearTimeout(timer);
    }
  }

  #append(events: readonly StreamEvent[], watch: RunWatch): void {
    for (const event of events) watch.event(event);
    this.#log.append(events);
  }

  #close(): void {
    const { graceMs, budget } = this.#settings;
    this.#log.close();
    clearTimeout(this.#grace);
    for (const reading of this.#readings) reading.flush();
    if (this.#gone) {
      this.#trim();
    } else if (!this.#keeps || this.#log.lastId === 0) {
      this.abort("gone");
    } else {
      this.#grace = setTimeout(this.#giveUp, graceMs).unref();
      budget.offer(this.#giveUp);
    }
  }

  readonly #giveUp = (): void => this.abort("gone");

  get #keeps(): boolean {
    return this.#settings.graceMs > 0;
  }

  #progress(): void {
    this.#trim();
    if (!this.#mustWait()) this.#wake?.();
  }

  /**
   * Keeps some of what was sent, for who comes back, and never lets go of what the quickest reader needs, nor
   * of the newest event: the last one holds the state, whatever its size.
   */
  #trim(): void {
    if (this.#readings.size === 0 && !this.#gone) return;
    const { maxBytes, budget } = this.#settings;
    const keep = this.#keeps && !this.#gone && !budget.isFull ? maxBytes / 2 : 0;
    if (this.#log.bytes <= keep) return;
    const newest = this.#gone ? this.#log.lastId : this.#log.lastId - 1;
    let [slowest, quickest] = [newest, 0];
    for (const { sent } of this.#readings) {
      slowest = Math.min(slowest, sent);
      quickest = Math.max(quickest, sent);
    }
    this.#log.trim(keep, slowest);
    this.#log.trim(maxBytes, Math.min(newest, quickest));
    for (const reading of this.#readings) {
      if (reading.sent + 1 < this.#log.firstId) reading.cut();
    }
  }

  #mustWait(): boolean {
    const { maxBytes, budget } = this.#settings;
    if (this.#gone) return false;
    // A run that was told to end says little more, and its end must not wait for readers.
    if (this.#isAborted) return this.#log.bytes >= 2 * maxBytes;
    if (this.#readings.size === 0) return this.#log.bytes >= maxBytes || budget.isFull;
    return this.#log.end - furthest(this.#readings) >= HIGH_WATER_BYTES;
  }

  /** Resolves when `#mustWait` no longer holds. */
  async #room(): Promise<void> {
    const { budget } = this.#settings;
    await new Promise<void>((resolve) => {
      this.#wake = () => {
        if (!this.#mustWait()) resolve();
      };
      budget.onRoom(this.#wake);
    });
    if (this.#wake !== undefined) budget.forget(this.#wake);
    this.#wake = undefined;
  }

  #detach(reading: Reading): void {
    if (!this.#readings.delete(reading)) return;
    this.#settings.activity.leave();
    if (this.#log.closed || this.#readings.size > 0) {
      this.#progress();
    } else if (!this.#keeps) {
      this.abort("gone");
    } else {
      this.#grace = setTimeout(this.#giveUp, this.#settings.graceMs).unref();
      this.#wake?.();
    }
  }
}
