/** How a run is ended from outside, and what its clients are told. */

import { ApiError, runLost, shuttingDown } from "../protocol/errors.ts";
import { unreachable } from "../protocol/events.ts";

/** Why a run is ended from outside. */
export type AbortKind =
  /** No client is left, it cleared the conversation, or the run is over and ends leftover work: no event follows. */
  | "gone"
  /** The client asked for the end: `done` with `finish_reason: "stopped"`. */
  | "stopped"
  /** The key that started the run may no longer be used: `error` with the code `unauthorized`. */
  | "revoked"
  /** Another process has taken the run's name: `error` with the code `run_lost`. */
  | "lost"
  /** The server stops: `error` with the code `shutting_down`. */
  | "shutting_down"
  /** The run took longer than `PARLEY_RUN_SECONDS`: `error` with the code `provider_timeout`. */
  | "timeout";

/** The reason of a run's `AbortSignal`. */
export class RunAborted extends Error {
  override readonly name = "RunAborted";
  readonly kind: AbortKind;

  constructor(kind: AbortKind) {
    super(`run aborted: ${kind}`);
    this.kind = kind;
  }
}

export function abortKind({ reason }: AbortSignal): AbortKind {
  return reason instanceof RunAborted ? reason.kind : "gone";
}

export function abortError(kind: Exclude<AbortKind, "gone" | "stopped">, runSeconds: number): ApiError {
  switch (kind) {
    case "lost":
      return runLost();
    case "revoked":
      return new ApiError("unauthorized", "This key has been revoked.");
    case "shutting_down":
      return shuttingDown();
    case "timeout":
      return new ApiError("provider_timeout", `The answer took longer than ${runSeconds} seconds and was stopped.`);
    default:
      return unreachable(kind);
  }
}

/** The error of a run that cannot end by itself, because its model ignores the abort. */
export function abortTimeoutError(signal: AbortSignal, runSeconds: number): ApiError {
  const kind = abortKind(signal);
  if (kind === "revoked" || kind === "lost" || kind === "shutting_down") return abortError(kind, runSeconds);
  return new ApiError("provider_timeout", "The answer could not be stopped in time.", {
    detail: "The model ignored that its run was ended.",
  });
}
