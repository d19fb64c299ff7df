/** Starts runs, finds them again, and ends them when the server stops. Invariants: docs/internals/runs.md. */

import { randomUUID } from "node:crypto";
import type { ApprovalLedger } from "../agent/approvals.ts";
import { describeFile } from "../agent/hooks.ts";
import type { RunRequest } from "../agent/loop.ts";
import { createContext, decidedCalls, Proposals } from "../agent/run-context.ts";
import type { ServedAgent } from "../agent/served-agent.ts";
import type { Caller } from "../auth/access.ts";
import type { Settings } from "../config/settings.ts";
import { within } from "../config/within.ts";
import type { MessageMemory } from "../limits/memory-budget.ts";
import type { MessageLimits } from "../limits/message-limits.ts";
import type { ObserveRun, RunStart } from "../observe/run-observer.ts";
import { ApiError, invalidRequest, shuttingDown } from "../protocol/errors.ts";
import { RUN_ID } from "../protocol/events.ts";
import { EventLog, LogBudget } from "./event-log.ts";
import { Run } from "./run.ts";
import type { RunHandle, RunReader } from "./run-handle.ts";
import { APPROVALS, EARLY_CANCEL_MS, EARLY_CANCELS, type RunStore } from "./run-store.ts";

/** A message that is to be answered. */
export interface StartOptions extends Pick<RunStart, "metadata" | "transport" | "trace"> {
  /** The agent for which the message was parsed, and which answers it. */
  served: ServedAgent;
  request: RunRequest;
  /** The client's name for the run, if it wants to come back to it. */
  name: string | undefined;
  /** A hash of the message that the name belongs to; empty without a name. */
  digest: string;
  /** Whether the client gets the events as they come; otherwise it gets one body at the end. */
  isStreamed: boolean;
  /** The id of the request, or of the socket's upgrade, that brought the message. */
  requestId: string;
  /** The memory counted for the message. The run shares it until it has ended. */
  memory: MessageMemory;
}

export interface RegistryParts {
  store: RunStore;
  limits: MessageLimits;
  settings: Settings;
  observeRun: ObserveRun;
  /** Called with errors that no client is waiting for. */
  fail(error: unknown): void;
  /** Called when a message starts (1) or stops (-1) waiting for its run. */
  onQueue(change: 1 | -1): void;
}

/** A run, and a reader of its events from the first one on. */
export interface StartedRun {
  run: RunHandle;
  reader: RunReader;
}

/** How long a shutdown waits for the last events of the runs that it has aborted. */
const LAST_EVENT_MS = 2000;

export class RunRegistry {
  readonly #parts: RegistryParts;
  readonly #budget: LogBudget;
  /** The runs of this process that are running or that a client can still come back to. */
  readonly #runs = new Map<Run, Caller>();
  readonly #inFlight = new InFlight();
  /** Whether the server is stopping: no new runs. */
  #isDraining = false;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
    this.#budget = new LogBudget(parts.settings.resumeTotalBytes);
  }

  /** Whether a run is in progress, or an ended one is still being read. */
  get isBusy(): boolean {
    return !this.#inFlight.isIdle;
  }

  /** @throws ApiError `shutting_down` */
  refuseWhenDraining(): void {
    if (this.#isDraining) throw shuttingDown();
  }

  /**
   * Starts a run, or returns this caller's run of the same name: a message sent again is not answered twice. @throws ApiError
   * `shutting_down`, `overloaded` as `ServedAgent.refuseUnready` does, or `invalid_request` if another message has the name
   */
  async start(caller: Caller, options: StartOptions): Promise<StartedRun> {
    const { name } = options;
    const { store } = this.#parts;
    const id = name ?? randomUUID();
    const key = runKey(caller, id);
    const known = name === undefined ? undefined : await store.find(key);
    if (known !== undefined) return join(known, options);
    this.refuseWhenDraining();
    options.served.refuseUnready();
    // A shutdown waits for a run also while its name is being claimed.
    this.#inFlight.enter();
    try {
      return await this.#claimAndBegin(id, key, caller, options);
    } finally {
      this.#inFlight.leave();
    }
  }

  async #claimAndBegin(id: string, key: string, caller: Caller, options: StartOptions): Promise<StartedRun> {
    const { name } = options;
    const { store } = this.#parts;
    const run = this.#createRun(id, key, options);
    const owner = await store.claim(key, run, name !== undefined);
    if (owner !== run) return join(owner, options);
    this.#runs.set(run, caller);
    if (name !== undefined && (await store.isMarked(key, EARLY_CANCELS))) await run.stop();
    // The reader is opened first: otherwise the run could end, and its events be dropped, before they are read.
    const reader = await run.read(0);
    void this.#begin(run, caller, options);
    return { run, reader };
  }

  /** @throws ApiError `run_not_found`, also for a run of another key or user */
  async find(caller: Caller, id: string): Promise<RunHandle> {
    const run = await this.#parts.store.find(runKey(caller, id));
    if (run === undefined) throw runNotFound();
    return run;
  }

  /**
   * Cancels a run, and resolves with whether it was cancelled, now or before. The cancel of an unknown run is remembered: the
   * run ends when its message arrives, and no model is asked. This takes memory, so it counts as a message.
   * @throws ApiError `run_not_found`, for such a run, too, or `rate_limited`
   */
  async cancel(caller: Caller, id: string): Promise<boolean> {
    const { store, limits } = this.#parts;
    const key = runKey(caller, id);
    const run = await store.find(key);
    if (run !== undefined) return run.stop();
    // No message can have such a name: remembering it would only take memory.
    if (!RUN_ID.test(id)) throw runNotFound();
    await limits.admitMessage(caller);
    await store.mark(key, EARLY_CANCEL_MS, EARLY_CANCELS);
    // Meanwhile the message may have reached another process, which did not know of the cancel yet.
    const late = await store.find(key);
    if (late !== undefined) return late.stop();
    throw runNotFound();
  }

  /** Aborts the runs of callers whose key is no longer valid, and drops their ended runs. Returns how many were running. */
  revoke(isRevoked: (caller: Caller) => boolean): number {
    const revoked = [...this.#runs].filter(([, caller]) => isRevoked(caller)).map(([run]) => run);
    const running = revoked.filter((run) => !run.isEnded).length;
    for (const run of revoked) {
      if (run.isEnded) run.discard();
      else run.abort("revoked");
    }
    return running;
  }

  /** Starts no more runs. Resolves when all runs have ended and been read; those in progress after `ms` are aborted. */
  async drain(ms: number): Promise<void> {
    this.#isDraining = true;
    if (!(await this.#inFlight.idleWithin(ms))) {
      for (const run of this.#runs.keys()) run.abort("shutting_down");
      await this.#inFlight.idleWithin(LAST_EVENT_MS);
    }
    for (const run of [...this.#runs.keys()]) run.discard();
  }

  #createRun(id: string, key: string, { name, digest, isStreamed }: StartOptions): Run {
    const { settings, store, fail } = this.#parts;
    // A run answered in one body ends with its connection, even if it has a name: it cannot be resumed.
    const graceMs = name === undefined || !isStreamed ? 0 : settings.resumeSeconds * 1000;
    const maxBytes = settings.resumeBytes;
    const run: Run = new Run({
      id,
      digest,
      log: new EventLog({
        maxBytes,
        keptBytes: graceMs === 0 ? 0 : maxBytes / 2,
        budget: this.#budget,
      }),
      budget: this.#budget,
      graceMs,
      maxMs: settings.runSeconds * 1000,
      inFlight: this.#inFlight,
      onForgotten: () => {
        this.#runs.delete(run);
        store.forget(key, run).catch(fail);
      },
    });
    return run;
  }

  async #begin(run: Run, caller: Caller, options: StartOptions): Promise<void> {
    const { settings, limits, observeRun, onQueue } = this.#parts;
    const { served, request, transport, isStreamed, requestId, trace } = options;
    const askedAt = performance.now();
    const startedAt = new Date();
    const release = options.memory.share();
    const leave = served.life.use();
    const proposals = new Proposals();
    const { approvals, state } = request;
    const conversation = state.conversation ?? randomUUID();
    const decided = approvals === undefined ? [] : decidedCalls(request);
    const context = createContext(run, caller, { ...options, conversation, approvals: decided }, proposals);
    await run.perform({
      run: { served, settings, request, context, proposals, ledger: ledgerOf(this.#parts.store) },
      admit: (signal) => {
        onQueue(1);
        return limits.admitRun(caller, signal).finally(() => onQueue(-1));
      },
      observe: () => {
        const start = {
          runId: run.id,
          requestId,
          conversation: context.conversation,
          transport,
          isStreamed,
          key: caller.keyKind,
          user: context.user,
          metadata: context.metadata,
          message: request.message,
          attachments: request.attachments.map(describeFile),
          askedAt,
          startedAt,
          trace,
          agent: served.agent.agent,
          model: served.agent.model,
          costOf: served.costOf,
        };
        return observeRun(start, served.sink);
      },
    });
    leave();
    release();
  }
}

/** Without a key and a user, knowing a run's name is enough to access it. */
function runKey({ keyId, user }: Caller, id: string): string {
  return user === undefined ? `${keyId}/${id}` : `${keyId}/${id}/${user.id}`;
}

function ledgerOf(store: RunStore): ApprovalLedger {
  return {
    name: (ms) => store.ledger(ms, APPROVALS),
    use: (nonce, ledger) => store.markIn(ledger, nonce, APPROVALS),
  };
}

/** Returns the run of a message that was sent before. An answer in one body needs only the end of the run. */
async function join(run: RunHandle, { digest, isStreamed }: StartOptions): Promise<StartedRun> {
  if (isSameMessage(run.digest, digest)) return { run, reader: await run.read(isStreamed ? 0 : "oldest") };
  throw invalidRequest("/run", "This run id belongs to another message. Use a new one for each message.");
}

/** The states that two messages continue have to match only if both name one: a socket may have remembered it. */
function isSameMessage(one: string, other: string): boolean {
  const [message, state = ""] = one.split(".");
  const [otherMessage, otherState = ""] = other.split(".");
  return message === otherMessage && (state === "" || otherState === "" || state === otherState);
}

function runNotFound(): ApiError {
  return new ApiError("run_not_found", "There is no such run, or its events are no longer kept.");
}

/** Counts what a shutdown has to wait for. */
class InFlight {
  #count = 0;
  #onIdle: (() => void) | undefined;

  get isIdle(): boolean {
    return this.#count === 0;
  }

  enter(): void {
    this.#count++;
  }

  leave(): void {
    this.#count--;
    if (this.isIdle) this.#onIdle?.();
  }

  /** Resolves with whether everything has ended within this many milliseconds. */
  async idleWithin(ms: number): Promise<boolean> {
    if (this.isIdle) return true;
    const idle = new Promise<boolean>((resolve) => {
      this.#onIdle = () => resolve(true);
    });
    return within(() => idle, ms).catch(() => false);
  }
}
