/** What `onRunEnd` gets of a run. */

import type { User } from "../auth/access.ts";
import type { AttachedFile, RecordedUsage, RunEntry, RunTransport } from "../observe/run-observer.ts";
import type { FinishReason, ToolApproval } from "../protocol/chat.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { RunContext } from "./run-context.ts";

/** One message and its answer, as `onRunEnd` gets them. */
export interface RunRecord extends Pick<RunContext, "conversation" | "metadata" | "keyKind"> {
  /** Id of the run, as in `Feedback`. */
  readonly run: string;
  /** What `authenticate` returned; `undefined` if the user is not known. Store their `id`, and nothing else of them. */
  readonly user: User | undefined;
  readonly transport: RunTransport;
  /** Model name as in the agent, such as `openai/gpt-5.2`; with several models, the one that answered last. */
  readonly model: string;
  /** The user's words, or what `onMessage` replaced them with; empty if only files or decisions were sent. */
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
  /** The answer that clients got; if the run failed or was left, the last text that was sent. */
  readonly answer: string;
  /** All text that clients got, including what was said before tools ran, with a blank line between turns. */
  readonly said: string;
  /** In the order in which they ended; calls that did not end are last. */
  readonly toolCalls: readonly ToolCallRecord[];
  /** The calls that wait for a person's decision after this answer. */
  readonly approvals: readonly ToolApproval[];
  /** The next messages that were offered with the answer. */
  readonly suggestions: readonly string[];
  /** The name that the agent gave to the conversation with this answer. */
  readonly title: string | undefined;
  /** Tokens, if the provider reports them, including those of model requests that were stopped or failed. */
  readonly usage: RecordedUsage | undefined;
  /** In USD, by the agent's `prices`; `undefined` if a model that was asked has no price or reported no tokens. */
  readonly cost: number | undefined;
  /** `gone`: no client was left, or it cleared the conversation before the answer ended. `undefined` after an error. */
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
  /** Id of the call that this one is a step of; `undefined` for a call by the model. */
  readonly parent: string | undefined;
}

/** A run that is over, as `onRunEnd` gets it. */
export function recordOf({ start, last, ...entry }: RunEntry): RunRecord {
  const ended = entry.tools.map((step) => {
    const { id = "", name, arguments: args = "{}", output = "", outcome, ms, decision, parent } = step;
    const status = outcome === "completed" ? "completed" : "failed";
    return { id, tool: name, arguments: args, output, status, durationMs: ms, decision, parent } as const;
  });
  const cut = entry.openCalls.map(({ name: tool, arguments: args, ...call }) => {
    const output = "Stopped before it finished.";
    return { ...call, tool, arguments: args, output, status: "failed", durationMs: entry.ms } as const;
  });
  const done = last?.type === "done" ? last : undefined;
  const answer = done?.data ?? entry.answer;
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
    answer,
    // If a hook or the server itself replaced all words, the replacement is all that was said.
    said: entry.said || answer,
    toolCalls: [...ended, ...cut],
    approvals: done?.approvals ?? [],
    suggestions: done?.suggestions ?? [],
    title: done?.title,
    usage: entry.usage,
    cost: entry.cost,
    finishReason: last === undefined ? "gone" : done?.finish_reason,
    error: last?.type === "error" ? { code: last.code, message: last.data } : undefined,
    startedAt: start.startedAt.toISOString(),
    firstTokenMs: entry.firstTokenMs,
    ms: entry.ms,
  };
}
