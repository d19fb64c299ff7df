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

/** A picture of a result, in the form of a file in a state. If its data is gone, only `omitted` is left. */
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
  /** Continues the answer from the state, in place of a message. */
  readonly continue?: true;
  /** The page's metadata for the message. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A run that the server knows, and the number of its last event received, or 0. As a request: the events after. */
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
  /** Called when a connection opens or a response arrives: the server can be reached, whatever it answers. */
  readonly onOpen?: () => void;
  /** Whether WebSocket was found to be blocked on the way to the server. */
  readonly isSocketBlocked?: () => boolean;
  /** Called when that has changed, so that the page can remember it. */
  readonly onSocketBlocked?: (isBlocked: boolean) => void;
}

/**
 * Carries one run at a time. A refusal by the server is an `error` event; `TransportError` is thrown only when the
 * connection fails. The run then continues at the server for a while, and a request with its position gets the missing
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
 * `unreachable`: the server has received nothing. `connection_lost`: it may have the run. `silent`: likewise; the
 * connection may be dead or the agent slow. `unreadable`: the response does not follow our protocol.
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
 * Time without an event, in milliseconds, after which the connection is replaced. Over HTTP the server's keep-alive
 * comments arrive far more often; the pings of a WebSocket are not visible to scripts.
 */
export const SILENCE_MS = 45_000;

/** How long the server may take to end a run that it was asked to end. */
export const ANSWER_WITHIN_MS = 5_000;
