/**
 * The contract between the agent loop and the providers of models. Providers never see wire names of ours, and clients never
 * see wire names of theirs.
 */

import type { LoadPackage } from "../config/optional-package.ts";
import type { Settings } from "../config/settings.ts";
import type { MediaType } from "../protocol/attachments.ts";
import type {
  AssistantMessage,
  FinishedToolCall,
  FinishReason,
  HistoryMessage,
  HistoryToolCall,
  StateKind,
  ToolApproval,
  ToolContent,
  Usage,
} from "../protocol/chat.ts";
import type { Json } from "../protocol/json.ts";
import type { ResultSource } from "../protocol/sources.ts";

/** What a model says, in the order in which it says it. Exactly one `end` is the last event of a turn. */
export type ModelEvent =
  | { type: "text"; delta: string }
  | { type: "thinking"; delta: string }
  /** All text of this turn so far was thinking, as only its end has shown. */
  | { type: "text_was_thinking" }
  /** The text from here on is the answer: what was said before led to it. */
  | { type: "text_begins_anew" }
  /** What a place of the text rests on, which has come. */
  | { type: "source"; source: FoundSource }
  /** A whole tool call. The run starts it only after `end`. */
  | { type: "call"; call: ToolCall }
  /** The provider runs a tool of its own: only to be shown. `parent`: a step of that call, which stands in no history. */
  | { type: "hosted_call"; call: ToolCall; parent?: string }
  /**
   * The result of a hosted call. `durationMs` counts from where the provider began with it. `isOpen`: it is not known yet, and
   * `answer` says so to clients alone. `parent` as in its `hosted_call`.
   */
  | { type: "hosted_result"; answer: ToolAnswer; durationMs: number; isOpen?: true; parent?: string }
  /** What a hosted call, or a step of one, does now. */
  | { type: "progress"; id: string; text: string }
  /** An agent that is written elsewhere waits for a person, before it carries out a call of its own. */
  | { type: "approval"; asked: AskedCall }
  /** What the operator should know, such as that a model has failed and the next one is asked. For the log. */
  | { type: "report"; report: Error }
  /** The model string of the model that is asked from here on; only of an agent with fallback models. */
  | { type: "model"; model: string }
  /** What was counted so far: all that is known of an answer that does not come to its end. */
  | { type: "usage"; usage: Usage }
  | { type: "end"; finish: TurnFinish; usage?: Usage | undefined };

/** A source as it was found: nothing of it is checked. */
export interface FoundSource {
  title?: string | undefined;
  url?: string | undefined;
  /** Its name, if it has no address. */
  file?: string | undefined;
  quote?: string | undefined;
  /** How many UTF-16 units of this turn's text so far stand behind the place; absent where there is no place. */
  back?: number | undefined;
  /** The call whose result it comes from, if a tool of ours has given it. */
  call?: HistoryToolCall | undefined;
}

/** Why a model turn ended. The calls say whether tools are to run, not this. */
export type TurnFinish = Extract<FinishReason, "stop" | "length" | "content_filter">;

export interface ToolCall {
  /** Never empty, and unique within the conversation; minted where the provider gives none. */
  id: string;
  name: string;
  /** One complete JSON text as the model wrote it; may be invalid JSON, "{}" where it wrote nothing. */
  arguments: string;
}

/** A call that waits for a person, and what they are asked. */
export interface AskedCall {
  call: ToolCall;
  /** How clients know the call, where its tool hides it or has a title. */
  shown?: Pick<ToolApproval, "id" | "tool" | "arguments" | "title"> | undefined;
  /** Plain text; absent: the tool's name says it. */
  text?: string | undefined;
  danger?: boolean | undefined;
  editable?: boolean | undefined;
  schema?: ToolApproval["schema"] | undefined;
  /** No tool is called: the agent that asks goes on with the answer. */
  isQuestion?: boolean | undefined;
  /** The agent wants words, not a decision. */
  question?: boolean | undefined;
  /** What a framework needs to go on. */
  kept?: unknown;
}

/** The result of a call, for the model. */
export interface ToolAnswer {
  id: string;
  name: string;
  content: readonly ToolContent[];
  /** What it rests on. */
  sources?: readonly ResultSource[] | undefined;
  /** What clients get of its pictures. */
  images?: Pick<FinishedToolCall, "images" | "images_omitted"> | undefined;
  /** What clients get in place of `content`, in events and in a history that leaves the server; absent if it is the same. */
  shown?: string | undefined;
  failed: boolean;
}

/** A tool as a model gets to know it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of an object, without `$schema`. */
  parameters: Record<string, unknown>;
}

/** What is known of a model that is served. */
export interface ProviderFacts {
  /** As in the model string, for logs and for binding signed states: "openai". */
  readonly id: string;
  /** Names the provider in sentences for the operator: "OpenAI". */
  readonly label: string;
  /** The files that its API takes. */
  readonly mediaTypes: readonly MediaType[];
  /** The model strings in the order in which they are asked; only of an agent with fallback models. */
  readonly models?: readonly string[] | undefined;
  /** Its API gets the sources of tools' results, and its answers say where they rest on which. */
  readonly citesResults?: boolean | undefined;
}

/** What is known of whatever answers, with the kind of its states. */
export interface ServedFacts extends ProviderFacts {
  readonly stateKind: StateKind;
}

/** A model that is served, with its settings resolved. One object serves all conversations. */
export interface Provider extends ServedFacts {
  /** Any other model whose states are of the same kind can go on with the same conversation. */
  readonly model: Model;
}

/** What each request of a conversation says to the model beside the messages. */
export interface ModelSetup {
  instructions: string;
  tools: readonly ToolSpec[];
}

/** Observes a model request. It is quick and never throws. */
export interface RequestObserver {
  /** The provider has answered, perhaps with a refusal, and named the request. */
  answered(providerRequestId: string): void;
  /** The request is sent, or sent once more. Absent where no sink reads what is sent. */
  sending?: ((model: SentModel) => TryObserver) | undefined;
}

/** The model that a request is sent to: the provider's id, and the model's name there. */
export type SentModel = Pick<ProviderSetup, "id" | "model">;

/** Observes one try of a model request. It is quick and never throws. */
export interface TryObserver {
  /** What is sent; never called where nothing could be sent, such as without credentials. */
  sent(request: SentRequest): void;
  /** The answer is a stream. Any other answer is the error of `ended`. */
  streams(head: AnswerHead): void;
  /** One message of the stream, before its meaning is read: a JSON text, or its value where that has been read already. */
  message(event: string, data: string | Json): void;
  /** The first call counts. */
  ended(outcome: TryOutcome): void;
}

/** A request as it is sent; only its body where a package sends it. */
export interface SentRequest {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object has not been written as JSON yet. */
  readonly body: string | Uint8Array | object;
}

export interface AnswerHead {
  /** Absent where a package reads the answer. */
  readonly status?: number | undefined;
  readonly headers: Headers;
}

export type TryOutcome =
  | { readonly type: "complete" }
  | { readonly type: "failed"; readonly error: unknown }
  /** Ended from outside, for this reason of its signal. */
  | { readonly type: "aborted"; readonly reason: unknown };

/**
 * Makes one model request, and yields what the model says: one batch for each packet of the answer, and none is empty. Throws
 * an `ApiError` for every failure of the model's side, also for an answer that broke off; after an abort it throws anything, or
 * ends quietly. The abort closes the upstream connection, and so does leaving the loop.
 */
export type Model = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent[]>;

/** One request of a conversation. */
export interface ModelRequest {
  /** The same object for all requests of one run. */
  setup: ModelSetup;
  /** The whole conversation; for an API that keeps it, what the API does not have yet. */
  messages: readonly HistoryMessage[];
  /** The response to continue from, of an API that keeps the conversation. */
  previousId?: string | undefined;
  /** Takes the answer as the history keeps it, and what the API has kept of it. The model calls it before it yields `end`. */
  keep(message: AssistantMessage, kept?: KeptResponse): void;
  observer?: RequestObserver | undefined;
}

export interface KeptResponse {
  id: string;
  /** Calls that the token limit cut: they cannot be made, but the API wants them answered. */
  cutCalls: readonly string[];
}

/** Milliseconds. */
export interface TransportLimits {
  /** From the request to the first byte of its answer, retries included. */
  firstChunkMs: number;
  /** Silence inside an answer. */
  idleMs: number;
}

/** How much a reasoning model may think before it answers; a level that a model does not know is refused by its API. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh";

/** How an agent's author wants the model to work. What is absent is left to the provider's default. */
export interface ModelSettings {
  readonly reasoningEffort?: ReasoningEffort;
  readonly temperature?: number;
  /** Most tokens of one model turn, reasoning included where the provider counts it so. */
  readonly maxOutputTokens?: number;
  /** Merged last into each request's body, for what Parley does not know: see `withExtraBody`. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** Whether the provider keeps the conversation; `false` makes the state a `conversation_history`. */
  readonly store?: boolean;
  /** What the package of a model object takes under the name of its provider. */
  readonly providerOptions?: Readonly<Record<string, unknown>>;
  /** Tools that the provider runs itself, as its API takes them. */
  readonly hostedTools?: readonly HostedTool[];
}

/** A tool that the provider runs; fields beyond `type` are its API's. */
export interface HostedTool {
  readonly type: HostedToolType;
  readonly [field: string]: unknown;
}

export type HostedToolType = "web_search" | "file_search" | "code_interpreter";

/** What a row of the provider table gets to make a `Provider`. */
export interface ProviderSetup extends ProviderFacts {
  /** The model's name without the provider's prefix. */
  model: string;
  /** The server's settings. Those of the provider were checked, and are "" where they are not set. */
  settings: Settings;
  /** The agent's settings for its model. */
  modelSettings: ModelSettings;
  limits: TransportLimits;
  loadPackage: LoadPackage;
  /** Set by tests alone. */
  clock?: RetryClock;
}

/** What a retry needs of the world. */
export interface RetryClock {
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** As `Math.random`. */
  random(): number;
}
