/** A door: an endpoint that accepts messages in some protocol. Types only. */

import type { Caller } from "../auth/access.ts";
import type { RequestContext } from "../http/request.ts";
import type { RunTransport } from "../observe/run-observer.ts";
import type { NumberedEvent } from "../protocol/events.ts";
import type { RunReader } from "../runs/run-handle.ts";
import type { Asked, ParserName } from "./message.ts";

/** How the messages of a protocol are read, and how their answers are written. */
export interface Door {
  /** If it returns a `history`, that is continued and no state is made: `done` has an empty one. */
  readonly parser: Exclude<ParserName, "socket" | "mcp">;
  /** The name of its runs in logs and metrics. */
  transport(isStreamed: boolean): RunTransport;
  /** The client's name for the run, if it is sent outside of the body. @throws ApiError */
  nameOf?(context: RequestContext, caller: Caller): string | undefined;
  /** Headers of the answer, which are also sent with a failure. */
  headers?(asked: Asked): Readonly<Record<string, string>>;
  /** Returns a function that encodes the events of one answer, each as the text to send. It may have state. */
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
