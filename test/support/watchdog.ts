/**
 * Imported first by each process that runs tests (`test/run.ts`): when no test has begun for {@link SILENT_MS}, it says which
 * one began last and what the process waits for, and ends it. The runner's own timeout names only the process, minutes
 * later, and leaves the browsers and servers of that process running, which hold its output open.
 */

import { spawnSync } from "node:child_process";
import { beforeEach } from "node:test";

// The real ones also where a test holds the clock.
import { setInterval } from "node:timers";

/** No test takes so long, not on a machine that is busy with others, either. */
const SILENT_MS = 120_000;

/** What the process waits for, each kind once, with how many there are. */
function resources(): string {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
}

let last = "none";
let began = performance.now();
beforeEach((t) => {
  last = t.name;
  began = performance.now();
});

setInterval(() => {
  if (performance.now() - began < SILENT_MS) return;
  process.stderr.write(
    `HUNG: no test began for ${SILENT_MS / 1_000} s. The last to begin: "${last}". Still open: ${resources()}\n`,
  );
  // A server that was started to write to this process' output would keep the runner waiting for its end.
  spawnSync("pkill", ["-KILL", "-P", String(process.pid)]);
  process.exit(1);
}, 1_000).unref();
