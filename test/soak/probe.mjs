/** Preloaded into the server's process: reports the process's memory and descriptors to its parent on request. */

import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();

process.on("message", (wish) => {
  // Twice: memory released by finalizers is only free after the second time.
  if (wish === "settled") for (let round = 0; round < 2; round++) globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  process.send?.({
    rss,
    heapUsed,
    external,
    descriptors: readdirSync("/proc/self/fd").length,
    delayP99: delay.percentile(99) / 1e6,
    delayMax: delay.max / 1e6,
  });
  delay.reset();
});
// The channel must not keep a stopped server alive.
process.channel?.unref();
