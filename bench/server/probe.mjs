/** Loaded into every server before its own code: reports the processor time and memory of the process to the driver. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { serve } from "./processes.mjs";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

serve({
  /** CPU time of all threads so far, in microseconds. */
  cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  /** Resident bytes after a collection of garbage. */
  settle() {
    collectGarbage();
    collectGarbage();
    return process.memoryUsage.rss();
  },
});
// This channel does not keep the server's process alive.
process.channel?.unref();
