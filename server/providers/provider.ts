/**
 * The contract between the agent loop and the providers of models. Providers never see the names of our protocol, and
 * clients never see the names of a provider's API.
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

/** The events of a model's turn, in order. Exactly one `end` is the last of them. */
export type ModelEvent =
  | { type: "text"; delta: string }
  | { type: "thinking"; delta: string }
  /** All text of this turn so far turned out to be thinking. */
  | { type: "text_was_thinking" }
  /** The answer begins with the next text: the text so far led up to it. */
  | { type: "text_begins_anew" }
  /** The source of a passage that was already sent. */
  | { type: "source"; source: FoundSource }
  /** A whole tool call. The run starts it only after `end`. */
  | { type: "call"; call: ToolCall }
  /** The provider runs its own tool, for display only. `parent`: a step of that call, which the history does not keep. */
  | { type: "hosted_call"; call: ToolCall; parent?: string }
  /**
   * The result of a hosted call. `durationMs` counts from when the provider began it. `isOpen`: the result is not known
   * yet, and `answer` says so, to clients only. `parent` as in its `hosted_call`.
   */
  | { type: "hosted_result"; answer: ToolAnswer; durationMs: number; isOpen?: true; parent?: string }
  /** The current activity of a hosted call, or of a step of one. */
  | { type: "progress"; id: string; text: string }
  /** An agent of another framework or service waits for a person before it carries out a call of its own. */
  | { type: "approval"; asked: AskedCall }
  /** What the operator should know, such as that a model has failed and the next one is asked. For the log. */
  | { type: "report"; report: Error }
  /** The model string of the model that is asked from here on; only for agents with fallback models. */
  | { type: "model"; model: string }
  /** The usage counted so far: all that is known if the answer breaks off. */
  | { type: "usage"; usage: Usage }
  | { type: "end"; finish: TurnFinish; usage?: Usage | undefined };

/** A source as it was found, unchecked. */
export interface FoundSource {
  title?: string | undefined;
  url?: string | undefined;
  /** The file's name, for a source without a URL. */
  file?: string | undefined;
  quote?: string | undefined;
  /** How many UTF-16 units of this turn's text so far follow the cited position; absent without a position. */
  back?: number | undefined;
  /** The call that returned this source, if a tool of the agent did. */
  call?: HistoryToolCall | undefined;
}

/** Why a model's turn ended. Whether tools run depends on its calls, not on this. */
export type TurnFinish = Extract<FinishReason, "stop" | "length" | "content_filter">;

export interface ToolCall {
  /** Never empty, and unique within the conversation; generated if the provider gives none. */
  id: string;
  name: string;
  /** The complete JSON text as the model wrote it, perhaps invalid; "{}" if it wrote nothing. */
  arguments: string;
}

/** A call that waits for a person, and what they are asked. */
export interface AskedCall {
  call: ToolCall;
  /** The call as clients see it, if its tool hides it or has a title. */
  shown?: Pick<ToolApproval, "id" | "tool" | "arguments" | "title"> | undefined;
  /** Plain text; absent if the tool's name is enough. */
  text?: string | undefined;
  danger?: boolean | undefined;
  editable?: boolean | undefined;
  schema?: ToolApproval["schema"] | undefined;
  /** No tool is called: the agent continues with the person's answer. */
  isQuestion?: boolean | undefined;
  /** The agent wants a text, not a decision. */
  question?: boolean | undefined;
  /** Data that a framework needs to continue. */
  kept?: unknown;
}

/** The result of a call, for the model. */
export interface ToolAnswer {
  id: string;
  name: string;
  content: readonly ToolContent[];
  /** The sources of `content`. */
  sources?: readonly ResultSource[] | undefined;
  /** The pictures in `content` as clients get them. */
  images?: Pick<FinishedToolCall, "images" | "images_omitted"> | undefined;
  /** What clients get in place of `content`, in events and in a history that leaves the server; absent if it is the same. */
  shown?: string | undefined;
  failed: boolean;
}

/** A tool as it is described to a model. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of an object, without `$schema`. */
  parameters: Record<string, unknown>;
}

/** Facts about a model that is served. */
export interface ProviderFacts {
  /** As in the model string, for logs and for binding signed states: "openai". */
  readonly id: string;
  /** Names the provider in sentences for the operator: "OpenAI". */
  readonly label: string;
  /** The types of files that its API accepts. */
  readonly mediaTypes: readonly MediaType[];
  /** The model strings in the order in which they are asked; only for agents with fallback models. */
  readonly models?: readonly string[] | undefined;
  /** Its API gets the sources of tool results, and its answers cite them. */
  readonly citesResults?: boolean | undefined;
}

/** Facts about what answers (a model, or code of the agent's author), with the kind of its states. */
export interface ServedFacts extends ProviderFacts {
  readonly stateKind: StateKind;
}

/** A model that is served, with its settings resolved. One object serves all conversations. */
export interface Provider extends ServedFacts {
  /** Any other model with states of the same kind can continue the same conversation. */
  readonly model: Model;
}

/** What each request of a conversation sends to the model besides the messages. */
export interface ModelSetup {
  instructions: string;
  tools: readonly ToolSpec[];
}

/** Observes a model request. Its methods are quick and never throw. */
export interface RequestObserver {
  /** The provider has answered, perhaps with a refusal, and given the request an id. */
  answered(providerRequestId: string): void;
  /** Called before each try of the request. Absent if no sink reads what is sent. */
  sending?: ((model: SentModel) => TryObserver) | undefined;
}

/** The model that a request is sent to: the provider's id, and the model's name there. */
export type SentModel = Pick<ProviderSetup, "id" | "model">;

/** Observes one try of a model request. Its methods are quick and never throw. */
export interface TryObserver {
  /** Called with the request; not called if it could not be sent, such as without credentials. */
  sent(request: SentRequest): void;
  /** The answer is a stream. Any other answer is passed to `ended` as its error. */
  streams(head: AnswerHead): void;
  /** One message of the stream, before it is interpreted: a JSON text, or its value if it was parsed already. */
  message(event: string, data: string | Json): void;
  /** Only the first call counts. */
  ended(outcome: TryOutcome): void;
}

/** A request as it is sent; if a package sends it, only the body is known. */
export interface SentRequest {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is a body that was not serialized to JSON yet. */
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
  /** Aborted from outside; `reason` is that of the signal. */
  | { readonly type: "aborted"; readonly reason: unknown };

/**
 * Makes one model request, and yields its events: one batch for each packet of the answer, never an empty one. Throws
 * an `ApiError` for every failure on the model's side, also if the answer breaks off; after an abort it may throw
 * anything, or end quietly. An abort closes the upstream connection, and so does leaving the loop.
 */
export type Model = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent[]>;

/** One request of a conversation. */
export interface ModelRequest {
  /** The same object for all requests of one run. */
  setup: ModelSetup;
  /** The whole conversation or, for an API that stores it, only the messages that the API does not have yet. */
  messages: readonly HistoryMessage[];
  /** The id of the response to continue from, for an API that stores the conversation. */
  previousId?: string | undefined;
  /** The model calls this before it yields `end`, with the answer for the history and what the API has stored of it. */
  keep(message: AssistantMessage, kept?: KeptResponse): void;
  observer?: RequestObserver | undefined;
}

export interface KeptResponse {
  id: string;
  /** Ids of calls that the token limit cut off: they cannot be made, but the API demands results for them. */
  cutCalls: readonly string[];
}

/** Milliseconds. */
export interface TransportLimits {
  /** From the request to the first byte of its answer, retries included. */
  firstChunkMs: number;
  /** The longest silence inside an answer. */
  idleMs: number;
}

/** How much a reasoning model may think before it answers; a level that a model does not know is refused by its API. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh";

/** The agent's settings for its model. The provider's default applies where a field is absent. */
export interface ModelSettings {
  readonly reasoningEffort?: ReasoningEffort;
  readonly temperature?: number;
  /** Maximum tokens of one model turn, including reasoning where the provider counts it so. */
  readonly maxOutputTokens?: number;
  /** Merged last into each request's body, for fields that Parley does not know: see `withExtraBody`. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** Whether the provider stores the conversation; `false` makes the state a `conversation_history`. */
  readonly store?: boolean;
  /** Options for the package of a model object, under the name of its provider. */
  readonly providerOptions?: Readonly<Record<string, unknown>>;
  /** Tools that the provider runs itself, in the form of its API. */
  readonly hostedTools?: readonly HostedTool[];
}

/** A tool that the provider runs; its API defines the fields besides `type`. */
export interface HostedTool {
  readonly type: HostedToolType;
  readonly [field: string]: unknown;
}

export type HostedToolType = "web_search" | "file_search" | "code_interpreter";

/** The values from which a row of the provider table makes a `Provider`. */
export interface ProviderSetup extends ProviderFacts {
  /** The model's name without the provider's prefix. */
  model: string;
  /** The server's settings. The provider's own were checked, and are "" if not set. */
  settings: Settings;
  /** The agent's settings for its model. */
  modelSettings: ModelSettings;
  limits: TransportLimits;
  loadPackage: LoadPackage;
  /** Set by tests alone. */
  clock?: RetryClock;
}

/** The clock and the randomness of retries; tests replace them. */
export interface RetryClock {
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** As `Math.random`. */
  random(): number;
}
