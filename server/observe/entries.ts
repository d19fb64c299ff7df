/** What is known of a request, a run and its steps when they are over. Never text, keys, addresses or raw paths. */

import type { RunTransport } from "../agent/run-watch.ts";
import type { KeyKind } from "../http/caller.ts";
import type { FinishReason } from "../protocol/chat.ts";
import type { ErrorCode } from "../protocol/errors.ts";

/** One answered request, or one socket from its upgrade to its close. */
export interface RequestEntry {
  readonly requestId: string;
  /** "WS" for a socket. */
  readonly method: string;
  /** As in the route table: `/api/chat/runs/{id}`. "unmatched" where nothing is served. */
  readonly route: string;
  readonly status: number;
  /** From the request's head to the end of its answer. */
  readonly ms: number;
  /** Sent, with heads and frames. */
  readonly bytes: number;
}

/** One run that began, when it is over. */
export interface RunEntry {
  readonly requestId: string;
  readonly runId: string;
  /** As the agent names it, `openai/gpt-5.2`; of several, the one that answered last. */
  readonly model: string;
  readonly transport: RunTransport;
  readonly key: KeyKind | "none";
  /** A finish reason, the code of an error, or "gone": the client went away and nobody read on. */
  readonly end: FinishReason | ErrorCode | "gone";
  readonly failed: boolean;
  /** Absent where the provider reports none. */
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** From the message to the last event, the wait included. */
  readonly ms: number;
  /** For its turn. */
  readonly queueMs: number;
  /** Until the first piece of text or thinking; absent when there was none. */
  readonly firstTokenMs: number | undefined;
  /** Model requests. */
  readonly turns: number;
  /** Tool calls. */
  readonly tools: number;
  /** The provider's name of the last model request, to be given to its support. */
  readonly providerRequestId: string | undefined;
}

/** One model request or tool call within a run. */
export interface StepEntry {
  readonly requestId: string;
  readonly runId: string;
  readonly kind: "model" | "tool";
  /** Of the tool, or the model. */
  readonly name: string;
  readonly outcome: string;
  readonly ms: number;
}

/** Enough to find what is told of one run. The whole id is a secret: where no key is needed it opens the run. */
export function shortId(runId: string): string {
  return runId.slice(0, 8);
}
