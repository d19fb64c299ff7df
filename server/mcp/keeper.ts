/** Ends programs that would outlive this process, even if it is killed. */

import { type ChildProcess, spawn } from "node:child_process";

/** Each line of its input has all process ids. Its input ends when this process does; programs then have 2 seconds to end. */
const SCRIPT = "while read -r line; do pids=$line; done; sleep 2; kill -9 $pids";

const running = new Set<number>();
let keeper: ChildProcess | undefined;

/** Called when a program has started or ended. */
export function keep(pid: number, isRunning: boolean): void {
  if (process.platform === "win32") return;
  if (isRunning) running.add(pid);
  else running.delete(pid);
  keeper ??= startKeeper();
  keeper.stdin?.write(`${[...running].join(" ")}\n`);
}

function startKeeper(): ChildProcess {
  // In its own process group, so that an interrupt from the terminal does not reach it.
  const child = spawn("sh", ["-c", SCRIPT], { stdio: ["pipe", "ignore", "ignore"], env: {}, detached: true });
  child.on("error", () => {}).unref();
  child.stdin.on("error", () => {});
  (child.stdin as typeof child.stdin & { unref(): void }).unref();
  return child;
}
