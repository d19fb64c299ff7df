/** SIGTERM and SIGINT: finish what is running, then leave; a second signal leaves at once. */
export function closeOnSignal(server: { close(): Promise<void> }): void {
  let closing = false;
  const onSignal = () => {
    if (closing) process.exit(1);
    closing = true;
    process.stderr.write("Finishing running answers. Press again to stop at once.\n");
    void server.close().then(() => process.exit(0));
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
