/** Runs as the endpoints see them: of this process or, where several serve one address, of another one. */

import type { AbortKind } from "../agent/run-abort.ts";
import type { RunTransport } from "../agent/run-watch.ts";
import type { RunRequest } from "../agent/runner.ts";
import type { Caller } from "../http/caller.ts";
import type { MemoryHold } from "../http/request-memory.ts";
import type { TraceHeaders } from "../http/trace-headers.ts";
import type { RunEvent } from "./run-log.ts";

/** A message that is to be answered. */
export interface RunOrder {
  /** Of the request, or the upgrade, that the message came with. */
  readonly requestId: string;
  /** Of the same. */
  readonly trace: TraceHeaders;
  readonly transport: RunTransport;
  readonly caller: Caller;
  readonly request: RunRequest;
  /** Counts what the request takes. A run that is started shares it until it is over. */
  readonly memory: MemoryHold;
  /** The name that the client gave the run. */
  readonly id: string | undefined;
  /** Whether the client can come back to it: it named the run and reads a stream. */
  readonly resumable: boolean;
}

/** Takes the events of a run: a response, a socket, or whatever waits for the last one. */
export interface EventSink {
  /** Takes events in their order. `false`: no more, please, until `Reading.resume`. Must not throw. */
  write(events: readonly RunEvent[]): boolean;
  /** The run is over, and everything of it was written. */
  end(): void;
  /** The reader fell so far behind that what it needs next is no longer held: cut its line. */
  cut(): void;
}

/** One run, to be read or ended. */
export interface RunAccess {
  readonly id: string;
  /** Resolves when the run begins; rejects with the `ApiError` of a refusal. */
  readonly admitted: Promise<void>;
  /** Number of the event before the last one, or the newest so far: for who needs the end only. */
  readonly nearEnd: number;
  /** Whether it has ended and `after` is its last event, so that nothing is left to read. */
  hasEndedWith(after: number): boolean;
  /**
   * Reads the events that follow `after`, once `resume` is called. @throws ApiError `run_expired` if they are
   * no longer held, `invalid_request` if there is no event of that number.
   */
  attach(after: number, sink: EventSink): ReadingAccess;
  /** Ends the run with `done`, `finish_reason: "stopped"`. Tells whether it was ended so, now or before. */
  cancel(): boolean | Promise<boolean>;
  /** Ends the run as the kind says; "gone" also forgets what is held of a run that has ended. */
  abort(kind: AbortKind): void;
}

/** One reader's place in a run. It starts to read with the first `resume`. */
export interface ReadingAccess {
  /** The line can take more. */
  resume(): void;
  /** The line is gone, or has all. May be called again. */
  detach(): void;
}

/** Where runs are started and found. */
export interface RunDirectory {
  /** Whether the server is stopping: no new runs. */
  readonly draining: boolean;
  /**
   * Starts a run, or finds the one that this caller has named so: a message that is sent again after its line
   * was lost is not answered twice. @throws ApiError `shutting_down`, or `invalid_request` for the name of
   * another message's run.
   */
  open(order: RunOrder): RunAccess | Promise<RunAccess>;
  /** The run that this caller has started under this name. @throws ApiError `run_not_found` */
  find(caller: Caller, id: string): RunAccess | Promise<RunAccess>;
  /**
   * Ends the run of this name, as `RunAccess.cancel` does. One that is not known yet ends as soon as its message
   * is here, and asks no model: the message may still be on its way. @throws ApiError `run_not_found` for such a
   * one, too
   */
  cancel(caller: Caller, id: string): boolean | Promise<boolean>;
}
