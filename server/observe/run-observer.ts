/** What a run reports while it goes on, and the sinks that get it: the log, the metrics and the traces are three of them. */

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
  /** Whether errors reach the client inside of a stream; otherwise they are the answer to its request. */
  readonly isStreamed: boolean;
  /** The kind of key that the message came with. */
  readonly key: Caller["keyKind"];
  /** What `authenticate` returned; `undefined` if the user is not known. */
  readonly user: User | undefined;
  /** What the client says of the message. Nothing proves it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The person's words. Only their beginning is logged, and only on a terminal of a server on loopback. */
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
  /** USD that requests cost together; `undefined` if one has no price or was not counted. Absent where the agent has no prices. */
  readonly costOf?: CostOf | undefined;
}

export type CostOf = (requests: readonly PricedRequest[]) => number | undefined;

/** What a request to this model took. */
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

/** What a run says. Of a call that its tool hides, clients get another event, or none. */
export type RunEvent = StreamEvent | HiddenEvent | MarkEvent | UnsaidEvent;

/** A `source`, whose place is counted when clients get it: what parts their text is known then. */
export interface MarkEvent {
  readonly type: "mark";
  /** The event behind so many UTF-16 units of a text. */
  placed(units: number): SourceEvent;
}

/** What clients got as text was thinking: they get it again as that. */
export interface UnsaidEvent {
  readonly type: "unsaid";
  readonly data: string;
}

export interface HiddenEvent {
  readonly type: "hidden";
  /** For the server alone. */
  readonly event: ToolCallEvent | ToolResultEvent;
  readonly shown: ToolCallEvent | ToolResultEvent | undefined;
}

/** Called when a run begins. `own` is the sink of its agent, beside those of all runs. */
export type ObserveRun = (start: RunStart, own?: RunSink) => RunObserver;

/** Observes one run. An observer is quick and never throws. */
export interface RunObserver {
  /**
   * Called with the batches of events, in order, before a client gets them: all of them until text or thinking has come, and then
   * without those that have nothing else. What counts pieces cannot do so here.
   */
  events(batch: readonly RunEvent[]): void;
  modelRequest(): ModelRequestObserver;
  /** Carries out a tool of the agent: calls `work` once and returns its outcome, so that spans of the tool's own belong to it. */
  tool<Outcome extends ToolOutcome>(call: RunningCall, work: () => Promise<Outcome>): Promise<Outcome>;
  /** A person has decided on a call of the agent's tools. */
  approval(call: ToolCall, decision: Decision): void;
  /** Something failed; `error` has its cause. */
  failure(error: unknown): void;
  /** The run is over. If no terminal event came before, the client has gone. */
  end(words: RunWords): void;
}

/** A call that is carried out. */
export interface RunningCall extends ToolCall {
  /** How long it may take. */
  readonly timeoutMs: number;
}

/** What the record of a run says of it when it is over. */
export interface RunWords {
  /** The person's words, or what the agent has put in their place. */
  readonly message: string;
  /** Text of the last model turn that clients got. */
  readonly answer: string;
  /** Texts of all turns that clients got, a blank line between them. */
  readonly said: string;
}

/** Tokens of a run, of model requests that were stopped or failed, too. */
export interface RecordedUsage extends Usage {
  /** Whether some of them had to be guessed, at four characters a token, because a request did not come to its end. */
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

/** Observes one model request. Of several answers the last one counts. */
export interface ModelRequestObserver extends RequestObserver {
  /** What the operator should know of it, such as that a model failed and a fallback model is asked. */
  report(report: Error): void;
  /** Called once, in any case. */
  end(outcome: ModelRequestOutcome): void;
}

/** `model` is the model string of the model that was asked last, where an agent has several. A request that was refused has no `usage`. */
export type ModelRequestOutcome = { usage?: RecordedUsage | undefined; model?: string | undefined } & (
  | { type: "finished"; finish: TurnFinish }
  | { type: "failed"; error: unknown }
  /** Ended from outside. */
  | { type: "aborted" }
);

/** One run, when it is over. All times are in whole milliseconds. */
export interface RunEntry extends RunWords {
  readonly start: RunStart;
  /** As in the agent, `openai/gpt-5.2`; of several models the one that answered last. */
  readonly model: string;
  /** `gone`: the client went away and the answer was not finished. */
  readonly end: FinishReason | ErrorCode | "gone";
  readonly failed: boolean;
  /** The event that it ended with; none: the client had gone. */
  readonly last: DoneEvent | ErrorEvent | undefined;
  readonly usage: RecordedUsage | undefined;
  /** USD; absent where the agent has no price for it, or a model did not count. */
  readonly cost: number | undefined;
  /** From the message to the last event, the wait in the queue included. */
  readonly ms: number;
  readonly queueMs: number;
  /** Until the first piece of text or thinking; absent when there was none. */
  readonly firstTokenMs: number | undefined;
  /** Model requests. */
  readonly turns: number;
  /** Tool calls that began, without their steps. */
  readonly toolCalls: number;
  /** Tool calls that ended. */
  readonly tools: readonly StepEntry[];
  /** Tool calls that were begun and not ended. */
  readonly openCalls: readonly OpenCall[];
  /** The provider's name for the last model request, for its support. */
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
  /** The call's id, a tool's arguments as JSON, what clients get of its output if nothing is hidden, and what it threw. */
  readonly id?: string;
  /** Id of the call of which it is a step. */
  readonly parent?: string | undefined;
  readonly arguments?: string | undefined;
  readonly output?: string;
  readonly thrown?: unknown;
  /** What a person has decided on the call; absent for a call that needs no approval. */
  readonly decision?: Decision | undefined;
  /** What a model request took, and what that costs. */
  readonly usage?: RecordedUsage | undefined;
  readonly cost?: number | undefined;
}

/** Gets what is known of every run. A sink is quick. What it throws is a record of the log, and the run goes on. */
export interface RunSink {
  /** A run begins. The spans that are returned, if any, follow it. */
  begin?(start: RunStart): RunSpans | undefined;
  /** A model request or a tool call is over. */
  step?(entry: StepEntry): void;
  /** A model request is sent, or sent once more. One sink at most has this. */
  sending?(start: RunStart, sent: SentTry): TryObserver;
  /** A person has decided on a tool call. */
  approval?(tool: string, decision: Decision, start: RunStart): void;
  /** Something failed in a run; `error` has its cause. */
  failure?(error: unknown, start: RunStart): void;
  /** A run is over. */
  run?(entry: RunEntry): void;
  /** The server stops, and no run follows. It takes a bounded time, and never rejects. */
  close?(): void | Promise<void>;
}

/** Which model request of a run is sent, from 1, for which time, from 1 and over all models that it is sent to, and to which of them. */
export interface SentTry extends SentModel {
  readonly turn: number;
  readonly attempt: number;
}

/** What a sink follows of one run while it goes on. */
export interface RunSpans {
  modelRequest?(): Pick<ModelRequestObserver, "answered" | "end">;
  /** As `RunObserver.tool`. */
  tool<Outcome extends ToolOutcome>(call: RunningCall, work: () => Promise<Outcome>): Promise<Outcome>;
  /** `last` is the event that the run ended with; none: the client had gone. */
  end?(last: TerminalEvent | undefined): void;
}
