/** Runs as the routes see them. Types only. */

import type { NumberedEvent } from "../protocol/events.ts";

/** A run of this process or of another one. */
export interface RunHandle {
  readonly id: string;
  /** The digest of the message, to see whether the same one is sent again under the same name. */
  readonly digest: string;
  /** Resolves when the run begins; rejects with the `ApiError` of a refusal. */
  readonly started: Promise<void>;
  /**
   * Reads the events after number `after`, or all that are still kept. The reader keeps the run alive until it is
   * closed. @throws ApiError `run_expired` or `invalid_request`
   */
  read(after: number | "oldest"): Promise<RunReader>;
  /** Stops the run; its readers get what was said so far. Resolves with whether it was stopped, now or before. */
  stop(): Promise<boolean>;
  /** Ends the run and drops its events, because no client needs them any more. */
  discard(): void;
}

/** One client's position in a run. `next` rejects with `run_expired` if the client is too slow for the events to be kept. */
export interface RunReader extends AsyncIterableIterator<NumberedEvent[]> {
  /** Whether the run has ended and nothing is left to read. */
  readonly isAtEnd: boolean;
  /** Called when the client has everything or has disconnected. Also ends a loop that waits for events. */
  close(): void;
}
