/** The agent that its author has written elsewhere: what `run` gets, and what it may say. */

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

/** What `run` gets of a message. */
export interface RunInput {
  /** The user's words; empty where only files were sent. */
  readonly message: string;
  /** The conversation as texts, with this message at its end: what most frameworks take as it is. */
  readonly messages: TextMessage[];
  /** The files of this message. */
  readonly attachments: readonly RunAttachment[];
  /** The `data` of the last `state` event in this conversation; `undefined` if there was none. */
  // biome-ignore lint/suspicious/noExplicitAny: the agent's author knows what it was, and checks it if need be.
  readonly state: any;
  /**
   * What the decisions of `ctx.approvals` are about: the message that was being answered, what was said and done since, and the
   * calls that wait, as Chat Completions has it. Empty without decisions.
   */
  readonly exchange: readonly HistoryMessage[];
  readonly ctx: RunContext;
  /** As `ctx.signal`: aborted when the answer is to end. */
  readonly signal: AbortSignal;
  /** For callbacks, while `run` waits: takes an item that `run` may yield, such as an event. Once the answer is over, it does nothing. */
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

/** An event of ours that `run` may yield. A string is the same as a `token`. */
export type RunEvent =
  | { type: "token"; data: string }
  | { type: "thinking"; data: string }
  /** `arguments` is a JSON text or a value. `parent`: id of the call of which it is a step. */
  | { type: "tool_call"; data: { id: string; tool: string; arguments?: unknown; parent?: string } }
  /** What a running call, or a step of one, does now: a plain line of at most 300 characters, longer ones are cut. */
  | { type: "tool_progress"; data: { id: string; text: string } }
  /** `output` is a text or a value, the `data` of a picture bytes or their base64. */
  | {
      type: "tool_result";
      data: {
        id: string;
        output?: unknown;
        status?: "completed" | "failed";
        images?: readonly { mime_type: ImageType; data: Uint8Array | string }[];
      };
    }
  /** `url` is of http or https, `file` a name. `at`: a place in what was said since the last call or result, in UTF-16 units. */
  | { type: "source"; data: { title?: string; url?: string; file?: string; quote?: string; at?: number } }
  /** Several add up. */
  | { type: "usage"; data: Usage }
  /** As `ctx.suggest`. */
  | { type: "suggestions"; data: readonly string[] }
  /**
   * The answer ends when `run` has ended, and waits for a person's decision, which comes back in `ctx.approvals` with `kept`.
   * `text` is what they are asked.
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
  /** The person is asked for words, which come back as `reason` of a yes. */
  question?: boolean;
  /** Any JSON. */
  kept?: unknown;
}

/** Whether a message came in place of the decisions: then all are declined. */
export function isInPlaceOfDecisions({ message, attachments, ctx }: RunInput): boolean {
  return ctx.approvals.length > 0 && (message !== "" || attachments.length > 0);
}

/** What `messages` have of a message: its words and text files, or the names of its files where it has neither. */
export function wordsOfMessage(input: Pick<RunInput, "message" | "attachments">): string {
  return withTexts(input) || input.attachments.map(({ name }) => `[${name}]`).join("\n");
}

/** The words of a message with its text files. */
export function withTexts({ message, attachments }: Pick<RunInput, "message" | "attachments">): string {
  return [message, ...attachments.map(textOfFile)].filter(Boolean).join("\n");
}

/** `messages` up to the one that is still being answered, where a person has decided on calls or has written `words` instead. */
export function messagesUntilAsked(input: RunInput, words = wordsOfMessage(input)): TextMessage[] {
  const { messages } = input;
  const last = messages.at(-1);
  if (words === "" || last === undefined) return messages;
  // Messages of one speaker are joined.
  const content = last.content.slice(0, -words.length).replace(/\n\n$/, "");
  return [...messages.slice(0, -1), ...(content === "" ? [] : [{ ...last, content }])];
}

/** A text as a part of a message: several APIs refuse an empty one. */
export function textParts(text: string, type = "text"): object[] {
  return text === "" ? [] : [{ type, text }];
}

/** A text file as frameworks get it, whose models mostly take no other; `undefined` for any other file. */
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
  // The AI SDK 5 gives its agents no version; `respond` is theirs alone.
  return value.version === "agent-v1" || typeof value.respond === "function";
}

/** What to write for an agent of a framework that stands in the wrong place; `undefined` for anything else. */
export function howToRun(value: unknown): string | undefined {
  if (isAgentObject(value)) return 'Write it into run: defineAgent({ name: "…", run: agent }).';
  if (!isRecord(value)) return undefined;
  if (!["stream", "invoke", "asTool"].some((method) => typeof value[method] === "function")) return undefined;
  return "Call it in run, and return its stream: run: ({ messages, signal }) => agent.stream({ messages }, { signal }).";
}

/** Fields that say how a model of ours is asked. */
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
  // A method of a class.
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
