/** A message before and after it is read: plain data, for the thread that parses large ones. Types alone. */

import type { RunRequest } from "../agent/loop.ts";
import type { StateBinding } from "../agent/state.ts";
import type { FileType } from "../protocol/attachments.ts";
import type { ConversationState } from "../protocol/chat.ts";
import type { ApiErrorOptions, ErrorCode } from "../protocol/errors.ts";

/** By what a message is read. */
export interface MessageRules {
  readonly state: StateBinding;
  readonly attachments: AttachmentRules;
  /** UTF-16 units of a message's text. */
  readonly maxMessageChars: number;
  /** Nesting of arrays and objects. */
  readonly maxJsonDepth: number;
  /** Whether a model of ours answers, which takes instructions and can be asked to go on without a message. */
  readonly asksModel: boolean;
  /** The client's name for the run, where its door has one outside of the body. */
  readonly name?: string | undefined;
}

/** Files are never dropped in silence. */
export interface AttachmentRules {
  readonly maxCount: number;
  /** What the agent takes. */
  readonly accepts: readonly FileType[];
}

export interface ParsedMessage {
  request: RunRequest;
  /** The client's name for the run, if it wants to come back to it. */
  name: string | undefined;
  /** A hash of a message that has a name; else empty. */
  digest: string;
  /** What the client says of the message. Nothing proves it. */
  metadata: Readonly<Record<string, string>>;
}

export interface ParsedChatRequest extends ParsedMessage {
  stream: boolean;
  /** Absent where a door's clients ask for nothing. */
  asked?: Asked;
}

/** What a door's client asks of the answer itself. */
export interface Asked {
  /** Whether a stream ends with what was counted. */
  readonly usage?: boolean;
  /** Names of what was sent and does not count. */
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

/** A message of the Model Context Protocol, as far as this server knows of it. */
export interface McpMessage {
  /** Absent for a notification, which is not answered. */
  readonly id: RequestId | undefined;
  readonly method: string;
  /** Name of the tool that is called. */
  readonly name: string | undefined;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The version of the specification, as clients say it since 2026; absent for older ones. */
  readonly version: string | undefined;
  /** Whether it says what its client can do, as clients have to since 2026. */
  readonly hasCapabilities: boolean;
  /** The version that an older client proposes. */
  readonly proposed: string | undefined;
  /** With it, the client wants to hear what is done until the answer comes. */
  readonly progressToken: RequestId | undefined;
  /** The request that a notification cancels. */
  readonly cancels: RequestId | undefined;
}

/** Names a request in JSON-RPC. */
export type RequestId = string | number;

/** How the body of a request is read. @throws ApiError */
type BodyParser = (body: unknown, rules: MessageRules) => ParsedChatRequest;

/** How messages are read, by a name that can be sent to a thread. */
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

/** An exception does not survive the way between threads whole, so it goes in parts. */
export type ParseOutcome =
  | { type: "parsed"; value: unknown }
  | { type: "refused"; code: ErrorCode; message: string; options: ApiErrorOptions }
  | { type: "bug"; text: string };
