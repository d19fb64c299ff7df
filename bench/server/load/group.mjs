import { now, sleep } from "../clock.mjs";
import { summarize } from "../stats.mjs";
import { TRANSPORTS } from "./transports.mjs";

/** Lines that are opened at once. */
const OPENING = 50;

const LONG_MS = 60_000;

/** Calls `task` for each of `count` numbers, at most `limit` at a time. */
export async function inParallel(count, limit, task) {
  let next = 0;
  const lane = async () => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane));
}

/** Whether the work is done within this time. Rejects as the work does. */
export async function within(work, ms) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, LATE);
  });
  try {
    return (await Promise.race([work, late])) !== LATE;
  } finally {
    clearTimeout(timer);
  }
}

const LATE = Symbol("late");

/** Streams that run side by side, and the ages of their tokens since the last `mark`. */
export class StreamGroup {
  #transport;
  #base;
  #runs = [];
  #lines = [];
  #failures = [];
  #ages = [];
  #marked = now();

  constructor({ base, transport }) {
    this.#base = base;
    this.#transport = TRANSPORTS[transport];
  }

  /**
   * Adds streams, spread over `spreadMs` so that their tokens do not come together. Resolves with `true` when
   * all have begun, or after `patienceMs` with `false`: a server with too much to do may never come to the last ones.
   * @throws Error for that where nobody says how long to be patient.
   */
  async add({ count, order, spreadMs, patienceMs }) {
    const lines = [];
    await inParallel(count, OPENING, async (at) => {
      lines[at] = await this.#transport.open(this.#base);
    });
    const body = this.#transport.encode(order);
    const begin = now();
    const runs = [];
    for (const [at, line] of lines.entries()) {
      const wait = begin + (at * spreadMs) / count - now();
      if (wait >= 1) await sleep(wait);
      const run = this.#transport.run(line, body, (age) => this.#ages.push(age));
      run.done.catch((error) => this.#failures.push(error));
      runs.push(run);
    }
    this.#lines.push(...lines);
    this.#runs.push(...runs);
    const begun = await within(Promise.all(runs.map((run) => run.started)), patienceMs ?? LONG_MS);
    if (begun || patienceMs !== undefined) return begun;
    throw new Error(`${count} streams have not begun within ${LONG_MS / 1000} s`);
  }

  /** Cuts streams until this many are left. */
  shrink(count) {
    this.#check();
    for (const run of this.#runs.splice(count)) run.abort();
    for (const line of this.#lines.splice(count)) this.#transport.close(line);
  }

  mark() {
    this.#ages = [];
    this.#marked = now();
  }

  /** What came since the mark. @throws Error when a stream failed. */
  read() {
    this.#check();
    const seconds = (now() - this.#marked) / 1000;
    return { tokens: this.#ages.length, seconds, age: summarize(this.#ages) };
  }

  /** Waits for the end of every stream. @throws Error unless each came with all of its tokens. */
  async finish(tokens) {
    const readers = await Promise.all(this.#runs.map((run) => run.done));
    const short = readers.find((reader) => reader.tokens !== tokens);
    if (short) throw new Error(`a stream came with ${short.tokens} of ${tokens} tokens`);
    for (const line of this.#lines) this.#transport.close(line);
    return readers.length;
  }

  stop() {
    this.shrink(0);
  }

  #check() {
    const [failure] = this.#failures;
    if (failure !== undefined) {
      throw new Error(`${this.#failures.length} streams failed, the first: ${failure.message}`);
    }
  }
}
