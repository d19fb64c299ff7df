/** The seam between a run and the connection that carries it. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type {
  ApprovalDecision,
  ConversationState,
  FinishedToolCall,
  ImagePart,
  OmittedPart,
} from "../../server/protocol/chat.ts";
import type { StreamEvent, ToolResultEvent } from "../../server/protocol/events.ts";

/** An event with its number within its run. A refusal of the request has none. */
export type RunEvent = (Exclude<StreamEvent, ToolResultEvent> | ReceivedResult) & { readonly id?: number };

export interface ReceivedResult extends Omit<ToolResultEvent, "data"> {
  data: Omit<FinishedToolCall, "images" | "images_omitted"> & {
    images?: readonly ToolImage[];
    imagesOmitted?: number | undefined;
  };
}

/** A picture of a result, in the form of a file of a state. Where its data is gone, `omitted` alone is there. */
export type ToolImage = OmittedPart | (ImagePart & Pick<OmittedPart, "omitted">);

/** Starts a run. The client names it, so that the same message sent twice is answered once. */
export interface StartRequest {
  readonly run: string;
  readonly message: string;
  readonly attachments: readonly Attachment[];
  /** The last good state; `{}` starts a new conversation. */
  readonly state: ConversationState;
  /** Decisions about the tool calls that ended the last run. */
  readonly approvals?: readonly ApprovalDecision[];
  /** Has the answer go on from where the state says, in place of a message. */
  readonly continue?: true;
  /** What the page says about the message. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A run that the server knows, and the number of its last event that arrived, or 0. As a request: the events after. */
export interface RunPosition {
  readonly run: string;
  readonly after: number;
}

export type RunRequest = StartRequest | RunPosition;

export function isResume(request: RunRequest): request is RunPosition {
  return "after" in request;
}

/** Where the server is, and the key and the user's token at the time of the request. */
export interface Endpoint {
  /** Ends with a slash. */
  readonly server: URL;
  readonly key: () => string | undefined;
  readonly userToken?: () => string | undefined;
  /** Called when a connection is open or a response arrives: the server is there, whatever it says and when. */
  readonly onOpen?: () => void;
  /** What was found out earlier: WebSocket is blocked on the way to the server. */
  readonly isSocketBlocked?: () => boolean;
  /** Called when that has changed, to be remembered. */
  readonly onSocketBlocked?: (isBlocked: boolean) => void;
}

/**
 * Carries one run at a time. A refusal by the server is an `error` event; `TransportError` is thrown only when the
 * connection fails. The run then goes on at the server for a while, and a request with its position gets the missing
 * events.
 */
export interface Transport {
  /**
   * Calls `onEvent` for each event and resolves after the terminal one. Aborting `signal` asks the server to stop the
   * run: its last events are still reported, and the promise may then resolve without a terminal event.
   */
  run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void>;
  /** Ends a run that is no longer followed. Tries once, and says whether the server has received it. */
  cancel(run: string): Promise<boolean>;
  /** Closes the connection. A run in progress is rejected with `connection_lost`; the next run connects again. */
  close(): void;
}

/**
 * `unreachable`: the server got nothing. `connection_lost`: it may have the run. `silent`: likewise, and the
 * connection may be dead or the agent slow. `unreadable`: what answers does not speak our protocol.
 */
export type TransportErrorCode = "unreachable" | "connection_lost" | "silent" | "unreadable";

export class TransportError extends Error {
  readonly code: TransportErrorCode;

  constructor(code: TransportErrorCode, options?: ErrorOptions) {
    super(code, options);
    this.name = "TransportError";
    this.code = code;
  }
}

/**
 * After so long without an event, in milliseconds, the connection is replaced. Over HTTP the server's keep-alive
 * comments arrive far more often; the pings of a WebSocket are not visible to scripts.
 */
export const SILENCE_MS = 45_000;

/** How long the server may take to end a run that it was asked to end. */
export const ANSWER_WITHIN_MS = 5_000;
