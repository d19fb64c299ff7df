/** What is there before the first run: the agent and its model, the state that runs seal, and where runs are found. */

import type { Runner } from "./agent/runner.ts";
import type { StateBinding } from "./agent/state.ts";
import type { Config } from "./config.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import { Late } from "./node/late.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { Observer } from "./observer.ts";
import { type PlaceObserver, RunHub } from "./runs/run-hub.ts";
import type { AgentServerOptions } from "./server-options.ts";

export interface Runs {
  readonly runner: Runner;
  /** What states are bound to now. */
  readonly state: () => StateBinding;
  readonly hub: RunHub;
}

interface RunParts {
  readonly admission: AdmissionControl;
  readonly observer: Observer;
  readonly metrics: Metrics | undefined;
  readonly places: PlaceObserver | undefined;
}

export function createRuns(
  options: AgentServerOptions,
  current: () => Config,
  { admission, observer, metrics, places }: RunParts,
): Runs {
  const { resume, idSecret } = options.config;
  const state = stateOf(options, current);
  const runner = runnerOf(options, current, state);
  const parts = new Late(async () => {
    const { createRunParts } = await import("./create-run-parts.ts");
    return createRunParts(options, observer, metrics);
  });
  return { runner, state, hub: new RunHub(runner, admission, resume, idSecret, parts, places) };
}

function stateOf({ agent, provider }: AgentServerOptions, current: () => Config): () => StateBinding {
  return () => ({
    kind: provider.stateKind,
    agent: agent.name,
    provider: provider.id,
    secrets: current().stateSecrets,
    limits: current().message,
  });
}

function runnerOf(
  { agent, provider, config, log }: AgentServerOptions,
  current: () => Config,
  state: () => StateBinding,
): Runner {
  return {
    agent,
    provider,
    maxRunMs: config.times.run,
    get toolLimits() {
      return current().tools;
    },
    state,
    report: (error) => log.failure(error),
  };
}
