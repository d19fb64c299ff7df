/** A message before and after it is parsed: plain data, for the thread that parses large ones. Types only. */

import type { RunRequest } from "../agent/loop.ts";
import type { StateBinding } from "../agent/state.ts";
import type { FileType } from "../protocol/attachments.ts";
import type { ConversationState } from "../protocol/chat.ts";
import type { ApiErrorOptions, ErrorCode } from "../protocol/errors.ts";

/** The rules by which a message is read. */
export interface MessageRules {
  readonly state: StateBinding;
  readonly attachments: AttachmentRules;
  /** UTF-16 units of a message's text. */
  readonly maxMessageChars: number;
  /** Nesting of arrays and objects. */
  readonly maxJsonDepth: number;
  /** Whether Parley asks a model, which gets instructions and can be asked to continue without a message. */
  readonly asksModel: boolean;
  /** The client's name for the run, if its door gets one outside of the body. */
  readonly name?: string | undefined;
}

/** What files are accepted. A file that is not is an error, and never dropped silently. */
export interface AttachmentRules {
  readonly maxCount: number;
  /** The types that the agent accepts. */
  readonly accepts: readonly FileType[];
}

export interface ParsedMessage {
  request: RunRequest;
  /** The client's name for the run, if it may want to resume it. */
  name: string | undefined;
  /** A hash of the message if it has a `name`; otherwise "". */
  digest: string;
  /** The client's own data about the message, which is not verified. */
  metadata: Readonly<Record<string, string>>;
}

export interface ParsedChatRequest extends ParsedMessage {
  stream: boolean;
  /** Absent for doors whose clients cannot ask for anything. */
  asked?: Asked;
}

/** What a client asks about the form of the answer. */
export interface Asked {
  /** Whether a stream ends with the usage. */
  readonly usage?: boolean;
  /** Names of fields that were sent and are ignored. */
  readonly ignored?: readonly string[];
}

export type SocketCommand =
  | ({ type: "message" } & ParsedMessage)
  | { type: "clear" }
  | { type: "stop" }
  | { type: "authenticate"; token: string | undefined }
  | { type: "resume"; run: string; after: number };

/** What a socket continues from: the last state as its client got it, or `dropped` if there was no room to remember it. */
export type RememberedState = ConversationState | "dropped";

/** A message of the Model Context Protocol, with the fields that this server reads. */
export interface McpMessage {
  /** Absent for a notification, which is not answered. */
  readonly id: RequestId | undefined;
  readonly method: string;
  /** Name of the tool that is called. */
  readonly name: string | undefined;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The version of the specification, which clients send since 2026; absent for older clients. */
  readonly version: string | undefined;
  /** Whether it has the client's capabilities, which are required since 2026. */
  readonly hasCapabilities: boolean;
  /** The version that an older client proposes. */
  readonly proposed: string | undefined;
  /** If present, the client wants progress notifications until the answer. */
  readonly progressToken: RequestId | undefined;
  /** The request that a notification cancels. */
  readonly cancels: RequestId | undefined;
}

/** Names a request in JSON-RPC. */
export type RequestId = string | number;

/** How the body of a request is read. @throws ApiError */
type BodyParser = (body: unknown, rules: MessageRules) => ParsedChatRequest;

/** The parsers of messages, by names that can be sent to a thread. */
export interface Parsers {
  chat: BodyParser;
  socket(body: unknown, rules: MessageRules, remembered: RememberedState): SocketCommand;
  openai: BodyParser;
  mcp(body: unknown): McpMessage;
}

export type ParserName = keyof Parsers;
export type Parsed<Name extends ParserName> = ReturnType<Parsers[Name]>;

/** One message to parse. Its bytes are moved to the thread, not copied. */
export interface ParseJob {
  readonly parser: ParserName;
  readonly bytes: Uint8Array;
  readonly rules: MessageRules;
  /** What a socket continues from; empty for a body. */
  readonly remembered: RememberedState;
}

/** Sent in parts, because an exception loses some of its fields between threads. */
export type ParseOutcome =
  | { type: "parsed"; value: unknown }
  | { type: "refused"; code: ErrorCode; message: string; options: ApiErrorOptions }
  | { type: "bug"; text: string };
