import { isatty } from "node:tty";
import type { LogSettings } from "./config.ts";
import { GatheredLines } from "./gathered-lines.ts";
import { createLog, type Log } from "./log.ts";

/**
 * Standard error is mostly a pipe, and each write to it holds up every answer until its reader was woken. One for all
 * logs of the process, so that what they say stays in order.
 */
const lines = new GatheredLines((text) => process.stderr.write(text));

// However the process ends, but for a signal that lets it do nothing any more.
process.on("exit", () => lines.write());

/** By its number: `process.stderr.isTTY` would make the stream, for which a start would wait. */
const STANDARD_ERROR = 2;

/** The log on standard error: for people on a terminal, for programs elsewhere, unless it is set. */
export function logOfProcess({ format, level }: LogSettings, secrets: readonly string[], worker?: number): Log {
  return createLog((line, canWait) => lines.add(line, canWait), secrets, {
    format: format ?? (isatty(STANDARD_ERROR) ? "pretty" : "json"),
    level,
    worker,
  });
}
