/** Loaded into the server's process before it: tells its parent, when asked, what the process holds. */

import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();

process.on("message", (wish) => {
  // Twice: what finalizers let go of is only free after the second time.
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
// The channel alone must not keep a server alive that was told to stop.
process.channel?.unref();
