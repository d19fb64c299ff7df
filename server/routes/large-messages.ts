/**
 * Large messages are parsed in a thread of their own and one after another, because parsing one cannot be interrupted and every
 * running answer would wait for it.
 */

import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ApiError, shuttingDown } from "../protocol/errors.ts";
import type { ParseJob, ParseOutcome } from "./message.ts";

/** Far longer than 64 MiB of text and files take: a message that takes this long was built to be slow. */
const MAX_PARSE_MS = 10_000;

/** After this time without a large message the thread ends, and its memory is free again. */
const IDLE_MS = 30_000;

export class LargeMessages {
  readonly #workerFile: string | URL;
  #worker: Worker | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** The message that the thread works on. */
  #pending: { resolve(outcome: ParseOutcome): void; reject(reason: unknown): void } | undefined;
  /** Settles when the previous message has been parsed. */
  #last: Promise<unknown> = Promise.resolve();

  /** `workerFile` is `parse-worker.ts`. */
  constructor(workerFile: string | URL) {
    this.#workerFile = workerFile;
  }

  /** Resolves with what the job's parser returns. @throws ApiError */
  parse(job: ParseJob): Promise<unknown> {
    const own = { ...job, bytes: ownBytes(job.bytes) };
    const parse = () => this.#parse(own);
    const result = this.#last.then(parse, parse);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    await this.#worker?.terminate();
  }

  async #parse(job: ParseJob): Promise<unknown> {
    const outcome = await this.#post(job);
    // Receiving a large message took this tick, and writing it for the model takes another: others run in between.
    await setImmediate();
    switch (outcome.type) {
      case "parsed":
        return outcome.value;
      case "refused":
        throw new ApiError(outcome.code, outcome.message, outcome.options);
      case "bug":
        throw new Error(`a message could not be parsed: ${outcome.text}`);
    }
  }

  async #post(job: ParseJob): Promise<ParseOutcome> {
    if (this.#isClosed) throw shuttingDown();
    clearTimeout(this.#idleTimer);
    this.#worker ??= this.#startWorker();
    const worker = this.#worker;
    const timer = setTimeout(() => this.#drop(worker, tooComplex()), MAX_PARSE_MS);
    try {
      return await new Promise((resolve, reject) => {
        this.#pending = { resolve, reject };
        worker.postMessage(job, [job.bytes.buffer as ArrayBuffer]);
      });
    } finally {
      clearTimeout(timer);
      this.#pending = undefined;
      this.#idleTimer = setTimeout(() => this.#drop(worker), IDLE_MS).unref();
    }
  }

  #startWorker(): Worker {
    // The thread needs no environment variables, which contain the keys.
    const worker = new Worker(this.#workerFile, { name: "parse-worker", env: {} });
    worker.unref();
    worker.on("message", (outcome: ParseOutcome) => this.#pending?.resolve(outcome));
    worker.on("error", (error) => this.#drop(worker, isOutOfMemory(error) ? tooComplex() : brokenThread(error)));
    worker.on("exit", () => this.#drop(worker, this.#isClosed ? shuttingDown() : brokenThread(undefined)));
    return worker;
  }

  /** Ends the thread. The message that it works on is rejected with `reason`. */
  #drop(worker: Worker, reason?: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    void worker.terminate();
    this.#pending?.reject(reason);
  }
}

/** Copies bytes that share their memory with others, because those cannot be moved to the thread. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
}

/** A bug in Parley: the client gets a bare `internal`, the log the cause. */
function brokenThread(cause: unknown): Error {
  return new Error("the thread that parses large messages ended", { cause });
}

function tooComplex(): ApiError {
  return new ApiError("request_too_large", "The message is too complex. Please send a smaller one.");
}
