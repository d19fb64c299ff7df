import type { Log } from "./log.ts";

export interface Closable {
  /** Finishes what is running, then closes. */
  close(): Promise<void>;
  /** Ends what would outlive this process. */
  kill?(): void;
  /** Given the function that closes it and ends the process with an exit code. */
  onFailure?(end: (code: number) => void): void;
}

/** When the process ends, and how: what is running is finished first. */
export function closeWithProcess(server: Closable, log: Log): void {
  let closing = false;
  const close = (code: number) => {
    if (closing) return;
    closing = true;
    void server.close().then(() => process.exit(code));
  };
  const onSignal = () => {
    // A second signal does not wait.
    if (closing) {
      server.kill?.();
      process.exit(1);
    }
    log.notice("Finishing running answers. A second signal stops at once.");
    close(0);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  server.onFailure?.(close);
  onStrayErrors(log, () => close(1));
}

/** Failures that nobody has caught. `onFatal` is called after those that may have left anything half done. */
export function onStrayErrors(log: Pick<Log, "failure">, onFatal: () => void): void {
  // A tool that leaves a promise behind must not take the other conversations with it.
  process.on("unhandledRejection", (reason) => log.failure(reason));
  // No new work for this process.
  process.on("uncaughtException", (error) => {
    log.failure(error);
    onFatal();
  });
}
