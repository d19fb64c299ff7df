/** Joins the runs of an agent with OpenTelemetry. */

import type { Agent } from "./agent/define.ts";
import type { RunWatch } from "./agent/run-watch.ts";
import {
  type OpenTelemetry,
  type TracedAgent,
  type TracedRun,
  traceRun,
} from "./observe/trace-run.ts";
import { splitModel } from "./providers/index.ts";

/** `gen_ai.provider.name` of providers that the conventions name otherwise than model strings do. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  vertex: "gcp.vertex_ai",
};

/** How long spans that wait may take to leave when the server closes, in milliseconds. */
const FLUSH_MS = 5_000;

/** Watches runs with spans, where an SDK takes them. */
export function traceRuns(
  api: OpenTelemetry,
  agent: Agent,
): (run: TracedRun) => RunWatch | undefined {
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

/** Sends what an SDK still holds: the process ends with the server. Never rejects. */
export async function flushSpans(api: OpenTelemetry | undefined): Promise<void> {
  const provider: unknown = api?.trace.getTracerProvider();
  const held = hasDelegate(provider) ? provider.getDelegate() : provider;
  if (!canFlush(held)) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS);
  });
  // A collector that is away is the business of the SDK, which reports it.
  await Promise.race([held.forceFlush().catch(() => {}), late]);
  clearTimeout(timer);
}

function hasDelegate(provider: unknown): provider is { getDelegate(): unknown } {
  return hasMethod(provider, "getDelegate");
}

function canFlush(provider: unknown): provider is { forceFlush(): Promise<unknown> } {
  return hasMethod(provider, "forceFlush");
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof Object(value)[name] === "function";
}
