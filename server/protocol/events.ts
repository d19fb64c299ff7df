/** What a client sees of a run: the same events over SSE, over WebSocket and, collected, as JSON. */

import type {
  ConversationState,
  FinishedToolCall,
  FinishReason,
  StartedToolCall,
  ToolApproval,
  Usage,
} from "./chat.ts";
import { type ApiError, type ArgumentProblem, type ErrorCode, faultOf } from "./errors.ts";
import type { CitedSource, SourceEvent } from "./sources.ts";

/** A piece of the answer's text. */
export interface TokenEvent {
  type: "token";
  data: string;
}

/** A piece of the model's reasoning, where the provider shows it. */
export interface ThinkingEvent {
  type: "thinking";
  data: string;
}

/** A tool call that starts now. */
export interface ToolCallEvent {
  type: "tool_call";
  data: StartedToolCall;
}

/** What a running tool call does now. The last one comes before the call's result. Not in JSON answers or states. */
export interface ToolProgressEvent {
  type: "tool_progress";
  data: {
    /** Id of the `tool_call`. */
    id: string;
    /** One plain line of at most 300 characters. */
    text: string;
  };
}

/** The end of a tool call. If it failed, the model is informed and the run continues. */
export interface ToolResultEvent {
  type: "tool_result";
  data: FinishedToolCall;
}

/** A tool call waits for the user's decision. Its `tool_call` follows in the next run, if it is approved. */
export interface ToolApprovalEvent {
  type: "tool_approval";
  data: ToolApproval;
}

/** The run succeeded. Terminal: nothing follows. */
export interface DoneEvent {
  type: "done";
  /** The text of the last model turn: the `response` of the JSON form. */
  data: string;
  /** To be sent back with the next message. */
  state: ConversationState;
  /** Summed over the run's model requests; absent where the provider does not report it. */
  usage?: Usage;
  finish_reason: FinishReason;
  /** With `approval_required`: the calls that wait for the user's decision in the next message. */
  approvals?: ToolApproval[];
  /** What the user may send next: at most 3 plain texts of at most 200 characters. */
  suggestions?: string[];
  /** A name for the conversation: plain text of at most 200 characters. */
  title?: string;
  /** Sources of the answer, if known. */
  sources?: CitedSource[];
  /** The model string of the model that gave the answer; only of an agent with fallback models. */
  model?: string;
}

/** The run failed. Terminal: nothing follows. */
export interface ErrorEvent {
  type: "error";
  /** A sentence for the user: no stack, path, key or provider body. */
  data: string;
  code: ErrorCode;
  /** JSON pointer to the field of the request that is wrong. */
  param?: string;
  /** What is wrong in arguments that the user has changed: at most 8 problems. */
  problems?: ArgumentProblem[];
  /** Whether sending the same message again may help. */
  retryable: boolean;
  /** The last good state, when there is one: continue from here. */
  state?: ConversationState;
  /** Tools have run: the same message would run them again; `{"continue": true}` with this state does not. */
  continue?: true;
  /** Seconds to wait before a retry, if known: from the provider, from a limit, or because the server is stopping. */
  retry_after?: number;
}

/**
 * A failure as an event, for a stream that has begun or for a socket. `state` is the last good one; an empty state is left out.
 */
export function errorEvent(error: ApiError, state: ConversationState = {}, canContinue = false): ErrorEvent {
  const { code, message, retryable, retryAfter } = error;
  return {
    type: "error",
    data: message,
    code,
    ...faultOf(error),
    retryable: retryable && !canContinue,
    ...(Object.keys(state).length === 0 ? {} : { state }),
    ...(canContinue ? { continue: true } : {}),
    ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
  };
}

/** Answers the socket message `clear`. */
export interface ClearedEvent {
  type: "cleared";
  data: "";
}

/** All events of a run. It ends with exactly one `done` or `error`. */
export type StreamEvent =
  | TokenEvent
  | ThinkingEvent
  | ToolCallEvent
  | ToolProgressEvent
  | ToolResultEvent
  | ToolApprovalEvent
  | SourceEvent
  | DoneEvent
  | ErrorEvent;

export type TerminalEvent = DoneEvent | ErrorEvent;

/** Whether an event is the last one of its run. */
export function isTerminal<Event extends { readonly type: string }>(
  event: Event,
): event is Extract<Event, { readonly type: TerminalEvent["type"] }> {
  return event.type === "done" || event.type === "error";
}

/** An event as a client gets it: numbered within its run from 1, so that clients can resume after a lost connection. */
export type NumberedEvent = StreamEvent & { id: number };

/**
 * A name that a client gives to a run in order to resume it. Use at least 128 random bits: where no key is needed, or several
 * clients share one, the name is the only secret of the run.
 */
export const RUN_ID = /^[A-Za-z0-9_-]{16,64}$/;

/** All events that the server sends on a socket. */
export type SocketEvent = StreamEvent | ClearedEvent;

/** Ends a `switch` over a union: if the switch forgets a member, it does not compile. */
export function unreachable(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
