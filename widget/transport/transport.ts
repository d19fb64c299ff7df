/** The seam between the conversation and the line that carries it. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorEvent, StreamEvent } from "../../server/protocol/events.ts";

/** One message and what the server must know to answer it. */
export interface ChatTurn {
  readonly message: string;
  readonly attachments: readonly Attachment[];
  /** The last good state; `{}` starts a new conversation. */
  readonly state: ConversationState;
}

/** Where the server is, and the key as it is at the moment of asking. */
export interface Endpoint {
  /** Ends in a slash. */
  readonly server: URL;
  readonly key: () => string | undefined;
}

/**
 * Carries one run at a time. A refusal by the server is an `error` event, of whatever kind;
 * `TransportError` is thrown for nothing but a line that failed.
 */
export interface ChatTransport {
  /**
   * Starts a run and yields its events; `done` or `error` is the last. Aborting `signal` asks the run to
   * stop: what the server still says is yielded, and the end may then come without a terminal event.
   */
  run(turn: ChatTurn, signal: AbortSignal): AsyncIterable<StreamEvent>;
  /** Ends a run in progress without a terminal event and makes the server's side forget the conversation. */
  clear(): Promise<void>;
  /** Whether the server lets this key in; `undefined` when it does, or when only a run can tell. */
  check(): Promise<ErrorEvent | undefined>;
  /** Hangs up. The next run dials again. */
  close(): void;
}

/** `unreachable`: nothing was sent. `connection_lost`: the run may have happened. */
export class TransportError extends Error {
  readonly code: "unreachable" | "connection_lost" | "unreadable";

  constructor(code: TransportError["code"], options?: ErrorOptions) {
    super(code, options);
    this.name = "TransportError";
    this.code = code;
  }
}

/** Whether an event is the last one of its run. */
export function isTerminal(event: StreamEvent): boolean {
  return event.type === "done" || event.type === "error";
}
