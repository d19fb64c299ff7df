/** What the routes know of a run, of this process or of another one. Types alone. */

import type { NumberedEvent } from "../protocol/events.ts";

/** A run as the routes see it: of this process, or of another one. */
export interface RunHandle {
  readonly id: string;
  /** The digest of the message, to see whether the same one is sent again under the same name. */
  readonly digest: string;
  /** Resolves when the run begins; rejects with the `ApiError` of a refusal. */
  readonly started: Promise<void>;
  /**
   * Reads what follows event number `after`, or everything that is still there. The reader keeps the run alive until it is
   * closed. @throws ApiError `run_expired` or `invalid_request`
   */
  read(after: number | "oldest"): Promise<RunReader>;
  /** Ends the run; its readers get what was said so far. Gives whether it was ended so, now or before. */
  stop(): Promise<boolean>;
  /** No client wants it any more: ends it, and drops its events. */
  discard(): void;
}

/** One client's position in a run. Throws `run_expired` where the client is too slow for the events to be kept. */
export interface RunReader extends AsyncIterableIterator<NumberedEvent[]> {
  /** Whether the run has ended and nothing is left to read. */
  readonly isAtEnd: boolean;
  /** The client has everything or has gone. Also ends a loop that waits for events. */
  close(): void;
}
