/** `parley start`: from a project's folder to a server that listens. */

import { spawn } from "node:child_process";
import cluster from "node:cluster";
import type { Agent } from "../agent/define.ts";
import { readEnvironment, unknownNames } from "../config/environment.ts";
import { isLoopbackHost, isPublic } from "../config/exposure.ts";
import { memoryAdvice } from "../config/memory.ts";
import { loadIfInstalled, loadOptionalPackage } from "../config/optional-package.ts";
import { type Flags, readSettings, requiresKey, type Settings } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import type { OpenTelemetry } from "../observe/tracing.ts";
import { Watchdog } from "../observe/watchdog.ts";
import { demoAgent } from "../project/demo-agent.ts";
import { findProject, loadAgent, projectHere } from "../project/load-project.ts";
import { ownThread, publicFolder, readVersion } from "../project/own-files.ts";
import { reloadOnHangup } from "../reload.ts";
import { createParleyServer } from "../server.ts";
import { closeOnSignal, listen } from "../start.ts";
import { isSupervised, superviseWorkers } from "./workers.ts";

/** Without a `project`, the agent in the working directory is served or, where there is none, the demo agent. @throws ConfigError */
export async function startCommand(
  project: string | undefined,
  flags: Flags,
  { open }: { open: boolean },
): Promise<void> {
  const folder = project === undefined ? projectHere() : findProject(project);
  const isWorker = isSupervised();
  const inherited = { ...process.env };
  const env = readEnvironment(inherited, folder);
  const settings = readSettings(env, flags);
  if (settings.workers > 1 && cluster.isPrimary) {
    refuseWithoutRedis(settings);
    return superviseWorkers(settings.workers);
  }
  // The agent's module reads its own variables while it is imported, and so do the packages of providers.
  Object.assign(process.env, env);
  const watchdog = new Watchdog();
  const agent = folder === undefined ? demoAgent() : watched(await loadAgent(folder), watchdog);
  const tracing = loadOpenTelemetry(folder);
  const server = await createParleyServer({
    agent,
    settings,
    env,
    publicFolder,
    loadPackage: (name) => loadOptionalPackage(name, folder),
    openTelemetry: tracing.api,
    isWorker,
  });
  // Before it listens: from then on the supervisor of workers hands SIGHUP on.
  reloadOnHangup({ server, settings, env, read: () => readEnvironment(inherited, folder), flags });
  const url = await listen(server.http, settings);
  // Only a project has code that could block the process.
  if (folder !== undefined) {
    watchdog.start(ownThread("server/observe/watchdog-thread.ts"), settings, server.log.failure);
  }
  closeOnSignal(server, { isWorker, folder });
  // Of several workers the first one speaks for all.
  if (isWorker && cluster.worker?.id !== 1) return;
  process.stdout.write(summaryOf(agent, settings) + (folder === undefined ? DEMO_NOTE : ""));
  const warnings = [...publicWarnings(settings), memoryAdvice(settings), tracing.problem, ...unknownNames(inherited)];
  for (const warning of warnings) if (warning !== undefined) server.log.warning(warning);
  // Alone on the last line, for people to click and programs to read.
  process.stdout.write(`${url}\n`);
  if (open) openInBrowser(url, server.log.warning);
}

function watched(agent: Agent, watchdog: Watchdog): Agent {
  return { ...agent, tools: watchdog.watch(agent.tools) };
}

/** The page is opened by the system's own program for links. */
function openInBrowser(url: string, warn: (sentence: string) => void): void {
  const [command, ...args] =
    process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"];
  const browser = spawn(command as string, [...args, url], { stdio: "ignore", detached: true });
  browser.on("error", () => warn(`No browser could be opened (${command} did not start). Open ${url} yourself.`));
  browser.unref();
}

/** @throws ConfigError */
function refuseWithoutRedis({ redisUrl, workers }: Settings): void {
  if (redisUrl !== "") return;
  throw new ConfigError(
    `${workers} workers need Redis to share runs and limits. Set PARLEY_REDIS_URL, or start without --workers and PARLEY_WORKERS.`,
  );
}

/** A broken package is a warning: the server works without it. */
function loadOpenTelemetry(folder: string | undefined): { api?: OpenTelemetry | undefined; problem?: string } {
  try {
    return { api: loadIfInstalled("@opentelemetry/api", folder) as OpenTelemetry | undefined };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

const DEMO_NOTE = "\nThere is no agent.ts in this folder, so the demo agent is served.\n";

function summaryOf(agent: Agent, settings: Settings): string {
  return `Parley ${readVersion()}
  name   ${agent.name}
  agent  ${agent.agent}
  model  ${[agent.model, ...agent.fallbacks].join(", else ")}
  keys   ${kindsOfKeys(settings) || "none: anyone who reaches this address can chat"}
`;
}

function kindsOfKeys({ apiKeys, chatKeys, widgetKeys }: Settings): string {
  const kinds = Object.entries({ api: apiKeys, chat: chatKeys, widget: widgetKeys });
  return kinds
    .filter(([, keys]) => keys.length > 0)
    .map(([kind]) => kind)
    .join(", ");
}

/** Below this, a key or secret can be guessed: 20 random characters are some 100 bits. */
const MIN_KEY_CHARS = 20;

const isShort = (secret: string): boolean => secret.length < MIN_KEY_CHARS;

/** What is unsafe where other machines reach the server, and what to set. */
function publicWarnings(settings: Settings): string[] {
  if (!isPublic(settings)) return [];
  const { host, apiKeys, chatKeys, widgetKeys, allowedOrigins, stateSecrets } = settings;
  const warnings = [];
  if (!requiresKey(settings)) {
    const why = isLoopbackHost(host) ? "PARLEY_TRUSTED_PROXIES is set" : `HOST is ${host}`;
    warnings.push(
      `Other machines can reach this server (${why}) and chat without a key. Set PARLEY_API_KEY, PARLEY_CHAT_KEY or PARLEY_WIDGET_KEY.`,
    );
  }
  if ([apiKeys, chatKeys, widgetKeys].flat().some(isShort)) {
    warnings.push(
      `A key has fewer than ${MIN_KEY_CHARS} characters and can be guessed. Make one with: openssl rand -hex 24`,
    );
  }
  if (widgetKeys.length > 0 && allowedOrigins.length === 0) {
    warnings.push("Any site can use the widget key. Set PARLEY_ALLOWED_ORIGINS to the sites that may.");
  }
  if (stateSecrets.length === 0) {
    warnings.push(
      "Clients can change the conversations that they send back. Set PARLEY_STATE_SECRET to sign them; make one with: openssl rand -hex 32",
    );
  }
  if (stateSecrets.some(isShort)) {
    warnings.push(
      `A PARLEY_STATE_SECRET has fewer than ${MIN_KEY_CHARS} characters and can be guessed. Make one with: openssl rand -hex 32`,
    );
  }
  return warnings;
}
