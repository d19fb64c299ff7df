/** Whoever wants to know of requests and runs: the log and, unless they are switched off, the metrics. */

import type { Log } from "./log.ts";
import type { RequestEntry } from "./observe/entries.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { RunSink } from "./observe/run-record.ts";

export interface Observer extends RunSink {
  request(entry: RequestEntry): void;
  /** An error that a client was told, by its code; those of streams are counted with their runs. */
  error(code: string): void;
}

export function observeWith(log: Log, metrics: Metrics | undefined): Observer {
  return {
    request(entry) {
      log.request(entry);
      metrics?.request(entry);
    },
    run(entry) {
      log.run(entry);
      metrics?.run(entry);
    },
    step(entry) {
      log.step(entry);
      metrics?.step(entry);
    },
    failure: (error, of) => log.failure(error, of),
    error: (code) => metrics?.error(code),
  };
}
