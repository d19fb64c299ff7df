/** Loaded into every server before its own code: tells the driver what the process has used. */

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
// The server decides how long it lives, not this channel.
process.channel?.unref();
