/** What runs are made of, and who is told of them: for the first message, not for the start. */

import { runAgent } from "./agent/run.ts";
import { failed } from "./agent/run-end.ts";
import { watchTogether } from "./agent/run-watch.ts";
import type { Metrics } from "./observe/metrics.ts";
import { RunRecord } from "./observe/run-record.ts";
import type { Observer } from "./observer.ts";
import { Run } from "./runs/run.ts";
import type { RunParts } from "./runs/run-parts.ts";
import type { WatchRun } from "./runs/run-settings.ts";
import type { AgentServerOptions } from "./server-options.ts";
import { traceWith } from "./tracing.ts";

export function createRunParts(
  options: AgentServerOptions,
  observer: Observer,
  metrics: Metrics | undefined,
): RunParts {
  return {
    create: (settings, job) => new Run(settings, job),
    runAgent,
    failed,
    watch: watchWith(options, observer, metrics),
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
