/** A thread that logs which tool blocks the process, and ends a process that cannot be ended otherwise. */

import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { readSettings } from "../config/settings.ts";
import { createLog } from "./log.ts";
import { BEAT_MS, SHOWN, type WatchdogData } from "./watchdog.ts";

/** In seconds. A blocked process answers no request, and its other conversations are lost already. */
const WARN_AFTER = 5;
const END_AFTER = 30;

const { settings, memory } = workerData as WatchdogData;
const numbers = new Int32Array(memory, 0, SHOWN.namesAt / 4);
const names = Buffer.from(memory, SHOWN.namesAt);
// Written directly, because a thread's own standard error is written by the main thread.
const log = createLog({ ...readSettings({}), ...settings }, (record) => {
  try {
    writeSync(2, record);
  } catch {
    // Its reader stands still, or has gone.
  }
});

let seenBeats = 0;
let seconds = 0;

// Seconds are counted, not measured: a machine that sleeps stops both threads.
setInterval(() => {
  // Read before the beats, because the main thread counts a beat before it lowers this.
  const endAfter = Math.max(END_AFTER, Atomics.load(numbers, SHOWN.maxSeconds));
  const beats = Atomics.load(numbers, SHOWN.beats);
  const isBlocked = beats === seenBeats && numbers[SHOWN.isDebugged] === 0;
  seenBeats = beats;
  seconds = isBlocked ? seconds + 1 : 0;
  if (seconds === WARN_AFTER) {
    const remedy = `No message is answered meanwhile. If Ctrl-C does nothing, kill -9 ${process.pid} ends it.`;
    log.warning(`${blocker()} has blocked the process for ${seconds} s. ${remedy}`);
  }
  if (seconds < endAfter) return;
  const reason = `${blocker()} has blocked the process for ${seconds} s`;
  log.warning(`Parley stops because ${reason.replace(/^The|^One/, (word) => word.toLowerCase())}.`);
  // A signal that can be handled would also wait for the main thread.
  process.kill(process.pid, "SIGKILL");
}, BEAT_MS);

function blocker(): string {
  const running = names.toString("utf8", 0, numbers[SHOWN.namesBytes]);
  if (running === "") return "The agent's code";
  return running.includes(", ") ? `One of the tools ${running}` : `The tool ${running}`;
}
