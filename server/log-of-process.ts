import type { LogSettings } from "./config.ts";
import { createLog, type Log } from "./log.ts";

/** The log on standard error: for people on a terminal, for programs elsewhere, unless it is set. */
export function logOfProcess(
  { format, level }: LogSettings,
  secrets: readonly string[],
  worker?: number,
): Log {
  return createLog((line) => process.stderr.write(`${line}\n`), secrets, {
    format: format ?? (process.stderr.isTTY ? "pretty" : "json"),
    level,
    worker,
  });
}
