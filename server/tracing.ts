/** Joins the runs of an agent with OpenTelemetry. */

import type { Agent } from "./agent/define.ts";
import type { RunWatch } from "./agent/run-watch.ts";
import { hasDelegate } from "./flush-spans.ts";
import { type OpenTelemetry, type TracedAgent, type TracedRun, traceRun } from "./observe/trace-run.ts";
import { splitModel } from "./providers/index.ts";

/** `gen_ai.provider.name` of providers that the conventions name otherwise than model strings do. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  vertex: "gcp.vertex_ai",
};

/** Watches runs with spans, where an SDK takes them. */
export function traceRuns(api: OpenTelemetry, agent: Agent): (run: TracedRun) => RunWatch | undefined {
  const traced: TracedAgent = {
    name: agent.agent,
    model: agent.model,
    modelOf(model) {
      const [id, name] = splitModel(model.trim());
      return { provider: PROVIDER_NAMES[id] ?? id, name };
    },
  };
  return (run) => (hasSdk(api) ? traceRun(api, traced, run) : undefined);
}

/** Whether anybody takes spans now: where nobody does, not even their attributes are made. */
function hasSdk(api: OpenTelemetry): boolean {
  const provider: unknown = api.trace.getTracerProvider();
  if (!hasDelegate(provider)) return true;
  // What every provider of the API stands for until there is an SDK.
  return provider.getDelegate() !== new api.ProxyTracerProvider().getDelegate();
}

/** The same with a package that is loaded, where it is installed, for the first run. */
export function traceWith(
  load: (() => OpenTelemetry | undefined) | undefined,
  agent: Agent,
): (run: TracedRun) => RunWatch | undefined {
  let trace: ReturnType<typeof traceRuns> | undefined;
  return (run) => {
    const api = trace === undefined ? load?.() : undefined;
    if (api !== undefined) trace = traceRuns(api, agent);
    return trace?.(run);
  };
}
