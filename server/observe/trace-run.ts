/** Spans of runs, by the semantic conventions of OpenTelemetry for generative AI. They hold no contents. */

import type { Context, Span, SpanOptions } from "@opentelemetry/api";
import { RunAbort } from "../agent/run-abort.ts";
import { ABORTED, type RunTransport, type RunWatch, type ToolOutcome, type TurnWatch } from "../agent/run-watch.ts";
import type { TraceHeaders } from "../http/trace-headers.ts";
import { toApiError } from "../protocol/api-error.ts";
import type { DoneEvent, ErrorEvent, StreamEvent } from "../protocol/events.ts";
import { shortId } from "./entries.ts";

/** The module `@opentelemetry/api`. */
export type OpenTelemetry = typeof import("@opentelemetry/api");

/** What spans say of a model. */
export interface TracedModel {
  /** `gen_ai.provider.name`. */
  readonly provider: string;
  /** As the provider knows it. */
  readonly name: string;
}

/** What spans say of every run of an agent. */
export interface TracedAgent {
  /** `gen_ai.agent.name`. */
  readonly name: string;
  /** Its model string. */
  readonly model: string;
  modelOf(model: string): TracedModel;
}

/** What spans say of one run. */
export interface TracedRun {
  readonly runId: string;
  readonly requestId: string;
  readonly transport: RunTransport;
  readonly trace: TraceHeaders;
}

/**
 * Begins the span of a run, within the span that is active, of an instrumentation of HTTP for one, or else within
 * that of the request's `traceparent`. `undefined` where nobody takes spans.
 */
export function traceRun(
  api: OpenTelemetry,
  agent: TracedAgent,
  { runId, requestId, transport, trace }: TracedRun,
): RunWatch | undefined {
  const here = api.context.active();
  const parent = api.trace.getSpan(here) ? here : api.propagation.extract(here, trace);
  const attributes = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": agent.name,
    ...modelAttributes(agent.modelOf(agent.model)),
    "parley.run.id": shortId(runId),
    "parley.request.id": requestId,
    "parley.transport": transport,
  };
  const span = api.trace.getTracer("parley-agent").startSpan(`invoke_agent ${agent.name}`, { attributes }, parent);
  // Without an SDK, a span of the API is what its parent was: nothing, or the client's.
  const { spanId } = api.trace.getSpanContext(parent) ?? api.INVALID_SPAN_CONTEXT;
  if (span.spanContext().spanId === spanId) return undefined;
  return new RunSpans(api, agent, span, parent);
}

/** The spans of one run: its own, one per model request, one per tool call. */
class RunSpans implements RunWatch {
  readonly #api: OpenTelemetry;
  readonly #agent: TracedAgent;
  readonly #span: Span;
  readonly #context: Context;
  /** What the run has begun: all of it ends with the run, also when a model or a tool does not. */
  readonly #open = new Set<Span>();
  #last: DoneEvent | ErrorEvent | undefined;

  constructor(api: OpenTelemetry, agent: TracedAgent, span: Span, parent: Context) {
    this.#api = api;
    this.#agent = agent;
    this.#span = span;
    this.#context = api.trace.setSpan(parent, span);
  }

  event(event: StreamEvent): void {
    if (event.type === "done" || event.type === "error") this.#last = event;
  }

  failure(): void {}

  turn(): TurnWatch {
    const model = this.#agent.modelOf(this.#agent.model);
    const span = this.#begin(`chat ${model.name}`, {
      kind: this.#api.SpanKind.CLIENT,
      attributes: { "gen_ai.operation.name": "chat", ...modelAttributes(model) },
    });
    let outcome: string | undefined = ABORTED;
    return {
      answered: (requestId) => void span.setAttribute("parley.provider.request_id", requestId),
      failedOver() {},
      end: (finish, usage, model) => {
        outcome = undefined;
        span.setAttribute("gen_ai.response.finish_reasons", [finish]);
        span.setAttributes(usageAttributes(usage));
        if (model === undefined) return;
        const who = this.#agent.modelOf(model);
        span.updateName(`chat ${who.name}`);
        span.setAttributes(modelAttributes(who));
      },
      failed: (error) => {
        outcome = isAbort(error) ? ABORTED : toApiError(error).code;
      },
      close: () => this.#end(span, outcome),
    };
  }

  async tool<Outcome extends ToolOutcome>(
    { id, name }: { id: string; name: string },
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
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

  end(): void {
    for (const span of this.#open) this.#end(span, ABORTED);
    const last = this.#last;
    if (last?.type === "done") {
      this.#span.setAttribute("gen_ai.response.finish_reasons", [last.finish_reason]);
      this.#span.setAttributes(usageAttributes(last.usage));
      if (last.model !== undefined) {
        this.#span.setAttributes(modelAttributes(this.#agent.modelOf(last.model)));
      }
    }
    if (last?.type === "error") this.#fail(this.#span, last.code);
    // The client has left.
    if (last === undefined) this.#span.setAttribute("parley.aborted", true);
    this.#span.end();
  }

  #begin(name: string, options: SpanOptions): Span {
    const tracer = this.#api.trace.getTracer("parley-agent");
    const span = tracer.startSpan(name, options, this.#context);
    this.#open.add(span);
    return span;
  }

  #end(span: Span, errorType: string | undefined): void {
    if (!this.#open.delete(span)) return;
    if (errorType !== undefined) this.#fail(span, errorType);
    span.end();
  }

  /** What was ended from outside is no error of the model or the tool. */
  #fail(span: Span, errorType: string): void {
    if (errorType === ABORTED) {
      span.setAttribute("parley.aborted", true);
      return;
    }
    span.setAttribute("error.type", errorType);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof RunAbort || (error instanceof Error && error.name === "AbortError");
}

function modelAttributes({ provider, name }: TracedModel) {
  return { "gen_ai.provider.name": provider, "gen_ai.request.model": name };
}

function usageAttributes(usage: DoneEvent["usage"]) {
  if (usage === undefined) return {};
  return {
    "gen_ai.usage.input_tokens": usage.input_tokens,
    "gen_ai.usage.output_tokens": usage.output_tokens,
  };
}
