/** The `run` field, for an agent that is written elsewhere: what `run` gets, and what it may yield. */

import { ConfigError } from "../errors.ts";
import {
  ALL_MEDIA_TYPES,
  type AttachmentType,
  type FileType,
  type ImageType,
  isMediaType,
  isTextType,
  TEXT_TYPES,
} from "../protocol/attachments.ts";
import type { HistoryMessage, Usage } from "../protocol/chat.ts";
import { isRecord } from "../protocol/json.ts";
import { fencedText } from "../providers/history.ts";
import type { RunContext } from "./run-context.ts";

/** What `run` gets for each message. */
export interface RunInput {
  /** The user's words; empty if only files or decisions were sent. */
  readonly message: string;
  /** The conversation as texts, with this message at its end, in the form that most frameworks accept. */
  readonly messages: TextMessage[];
  /** The files of this message. */
  readonly attachments: readonly RunAttachment[];
  /** The `data` of the last `state` event in this conversation; `undefined` if there was none. */
  // biome-ignore lint/suspicious/noExplicitAny: the agent's author knows what it was, and checks it if need be.
  readonly state: any;
  /**
   * What the decisions of `ctx.approvals` are about, in the format of Chat Completions: the message that was being
   * answered, what was said and done since, and the calls that wait. Empty without decisions.
   */
  readonly exchange: readonly HistoryMessage[];
  readonly ctx: RunContext;
  /** As `ctx.signal`: aborted when the answer is to end. */
  readonly signal: AbortSignal;
  /** For callbacks while `run` waits: as if `run` yielded the item, such as an event. No effect after the answer. */
  readonly emit: (item: unknown) => void;
}

export type TextMessage = { role: "user"; content: string } | { role: "assistant"; content: string };

export interface RunAttachment {
  readonly type: AttachmentType;
  readonly name: string;
  readonly mimeType: FileType;
  /** The bytes; those of a text file are UTF-8, without a byte order mark. */
  readonly data: Uint8Array;
}

/** An event that `run` may yield. A string is the same as a `token`. */
export type RunEvent =
  | { type: "token"; data: string }
  | { type: "thinking"; data: string }
  /** `arguments` is a JSON text or a value. `parent`: id of the call that this one is a step of. */
  | { type: "tool_call"; data: { id: string; tool: string; arguments?: unknown; parent?: string } }
  /** What a running call, or a step of one, is doing: a plain line, which is cut to 300 characters. */
  | { type: "tool_progress"; data: { id: string; text: string } }
  /** `output` is a text or a value; the `data` of an image is bytes or their base64. */
  | {
      type: "tool_result";
      data: {
        id: string;
        output?: unknown;
        status?: "completed" | "failed";
        images?: readonly { mime_type: ImageType; data: Uint8Array | string }[];
      };
    }
  /** `url` is http or https, `file` a name. `at`: offset in the text since the last call or result, in UTF-16 units. */
  | { type: "source"; data: { title?: string; url?: string; file?: string; quote?: string; at?: number } }
  /** Several events add up. */
  | { type: "usage"; data: Usage }
  /** As `ctx.suggest`. */
  | { type: "suggestions"; data: readonly string[] }
  /**
   * When `run` has ended, the answer ends and the call waits for a person's decision, which comes back in
   * `ctx.approvals` with `kept`. `text` is what they are asked.
   */
  | { type: "tool_approval"; data: AskedApproval }
  /** Any JSON of at most 256 KiB, which the next message brings back. */
  | { type: "state"; data: unknown };

export interface AskedApproval {
  id: string;
  tool: string;
  /** A JSON text or a value. */
  arguments?: unknown;
  /** Plain text of at most 1,000 characters. */
  text?: string;
  danger?: boolean;
  /** Whether the person may change the arguments. */
  editable?: boolean;
  /** The person is asked for words, which come back as the `reason` of an approval. */
  question?: boolean;
  /** Any JSON. */
  kept?: unknown;
}

/** Whether the user sent a message instead of decisions. */
export function isInPlaceOfDecisions({ message, attachments, ctx }: RunInput): boolean {
  return ctx.approvals.length > 0 && (message !== "" || attachments.length > 0);
}

/** A message as `messages` has it: its words and text files or, if it has neither, the names of its files. */
export function wordsOfMessage(input: Pick<RunInput, "message" | "attachments">): string {
  return withTexts(input) || input.attachments.map(({ name }) => `[${name}]`).join("\n");
}

/** The words of a message with its text files. */
export function withTexts({ message, attachments }: Pick<RunInput, "message" | "attachments">): string {
  return [message, ...attachments.map(textOfFile)].filter(Boolean).join("\n");
}

/** `messages` up to the one that is still being answered: without `words`, which were sent instead of decisions. */
export function messagesUntilAsked(input: RunInput, words = wordsOfMessage(input)): TextMessage[] {
  const { messages } = input;
  const last = messages.at(-1);
  if (words === "" || last === undefined) return messages;
  // Consecutive messages of one role are joined.
  const content = last.content.slice(0, -words.length).replace(/\n\n$/, "");
  return [...messages.slice(0, -1), ...(content === "" ? [] : [{ ...last, content }])];
}

/** A text as parts of a message: none for an empty text, which several APIs refuse. */
export function textParts(text: string, type = "text"): object[] {
  return text === "" ? [] : [{ type, text }];
}

/** A text file as fenced text, since models of most frameworks accept no text files; `undefined` for any other file. */
export function textOfFile({ name, mimeType, data }: RunAttachment): string | undefined {
  return isTextType(mimeType) ? fencedText(name, Buffer.from(data).toString()) : undefined;
}

/** The bytes of a file in base64. */
export function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/**
 * Answers one message: called once, and never again for the same message. It returns or yields texts, events, or what a
 * framework streams: a promise, an async iterable or a `ReadableStream` of these.
 */
export type RunFunction = (input: RunInput) => unknown;

/** An agent of the AI SDK. */
export interface AgentObject {
  stream(options: never): unknown;
}

export function isAgentObject(value: unknown): value is { stream(options: object): unknown } {
  if (!isRecord(value) || typeof value.stream !== "function") return false;
  // Agents of the AI SDK 5 have no version, but only they have `respond`.
  return value.version === "agent-v1" || typeof value.respond === "function";
}

/** Advice for an agent of a framework in the wrong place; `undefined` for anything else. */
export function howToRun(value: unknown): string | undefined {
  if (isAgentObject(value)) return 'Write it into run: defineAgent({ name: "…", run: agent }).';
  if (!isRecord(value)) return undefined;
  if (!["stream", "invoke", "asTool"].some((method) => typeof value[method] === "function")) return undefined;
  return "Call it in run, and return its stream: run: ({ messages, signal }) => agent.stream({ messages }, { signal }).";
}

/** Fields that say how a model is asked, and do nothing beside `run`. */
export const OF_MODELS = [
  "model",
  "fallbacks",
  "instructions",
  "tools",
  "mcp",
  "maxTurns",
  "reasoningEffort",
  "temperature",
  "maxOutputTokens",
  "extraBody",
  "providerOptions",
  "store",
  "hostedTools",
];

/** What an agent has instead of a model. */
export interface OwnRun {
  readonly run: RunFunction | AgentObject;
}

/** `undefined` for an agent with a model. @throws ConfigError that names the field and says what is right */
export function checkRun(agent: Record<string, unknown>): OwnRun | undefined {
  const { run } = agent;
  if (run === undefined) return undefined;
  const field = OF_MODELS.find((name) => agent[name] !== undefined);
  if (field !== undefined) {
    throw new ConfigError(`${field} does nothing beside run, which answers by itself. Remove one of the two.`);
  }
  if (typeof run !== "function" && !isAgentObject(run)) {
    const advice = howToRun(run) ?? "";
    throw new ConfigError(`run must be a function that answers a message, or an agent of the AI SDK. ${advice}`.trim());
  }
  // A method of a class needs its `this`.
  const own = typeof run === "function" && !Object.hasOwn(agent, "run") ? run.bind(agent) : run;
  return { run: own as RunFunction | AgentObject };
}

/** @throws ConfigError for anything but media types that can be attached */
export function checkAccepts({ accepts, run }: Record<string, unknown>): FileType[] | undefined {
  if (accepts === undefined) return run === undefined ? undefined : [];
  if (!Array.isArray(accepts)) throw new ConfigError("accepts must be an array of media types.");
  for (const type of accepts) {
    if (typeof type === "string" && (isMediaType(type) || isTextType(type))) continue;
    const known = [...ALL_MEDIA_TYPES, ...Object.keys(TEXT_TYPES)].join(", ");
    throw new ConfigError(`accepts names ${JSON.stringify(type)}. It may name: ${known}.`);
  }
  return [...new Set(accepts as FileType[])];
}
