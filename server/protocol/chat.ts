/** The shapes of requests and answers, named as on the wire. */

import type { Attachment, ImageType, MediaType } from "./attachments.ts";
import type { CitedSource, ResultSource } from "./sources.ts";

/**
 * Why a run ended, and whether that cut the answer: then `continue` has it go on. `stop`: the model was finished; `stopped`:
 * the client asked for the end; `refused`: a hook did; `approval_required`: tool calls wait for a person's decision.
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

/** Tokens of a whole run. What no provider has reported is absent. */
export interface Usage {
  /** All input, including tokens from and into a cache. */
  input_tokens: number;
  /** All output, including thinking. */
  output_tokens: number;
  /** Input tokens that a cache gave. */
  cached_input_tokens?: number;
  /** Input tokens that were written into a cache. */
  cache_write_tokens?: number;
  /** Output tokens that were thought. */
  reasoning_tokens?: number;
}

export interface TextPart {
  type: "text";
  text: string;
}

/** What a file of the history was. */
export interface OmittedFile {
  /** The digest of the bytes, in base64url. */
  sha256: string;
  mime_type: MediaType;
  bytes: number;
  /** Absent where the part has none, as an image does. */
  name?: string;
}

/** Stands in the place of a file that the client has not kept. */
export interface OmittedPart {
  type: "omitted";
  omitted: OmittedFile;
}

/** A file in Chat Completions form, and what a client may send in its place. */
export type FilePart = { omitted?: OmittedFile } & (
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } }
);

export type ImagePart = Extract<FilePart, { type: "image_url" }>;

/** A part of a message of the history. */
export type ContentPart = TextPart | FilePart | OmittedPart;

/** A tool invocation on an assistant message. Fields that the provider added stay on it. */
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

/** What the model said. Fields beyond these (thinking blocks, signatures) go back verbatim. */
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
  /** A result of text alone is a plain string. */
  content: string | (ToolContent | OmittedPart)[];
  /** Whether the call failed; never read from the text. */
  is_error?: boolean;
  /** What the result rests on. */
  sources?: ResultSource[];
  /** All of it, where clients may not read it; the rest is empty then. */
  sealed?: string;
}

/** One element of `conversation_history`. */
export type HistoryMessage = UserMessage | AssistantMessage | ToolMessage;

/**
 * What a client keeps between two messages and sends back untouched: one of the two kinds, by the provider. An empty object
 * means a new conversation, in both directions and for every provider.
 */
export interface ConversationState {
  /** For providers that keep the conversation on their side; a signed one ends with `.CONVERSATION.SIGNATURE`. */
  previous_response_id?: string;
  /** For providers that get the whole conversation with each request. */
  conversation_history?: HistoryMessage[];
  /** Signs the `conversation_history`, if the server signs its states. */
  signature?: string;
  /** What was said and done since then, if that has not come to its end. Always signed. Its fields are the server's own. */
  open?: OpenExchange;
  /** Names the conversation over all of its messages. */
  conversation?: string;
}

/** A message whose answer was begun: with it, the calls that were made and their results so far. */
export interface OpenExchange {
  /** All of it; where the API keeps the conversation, what the API does not have yet. */
  messages: HistoryMessage[];
  /** Where the API keeps the conversation: the response that waits for these messages. */
  response?: string;
  /** Its calls that wait for a person's decision. */
  waiting?: WaitingCalls;
  /** What of this clients may not read: all of it, or `waiting`. */
  sealed?: string;
  signature?: string;
}

export interface WaitingCalls {
  calls: WaitingCall[];
  /** What an agent that is written elsewhere needs to go on with all of them. */
  kept?: unknown;
  /** Decided upon at most once: the ledger of this name remembers the nonce from then on. */
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
  /** What clients know the call by, where that is not its id. */
  shownId?: string | undefined;
  /** No tool is called: the agent that asks goes on with the answer. */
  isQuestion?: true;
  /** A message in place of the decision is the answer. */
  question?: true;
  /** What an agent that is written elsewhere needs to go on with this one. */
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

/** The launcher's button, as the elements' properties of the same names have it; times are in milliseconds. */
export interface OwnersButton {
  position?: "bottom-end" | "bottom-start" | "top-end" | "top-start";
  icon?: "chat" | "spark" | "question";
  size?: "medium" | "small" | "large";
  label?: ToolText;
  preview?: ToolText;
  previewAfter?: number;
  /** Opens once for a visitor, and never where the panel fills the screen. */
  autoOpen?: number;
}

/** Texts, looks and behaviour of the chat, as the owner of the agent wants them. What a page says itself wins. */
export interface OwnersPage {
  /** What the chat is called, in place of the agent's name. */
  title?: ToolText;
  welcome?: ToolText;
  /** In the empty text field. */
  placeholder?: ToolText;
  /** A sentence below the text field. */
  disclaimer?: ToolText;
  /** What the button says, and what it sends. */
  suggestions?: { label: ToolText; prompt: ToolText }[];
  /** Below the disclaimer. Addresses of http or https, or paths of the server. */
  links?: { label: ToolText; url: string }[];
  /** How people sign in, where the agent has to know them. */
  signIn?: { label?: ToolText; url?: string };
  /** How they sign out again. Without it, no button is shown. */
  signOut?: { label?: ToolText; url?: string };
  /** Colours of the form `#rrggbb`. */
  accent?: ByTheme;
  /** Addresses of images, relative to the server's. */
  logo?: ByTheme;
  favicon?: ByTheme;
  /** A list of families, as in CSS. */
  font?: string;
  corners?: "round" | "soft" | "sharp";
  /** A default: what the reader has chosen wins. */
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
  /** What people read in place of the name. */
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
  /** What people read in place of the name, now that the call has ended. */
  title?: ToolText | undefined;
  output: string;
  /** Pictures of the result: at most 4, which have 1 MiB together. */
  images?: ResultImage[];
  /** How many more the model got. */
  images_omitted?: number;
  status: "completed" | "failed";
  /** The person has declined the call: it was not carried out. */
  declined?: true;
  /** Milliseconds from the start of the tool to its end. */
  duration_ms: number;
  /** Id of the call of which this one is a step. */
  parent?: string;
}

/** A picture of a tool's result. */
export interface ResultImage {
  mime_type: ImageType;
  /** Base64 of the bytes. */
  data: string;
}

/** A tool call that waits until the person has approved or declined it. */
export interface ToolApproval {
  id: string;
  tool: string;
  /** One complete JSON text. Show it: it is what the tool will get. */
  arguments: string;
  /** What the call does, in few words, or in those of several languages. */
  title?: ToolText;
  /** What the person is asked: plain text of at most 1,000 characters. */
  text: string;
  /** The call cannot be undone. */
  danger?: boolean;
  /** A decision may bring other arguments. */
  editable?: boolean;
  /** JSON Schema of the arguments of an `editable` call, where it has no more than 16 KiB. */
  schema?: Readonly<Record<string, unknown>>;
  /** The agent wants words: `reason` of a yes, or a plain message. */
  question?: boolean;
  /** ISO 8601, in UTC. */
  expires_at: string;
}

/** The person's answer to a tool call that waits for approval. */
export interface ApprovalDecision {
  /** The `id` of the call. */
  readonly id: string;
  readonly approved: boolean;
  /** Why it was declined, for the model, or the answer to a question. At most 1,000 characters. */
  readonly reason?: string;
  /** Changed arguments, as one JSON text, for a tool that lets them be edited. */
  readonly arguments?: string;
}

/** A decision, with what it is about. */
export interface DecidedCall extends ApprovalDecision {
  readonly tool: string;
  /** What the framework of an agent with `run` needs to go on, or what its author has kept. */
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
  /** What `tool_call` and `tool_result` say, joined by call; absent where no tool ran. */
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

/** A message that a client sends on the socket. `state` wins over `previous_response_id`. */
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
      /** Asks the model to go on from the state: after an error that says so, or after an answer that ended too early. */
      continue?: true;
      /** At most 16 strings for the agent, which nothing proves. */
      metadata?: Readonly<Record<string, string>>;
    }
  | { type: "clear" }
  /** Says who sends what comes next, until another one does. */
  | { type: "authenticate"; token: string }
  | { type: "stop" }
  /** Asks for the run's events after the one of this number; 0: for all. */
  | { type: "resume"; run: string; after: number };

/** Body of `POST /api/feedback`. */
export interface FeedbackRequest {
  /** Id of the run whose answer it is. */
  run: string;
  conversation?: string | undefined;
  /** `null` takes an earlier rating back. */
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
  /** What the agent's owner says of the chat, in all languages; the three above are its English, or first, texts. */
  chat?: OwnersPage;
  /** The model strings in the order in which they are asked; only of an agent with fallback models. */
  models?: string[];
  /** Whether `POST /api/feedback` takes ratings of answers. */
  feedback?: true;
  /** Whether `continue` has an answer go on; absent for an agent with a `run` of its own. */
  continue?: true;
  /** What may be attached to a message; `media_types` is empty when the agent takes no files. `max_text_bytes` holds for text files. */
  attachments: { media_types: string[]; max_bytes: number; max_text_bytes: number; max_count: number };
  /** Most that the body of one message may weigh, with its state; its files are base64 there: 4 bytes for 3. */
  max_body_bytes: number;
  /** Names the user whose token or cookie came with the request, in 22 characters; absent if they are not known. */
  user?: string;
  /** The user's name, at most 100 characters, where the agent's `authenticate` gives one. */
  user_name?: string;
  /** A user has to sign in before they can chat. */
  login_required?: true;
  /** The user is not found out yet: the client has to ask again. The page at `/` has it where the agent knows its users. */
  user_pending?: true;
}
