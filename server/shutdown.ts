import type { Log } from "./log.ts";

/** When the process ends, and how: what is running is finished first. */
export function closeWithProcess(server: { close(): Promise<void> }, log: Log): void {
  let closing = false;
  const close = (code: number) => {
    if (closing) return;
    closing = true;
    void server.close().then(() => process.exit(code));
  };
  const onSignal = () => {
    // A second signal does not wait.
    if (closing) process.exit(1);
    log.notice("Finishing running answers. A second signal stops at once.");
    close(0);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  // A tool that leaves a promise behind must not take the other conversations with it.
  process.on("unhandledRejection", (reason) => log.failure(reason));
  // What threw where nobody catches may have left anything half done: no new work for this process.
  process.on("uncaughtException", (error) => {
    log.failure(error);
    close(1);
  });
  // Whoever read the log may be gone; the conversations are not.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
