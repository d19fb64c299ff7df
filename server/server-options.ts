/** What a server for one agent is made of. */

import type { Agent } from "./agent/define.ts";
import type { Config } from "./config.ts";
import type { LargeBodies } from "./http/body.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import type { Log } from "./log.ts";
import type { OpenTelemetry } from "./observe/trace-run.ts";
import type { Provider } from "./providers/provider.ts";
import type { RunDirectory } from "./runs/run-access.ts";
import type { PlaceObserver, RunHub } from "./runs/run-hub.ts";

export interface AgentServerOptions {
  agent: Agent;
  provider: Provider;
  config: Config;
  log: Log;
  /** Folder of the built chat page and widget. */
  publicFolder: string;
  /** The built `parse-worker.ts`. */
  parseWorker: string;
  /** Gives the package where it is installed, and loads it the first time: runs are traced. */
  openTelemetry?: () => OpenTelemetry | undefined;
  /** For one of several processes that serve one address; told how to read the settings as they are now. */
  parts?: (config: () => Config) => ServerParts;
}

/** What a process has for itself, or shares with others that serve the same address. */
export interface ServerParts {
  readonly admission: AdmissionControl;
  readonly large: LargeBodies;
  /** Told of the runs of this process. */
  readonly observer: PlaceObserver | undefined;
  /** Where clients find runs: those of this process, and perhaps of others. */
  directory(own: RunHub): RunDirectory;
  /** The figures of all processes; `own` reads those of this one. */
  gatherMetrics(own: () => string): string | Promise<string>;
}
