/** What runs are made of: the agent and its model, the state that they seal, and who is told of them. */

import { watchTogether } from "./agent/run-watch.ts";
import type { Runner } from "./agent/runner.ts";
import type { StateBinding } from "./agent/state.ts";
import type { Config } from "./config.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import type { Metrics } from "./observe/metrics.ts";
import { RunRecord } from "./observe/run-record.ts";
import type { Observer } from "./observer.ts";
import { type PlaceObserver, RunHub } from "./runs/run-hub.ts";
import type { WatchRun } from "./runs/run-settings.ts";
import type { AgentServerOptions } from "./server-options.ts";
import { traceWith } from "./tracing.ts";

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
  const watch = watchWith(options, observer, metrics);
  return { runner, state, hub: new RunHub(runner, admission, resume, idSecret, watch, places) };
}

function stateOf(
  { agent, provider }: AgentServerOptions,
  current: () => Config,
): () => StateBinding {
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

function watchWith(
  { agent, openTelemetry }: AgentServerOptions,
  observer: Observer,
  metrics: Metrics | undefined,
): WatchRun {
  const spans = traceWith(openTelemetry, agent);
  return ({ caller, trace, ...start }) => {
    metrics?.runBegins();
    const record = new RunRecord({ ...start, model: agent.model, key: caller.kind }, observer);
    const traced = spans({ ...start, trace });
    return traced === undefined ? record : watchTogether(record, traced);
  };
}
