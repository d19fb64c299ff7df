/** SIGHUP: keys, secrets, origins and limits are read anew, and nothing else stops or starts. */

import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";
import { type Config, type Flags, hasKeys, LIVE_SETTINGS, readConfig, secretsOf } from "./config.ts";
import type { KeyKind } from "./http/caller.ts";
import type { Log } from "./log.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import type { Environment } from "./read-setting.ts";

export interface Reloading {
  /** The settings of the start, and what was read of them. */
  env: Environment;
  config: Config;
  flags: Flags;
  /** Reads the environment's files anew. @throws SetupError */
  readSettings(): Environment;
  /** Takes them over; the answer is how many sockets and runs were ended by that. */
  apply(config: Config, env: Environment): number | Promise<number>;
  /** What the log strikes out; new secrets are added, old ones stay. */
  secrets: string[];
  log: Log;
}

/** By its number: `process.stdin` would be made for the question. */
const STANDARD_INPUT = 0;

/** Rereads the settings on SIGHUP, unless that says that the terminal was closed: then the server ends. */
export function reloadOnHangup(reloading: Reloading): void {
  let { env, config } = reloading;
  const hasTerminal = isatty(STANDARD_INPUT);
  const { flags, readSettings, apply, secrets, log } = reloading;
  const reload = async () => {
    try {
      const nextEnv = readSettings();
      const next = readConfig(flags, nextEnv);
      refuseToOpen(config, next);
      secrets.push(...secretsOf(nextEnv).filter((secret) => !secrets.includes(secret)));
      const closed = await apply(next, nextEnv);
      log.notice(`SIGHUP: ${describe(config, env, next, nextEnv, closed).join("; ")}.`);
      config = next;
      env = nextEnv;
    } catch (error) {
      if (!(error instanceof SetupError)) log.failure(error);
      const problem = error instanceof SetupError ? error.message : "The settings cannot be read.";
      log.notice(`SIGHUP: nothing was changed. ${problem}`);
    }
  };
  // One after another: each compares with what the last one took over.
  let last: Promise<void> = Promise.resolve();
  process.on("SIGHUP", () => {
    if (hasTerminal && !isTerminalOpen()) process.kill(process.pid, "SIGTERM");
    else last = last.then(reload);
  });
}

function isTerminalOpen(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

/** A file that lost its keys, by a slip or half written, must not open the server to everybody. */
function refuseToOpen(old: Config, next: Config): void {
  if (!hasKeys(old.keys) || hasKeys(next.keys)) return;
  throw new SetupError("No key is set any more. To serve without keys, restart the server.");
}

function describe(old: Config, oldEnv: Environment, next: Config, nextEnv: Environment, closed: number): string[] {
  const names = new Set([...Object.keys(oldEnv), ...Object.keys(nextEnv)]);
  const changed = [...names].filter((name) => oldEnv[name] !== nextEnv[name]).sort();
  if (changed.length === 0) return ["nothing has changed"];
  const live = changed.filter((name) => LIVE_SETTINGS.has(name));
  const fixed = changed.filter((name) => !LIVE_SETTINGS.has(name));
  return [
    ...live.map((name) => `${name} has changed${countOf(name, old, next)}`),
    ...(closed > 0 ? [`${closed} connections and answers were ended`] : []),
    ...(fixed.length > 0 ? [`at the next start: ${fixed.join(", ")}`] : []),
  ];
}

/** How many keys came and went; never which. */
function countOf(name: string, old: Config, next: Config): string {
  const [, word] = /^PARLEY_(API|CHAT|WIDGET)_KEY$/.exec(name) ?? [];
  if (word === undefined) return "";
  const kind = word.toLowerCase() as KeyKind;
  const added = next.keys[kind].filter((key) => !old.keys[kind].includes(key)).length;
  const removed = old.keys[kind].filter((key) => !next.keys[kind].includes(key)).length;
  return ` (${added} added, ${removed} removed)`;
}
