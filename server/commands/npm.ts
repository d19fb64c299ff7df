/** Needed if npm has started the command: a signal to npm ends npm and the shell of the command, but not the command. */
export function endWithNpm(): void {
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, 500).unref();
}
