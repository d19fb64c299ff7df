import type { Runner, RunRequest } from "../agent/runner.ts";
import type { Caller } from "../http/caller.ts";
import { newId } from "../http/new-id.ts";
import { crypto } from "../node/crypto.ts";
import type { Late } from "../node/late.ts";
import { ApiError, invalidRequest } from "../protocol/api-error.ts";
import { Activity } from "./activity.ts";
import { EarlyCancels } from "./early-cancels.ts";
import { LogBudget } from "./log-budget.ts";
import type { Run } from "./run.ts";
import type { RunDirectory, RunOrder } from "./run-access.ts";
import type { RunParts } from "./run-parts.ts";
import type { RunJob, RunStart } from "./run-settings.ts";

/** How long and how much of a run is kept for a client that lost its line. */
export interface ResumeSettings {
  /** Milliseconds; 0 ends a run with its line. */
  readonly graceMs: number;
  /** Bytes of events per run. */
  readonly maxBytes: number;
  /** Bytes of the events of all runs. */
  readonly maxTotalBytes: number;
}

/** Decides when a run may begin. */
export interface Admission {
  /**
   * Resolves with what must be called when the run is over. Rejects with an `ApiError`, or at once when the
   * signal is aborted.
   */
  enter(caller: Caller, signal: AbortSignal): Promise<() => void>;
}

/** For the last event of each run to be written. */
const LAST_EVENT_MS = 2_000;

interface Entry {
  readonly run: Run;
  readonly caller: Caller;
  /** Of the message, so that one name cannot stand for two. */
  readonly digest: string;
}

/** Told which places of the process are taken: other processes look for runs, too. */
export interface PlaceObserver {
  onTaken(place: string): void;
  onFree(place: string): void;
}

/** All runs of the process: those in progress, and those that a client may still come back to. */
export class RunHub implements RunDirectory {
  readonly #runner: Runner;
  readonly #admission: Admission;
  readonly #settings: ResumeSettings;
  readonly #parts: Late<RunParts>;
  readonly #budget: LogBudget;
  readonly #entries = new Map<string, Entry>();
  readonly #early = new EarlyCancels();
  readonly #secret: () => Buffer;
  /** The secret as text, with the first run: a start does not wait for it. */
  #secretText: string | undefined;
  readonly #observer: PlaceObserver | undefined;
  /** What a drain waits for. */
  readonly activity = new Activity();
  #draining = false;

  /** With the secret, which is new at each start, places in the map tell nothing of keys and names. */
  constructor(
    runner: Runner,
    admission: Admission,
    settings: ResumeSettings,
    secret: () => Buffer,
    parts: Late<RunParts>,
    observer?: PlaceObserver,
  ) {
    this.#runner = runner;
    this.#parts = parts;
    this.#admission = admission;
    this.#settings = settings;
    this.#secret = secret;
    this.#observer = observer;
    this.#budget = new LogBudget(settings.maxTotalBytes);
  }

  /** Loads what runs are made of. Resolves before the first of them is opened. */
  async prepare(): Promise<void> {
    await this.#parts.come();
  }

  /** Whether the server is stopping: no new runs. */
  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Starts a run, or finds the one that this caller has named so: a message that is sent again after its line
   * was lost is not answered twice. @throws ApiError `shutting_down`, or `invalid_request` for the name of
   * another message's run.
   */
  open(order: RunOrder): Run {
    const parts = this.#parts.now;
    // At once: between the question whether a name is free and its being taken nobody else may ask.
    if (parts === undefined) throw new Error("a run was opened before RunHub.prepare");
    const { caller, request, id = newId(), requestId, trace, transport } = order;
    const place = this.placeOf(caller, id);
    const digest = order.id === undefined ? "" : digestOf(request);
    const known = this.at(place, digest);
    if (known !== undefined) return known;
    if (this.#draining) {
      throw new ApiError("shutting_down", "The server is stopping. Please try again.", {
        retryAfter: 1,
      });
    }
    const start = { runId: id, requestId, trace, transport, caller, askedAt: performance.now() };
    const run = parts.create(
      {
        id,
        graceMs: order.resumable ? this.#settings.graceMs : 0,
        maxRunMs: this.#runner.maxRunMs,
        maxBytes: this.#settings.maxBytes,
        budget: this.#budget,
        activity: this.activity,
        onGone: () => {
          this.#entries.delete(place);
          this.#observer?.onFree(place);
        },
      },
      jobOf(this.#runner, this.#admission, order, start, parts),
    );
    this.#entries.set(place, { run, caller, digest });
    this.#observer?.onTaken(place);
    if (this.#early.has(place)) run.cancel();
    return run;
  }

  /** The run that this caller has started under this name. @throws ApiError `run_not_found` */
  find(caller: Caller, id: string): Run {
    const known = this.at(this.placeOf(caller, id));
    if (known !== undefined) return known;
    throw runNotFound();
  }

  /** @throws ApiError `run_not_found`; such a run ends as soon as its message is here */
  cancel(caller: Caller, id: string): boolean {
    const place = this.placeOf(caller, id);
    const known = this.at(place);
    if (known !== undefined) return known.cancel();
    this.#early.add(place);
    throw runNotFound();
  }

  /** The run at a place. @throws ApiError `invalid_request` when another message than that of `digest` made it. */
  at(place: string, digest?: string): Run | undefined {
    const known = this.#entries.get(place);
    if (known === undefined || digest === undefined || known.digest === digest) return known?.run;
    throw invalidRequest("/run", "This run id belongs to another message. Mint one per message.");
  }

  /** Ends the runs of these callers, whose key may no longer be used, and forgets them. Returns how many ran. */
  revoke(isRevoked: (caller: Caller) => boolean): number {
    const revoked = [...this.#entries.values()].filter(({ caller }) => isRevoked(caller));
    const running = revoked.filter(({ run }) => !run.hasEnded).length;
    // Who reads one still hears why; nobody can come back to one that has ended.
    for (const { run } of revoked) run.abort(run.hasEnded ? "gone" : "revoked");
    return running;
  }

  /** Refuses new runs, waits up to `ms` for those in progress, then ends each with an `error` event. */
  async drain(ms: number): Promise<void> {
    this.#draining = true;
    if (!(await this.activity.idleWithin(ms))) {
      for (const { run } of this.#entries.values()) run.abort("shutting_down");
      await this.activity.idleWithin(LAST_EVENT_MS);
    }
    for (const { run } of [...this.#entries.values()]) run.abort("gone");
  }

  /** Each key has names of its own; where no key is needed, knowing the name is what opens the run. */
  placeOf({ keyId = "" }: Caller, id: string): string {
    this.#secretText ??= this.#secret().toString("base64url");
    // In one call: an HMAC takes three times as long. It would also keep who knows a place from making up others, but no place
    // is seen outside, and none is taken from there.
    return crypto().hash("sha256", `${this.#secretText} ${keyId} ${id}`, "base64url");
  }
}

export function runNotFound(): ApiError {
  return new ApiError("run_not_found", "There is no such run, or it is no longer held.");
}

/** Made apart from the run's settings, which live on after the run: a request with its files must not. */
function jobOf(
  runner: Runner,
  admission: Admission,
  { caller, request, memory }: RunOrder,
  start: RunStart,
  { runAgent, failed, watch }: RunParts,
): RunJob {
  return {
    admit: (signal) => admission.enter(caller, signal),
    watch: () => watch(start),
    work: (controller, tell, watching) => runAgent(runner, request, controller, tell, watching),
    failed: (error) => failed(runner, request, error),
    onOver: memory.share(),
  };
}

/** Pieces of a file that stand for it: 16 KiB. */
const SAMPLES = 256;
const SAMPLE_CHARS = 64;

/**
 * Of the text and of each file, which pieces from all over it stand for: hashing 64 MiB would hold up everybody
 * else.
 */
export function digestOf({ message, attachments }: RunRequest): string {
  const files = attachments.map(({ name, url }) => [name, url.length, piecesOf(url)]);
  return crypto()
    .createHash("sha256")
    .update(JSON.stringify([message, files]))
    .digest("base64url");
}

function piecesOf(url: string): string {
  if (url.length <= SAMPLES * SAMPLE_CHARS) return url;
  const step = (url.length - SAMPLE_CHARS) / (SAMPLES - 1);
  return Array.from({ length: SAMPLES }, (_, n) => {
    const at = Math.floor(n * step);
    return url.slice(at, at + SAMPLE_CHARS);
  }).join("");
}
