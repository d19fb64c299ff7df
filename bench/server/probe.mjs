/** Loaded into every server under test before its own code: tells the driver what the process has used. */

import { readFileSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { serve } from "./rpc.mjs";

let session;

/** Highest resident memory since `settle`; where the kernel cannot say, since the start. In bytes. */
function peak() {
  try {
    const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}

function resetPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // Then the peak is that of the whole life.
  }
}

function post(method, params) {
  return new Promise((resolve, reject) => {
    session.post(method, params, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

serve({
  /** CPU time of all threads so far, in microseconds, and memory in bytes. */
  usage() {
    const { user, system } = process.cpuUsage();
    return { cpu: user + system, user, system, rss: process.memoryUsage.rss(), peak: peak() };
  },
  /** Collects garbage, so that what is measured next starts from what is really held. */
  settle() {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    collect();
    collect();
    resetPeak();
    return process.memoryUsage.rss();
  },
  async startProfile() {
    session = new Session();
    session.connect();
    await post("Profiler.enable");
    await post("Profiler.setSamplingInterval", { interval: 200 });
    await post("Profiler.start");
  },
  /** Writes what was recorded into a `.cpuprofile`. */
  async stopProfile(file) {
    const { profile } = await post("Profiler.stop");
    session.disconnect();
    writeFileSync(file, JSON.stringify(profile));
  },
});
// The server decides how long it lives, not this channel.
process.channel?.unref();
