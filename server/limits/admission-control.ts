import type { Caller } from "../http/caller.ts";
import type { FrameMeter } from "./frame-meter.ts";

/** Gives back what was taken; further calls do nothing. */
export type Release = () => void;

/**
 * Who must wait or go away, as the endpoints ask it. It is decided in this process or in another one, so every
 * answer has to be awaited. Refusals are `ApiError`s.
 */
export interface AdmissionControl {
  /** For a right key, or none. @throws ApiError `rate_limited` after too many wrong ones. */
  rightKey(address: string): void | Promise<void>;
  /** Counts a key that is wrong. @throws ApiError `rate_limited` after too many. */
  wrongKey(address: string): void | Promise<void>;
  /** Counts a chat message of this caller. @throws ApiError `rate_limited` */
  message(caller: Caller): void | Promise<void>;
  /**
   * Waits until one more answer may run, and counts it until it is released.
   * @throws ApiError `rate_limited` for a caller whose own share is used up, `overloaded` for a full server.
   */
  enter(caller: Caller, signal: AbortSignal): Promise<Release>;
  /** Counts a socket until it is released. @throws ApiError `rate_limited` or `overloaded` */
  socket(caller: Caller): Release | Promise<Release>;
  /** Meters the frames of one socket. */
  frames(): FrameMeter;
  /** Sends away whoever waits for a run. */
  close(): void;
}
