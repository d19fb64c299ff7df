/** What a `ChatSession` is built with, and what it may be doing. */

import type { ErrorEvent } from "../server/protocol/events.ts";
import type { Connection } from "./connection.ts";
import type { CancellingTransport } from "./transport/transport.ts";

/** `locked`: a message waits until the person has entered a key that the server takes, or until `unlock`. */
export type SessionStatus = "idle" | "running" | "stopping" | "locked";

/** How a message is sent. */
export interface SendOptions {
  /** Id of the earlier message that it replaces. What followed that one is forgotten. */
  readonly replaces?: string | undefined;
  /** Called once the session accepts the message, before anything else changes. */
  readonly onAccepted?: () => void;
}

export interface SessionOptions {
  readonly transport: CancellingTransport;
  readonly connection: Connection;
  /** Called after every change of what the session shows. */
  readonly onChange: () => void;
  /** A piece of the text of the reply with this id has come. */
  readonly onToken: (text: string, id: string) => void;
  /** Gives the error to show, or `undefined` when the person is asked for a key and the message waits for it. */
  readonly judgeError: (error: ErrorEvent) => ErrorEvent | undefined;
}
