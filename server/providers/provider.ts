/**
 * The seam between the run and the models. A provider is one file and one row in `index.ts`.
 * Providers never see wire names of ours; clients never see wire names of theirs.
 */

import type { MediaType, ReceivedFile } from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  ConversationState,
  FinishReason,
  HistoryMessage,
  StateKind,
  Usage,
} from "../protocol/chat.ts";

/** What a model said, in the order in which it said it. */
export type ProviderEvent =
  | { type: "text"; delta: string }
  | { type: "thinking"; delta: string }
  /** A whole tool call. The run starts it only after `end`. */
  | { type: "call"; call: ToolCall }
  /** The provider runs a tool of its own: for showing only, the run has nothing to do. */
  | { type: "hosted_call"; call: ToolCall }
  /** What became of a hosted call. `durationMs` counts from where the provider began with it. */
  | { type: "hosted_result"; answer: ToolAnswer; durationMs: number }
  /** A model failed before it said anything, and another is asked in its place. For the log. */
  | { type: "failover"; report: Error }
  /**
   * Exactly one, and the last. A stream that ends without it was cut: `provider_truncated`. `model` is the
   * model string of who answered, where an agent has several.
   */
  | { type: "end"; finish: TurnFinish; usage?: Usage; model?: string };

/** All events but the last. */
export type SpokenEvent = Exclude<ProviderEvent, { type: "end" }>;

/** Why one model turn ended. Whether tools are to run is told by the calls, not by this. */
export type TurnFinish = Extract<FinishReason, "stop" | "length" | "content_filter">;

export interface ToolCall {
  /** Never empty and unique within the conversation; minted where the provider gives none. */
  id: string;
  name: string;
  /** One complete JSON text as the model wrote it; may be invalid JSON, "{}" where it wrote nothing. */
  arguments: string;
}

/** What a tool answered. */
export interface ToolAnswer {
  id: string;
  name: string;
  /** What the model gets. */
  output: string;
  failed: boolean;
  /** What clients get in its place, in events and in the state; absent if it is the same. */
  shown?: string;
}

/** A tool as a model is told about it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of an object. */
  parameters: Record<string, unknown>;
}

/** What does not change during a run. */
export interface ConversationSetup {
  instructions: string;
  tools: readonly ToolSpec[];
  /** Validated state to continue from; empty for a new conversation. */
  state: ConversationState;
  message: string;
  attachments: readonly ReceivedFile[];
}

/**
 * Takes what was said: what came together is one batch, and none is empty. Whoever is given a promise waits for it before
 * more is said; what is thrown ends the request. Not an iteration: its promises, several for each batch, were a tenth of
 * what a paced token cost.
 */
export type Tell<Event> = (events: readonly Event[]) => Promise<void> | undefined;

/**
 * One conversation during one run: it holds what the provider must be told.
 * Order of calls: `ask`, then either the run is over or `answer` and `ask` again.
 */
export interface Conversation {
  /**
   * One model request. The last thing told is exactly one `end` event; otherwise it rejects with a `ProviderError`, or with
   * what `tell` threw. Aborting the signal closes the upstream connection and ends the request, rejected or not.
   */
  ask(signal: AbortSignal, tell: Tell<ProviderEvent>, onAnswer?: OnAnswer): Promise<void>;
  /** Answers every call of the last turn. */
  answer(answers: readonly ToolAnswer[]): void;
  /**
   * Ends the run before the model was finished, so that `state()` can be continued: calls without an
   * answer are answered as cancelled. `said` is what the user was shown instead of, or as, the end of the
   * answer and becomes the model's last message; it may be empty, and text that came with the last turn's
   * calls is not kept twice.
   */
  interrupt(said: string): void;
  /**
   * A state that can be continued: every tool call in it is answered. Until the run was ended by an answer
   * without calls or by `interrupt`, the one that it came with. `{}` when there is none yet.
   */
  state(): ConversationState;
}

/** What is known of a model that is served. */
export interface ProviderFacts {
  /** As in the model string, for logs and for binding signed states: "openai". */
  readonly id: string;
  /** For sentences: "OpenAI". */
  readonly label: string;
  /** Which attachments the model takes; others are refused before the call. */
  readonly mediaTypes: readonly MediaType[];
  /** The model strings in the order in which they are asked, where there are several. */
  readonly models?: readonly string[];
}

/** A model that is served, with its settings resolved. */
export interface Provider extends ProviderFacts {
  readonly stateKind: StateKind;
  /**
   * Loads and makes what the first request needs, so that no message waits for it; asks the upstream nothing. What
   * fails here fails with that request again.
   */
  prepare?(): Promise<void>;
  open(setup: ConversationSetup): Conversation;
}

/**
 * Told of each answer to a model request, refusals too, by the name that the provider gave the request: what its
 * support asks for. Not told where it gave none.
 */
export type OnAnswer = (requestId: string) => void;

/** A model API that is told the whole conversation each time: all but OpenAI's Responses. */
export interface ChatModel {
  /** As `Provider.prepare`. */
  prepare?(): Promise<void>;
  /** As `Conversation.ask`, and the `end` event brings the assistant's message to keep in the history. */
  stream(request: ChatModelRequest, signal: AbortSignal, tell: Tell<ChatModelEvent>): Promise<void>;
}

export interface ChatModelRequest {
  instructions: string;
  tools: readonly ToolSpec[];
  messages: readonly HistoryMessage[];
  onAnswer?: OnAnswer | undefined;
}

export type ChatModelEvent =
  | SpokenEvent
  | { type: "end"; finish: TurnFinish; usage?: Usage; model?: string; message: AssistantMessage };

/** Milliseconds. */
export interface ProviderTimes {
  /** From the request to the first byte of the answer's stream. */
  firstChunk: number;
  /** Between two pieces of the stream. */
  idle: number;
}

/** How much a reasoning model may think before it answers; what a model does not know it refuses. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh";

/** How an agent's author wants the model to work. What is absent is left to the provider's default. */
export interface ModelSettings {
  readonly reasoningEffort?: ReasoningEffort;
  readonly temperature?: number;
  /** Most tokens of one model turn, reasoning included where the provider counts it so. */
  readonly maxOutputTokens?: number;
  /** Merged last into each request's body, for what Parley does not know: see `extra-body.ts`. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** Whether the provider keeps the conversation; `false` makes the state a `conversation_history`. */
  readonly store?: boolean;
  /** Tools that the provider runs itself, as its API takes them. */
  readonly hostedTools?: readonly HostedTool[];
}

/** A tool that the provider runs; fields beyond `type` are its API's. */
export interface HostedTool {
  readonly type: HostedToolType;
  readonly [field: string]: unknown;
}

export type HostedToolType = "web_search" | "file_search" | "code_interpreter";

/** What a row of the provider table is given to build a `Provider`. */
export interface ProviderSetup {
  /** The model's name without the provider's prefix. */
  model: string;
  /** Environment variables: the process's and the project's `.env`. */
  env: Readonly<Record<string, string | undefined>>;
  times: ProviderTimes;
  settings: ModelSettings;
  /**
   * Loads an official SDK that only some models need, and that is therefore not installed with Parley.
   * Rejects with a `SetupError` that says how to install it.
   */
  loadPackage(name: OptionalPackage): Promise<unknown>;
}

/** The optional peer dependencies of package.json. */
export type OptionalPackage = "@anthropic-ai/sdk" | "@aws-sdk/client-bedrock-runtime" | "google-auth-library";
