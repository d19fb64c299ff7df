/** A thread of its own that says which tool blocks the process, and ends a process that cannot be ended otherwise. */

import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { readSettings } from "../config/settings.ts";
import { createLog } from "./log.ts";
import { BEAT_MS, SHOWN, type WatchdogData } from "./watchdog.ts";

/** In seconds. A blocked process answers no request, and its other conversations are lost already. */
const WARN_AFTER = 5;
const END_AFTER = 30;

/** What Windows gives for a program that Ctrl-C has ended. */
const WINDOWS_CTRL_C = 0xc000013a;

const { settings, memory } = workerData as WatchdogData;
const numbers = new Int32Array(memory, 0, SHOWN.namesAt / 4);
const names = Buffer.from(memory, SHOWN.namesAt);
// A thread's own standard error is written by the main thread.
const log = createLog({ ...readSettings({}), ...settings }, (record) => {
  try {
    writeSync(2, record);
  } catch {
    // Its reader stands still, or has gone.
  }
});

let seenBeats = 0;
let seconds = 0;
let stopListening = () => {};

// Counted, not measured: a machine that sleeps stops both threads.
setInterval(() => {
  // Before the beats: it falls after the beat that lowers it.
  const endAfter = Math.max(END_AFTER, Atomics.load(numbers, SHOWN.maxSeconds));
  const beats = Atomics.load(numbers, SHOWN.beats);
  const isBlocked = beats === seenBeats && numbers[SHOWN.isDebugged] === 0;
  seenBeats = beats;
  seconds = isBlocked ? seconds + 1 : 0;
  if (!isBlocked) stopListening();
  if (seconds === WARN_AFTER) {
    log.warning(`${blocker()} has blocked the process for ${seconds} s. Nobody is answered meanwhile; Ctrl-C ends it.`);
    listenForSignals();
  }
  if (seconds >= endAfter) {
    end(`${blocker()} has blocked the process for ${seconds} s`);
  }
}, BEAT_MS);

function blocker(): string {
  const running = names.toString("utf8", 0, numbers[SHOWN.namesBytes]);
  if (running === "") return "The agent's code";
  return running.includes(", ") ? `One of the tools ${running}` : `The tool ${running}`;
}

/**
 * Only the main thread can handle signals. But a terminal signals each process that belongs to it, and systemd each of its
 * unit: so a process that does nothing is started, and it ends when they do.
 */
function listenForSignals(): void {
  const env = { ...process.env, NODE_OPTIONS: "" };
  const listener = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
    env,
    stdio: ["pipe", "ignore", "ignore"],
  });
  listener.on("error", () => {});
  listener.on("exit", (code, signal) => {
    if (signal === "SIGINT" || signal === "SIGTERM" || code === WINDOWS_CTRL_C) end(`of ${signal ?? "Ctrl-C"}`);
  });
  stopListening = () => {
    stopListening = () => {};
    listener.removeAllListeners("exit").kill();
  };
}

/** The last line. A signal that can be handled would wait for the main thread, too. */
function end(reason: string): void {
  log.warning(`Parley stops because ${reason.replace(/^The|^One/, (word) => word.toLowerCase())}.`);
  process.kill(process.pid, "SIGKILL");
}
