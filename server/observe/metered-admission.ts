import type { Caller } from "../http/caller.ts";
import type { AdmissionControl, Release } from "../limits/admission-control.ts";
import { ApiError } from "../protocol/api-error.ts";

export interface AdmissionMeter {
  /** Something was refused because of this limit. */
  limited(limit: string): void;
  /** A message begins (1) or ends (-1) to wait for its turn. */
  queued(by: 1 | -1): void;
}

/** Counts what another one refuses, and who waits. */
export function meterAdmission(admission: AdmissionControl, meter: AdmissionMeter): AdmissionControl {
  const counted = async <Answer>(limit: string, ask: () => Answer | Promise<Answer>) => {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.code === "rate_limited") meter.limited(limit);
        // Nobody's own share, but all of it.
        if (error.code === "overloaded") meter.limited(`all_${limit}`);
      }
      throw error;
    }
  };
  return {
    rightKey: (address: string) => counted("wrong_keys", () => admission.rightKey(address)),
    wrongKey: (address: string) => counted("wrong_keys", () => admission.wrongKey(address)),
    message: (caller: Caller) => counted("messages", () => admission.message(caller)),
    async enter(caller: Caller, signal: AbortSignal): Promise<Release> {
      meter.queued(1);
      try {
        return await counted("runs", () => admission.enter(caller, signal));
      } finally {
        meter.queued(-1);
      }
    },
    socket: (caller: Caller) => counted("sockets", () => admission.socket(caller)),
    frames: () => admission.frames(),
    close: () => admission.close(),
  };
}
