/** Loaded into every server before its own code: tells the driver what the process has used. */

import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { serve } from "./processes.mjs";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");
const session = new Session();

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
  async startProfile() {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
  },
  async stopProfile(file) {
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    writeFileSync(file, JSON.stringify(profile));
  },
});
// The server decides how long it lives, not this channel.
process.channel?.unref();
