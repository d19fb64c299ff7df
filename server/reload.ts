/** The live settings are read anew, on SIGHUP, and nothing else stops or starts. */

import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";
import { secretsOf } from "./config/secrets.ts";
import { type Environment, type Flags, isLive, readSettings, type Settings } from "./config/settings.ts";
import { ConfigError } from "./errors.ts";
import type { ParleyServer } from "./server.ts";

export interface Reloading {
  server: ParleyServer;
  /** The settings of the start. */
  settings: Settings;
  env: Environment;
  flags: Flags;
  /** Reads the environment's files anew. @throws ConfigError */
  read(): Environment;
}

/** Takes over what has changed. `why` is named in the log. */
export type ReloadSettings = (why: string) => void;

export function settingsReloader(reloading: Reloading): ReloadSettings {
  let { env } = reloading;
  return (why) => {
    env = reload(reloading, env, why);
  };
}

const STANDARD_STREAMS = [0, 1, 2];

/** Calls `listener` on SIGHUP, but ends the process if that signal means that the terminal was closed. */
export function onHangup(listener: () => void): void {
  const [hasTerminal = false, ...outputs] = STANDARD_STREAMS.map((descriptor) => isatty(descriptor));
  process.on("SIGHUP", () => {
    if (hasTerminal && !isTerminalOpen()) process.kill(process.pid, "SIGTERM");
    else listener();
  });
  if (hasTerminal || outputs.includes(true)) process.once("exit", leaveClosedTerminal);
}

/** Node 20 crashes at its end when it cannot reset a terminal that is gone. */
function leaveClosedTerminal(): void {
  if (isTerminalOpen()) return;
  for (const descriptor of STANDARD_STREAMS) {
    closeSync(descriptor);
    // Gets the number that has just become free.
    openSync("/dev/null", "r+");
  }
}

/** Returns the environment that counts from now on. */
function reload({ server, settings, flags, read }: Reloading, env: Environment, why: string): Environment {
  const { log } = server;
  try {
    const nextEnv = read();
    const next = readSettings(nextEnv, flags);
    refuseToOpen(settings, next);
    log.hide(secretsOf(nextEnv));
    const sentences = changesOf({ settings, env }, { settings: next, env: nextEnv });
    const ended = server.reload(next);
    if (ended > 0) sentences.push(`${ended} connections and answers were ended`);
    log.notice(`${why}: ${sentences.length > 0 ? sentences.join("; ") : "nothing has changed"}.`);
    return nextEnv;
  } catch (error) {
    if (!(error instanceof ConfigError)) log.failure(error);
    const problem = error instanceof ConfigError ? error.message : "The settings cannot be read.";
    log.notice(`${why}: nothing was changed. ${problem}`);
    return env;
  }
}

function isTerminalOpen(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

/** A file that lost its keys, by a slip or because it is half written, must not open the server to everybody. */
function refuseToOpen(settings: Settings, next: Settings): void {
  if (!settings.requiresKey || next.requiresKey) return;
  throw new ConfigError("The new settings have no key. To serve without keys, restart the server.");
}

interface Known {
  settings: Settings;
  env: Environment;
}

function changesOf(old: Known, next: Known): string[] {
  const names = new Set([...Object.keys(old.env), ...Object.keys(next.env)]);
  const changed = [...names].filter((name) => old.env[name] !== next.env[name]).sort();
  const fixed = changed.filter((name) => !isLive(name));
  return [
    ...changed.filter(isLive).map((name) => `${name} has changed${countOf(name, old.settings, next.settings)}`),
    ...(fixed.length > 0 ? [`at the next start: ${fixed.join(", ")}`] : []),
  ];
}

const KEY_LISTS: Readonly<Record<string, "apiKeys" | "chatKeys" | "widgetKeys">> = {
  PARLEY_API_KEY: "apiKeys",
  PARLEY_CHAT_KEY: "chatKeys",
  PARLEY_WIDGET_KEY: "widgetKeys",
};

/** How many keys were added and removed; never which. */
function countOf(name: string, old: Settings, next: Settings): string {
  const list = KEY_LISTS[name];
  if (list === undefined) return "";
  const added = next[list].filter((key) => !old[list].includes(key)).length;
  const removed = old[list].filter((key) => !next[list].includes(key)).length;
  return ` (${added} added, ${removed} removed)`;
}
