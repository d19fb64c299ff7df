/** Hooks: functions of an agent that decide on messages and answers, or hear of them afterwards. */

import type { Caller, User } from "../auth/access.ts";
import { Late, within } from "../config/within.ts";
import type { AttachedFile, RunEntry, RunTransport } from "../observe/run-observer.ts";
import { decodedBytes, type ReceivedFile } from "../protocol/attachments.ts";
import type { FinishReason, ToolApproval, Usage } from "../protocol/chat.ts";
import { ApiError, type ErrorCode } from "../protocol/errors.ts";
import type { RunContext } from "./run-context.ts";

/** One message and its answer, as `onRunEnd` gets them. */
export interface RunRecord {
  /** Id of the run. `Feedback` names it, too. */
  readonly run: string;
  /** Stays the same over the messages of one conversation. Where states are not signed, the client may say any other. */
  readonly conversation: string;
  /** What `authenticate` returned; `undefined` if the user is not known. Store their `id`, and nothing else of them. */
  readonly user: User | undefined;
  /** What the client says of the message. Nothing proves it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Kind of the key that the message came with. */
  readonly keyKind: Caller["keyKind"];
  readonly transport: RunTransport;
  /** As in the agent, `openai/gpt-5.2`; of several models the one that answered last. */
  readonly model: string;
  /** The person's words, or what `onMessage` has put in their place; empty where only files or decisions were sent. */
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
  /** What clients got as the answer; of a run that failed or was left, the last text that was sent. */
  readonly answer: string;
  /** In the order in which they ended; those that did not end are the last. */
  readonly toolCalls: readonly ToolCallRecord[];
  /** The calls that wait for a person's decision from here on. */
  readonly approvals: readonly ToolApproval[];
  /** The next messages that were offered with the answer. */
  readonly suggestions: readonly string[];
  /** The name that the agent gave to the conversation with this answer. */
  readonly title: string | undefined;
  /** Tokens, where the provider reports them. */
  readonly usage: Usage | undefined;
  /** `gone`: no client was left, or it cleared the conversation, before the answer was finished. `undefined` after an error. */
  readonly finishReason: FinishReason | "gone" | undefined;
  /** Why the run failed, as clients got it. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | undefined;
  /** When the message had arrived: ISO 8601, in UTC. */
  readonly startedAt: string;
  /** Milliseconds from the message to the first text that clients got; `undefined` if there was none. */
  readonly firstTokenMs: number | undefined;
  /** Milliseconds from the message to the last event. */
  readonly ms: number;
}

/** One tool call of a run. */
export interface ToolCallRecord {
  readonly id: string;
  readonly tool: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** What clients got as its output. */
  readonly output: string;
  readonly status: "completed" | "failed";
  readonly durationMs: number;
  /** What a person has decided on the call; `undefined` for a call that needs no approval. */
  readonly decision: "approved" | "declined" | undefined;
}

/** A rating of an answer, as `onFeedback` gets it. `user` is proved; `run` and `conversation` are the client's word. */
export interface Feedback {
  /** Id of the run whose answer it is. Somebody may send the id of another user's run: join by run and user. */
  readonly run: string;
  readonly conversation: string | undefined;
  /** What `authenticate` returned; `undefined` if the user is not known. */
  readonly user: User | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** `null` takes an earlier rating back. */
  readonly rating: "up" | "down" | null;
  /** One of the element's reasons, or another client's, up to 200 characters. */
  readonly reason: string | undefined;
  /** Up to 4,000 characters. */
  readonly comment: string | undefined;
}

/** What `onMessage` decides on. */
export interface IncomingMessage {
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
}

/** Ends the run with this sentence in place of an answer. */
export interface Refusal {
  refuse: string;
}

/** Puts another message in the place of the person's. */
export interface Replacement {
  message: string;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a hook may have no `return` at all.
type Nothing = void | undefined;

/** What an agent's author may add to the way of a message. */
export interface Hooks {
  /** Gets each message with its answer, after the last event. No answer waits for it. */
  onRunEnd?(record: RunRecord): unknown;
  /** Gets each rating of `POST /api/feedback`, which exists only with this hook. No answer waits for it. */
  onFeedback?(feedback: Feedback): unknown;
  /** Decides on a message before the model is asked: lets it pass, refuses it, or replaces its text. */
  onMessage?(
    incoming: IncomingMessage,
    ctx: RunContext,
  ): Nothing | Refusal | Replacement | Promise<Nothing | Refusal | Replacement>;
  /** Decides on an answer before clients get any of its text: lets it pass, or refuses it. */
  onAnswer?(outgoing: { readonly answer: string }, ctx: RunContext): Nothing | Refusal | Promise<Nothing | Refusal>;
}

/** How long a hook may take, in milliseconds. */
export const HOOK_MS = 10_000;

/** For clients a fault of the server, for the log what the author's function did. */
export function hookFailure(name: string, cause: unknown): ApiError {
  const isLate = cause instanceof Late;
  return new ApiError("internal", "Something went wrong on the server. Please try again.", {
    detail: isLate ? `${name} ${cause.message}` : `${name} failed`,
    cause: isLate ? undefined : cause,
  });
}

/**
 * What a function of the author comes to. One that throws or is late is a failure of the server.
 * @throws ApiError `internal`, or the reason of an abort
 */
export async function askAuthor<Value>(
  name: string,
  ask: (context: RunContext) => Value | PromiseLike<Value>,
  context: RunContext,
  maxMs: number,
): Promise<Value> {
  try {
    return await within((signal) => ask({ ...context, signal }), maxMs, context.signal);
  } catch (error) {
    context.signal.throwIfAborted();
    throw hookFailure(name, error);
  }
}

export function describeFile({ name, mime_type: mimeType, url }: ReceivedFile): AttachedFile {
  return { name, mimeType, bytes: decodedBytes(url.slice(url.indexOf(",") + 1)) };
}

/** A run that is over, as `onRunEnd` gets it. */
export function recordOf({ start, last, ...entry }: RunEntry): RunRecord {
  const ended = entry.tools.map(({ id = "", name, arguments: args = "{}", output = "", outcome, ms, decision }) => {
    const status = outcome === "completed" ? "completed" : "failed";
    return { id, tool: name, arguments: args, output, status, durationMs: ms, decision } as const;
  });
  const cut = entry.openCalls.map(({ id, name, arguments: args, decision }) => {
    const output = "Stopped before it finished.";
    return { id, tool: name, arguments: args, output, status: "failed", durationMs: entry.ms, decision } as const;
  });
  const done = last?.type === "done" ? last : undefined;
  return {
    run: start.runId,
    conversation: start.conversation,
    user: start.user,
    metadata: start.metadata,
    keyKind: start.key,
    transport: start.transport,
    model: entry.model,
    message: entry.message,
    attachments: start.attachments,
    answer: done?.data ?? entry.said,
    toolCalls: [...ended, ...cut],
    approvals: done?.approvals ?? [],
    suggestions: done?.suggestions ?? [],
    title: done?.title,
    usage: done?.usage ?? entry.usage,
    finishReason: last === undefined ? "gone" : done?.finish_reason,
    error: last?.type === "error" ? { code: last.code, message: last.data } : undefined,
    startedAt: start.startedAt.toISOString(),
    firstTokenMs: entry.firstTokenMs,
    ms: entry.ms,
  };
}
