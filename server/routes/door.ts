/** What a door is: an endpoint of some protocol. Types alone. */

import type { Caller } from "../auth/access.ts";
import type { RequestContext } from "../http/request.ts";
import type { RunTransport } from "../observe/run-observer.ts";
import type { NumberedEvent } from "../protocol/events.ts";
import type { RunReader } from "../runs/run-handle.ts";
import type { Asked, ParserName } from "./message.ts";

/** How the messages of a protocol are read, and how their answers are written. */
export interface Door {
  /** What it gives as `history` is continued, and no state is made: `done` has an empty one. */
  readonly parser: Exclude<ParserName, "socket" | "mcp">;
  /** What its runs are called in logs and metrics, streamed or not. */
  transport(isStreamed: boolean): RunTransport;
  /** The client's name for the run, if it stands outside of the body. @throws ApiError */
  nameOf?(context: RequestContext, caller: Caller): string | undefined;
  /** Headers of the answer, which come with a failure, too. */
  headers?(asked: Asked): Readonly<Record<string, string>>;
  /** Encodes the events of one answer, each as the text that is sent; a new one for each answer, since it may remember. */
  encoder(answer: BegunAnswer): (event: NumberedEvent) => string;
  /** A whole answer as one body. @throws ApiError when the run failed */
  body(reader: RunReader, answer: BegunAnswer): Promise<object>;
}

/** What a door knows of an answer before its first event. */
export interface BegunAnswer {
  /** Id of the run. */
  readonly run: string;
  /** Id of the agent. */
  readonly agent: string;
  readonly asked: Asked;
}
