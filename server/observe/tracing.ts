/** Spans of runs by OpenTelemetry's semantic conventions for generative AI. They contain no text of a conversation. */

import type { Context, Span, SpanOptions } from "@opentelemetry/api";
import { within } from "../config/within.ts";
import type { Usage } from "../protocol/chat.ts";
import { toApiError } from "../protocol/errors.ts";
import type { TerminalEvent } from "../protocol/events.ts";
import { splitModel } from "../providers/index.ts";
import type { ToolCall } from "../providers/provider.ts";
import { shortId } from "./log.ts";
import type { ModelRequestObserver, ModelRequestOutcome, RunSpans, RunStart, ToolOutcome } from "./run-observer.ts";

export type OpenTelemetry = typeof import("@opentelemetry/api");

/** The kind of failure of anything that was ended from outside. */
const ABORTED = "aborted";

/** How long an SDK may take to send its last spans. */
const FLUSH_MS = 5_000;

/** `gen_ai.provider.name` of the providers whose model strings begin with another name. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  vertex: "gcp.vertex_ai",
};

export function createTracing(api: OpenTelemetry) {
  return {
    /** `undefined` while no SDK accepts spans, so that not even their attributes are made. */
    begin: (start: RunStart): RunSpans | undefined => (hasSdk(api) ? traceRun(api, start) : undefined),
    /** Has the SDK send its last spans, because the process ends. Never rejects. */
    async close(): Promise<void> {
      const provider: unknown = api.trace.getTracerProvider();
      const sdk = hasMethod(provider, "getDelegate") ? provider.getDelegate() : provider;
      if (!hasMethod(sdk, "forceFlush")) return;
      // The SDK itself reports a collector that is down.
      await within(() => sdk.forceFlush(), FLUSH_MS).catch(() => {});
    },
  };
}

function hasSdk(api: OpenTelemetry): boolean {
  const provider: unknown = api.trace.getTracerProvider();
  if (!hasMethod(provider, "getDelegate")) return true;
  // Until there is an SDK, every provider of the API delegates to the same one.
  return provider.getDelegate() !== new api.ProxyTracerProvider().getDelegate();
}

function hasMethod<Name extends string>(value: unknown, name: Name): value is Record<Name, () => unknown> {
  return typeof Object(value)[name] === "function";
}

/**
 * Begins the span of a run: within the active span, such as one of an HTTP instrumentation, or else within that of the
 * request's `traceparent`. `undefined` if no SDK records it.
 */
function traceRun(api: OpenTelemetry, start: RunStart): RunSpans | undefined {
  const active = api.context.active();
  const parent = api.trace.getSpan(active) ? active : api.propagation.extract(active, start.trace);
  const attributes = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": start.agent,
    "gen_ai.conversation.id": start.conversation,
    ...modelAttributes(start.model),
    "parley.run.id": shortId(start.runId),
    "parley.request.id": start.requestId,
    "parley.transport": start.transport,
  };
  const span = api.trace.getTracer("parley-agent").startSpan(`invoke_agent ${start.agent}`, { attributes }, parent);
  // Without an SDK, the API returns the parent in place of a new span: none, or the client's.
  const { spanId } = api.trace.getSpanContext(parent) ?? api.INVALID_SPAN_CONTEXT;
  return span.spanContext().spanId === spanId ? undefined : new OtelSpans(api, start.model, span, parent);
}

/** The spans of one run: its own, one for each model request and one for each tool call. */
class OtelSpans implements RunSpans {
  readonly #api: OpenTelemetry;
  /** The agent's model string. */
  readonly #model: string;
  readonly #span: Span;
  readonly #context: Context;
  /** Open spans, which end with the run at the latest, even if a model or a tool does not. */
  readonly #open = new Set<Span>();

  constructor(api: OpenTelemetry, model: string, span: Span, parent: Context) {
    this.#api = api;
    this.#model = model;
    this.#span = span;
    this.#context = api.trace.setSpan(parent, span);
  }

  modelRequest(): Pick<ModelRequestObserver, "answered" | "end"> {
    const span = this.#begin(`chat ${splitModel(this.#model)[1]}`, {
      kind: this.#api.SpanKind.CLIENT,
      attributes: { "gen_ai.operation.name": "chat", ...modelAttributes(this.#model) },
    });
    return {
      answered: (providerRequestId) => void span.setAttribute("parley.provider.request_id", providerRequestId),
      end: (outcome) => this.#endModelRequest(span, outcome),
    };
  }

  async tool<Outcome extends ToolOutcome>({ id, name }: ToolCall, work: () => Promise<Outcome>): Promise<Outcome> {
    const span = this.#begin(`execute_tool ${name}`, {
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": id,
      },
    });
    const { context, trace } = this.#api;
    const outcome = await context.with(trace.setSpan(this.#context, span), work);
    this.#end(span, outcome.errorType);
    return outcome;
  }

  /** `last` is the event that the run ended with; `undefined` if the client had gone. */
  end(last: TerminalEvent | undefined): void {
    for (const span of this.#open) this.#end(span, ABORTED);
    if (last?.type === "done") {
      this.#span.setAttribute("gen_ai.response.finish_reasons", [last.finish_reason]);
      this.#span.setAttributes(usageAttributes(last.usage));
      if (last.model !== undefined) this.#span.setAttributes(modelAttributes(last.model));
    } else this.#fail(this.#span, last?.code ?? ABORTED);
    this.#span.end();
  }

  #endModelRequest(span: Span, outcome: ModelRequestOutcome): void {
    if (outcome.type === "finished") {
      const { finish, usage, model } = outcome;
      span.setAttribute("gen_ai.response.finish_reasons", [finish]);
      span.setAttributes(usageAttributes(usage));
      if (model !== undefined) {
        span.updateName(`chat ${splitModel(model)[1]}`);
        span.setAttributes(modelAttributes(model));
      }
      this.#end(span, undefined);
    } else this.#end(span, outcome.type === "failed" ? toApiError(outcome.error).code : ABORTED);
  }

  #begin(name: string, options: SpanOptions): Span {
    const span = this.#api.trace.getTracer("parley-agent").startSpan(name, options, this.#context);
    this.#open.add(span);
    return span;
  }

  #end(span: Span, errorType: string | undefined): void {
    if (!this.#open.delete(span)) return;
    if (errorType !== undefined) this.#fail(span, errorType);
    span.end();
  }

  /** Marks a span as failed. If it was ended from outside, that is no error of the model or the tool. */
  #fail(span: Span, errorType: string): void {
    if (errorType === ABORTED) {
      span.setAttribute("parley.aborted", true);
      return;
    }
    span.setAttribute("error.type", errorType);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
  }
}

function modelAttributes(model: string): Record<string, string> {
  const [provider, name] = splitModel(model);
  return { "gen_ai.provider.name": PROVIDER_NAMES[provider] ?? provider, "gen_ai.request.model": name };
}

const USAGE_ATTRIBUTES: Readonly<Record<keyof Usage, string>> = {
  input_tokens: "gen_ai.usage.input_tokens",
  output_tokens: "gen_ai.usage.output_tokens",
  cached_input_tokens: "gen_ai.usage.cache_read.input_tokens",
  cache_write_tokens: "gen_ai.usage.cache_write.input_tokens",
  reasoning_tokens: "gen_ai.usage.reasoning.output_tokens",
};

function usageAttributes(usage: Usage | undefined): Record<string, number> {
  const entries = Object.entries(usage ?? {}) as [keyof Usage, number][];
  return Object.fromEntries(entries.map(([field, count]) => [USAGE_ATTRIBUTES[field], count]));
}
