/** Why a run was aborted; travels as the `reason` of its `AbortSignal`. */
export type AbortKind =
  /** The client closed its line or cleared the conversation: nobody reads on, no event follows. */
  | "gone"
  /** The client asked for the end: `done` with `finish_reason: "stopped"`. */
  | "stopped"
  /** The key that started it may no longer be used: `error` with the code `unauthorized`. */
  | "revoked"
  /** The server stops: `error` with the code `shutting_down`. */
  | "shutting_down"
  /** The run took longer than it may: `error` with the code `provider_timeout`. */
  | "timeout";

export class RunAbort extends Error {
  override readonly name = "RunAbort";
  /**
   * One for all runs, made with the class: an exception takes its stack, which costs more than many a token, and holds whom
   * it was made by. Each run is aborted in the end.
   */
  static readonly #all: Readonly<Record<AbortKind, RunAbort>> = {
    gone: new RunAbort("gone"),
    stopped: new RunAbort("stopped"),
    revoked: new RunAbort("revoked"),
    shutting_down: new RunAbort("shutting_down"),
    timeout: new RunAbort("timeout"),
  };
  readonly kind: AbortKind;

  private constructor(kind: AbortKind) {
    super(`run aborted: ${kind}`);
    this.kind = kind;
  }

  static of(kind: AbortKind): RunAbort {
    return RunAbort.#all[kind];
  }
}

/** A foreign reason means that whoever held the signal is gone. */
export function abortKind(signal: AbortSignal): AbortKind {
  return signal.reason instanceof RunAbort ? signal.reason.kind : "gone";
}

/** Rejects when the signal is aborted; for racing against work that may not listen to it. */
export function aborted(signal: AbortSignal): { promise: Promise<never>; forget(): void } {
  let listener = () => {};
  const promise = new Promise<never>((_resolve, reject) => {
    listener = () => reject(signal.reason);
    if (signal.aborted) listener();
    else signal.addEventListener("abort", listener, { once: true });
  });
  // Whoever races sees the rejection; after `forget` nobody has to.
  promise.catch(() => {});
  return { promise, forget: () => signal.removeEventListener("abort", listener) };
}
