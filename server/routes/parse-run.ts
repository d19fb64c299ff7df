/** Names of runs and places within them, as a client writes them. */

import { invalidRequest } from "../protocol/api-error.ts";
import { RUN_ID } from "../protocol/chat.ts";

/** Reads the optional `run` of a message. @throws ApiError `invalid_request` */
export function parseRunId(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && RUN_ID.test(value)) return value;
  throw invalidRequest("/run", "run must be 16 to 64 characters of A-Z, a-z, 0-9, _ and -.");
}

/** Reads the number of the last event that a client has; absent: none yet. @throws ApiError `invalid_request` */
export function parseAfter(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalidRequest("/after", "after must be the id of an event, or 0.");
}

/** As `parseAfter`, for the header `Last-Event-ID`. @throws ApiError `invalid_request` */
export function parseLastEventId(value: string | undefined): number {
  if (value === undefined || value === "") return 0;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw invalidRequest("", "Last-Event-ID must be the id of an event, or 0.");
}
