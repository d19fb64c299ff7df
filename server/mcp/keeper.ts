/** Ends programs that would outlive this process, also where it is killed. */

import { type ChildProcess, spawn } from "node:child_process";

/** Each line of its input has all process ids. Its input ends with this process; programs then have 2 seconds to do so, too. */
const SCRIPT = "while read -r line; do pids=$line; done; sleep 2; kill -9 $pids";

const running = new Set<number>();
let keeper: ChildProcess | undefined;

/** A program has begun or ended. */
export function keep(pid: number, isRunning: boolean): void {
  if (process.platform === "win32") return;
  if (isRunning) running.add(pid);
  else running.delete(pid);
  keeper ??= startKeeper();
  keeper.stdin?.write(`${[...running].join(" ")}\n`);
}

function startKeeper(): ChildProcess {
  // In a group of its own: an interrupt of the terminal is not for it.
  const child = spawn("sh", ["-c", SCRIPT], { stdio: ["pipe", "ignore", "ignore"], env: {}, detached: true });
  child.on("error", () => {}).unref();
  child.stdin.on("error", () => {});
  (child.stdin as typeof child.stdin & { unref(): void }).unref();
  return child;
}
