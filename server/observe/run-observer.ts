/** What a run reports while it is in progress, and the sinks that receive it, such as log, metrics and traces. */

import type { Caller, User } from "../auth/access.ts";
import type { FinishReason, Usage } from "../protocol/chat.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type {
  DoneEvent,
  ErrorEvent,
  StreamEvent,
  TerminalEvent,
  ToolCallEvent,
  ToolResultEvent,
} from "../protocol/events.ts";
import type { SourceEvent } from "../protocol/sources.ts";
import type { RequestObserver, SentModel, ToolCall, TryObserver, TurnFinish } from "../providers/provider.ts";

/** How a run's answer is sent. */
export type RunTransport = "json" | "sse" | "ws" | "openai" | "mcp";

/** The W3C Trace Context of a request, as it was sent. */
export interface TraceHeaders {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** What is known of a run before it begins. */
export interface RunStart {
  readonly runId: string;
  /** Id of the request that brought the message. */
  readonly requestId: string;
  readonly conversation: string;
  readonly transport: RunTransport;
  /** Whether errors are sent to the client within a stream; otherwise they are the answer to its request. */
  readonly isStreamed: boolean;
  /** The kind of key that the message came with. */
  readonly key: Caller["keyKind"];
  /** What `authenticate` returned; `undefined` if the user is not known. */
  readonly user: User | undefined;
  /** The client's own data about the message, which is not verified. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The user's words. Only their beginning is logged, and only on a terminal of a server on loopback. */
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
  /** When the message had arrived. */
  readonly startedAt: Date;
  /** When the message had arrived, as `performance.now()`; the run begins after it has waited in the queue. */
  readonly askedAt: number;
  readonly trace: TraceHeaders;
  /** Name of the agent that answers. */
  readonly agent: string;
  /** Its model string. */
  readonly model: string;
  /** Total cost in USD; `undefined` if a request has no price or no usage. Absent if the agent has no prices. */
  readonly costOf?: CostOf | undefined;
}

export type CostOf = (requests: readonly PricedRequest[]) => number | undefined;

/** The tokens of one request to a model. */
export interface PricedRequest {
  readonly model: string;
  readonly usage: RecordedUsage | undefined;
}

/** A file that came with a message. */
export interface AttachedFile {
  readonly name: string;
  readonly mimeType: string;
  /** Its size. */
  readonly bytes: number;
}

/** An event of a run. For a call that its tool hides, clients get another event, or none. */
export type RunEvent = StreamEvent | HiddenEvent | MarkEvent | UnsaidEvent;

/** A `source` whose place is counted only when clients get it, when it is known what divides their text. */
export interface MarkEvent {
  readonly type: "mark";
  /** The event for the place after this number of UTF-16 units of a text. */
  placed(units: number): SourceEvent;
}

/** Text that clients got turned out to be thinking: they get it again as thinking. */
export interface UnsaidEvent {
  readonly type: "unsaid";
  readonly data: string;
}

export interface HiddenEvent {
  readonly type: "hidden";
  /** For the server only. */
  readonly event: ToolCallEvent | ToolResultEvent;
  readonly shown: ToolCallEvent | ToolResultEvent | undefined;
}

/** Called when a run begins. `own` is the sink of its agent, beside those of all runs. */
export type ObserveRun = (start: RunStart, own?: RunSink) => RunObserver;

/** Observes one run. An observer is quick and never throws. */
export interface RunObserver {
  /**
   * Called with batches of events, in order, before clients get them. After the first text or thinking, batches of only text
   * and thinking are left out, so pieces cannot be counted here.
   */
  events(batch: readonly RunEvent[]): void;
  modelRequest(): ModelRequestObserver;
  /** Runs a tool: calls `work` once and returns its outcome, so that the tool's own spans belong to the call's span. */
  tool<Outcome extends ToolOutcome>(call: RunningCall, work: () => Promise<Outcome>): Promise<Outcome>;
  /** The user has decided on a call of the agent's tools. */
  approval(call: ToolCall, decision: Decision): void;
  /** Something failed; `error` has its cause. */
  failure(error: unknown): void;
  /** The run has ended. If no terminal event came before, the client has gone. */
  end(words: RunWords): void;
}

/** A call that is carried out. */
export interface RunningCall extends ToolCall {
  /** How long it may take. */
  readonly timeoutMs: number;
}

/** The texts of a run that has ended. */
export interface RunWords {
  /** The user's words, or what the agent has replaced them with. */
  readonly message: string;
  /** Text of the last model turn that clients got. */
  readonly answer: string;
  /** Texts of all turns that clients got, a blank line between them. */
  readonly said: string;
}

/** Tokens of a run, including model requests that were stopped or failed. */
export interface RecordedUsage extends Usage {
  /** Whether some were estimated, at four characters per token, because a request did not come to its end. */
  readonly estimated?: true;
}

/** A call that is still undecided at the next message is declined. */
export type Decision = "approved" | "declined";

export interface ToolOutcome {
  /** The kind of failure: `aborted` from outside, `timeout`, `invalid_arguments`, or the name of the error that the tool threw. */
  readonly errorType?: string | undefined;
  /** What the tool threw. */
  readonly thrown?: unknown;
}

/** Observes one model request. If there are several answers, the last one counts. */
export interface ModelRequestObserver extends RequestObserver {
  /** Reports what the operator should know, such as that a model failed and a fallback model is asked. */
  report(report: Error): void;
  /** Called once, in any case. */
  end(outcome: ModelRequestOutcome): void;
}

/** `model` is the model string of the model asked last, if an agent has several. A refused request has no `usage`. */
export type ModelRequestOutcome = { usage?: RecordedUsage | undefined; model?: string | undefined } & (
  | { type: "finished"; finish: TurnFinish }
  | { type: "failed"; error: unknown }
  /** Ended from outside. */
  | { type: "aborted" }
);

/** One run that has ended. All times are in whole milliseconds. */
export interface RunEntry extends RunWords {
  readonly start: RunStart;
  /** The model string, such as `openai/gpt-5.2`; of several models, that of the one that answered last. */
  readonly model: string;
  /** `gone`: the client went away and the answer was not finished. */
  readonly end: FinishReason | ErrorCode | "gone";
  readonly failed: boolean;
  /** The event that the run ended with; `undefined` if the client had gone. */
  readonly last: DoneEvent | ErrorEvent | undefined;
  readonly usage: RecordedUsage | undefined;
  /** In USD; `undefined` if the agent has no price for it, or a model did not report its usage. */
  readonly cost: number | undefined;
  /** From the message to the last event, the wait in the queue included. */
  readonly ms: number;
  readonly queueMs: number;
  /** Until the first piece of text or thinking; absent when there was none. */
  readonly firstTokenMs: number | undefined;
  /** Number of model requests. */
  readonly turns: number;
  /** Number of tool calls that began, without their steps. */
  readonly toolCalls: number;
  /** Tool calls that ended. */
  readonly tools: readonly StepEntry[];
  /** Tool calls that began and did not end. */
  readonly openCalls: readonly OpenCall[];
  /** The provider's id of the last model request, for its support. */
  readonly providerRequestId: string | undefined;
}

export interface OpenCall extends ToolCall {
  readonly decision: Decision | undefined;
  /** Id of the call of which it is a step. */
  readonly parent: string | undefined;
}

/** One model request or tool call within a run. */
export interface StepEntry {
  readonly start: RunStart;
  readonly kind: "model" | "tool";
  /** Name of the tool, or the model string. */
  readonly name: string;
  /** A finish reason, an error code or `aborted` for a model request, the status for a tool call. */
  readonly outcome: string;
  readonly ms: number;
  /** Of a tool call: its id, its arguments as JSON, its output as clients get it if not hidden, and what it threw. */
  readonly id?: string;
  /** Id of the call of which it is a step. */
  readonly parent?: string | undefined;
  readonly arguments?: string | undefined;
  readonly output?: string;
  readonly thrown?: unknown;
  /** The user's decision on the call; absent for a call that needs no approval. */
  readonly decision?: Decision | undefined;
  /** Tokens of a model request, and their cost in USD. */
  readonly usage?: RecordedUsage | undefined;
  readonly cost?: number | undefined;
}

/** Receives the facts of every run. A sink is quick. What it throws is logged, and the run continues. */
export interface RunSink {
  /** A run begins. The spans that are returned, if any, follow it. */
  begin?(start: RunStart): RunSpans | undefined;
  /** A model request or a tool call has ended. */
  step?(entry: StepEntry): void;
  /** A model request is sent, or sent once more. At most one sink has this method. */
  sending?(start: RunStart, sent: SentTry): TryObserver;
  /** The user has decided on a tool call. */
  approval?(tool: string, decision: Decision, start: RunStart): void;
  /** Something failed in a run; `error` has its cause. */
  failure?(error: unknown, start: RunStart): void;
  /** A run has ended. */
  run?(entry: RunEntry): void;
  /** The server stops, and no run follows. Takes a bounded time, and never rejects. */
  close?(): void | Promise<void>;
}

/** `turn`: the number of the model request in its run. `attempt`: of its try, over all models. Both count from 1. */
export interface SentTry extends SentModel {
  readonly turn: number;
  readonly attempt: number;
}

/** Follows one run for a sink, while the run is in progress. */
export interface RunSpans {
  modelRequest?(): Pick<ModelRequestObserver, "answered" | "end">;
  /** As `RunObserver.tool`. */
  tool<Outcome extends ToolOutcome>(call: RunningCall, work: () => Promise<Outcome>): Promise<Outcome>;
  /** `last` is the event that the run ended with; `undefined` if the client had gone. */
  end?(last: TerminalEvent | undefined): void;
}
