/**
 * A server's life in its process: it listens, reloads the live settings on SIGHUP, and ends on another signal or an
 * uncaught error.
 */

import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isatty } from "node:tty";
import { secretsOf } from "./config/secrets.ts";
import type { Environment, Flags, Settings } from "./config/settings.ts";
import { applyOfProviders, isLive, isOfAgent, readSettings } from "./config/settings.ts";
import { ConfigError } from "./errors.ts";
import { describeFailure } from "./observe/describe-failure.ts";
import { framesIn } from "./project/load-project.ts";
import type { ParleyServer } from "./server.ts";

/** The URL of the chat page. @throws ConfigError that says why the server cannot listen */
export async function listen(http: Server, { port, host, basePath }: Settings): Promise<string> {
  try {
    http.listen(port, host);
    await once(http, "listening");
  } catch (error) {
    throw new ConfigError(listenProblem(error, host, port), { cause: error });
  }
  return `${originOf(http.address() as AddressInfo)}${basePath}/`;
}

/** `localhost` in place of an address that means all of the machine's, which a browser cannot open. */
function originOf({ address, port }: AddressInfo): string {
  const host = ["0.0.0.0", "::"].includes(address) ? "localhost" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function listenProblem(error: unknown, host: string, port: number): string {
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return `Port ${port} is in use. Choose another, such as --port ${port < 65_535 ? port + 1 : 0}, or stop the program that uses it.`;
    case "EACCES":
      return `This user may not use port ${port}. Choose one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `"${host}" is not an address of this machine. Choose one with --host, such as 127.0.0.1 or 0.0.0.0.`;
    case "EAI_AGAIN":
      return `The address of "${host}" could not be looked up in time. Try again, or choose an address with --host, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`;
  }
}

/** Signals to a worker within this time count as one. */
const SAME_SIGNAL_MS = 1000;

export interface OwnProcess {
  /** Whether a supervisor forwards signals to this process. */
  isWorker: boolean;
  /** The project's folder. */
  folder: string | undefined;
}

/**
 * The first signal lets running answers finish, the second one ends the process at once. If the process ends for
 * another reason, the last record of the log says why.
 */
export function closeOnSignal(server: ParleyServer, { isWorker, folder }: OwnProcess): void {
  const { log } = server;
  const sayWhy = (reason: string, error: unknown) => {
    const [place] = folder === undefined ? [] : framesIn(folder, error);
    log.warning(`Parley stops because ${reason}${place === undefined ? "" : ` (${place})`}.`);
  };
  let isClosing = false;
  let signalledAt = 0;
  const close = async () => {
    isClosing = true;
    // The process ends even if something cannot be closed.
    await server.drain().catch(log.failure);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (isClosing) {
        // A terminal and systemd signal every process, and then the supervisor forwards the signal to its workers.
        if (isWorker && performance.now() - signalledAt < SAME_SIGNAL_MS) return;
        process.exit(1);
      }
      signalledAt = performance.now();
      if (server.isBusy()) log.notice("Finishing running answers. A second signal stops at once.");
      void close().then(() => process.exit(0));
    });
  }
  // A tool that leaves a rejected promise behind must not end the other conversations.
  process.on("unhandledRejection", (reason) => log.failure(reason));
  // After an uncaught exception, anything may be half done: this process takes no new messages.
  process.on("uncaughtException", async (error) => {
    log.failure(error);
    if (isClosing) return;
    await close();
    try {
      sayWhy(`of an exception that was not caught: ${describeFailure(error, false, String).split("\n", 1)[0]}`, error);
    } finally {
      process.exit(1);
    }
  });
  process.once("exit", () => {
    if (isClosing) return;
    sayWhy("process.exit() was called", new Error());
    // This end was not intended, whatever code the tool has given.
    process.exitCode ||= 1;
  });
}

/** Parts of a reload of the live settings, which stops and starts nothing else. */
interface Reloading {
  server: ParleyServer;
  /** The settings of the running server. */
  settings: Settings;
  env: Environment;
  flags: Flags;
  /** Whether this is `parley dev`: only this machine reaches it, so its keys may be removed, and its agent is loaded again. */
  isDev: boolean;
  /** Reads the environment's files again. @throws ConfigError */
  read(): Environment;
}

/** Applies what has changed. `why` is named in the log. */
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
  const isOnTerminal = hasTerminal || outputs.includes(true);
  if (isOnTerminal && process.platform !== "win32") process.once("exit", leaveClosedTerminal);
}

/** Node 20 crashes on exit if it cannot reset a terminal that was closed. */
function leaveClosedTerminal(): void {
  if (isTerminalOpen()) return;
  for (const descriptor of STANDARD_STREAMS) {
    closeSync(descriptor);
    // Takes the descriptor that has just become free.
    openSync("/dev/null", "r+");
  }
}

/** Returns the environment that is in effect from now on. */
function reload({ server, settings, flags, isDev, read }: Reloading, env: Environment, why: string): Environment {
  const { log } = server;
  try {
    const nextEnv = read();
    const next = readSettings(nextEnv, flags);
    if (!isDev) refuseToOpen(settings, next);
    log.hide(secretsOf(nextEnv));
    const sentences = changesOf({ settings, env }, { settings: next, env: nextEnv }, isDev);
    const ended = server.reload(next);
    if (isDev) {
      applyOfProviders(settings, next);
      // The agent and packages of models read the environment themselves.
      for (const name of Object.keys(env)) if (!(name in nextEnv)) delete process.env[name];
      Object.assign(process.env, nextEnv);
    }
    if (ended > 0) sentences.push(`${ended} connections and answers were ended`);
    log.notice(
      `${why}: ${sentences.length > 0 ? sentences.join("; ") : "nothing has changed (a variable of the process overrides one in a file)"}.`,
    );
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

/** A file that lost its keys, by mistake or because it is half written, must not open the server to everybody. */
function refuseToOpen(settings: Settings, next: Settings): void {
  if (!settings.requiresKey || next.requiresKey) return;
  throw new ConfigError("The new settings have no key. To serve without keys, restart the server.");
}

interface Known {
  settings: Settings;
  env: Environment;
}

function changesOf(old: Known, next: Known, isLoadedAgain: boolean): string[] {
  const names = new Set([...Object.keys(old.env), ...Object.keys(next.env)]);
  const changed = [...names].filter((name) => old.env[name] !== next.env[name]).sort();
  const isTaken = (name: string) => isLive(name) || (isLoadedAgain && isOfAgent(name));
  const fixed = changed.filter((name) => !isTaken(name));
  return [
    ...changed.filter(isTaken).map((name) => `${name} has changed${countOf(name, old.settings, next.settings)}`),
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
