/** The main thread's side of the watchdog: it shows that it is alive, and which tools are running. */

import { url as debuggerUrl } from "node:inspector";
import { Worker } from "node:worker_threads";
import type { Settings } from "../config/settings.ts";
import type { RunningCall, RunSink, RunSpans } from "./run-observer.ts";

/** The data that the thread gets. */
export interface WatchdogData {
  /** Only the log's settings: the thread needs no keys. */
  settings: Pick<Settings, "log" | "logLevel">;
  memory: SharedArrayBuffer;
}

/** Layout of the shared memory: indexes of four numbers, and the byte offset of the running tools' names. */
export const SHOWN = { beats: 0, isDebugged: 1, maxSeconds: 2, namesBytes: 3, namesAt: 16 } as const;

export const BEAT_MS = 1000;
const MAX_NAMES_BYTES = 1024;

export class Watchdog implements RunSink {
  readonly #memory = new SharedArrayBuffer(SHOWN.namesAt + MAX_NAMES_BYTES);
  readonly #numbers = new Int32Array(this.#memory, 0, SHOWN.namesAt / 4);
  readonly #names = Buffer.from(this.#memory, SHOWN.namesAt);
  readonly #running = new Set<RunningCall>();

  /** Starts the thread. If it fails, the server continues without it. */
  start(thread: URL, { log, logLevel }: WatchdogData["settings"], onError: (error: unknown) => void): void {
    const beat = () => {
      this.#numbers[SHOWN.isDebugged] = debuggerUrl() === undefined ? 0 : 1;
      Atomics.add(this.#numbers, SHOWN.beats, 1);
      this.#numbers[SHOWN.maxSeconds] = this.#longest();
    };
    beat();
    setInterval(beat, BEAT_MS).unref();
    const workerData: WatchdogData = { settings: { log, logLevel }, memory: this.#memory };
    // Without the command line's options: --import may load large modules.
    const worker = new Worker(thread, { workerData, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 16 } });
    worker.on("error", onError).unref();
  }

  /** Shows the calls of each run to the thread. */
  begin(): RunSpans {
    return {
      tool: async (call, work) => {
        this.#running.add(call);
        this.#show();
        try {
          return await work();
        } finally {
          this.#running.delete(call);
          this.#show();
        }
      },
    };
  }

  /** The longest time limit of the running tools, in seconds. */
  #longest(): number {
    return Math.max(0, ...[...this.#running].map(({ timeoutMs }) => timeoutMs / 1000));
  }

  /** The limit of a tool that ends holds until the next beat: the tool may have blocked the process until then. */
  #show(): void {
    this.#numbers[SHOWN.maxSeconds] = Math.max(this.#numbers[SHOWN.maxSeconds] ?? 0, this.#longest());
    const names = new Set([...this.#running].map(({ name }) => name));
    this.#numbers[SHOWN.namesBytes] = this.#names.write([...names].join(", "));
  }
}
