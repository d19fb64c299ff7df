/** Everything that an agent returns and yields, one item after another, within time limits. */

import { setImmediate as nextTick } from "node:timers/promises";
import { isAgentObject, type RunInput } from "../agent/run-function.ts";
import { isRecord } from "../protocol/json.ts";
import { UpstreamTimeout } from "../providers/failures.ts";
import type { TransportLimits } from "../providers/provider.ts";
import { callAgent } from "./ai-sdk.ts";

type AnyIterator = AsyncIterator<unknown> | Iterator<unknown>;

interface ItemsOptions {
  readonly input: RunInput;
  readonly limits: TransportLimits;
  /** Each object that contains items is added to this list. */
  readonly sources: Record<string, unknown>[];
  /** Called if the agent continues although its items are no longer read. */
  onStray(): void;
}

/** How long an agent may take to end after it is no longer read. */
const STRAY_MS = 1000;

/** How many items are read in one turn of the event loop. An agent that never waits must not block other answers. */
const ITEMS_AT_ONCE = 100;

/**
 * Opens what contains items: promises, iterators, streams, and the objects of frameworks that have a stream. `next` rejects
 * when the signal is aborted, whether or not the agent listens to it.
 */
export class Items {
  readonly #options: ItemsOptions;
  /** The innermost is the last. */
  readonly #open: AnyIterator[] = [];
  #first: { value: unknown } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isIdleTimer = false;
  #isWaiting = false;
  #hasBegun = false;
  /** Set when the first item is late. If the agent yields only empty values, that may happen between two waits. */
  #late: UpstreamTimeout | undefined;
  #sinceTick = 0;
  /** The promise that was awaited last. */
  #pending: Promise<unknown> = Promise.resolve();
  #reject: (reason: unknown) => void = () => {};

  constructor(value: unknown, options: ItemsOptions) {
    this.#first = { value };
    this.#options = options;
    options.input.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The next item; `undefined` at the end. `mayBeSilent` suspends the idle limit. */
  async next(mayBeSilent: boolean): Promise<{ item: unknown } | undefined> {
    for (;;) {
      // Empty values count, too: if only those were yielded, timers and other conversations would be blocked.
      if (++this.#sinceTick > ITEMS_AT_ONCE) {
        this.#sinceTick = 0;
        await nextTick();
      }
      const pulled = await this.#pull(mayBeSilent);
      if (pulled === undefined) return undefined;
      const { value } = pulled;
      const inner = isRecord(value) ? iteratorOf(value) : undefined;
      if (inner !== undefined) {
        this.#open.push(inner);
        this.#options.sources.push(value as Record<string, unknown>);
      } else if (isAgentObject(value)) this.#first = { value: callAgent(value, this.#options.input) };
      else if (value !== undefined && value !== null) {
        this.#hasBegun = true;
        return { item: value };
      }
    }
  }

  /** Called for an emitted item, which counts for the time limits like a yielded one. */
  heard(): void {
    this.#hasBegun = true;
    this.#watch(!this.#isWaiting);
  }

  /** Must be called at the end. Does not wait for the agent to end. */
  close(): void {
    this.#options.input.signal.removeEventListener("abort", this.#onAbort);
    clearTimeout(this.#timer);
    const open = this.#open.splice(0).reverse();
    const timer = setTimeout(this.#options.onStray, STRAY_MS).unref();
    // Errors that the agent throws from now on belong to no answer.
    const endings = open.map(async (iterator) => iterator.return?.());
    const late = this.#pending.then((value) => (isRecord(value) ? iteratorOf(value)?.return?.() : undefined));
    void Promise.allSettled([late, ...endings]).then(() => clearTimeout(timer));
  }

  /** The next value: an item, or an object that contains items. */
  async #pull(mayBeSilent: boolean): Promise<{ value: unknown } | undefined> {
    if (this.#first !== undefined) {
      const { value } = this.#first;
      this.#first = undefined;
      return { value: await this.within(value, mayBeSilent) };
    }
    const iterator = this.#open.at(-1);
    if (iterator === undefined) return undefined;
    const { done, value } = (await this.within(iterator.next(), mayBeSilent)) as IteratorResult<unknown>;
    if (done !== true) return { value: isThenable(value) ? await this.within(value, mayBeSilent) : value };
    this.#open.pop();
    // The return value of the author's own generator is an item, too; that of a framework's has no meaning.
    return { value: this.#open.length === 0 ? value : undefined };
  }

  /** Awaits a value of the agent within the time limits: an item, or anything beside its items. */
  within(waited: unknown, mayBeSilent = false): Promise<unknown> {
    const { signal } = this.#options.input;
    const pending = Promise.resolve(waited);
    this.#pending = pending;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      if (signal.aborted) reject(signal.reason);
      if (this.#late !== undefined) reject(this.#late);
      this.#watch(mayBeSilent);
      // Not with `finally`, whose promise settles later: the caller may be waiting again by then.
      const stopWaiting = (then: (result: unknown) => void) => (result: unknown) => {
        this.#isWaiting = false;
        then(result);
      };
      pending.then(stopWaiting(resolve), stopWaiting(reject));
    });
  }

  /** Limits the wait that begins now: until the first item, however it is nested, and then between two items. */
  #watch(mayBeSilent: boolean): void {
    this.#isWaiting = !mayBeSilent;
    if (this.#isIdleTimer) {
      this.#timer?.refresh();
    } else if (this.#hasBegun || this.#timer === undefined) {
      clearTimeout(this.#timer);
      const { firstChunkMs, idleMs } = this.#options.limits;
      this.#isIdleTimer = this.#hasBegun;
      this.#timer = setTimeout(this.#onTimeout, this.#hasBegun ? idleMs : firstChunkMs);
    }
  }

  readonly #onTimeout = (): void => {
    const { firstChunkMs, idleMs } = this.#options.limits;
    // After the first item, no limit applies while a client is slow or a tool runs.
    if (this.#hasBegun && !this.#isWaiting) return;
    const late = new UpstreamTimeout(this.#hasBegun ? idleMs : firstChunkMs, this.#hasBegun);
    if (!this.#hasBegun) this.#late = late;
    this.#reject(late);
  };

  readonly #onAbort = (): void => this.#reject(this.#options.input.signal.reason);
}

/** An iterator of the items in a value, if it contains any. An array is itself an item, and so is a string. */
function iteratorOf(value: object): AnyIterator | undefined {
  if (Symbol.asyncIterator in value) return (value as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  if (Symbol.iterator in value && "next" in value) return value as Iterator<unknown>;
  if ("getReader" in value && typeof value.getReader === "function") return readerOf(value as ReadableStream<unknown>);
  for (const name of ["stream", "fullStream"]) {
    // The property is read only once: some frameworks make a new stream each time.
    const stream: unknown = name in value ? value[name as keyof typeof value] : undefined;
    if (isRecord(stream) && (Symbol.asyncIterator in stream || "getReader" in stream)) return iteratorOf(stream);
  }
  return undefined;
}

/** Reads a stream that cannot be iterated. */
function readerOf(stream: ReadableStream<unknown>): AsyncIterator<unknown> {
  const reader = stream.getReader();
  return {
    next: () => reader.read() as Promise<IteratorResult<unknown>>,
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isRecord(value) && typeof value.then === "function";
}
