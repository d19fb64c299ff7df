import cluster, { type Worker } from "node:cluster";

export interface PoolListener {
  started(worker: Worker): void;
  ended(worker: Worker): void;
  /** A sentence for the log. */
  notice(text: string): void;
  /** Workers end as soon as they are started. No more are; the others go on until they are told to end. */
  gaveUp(sentence: string): void;
}

/** A worker that lived this long, in milliseconds, is no part of a series of failures. */
const SETTLED_MS = 10_000;

/** So many workers in a row that one place may lose before they have settled. */
const MAX_QUICK_ENDS = 5;

/** The wait before the second of them, in milliseconds; each further one doubles it. */
const FIRST_WAIT_MS = 250;

/** One place for a worker. */
interface Place {
  worker: Worker | undefined;
  startedAt: number;
  quickEnds: number;
}

/** Keeps a number of workers running, and starts another one where one ends by itself. */
export class WorkerPool {
  readonly #listener: PoolListener;
  readonly #places: Place[];
  readonly #alive = new Map<Worker, Promise<void>>();
  #stopped = false;
  #settledOnce = false;

  /** `exec` is the script of the workers, `args` its arguments. */
  constructor(count: number, exec: string, args: readonly string[], listener: PoolListener) {
    this.#listener = listener;
    // The other policy leaves it to the kernel, which gives most connections to few workers.
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({ exec, args: [...args] });
    this.#places = Array.from({ length: count }, () => ({
      worker: undefined,
      startedAt: 0,
      quickEnds: 0,
    }));
    for (const place of this.#places) this.#fill(place);
  }

  /** All that run, those that are about to end as well. */
  get workers(): readonly Worker[] {
    return [...this.#alive.keys()];
  }

  /** All have begun once: from here on one that ends is replaced. Before, it means that the server cannot start. */
  settle(): void {
    this.#settledOnce = true;
  }

  /** Starts another one in this one's place now: it is about to end. */
  replace(worker: Worker): void {
    const place = this.#places.find((one) => one.worker === worker);
    if (place !== undefined && !this.#stopped) this.#vacate(place, `Worker ${worker.id} is ending`);
  }

  /** From here on nothing is started. */
  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when no worker runs any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#alive.values());
  }

  kill(): void {
    for (const worker of this.#alive.keys()) worker.process.kill("SIGKILL");
  }

  #fill(place: Place): void {
    if (this.#stopped) return;
    const worker = cluster.fork();
    place.worker = worker;
    place.startedAt = performance.now();
    const ended = new Promise<void>((resolve) => {
      worker.once("exit", (code: number | null, signal: string | null) => {
        this.#alive.delete(worker);
        this.#listener.ended(worker);
        this.#onEnd(place, worker, signal ?? `exit code ${code}`);
        resolve();
      });
    });
    this.#alive.set(worker, ended);
    // A fork that fails, for want of memory or processes, says so and ends; `exit` follows.
    worker.on("error", (error) => this.#listener.notice(`Worker ${worker.id}: ${error.message}.`));
    this.#listener.started(worker);
  }

  #onEnd(place: Place, worker: Worker, how: string): void {
    if (this.#stopped) return;
    const what = `Worker ${worker.id} ended (${how})`;
    if (place.worker === worker) this.#vacate(place, what);
    else this.#listener.notice(`${what}.`);
  }

  #vacate(place: Place, what: string): void {
    const settled = performance.now() - place.startedAt >= SETTLED_MS;
    place.quickEnds = settled ? 0 : place.quickEnds + 1;
    place.worker = undefined;
    if (!this.#settledOnce) {
      this.stop();
      this.#listener.gaveUp(`${what} before all workers were listening.`);
    } else if (place.quickEnds >= MAX_QUICK_ENDS) {
      this.stop();
      this.#listener.gaveUp(
        `${what}, as ${MAX_QUICK_ENDS - 1} before it soon after their start. The server ends; what the workers logged says why.`,
      );
    } else {
      const wait = place.quickEnds === 0 ? 0 : FIRST_WAIT_MS * 2 ** (place.quickEnds - 1);
      this.#listener.notice(`${what}. Another one starts in ${wait / 1000} s.`);
      setTimeout(() => this.#fill(place), wait);
    }
  }
}
