/** Shared by commands that serve an agent: the project with its settings, its server, and the summary of both. */

import { spawn } from "node:child_process";
import type { AgentModule } from "../agent/define.ts";
import { readEnvironment } from "../config/environment.ts";
import { loadOpenTelemetry, loadOptionalPackage } from "../config/optional-package.ts";
import { type Environment, type Flags, readSettings, type Settings } from "../config/settings.ts";
import { describeRun } from "../hosted/remote.ts";
import type { Log } from "../observe/log.ts";
import { Watchdog } from "../observe/watchdog.ts";
import { type ReloadSettings, settingsReloader } from "../process-life.ts";
import { ownThread, publicFolder, readVersion } from "../project/own-files.ts";
import { modelName } from "../providers/ai-sdk/language-model.ts";
import { createParleyServer, type ParleyServer, type ParleyServerOptions } from "../server.ts";

/** A project before its agent is loaded. */
export interface OpenedProject {
  /** `undefined` for the demo agent. */
  readonly folder: string | undefined;
  /** The variables of the process. */
  readonly inherited: Environment;
  readonly env: Environment;
  readonly settings: Settings;
  readonly flags: Flags;
  /** Reads the environment and its files again. @throws ConfigError */
  read(): Environment;
}

/** `adapt` changes the environment for a command. @throws ConfigError */
export function openProject(
  folder: string | undefined,
  flags: Flags,
  adapt: (env: Environment) => Environment = (env) => env,
): OpenedProject {
  const inherited = { ...process.env };
  const read = () => adapt(readEnvironment(inherited, folder));
  const env = read();
  return { folder, inherited, env, settings: readSettings(env, flags), flags, read };
}

export interface ProjectServer {
  readonly server: ParleyServer;
  readonly reloadSettings: ReloadSettings;
  /** From then on, a tool that blocks the process is reported. */
  startWatchdog(): void;
  /** Why there are no traces although their package is installed. */
  readonly tracingProblem: string | undefined;
}

/** @throws ConfigError */
export async function createProjectServer(
  { folder, env, settings, flags, read }: OpenedProject,
  module: AgentModule,
  { isDev = false, ...more }: Partial<ParleyServerOptions> & { isDev?: boolean } = {},
): Promise<ProjectServer> {
  const tracing = loadOpenTelemetry(folder);
  const watchdog = new Watchdog();
  const server = await createParleyServer({
    ...module,
    settings,
    env,
    folder,
    publicFolder,
    loadPackage: (name, only) => loadOptionalPackage(name, folder, only),
    openTelemetry: tracing.api,
    ...more,
    sinks: (log) => [watchdog, ...(more.sinks?.(log) ?? [])],
  });
  const reloadSettings = settingsReloader({ server, settings, env, read, flags, isDev });
  return {
    server,
    reloadSettings,
    startWatchdog() {
      // Only a project has code that could block the process.
      if (folder === undefined) return;
      watchdog.start(ownThread("server/observe/watchdog-thread.ts"), settings, server.log.failure);
    },
    tracingProblem: tracing.problem,
  };
}

/** `users`: what determines the users. */
export function summaryOf(
  { agent, authenticate }: AgentModule,
  settings: Settings,
  users = "authenticate() of the agent's module says who they are",
): string {
  return `Parley ${readVersion()}
  name   ${agent.name}${agent.agent === agent.name ? "" : `\n  agent  ${agent.agent}`}
  model  ${agent.ownRun === undefined ? agent.models.map(modelName).join(", else ") : `none: ${describeRun(agent.ownRun)}`}
  keys   ${kindsOfKeys(settings) || (authenticate ? "none" : "none: anyone who reaches this address can chat")}
${authenticate ? `  users  ${users}\n` : ""}`;
}

/** Reports what an agent of a framework keeps in the process: a warning if other processes answer messages, too. */
export async function sayMemory(
  log: Log,
  folder: string,
  { agent }: AgentModule,
  { workers, redisUrl }: Settings,
): Promise<void> {
  if (agent.ownRun === undefined) return;
  const { memoryInProcess } = await import("../project/process-memory.ts");
  const sentence = memoryInProcess(folder);
  if (sentence === undefined) return;
  if (workers > 1 || redisUrl !== "") log.warning(sentence);
  else log.notice(sentence);
}

function kindsOfKeys({ apiKeys, chatKeys, widgetKeys }: Settings): string {
  const kinds = Object.entries({ api: apiKeys, chat: chatKeys, widget: widgetKeys });
  return kinds
    .filter(([, keys]) => keys.length > 0)
    .map(([kind]) => kind)
    .join(", ");
}

/** The page is opened by the system's own program for links. */
export function openInBrowser(url: string, warn: (sentence: string) => void): void {
  const [command, ...args] =
    process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"];
  const browser = spawn(command as string, [...args, url], { stdio: "ignore", detached: true });
  browser.on("error", () =>
    warn(`No browser could be opened (${command} did not start). Open the address above yourself.`),
  );
  browser.unref();
}
