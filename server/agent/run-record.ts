/** What `onRunEnd` gets of a run. */

import type { User } from "../auth/access.ts";
import type { AttachedFile, RecordedUsage, RunEntry, RunTransport } from "../observe/run-observer.ts";
import type { FinishReason, ToolApproval } from "../protocol/chat.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { RunContext } from "./run-context.ts";

/** One message and its answer, as `onRunEnd` gets them. */
export interface RunRecord extends Pick<RunContext, "conversation" | "metadata" | "keyKind"> {
  /** Id of the run. `Feedback` names it, too. */
  readonly run: string;
  /** What `authenticate` returned; `undefined` if the user is not known. Store their `id`, and nothing else of them. */
  readonly user: User | undefined;
  readonly transport: RunTransport;
  /** As in the agent, `openai/gpt-5.2`; of several models the one that answered last. */
  readonly model: string;
  /** The person's words, or what `onMessage` has put in their place; empty where only files or decisions were sent. */
  readonly message: string;
  readonly attachments: readonly AttachedFile[];
  /** What clients got as the answer; of a run that failed or was left, the last text that was sent. */
  readonly answer: string;
  /** All that clients got as text, a blank line between the turns: what was said before tools ran, too. */
  readonly said: string;
  /** In the order in which they ended; those that did not end are the last. */
  readonly toolCalls: readonly ToolCallRecord[];
  /** The calls that wait for a person's decision from here on. */
  readonly approvals: readonly ToolApproval[];
  /** The next messages that were offered with the answer. */
  readonly suggestions: readonly string[];
  /** The name that the agent gave to the conversation with this answer. */
  readonly title: string | undefined;
  /** Tokens, where the provider reports them, and of model requests that were stopped or failed. */
  readonly usage: RecordedUsage | undefined;
  /** USD, by the `prices` of the agent; `undefined` if a model that was asked has no price or did not count. */
  readonly cost: number | undefined;
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
  /** Id of the call of which it is a step; `undefined` for a call of the model. */
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
    // What a hook or the server itself has put in the place of all words is all that was said.
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
