/** The seam between the conversation and the line that carries it. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorEvent, StreamEvent } from "../../server/protocol/events.ts";

/** One message and what the server must know to answer it. */
export interface ChatTurn {
  /** Our name for the run: sent twice, it is still one run. */
  readonly run: string;
  readonly message: string;
  readonly attachments: readonly Attachment[];
  /** The last good state; `{}` starts a new conversation. */
  readonly state: ConversationState;
}

/** A run that the server was told of, and the last of its events that arrived; 0 for none. */
export interface RunPosition {
  readonly run: string;
  readonly after: number;
}

/** An event and its number within its run. A refusal of what was asked has none. */
export type RunEvent = StreamEvent & { readonly id?: number };

/** Where the server is, and the key as it is at the moment of asking. */
export interface Endpoint {
  /** Ends in a slash. */
  readonly server: URL;
  readonly key: () => string | undefined;
  /** Called when the server has opened a line or answered: it is there, whatever it says and when. */
  readonly onOpen?: () => void;
}

/**
 * Carries one run at a time. A refusal by the server is an `error` event, of whatever kind;
 * `TransportError` is thrown for nothing but a line that failed. The run then goes on at the server for
 * a while, and `resume` gets what was missed.
 */
export interface ChatTransport {
  /** Characters of the last message that have not left yet; infinite while nobody knows how many. */
  readonly unsent: number;
  /**
   * Starts a run and yields its events; `done` or `error` is the last. Aborting `signal` asks the run to
   * stop: what the server still says is yielded, and the end may then come without a terminal event.
   */
  run(turn: ChatTurn, signal: AbortSignal): AsyncIterable<RunEvent>;
  /** Like `run`, for the events after a position. */
  resume(position: RunPosition, signal: AbortSignal): AsyncIterable<RunEvent>;
  /** Ends a run in progress without a terminal event and makes the server's side forget the conversation. */
  clear(): Promise<void>;
  /** Whether the server lets this key in; `undefined` when it does, or when only a run can tell. */
  check(): Promise<ErrorEvent | undefined>;
  /** Hangs up; an event source that is being read throws `connection_lost`. The next run dials again. */
  close(): void;
}

/** A transport that can end a run that nobody listens to. */
export interface CancellingTransport extends ChatTransport {
  /** Tries once, and says whether the server has heard: it ends such a run by itself later. */
  cancel(run: string): Promise<boolean>;
}

/**
 * `unreachable`: nothing was sent. `connection_lost`: the run may have happened. `silent`: the same, and it is not known
 * whether the line is dead or the agent takes its time.
 */
export class TransportError extends Error {
  readonly code: "unreachable" | "connection_lost" | "silent" | "unreadable";

  constructor(code: TransportError["code"], options?: ErrorOptions) {
    super(code, options);
    this.name = "TransportError";
    this.code = code;
  }
}

/**
 * After a silence of this length, in milliseconds, the line is tried. Over HTTP the server's keep-alives come far more often; the
 * pings of a socket, however, no script hears.
 */
export const SILENCE_MS = 45_000;

/** How long the server may take to end a run that it was told to end. */
export const ANSWER_WITHIN_MS = 5_000;

/** Whether an event is the last one of its run. */
export function isTerminal(event: StreamEvent): boolean {
  return event.type === "done" || event.type === "error";
}
