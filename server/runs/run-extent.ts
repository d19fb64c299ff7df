import { ApiError, invalidRequest } from "../protocol/api-error.ts";

/** Which events of a run are held. */
export interface RunExtent {
  /** Number of the oldest event that is held; one more than `lastId` when none is. */
  readonly firstId: number;
  /** Number of the newest event; 0 while there is none. */
  readonly lastId: number;
  /** Whether no event follows. */
  readonly closed: boolean;
}

/** Whether the run has ended and `after` is its last event, so that nothing is left to read. */
export function endsWith({ closed, lastId }: RunExtent, after: number): boolean {
  return closed && after === lastId;
}

/** Number of the event before the last one, or the newest so far: for who needs the end only. */
export function nearEndOf({ closed, lastId }: RunExtent): number {
  return closed ? Math.max(0, lastId - 1) : lastId;
}

/**
 * @throws ApiError `run_expired` if what follows `after` is no longer held, `invalid_request` if there is no
 * event of that number.
 */
export function checkAfter({ firstId, lastId }: RunExtent, after: number): void {
  if (after > lastId) throw invalidRequest("/after", `This run has no event ${after} yet.`);
  if (after + 1 < firstId) {
    throw new ApiError("run_expired", `Event ${after + 1} of this run is no longer held.`);
  }
}
