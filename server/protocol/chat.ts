/** Types of requests and answers, with the field names that are sent. */

import type { Attachment, ImageType, MediaType } from "./attachments.ts";
import type { CitedSource, ResultSource } from "./sources.ts";

/**
 * Why a run ended, and whether that cut the answer, so that `continue` can resume it. `stop`: the model had finished;
 * `stopped`: the client ended the run; `refused`: a hook refused; `approval_required`: tool calls wait for the user's decision.
 */
export const FINISH_REASONS = {
  stop: false,
  length: true,
  content_filter: false,
  max_turns: true,
  stopped: true,
  refused: false,
  approval_required: false,
};

export type FinishReason = keyof typeof FINISH_REASONS;

/** Tokens of a whole run. Fields that no provider has reported are absent. */
export interface Usage {
  /** All input, including tokens from and into a cache. */
  input_tokens: number;
  /** All output, including thinking. */
  output_tokens: number;
  /** Input tokens that were read from a cache. */
  cached_input_tokens?: number;
  /** Input tokens that were written into a cache. */
  cache_write_tokens?: number;
  /** Output tokens of thinking. */
  reasoning_tokens?: number;
}

export interface TextPart {
  type: "text";
  text: string;
}

/** Describes a file that was left out of the history. */
export interface OmittedFile {
  /** The digest of the bytes, in base64url. */
  sha256: string;
  mime_type: MediaType;
  bytes: number;
  /** Absent where the part has none, as an image does. */
  name?: string;
}

/** Takes the place of a file that the client has not kept. */
export interface OmittedPart {
  type: "omitted";
  omitted: OmittedFile;
}

/** A file in Chat Completions form. `omitted` is what a client may send in its place. */
export type FilePart = { omitted?: OmittedFile } & (
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } }
);

export type ImagePart = Extract<FilePart, { type: "image_url" }>;

/** A part of a message of the history. */
export type ContentPart = TextPart | FilePart | OmittedPart;

/** A tool call of an assistant message. Fields that the provider added are kept. */
export interface HistoryToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  [extra: string]: unknown;
}

export interface UserMessage {
  role: "user";
  content: string | ContentPart[];
}

/** What the model said. Other fields (thinking blocks, signatures) are sent back verbatim. */
export interface AssistantMessage {
  role: "assistant";
  content: string | null;
  tool_calls?: HistoryToolCall[];
  [extra: string]: unknown;
}

/** A part of a tool's result. */
export type ToolContent = TextPart | ImagePart;

export interface ToolMessage {
  role: "tool";
  tool_call_id: string;
  /** A plain string if the result is only text. */
  content: string | (ToolContent | OmittedPart)[];
  /** Whether the call failed; never inferred from the text. */
  is_error?: boolean;
  /** Sources of the result. */
  sources?: ResultSource[];
  /** The encrypted message, if clients may not read it; the other fields are empty then. */
  sealed?: string;
}

/** One element of `conversation_history`. */
export type HistoryMessage = UserMessage | AssistantMessage | ToolMessage;

/**
 * What a client keeps between two messages and sends back untouched: one of two kinds, depending on the provider. An empty
 * object means a new conversation, in both directions and for every provider.
 */
export interface ConversationState {
  /** For providers that store the conversation; a signed id ends with `.CONVERSATION.SIGNATURE`. */
  previous_response_id?: string;
  /** For providers that get the whole conversation with each request. */
  conversation_history?: HistoryMessage[];
  /** Signs the `conversation_history`, if the server signs its states. */
  signature?: string;
  /** The exchange since then, if it has not ended. Always signed. Only the server reads its fields. */
  open?: OpenExchange;
  /** Id of the conversation, the same for all of its messages. */
  conversation?: string;
}

/** A message whose answer has begun, with the calls that were made and their results so far. */
export interface OpenExchange {
  /** The whole exchange; where the API stores the conversation, only what the API does not have yet. */
  messages: HistoryMessage[];
  /** Where the API stores the conversation: id of the response that waits for these messages. */
  response?: string;
  /** Calls that wait for the user's decision. */
  waiting?: WaitingCalls;
  /** The encrypted part that clients may not read: the whole exchange, or `waiting`. */
  sealed?: string;
  signature?: string;
}

export interface WaitingCalls {
  calls: WaitingCall[];
  /** What an agent with its own `run` needs to resume all of them. */
  kept?: unknown;
  /** Allows only one decision: the ledger named `ledger` remembers each nonce that was used. */
  nonce: string;
  ledger: string;
  /** ISO 8601, in UTC. */
  expires_at: string;
}

export interface WaitingCall {
  id: string;
  name: string;
  arguments: string;
  editable?: boolean;
  /** The id that clients have of the call, if it is not `id`. */
  shownId?: string | undefined;
  /** No tool is called: the agent that asks continues with the answer. */
  isQuestion?: true;
  /** A message in place of the decision counts as the answer. */
  question?: true;
  /** What an agent with its own `run` needs to resume this call. */
  kept?: unknown;
}

/** Which of the two states a provider uses. */
export type StateKind = "previous_response_id" | "conversation_history";

/** A plain text for people of at most 1,000 characters, or texts by language, such as `{ en: "Weather", de: "Wetter" }`. */
export type ToolText = string | Readonly<Record<string, string>>;

/** One value for each theme. */
export interface ByTheme {
  light: string;
  dark: string;
}

/** The launcher's button. The fields are the elements' properties of the same names; times are in milliseconds. */
export interface OwnersButton {
  position?: "bottom-end" | "bottom-start" | "top-end" | "top-start";
  icon?: "chat" | "spark" | "question";
  size?: "medium" | "small" | "large";
  label?: ToolText;
  preview?: ToolText;
  previewAfter?: number;
  /** Opens the chat once per visitor, and never where the panel fills the screen. */
  autoOpen?: number;
}

/** Texts, look and behaviour of the chat, as the agent's owner sets them. A page's own settings take precedence. */
export interface OwnersPage {
  /** Title of the chat, in place of the agent's name. */
  title?: ToolText;
  welcome?: ToolText;
  /** In the empty text field. */
  placeholder?: ToolText;
  /** A sentence below the text field. */
  disclaimer?: ToolText;
  /** The text of each button, and the message that it sends. */
  suggestions?: { label: ToolText; prompt: ToolText }[];
  /** Below the disclaimer. Addresses of http or https, or paths of the server. */
  links?: { label: ToolText; url: string }[];
  /** How people sign in, if the agent has to know them. */
  signIn?: { label?: ToolText; url?: string };
  /** How they sign out again. Without it, no button is shown. */
  signOut?: { label?: ToolText; url?: string };
  /** Colours of the form `#rrggbb`. */
  accent?: ByTheme;
  /** Addresses of images, relative to the server's. */
  logo?: ByTheme;
  favicon?: ByTheme;
  /** A list of font families, as in CSS. */
  font?: string;
  corners?: "round" | "soft" | "sharp";
  /** A default: the user's own choice takes precedence. */
  theme?: "auto" | "light" | "dark";
  density?: "normal" | "compact" | "spacious";
  conversations?: boolean;
  feedback?: boolean;
  tools?: "auto" | "open" | "closed" | "hidden" | "titles";
  thinking?: "auto" | "open" | "closed" | "hidden";
  button?: OwnersButton;
}

/** A tool call that begins now. */
export interface StartedToolCall {
  /** Pairs this call with its result; parallel calls finish in any order. */
  id: string;
  tool: string;
  /** Shown in place of the name. */
  title?: ToolText | undefined;
  /** One complete JSON text, as the model wrote it. */
  arguments: string;
  status: "running";
  /** Id of the call of which this one is a step. */
  parent?: string;
}

export interface FinishedToolCall {
  id: string;
  tool: string;
  /** Shown in place of the name, now that the call has ended. */
  title?: ToolText | undefined;
  output: string;
  /** Images of the result: at most 4, and at most 1 MiB in total. */
  images?: ResultImage[];
  /** How many more images the model got. */
  images_omitted?: number;
  status: "completed" | "failed";
  /** The user has declined the call: it was not carried out. */
  declined?: true;
  /** Milliseconds from the start of the tool to its end. */
  duration_ms: number;
  /** Id of the call of which this one is a step. */
  parent?: string;
}

/** An image of a tool's result. */
export interface ResultImage {
  mime_type: ImageType;
  /** Base64 of the bytes. */
  data: string;
}

/** A tool call that waits until the user has approved or declined it. */
export interface ToolApproval {
  id: string;
  tool: string;
  /** One complete JSON text. Show it: it is what the tool will get. */
  arguments: string;
  /** What the call does, in a few words of one or several languages. */
  title?: ToolText;
  /** The question to the user: plain text of at most 1,000 characters. */
  text: string;
  /** The call cannot be undone. */
  danger?: boolean;
  /** A decision may change the arguments. */
  editable?: boolean;
  /** JSON Schema of the arguments of an `editable` call, if it is not larger than 16 KiB. */
  schema?: Readonly<Record<string, unknown>>;
  /** The agent asks for text: the `reason` of an approval, or a plain message. */
  question?: boolean;
  /** ISO 8601, in UTC. */
  expires_at: string;
}

/** The user's answer to a tool call that waits for approval. */
export interface ApprovalDecision {
  /** The `id` of the call. */
  readonly id: string;
  readonly approved: boolean;
  /** For the model: why the call was declined, or the answer to a question. At most 1,000 characters. */
  readonly reason?: string;
  /** Changed arguments of an `editable` call, as one JSON text. */
  readonly arguments?: string;
}

/** A decision, with the call that it is about. */
export interface DecidedCall extends ApprovalDecision {
  readonly tool: string;
  /** What the framework of an agent with its own `run` needs to resume the call, or what its author has kept. */
  // biome-ignore lint/suspicious/noExplicitAny: the code that kept it knows what it is.
  readonly kept?: any;
}

/** Answer of `POST /api/chat` with `stream: false`. */
export interface ChatResponse {
  response: string;
  state: ConversationState;
  done: true;
  usage?: Usage;
  finish_reason: FinishReason;
  /** The data of `tool_call` and `tool_result`, merged for each call; absent if no tool ran. */
  tool_calls?: (StartedToolCall | (FinishedToolCall & { arguments?: string }))[];
  /** As in `done`. */
  model?: string;
  /** As in `done`. */
  approvals?: ToolApproval[];
  /** As in `done`. */
  suggestions?: string[];
  /** As in `done`. */
  title?: string;
  /** As in `done`. */
  sources?: CitedSource[];
}

/** A message that a client sends on the socket. `state` takes precedence over `previous_response_id`. */
export type SocketRequest =
  | {
      /** May be absent beside `approvals` and `continue`, and empty beside a file. */
      message?: string;
      run?: string;
      previous_response_id?: string;
      state?: ConversationState;
      attachments?: readonly Attachment[];
      /** Answers the tool calls that wait, each of them exactly once. */
      approvals?: readonly ApprovalDecision[];
      /** Asks the model to continue from the state: after an error that allows it, or after an answer that was cut. */
      continue?: true;
      /** At most 16 strings for the agent. They are not verified. */
      metadata?: Readonly<Record<string, string>>;
    }
  | { type: "clear" }
  /** Identifies the sender of the following messages, until the next `authenticate`. */
  | { type: "authenticate"; token: string }
  | { type: "stop" }
  /** Asks for the run's events after number `after`; 0: for all. */
  | { type: "resume"; run: string; after: number };

/** Body of `POST /api/feedback`. */
export interface FeedbackRequest {
  /** Id of the run whose answer is rated. */
  run: string;
  conversation?: string | undefined;
  /** `null` withdraws an earlier rating. */
  rating: "up" | "down" | null;
  /** At most 200 characters. */
  reason?: string | undefined;
  /** At most 4,000 characters. */
  comment?: string | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
}

/** Answer of `POST /api/chat/runs/{id}/cancel`: whether the run was ended, or had ended by itself. */
export interface CancelResponse {
  status: "cancelled" | "finished";
}

/** Answer of `GET /api/info`. */
export interface AgentInfo {
  /** Name of the application. */
  name: string;
  /** Name of the agent. */
  agent: string;
  /** Whether a key is needed to chat. */
  auth_required: boolean;
  /** Greeting of the empty conversation. */
  welcome?: string;
  /** First messages to offer. */
  suggestions: string[];
  /** A sentence below the text field, such as that answers may be wrong. */
  disclaimer?: string;
  /** The owner's settings of the chat, in all languages; the three texts above are its English, or first, ones. */
  chat?: OwnersPage;
  /** The model strings in the order in which they are asked; only of an agent with fallback models. */
  models?: string[];
  /** Whether `POST /api/feedback` accepts ratings of answers. */
  feedback?: true;
  /** Whether `continue` can resume an answer; absent for an agent with its own `run`. */
  continue?: true;
  /** What may be attached; `media_types` is empty if the agent accepts no files. `max_text_bytes` is for text files. */
  attachments: { media_types: string[]; max_bytes: number; max_text_bytes: number; max_count: number };
  /** Maximum body of one message, including its state and its files, which are base64 there: 4 bytes for 3. */
  max_body_bytes: number;
  /** 22 characters that identify the user whose token or cookie came with the request; absent if unknown. */
  user?: string;
  /** The user's name, at most 100 characters, where the agent's `authenticate` gives one. */
  user_name?: string;
  /** A user has to sign in before they can chat. */
  login_required?: true;
  /** The user is not known yet: the client has to ask again. Always set in the page at `/` of agents with users. */
  user_pending?: true;
}
