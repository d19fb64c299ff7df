/** `parley start`: serves the agent of a project's folder. */

import cluster from "node:cluster";
import type { AgentModule } from "../agent/define.ts";
import { approvalNotice, signerOf, stateSecretWarning } from "../agent/served-agent.ts";
import { unknownNames } from "../config/environment.ts";
import { memoryAdvice } from "../config/memory.ts";
import { type Flags, isLoopbackHost, isPublic, type Settings } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import { closeOnSignal, listen, onHangup } from "../process-life.ts";
import { findProject, loadProject, projectHere } from "../project/load-project.ts";
import {
  createProjectServer,
  type OpenedProject,
  openInBrowser,
  openProject,
  sayMemory,
  summaryOf,
} from "./open-project.ts";

/** Without a `project`, the agent in the working directory is served or, where there is none, the demo agent. @throws ConfigError */
export async function startCommand(
  project: string | undefined,
  flags: Flags,
  { open }: { open: boolean },
): Promise<void> {
  const folder = project === undefined ? await projectHere() : findProject(project);
  const isWorker = isSupervised();
  const opened = openProject(folder, flags);
  const { settings } = opened;
  if (settings.workers > 1 && cluster.isPrimary) {
    refuseWithoutRedis(settings);
    const { superviseWorkers } = await import("./workers.ts");
    return superviseWorkers(settings.workers, { [SUPERVISOR]: String(process.pid) });
  }
  // The agent's module reads its own variables while it is imported, and so do the packages of providers.
  Object.assign(process.env, opened.env);
  const loaded = await (folder === undefined ? loadDemo() : loadProject(folder));
  const { server, reloadSettings, startWatchdog, tracingProblem } = await createProjectServer(opened, loaded, {
    isWorker,
  });
  // Before it listens: from then on the supervisor of workers forwards SIGHUP.
  onHangup(() => reloadSettings("SIGHUP"));
  const url = await listen(server.http, settings);
  startWatchdog();
  closeOnSignal(server, { isWorker, folder });
  // If there are several workers, only the first one prints the summary, the warnings and the URL.
  if (isWorker && cluster.worker?.id !== 1) return;
  process.stdout.write(summaryOf(loaded, settings) + (folder === undefined ? DEMO_NOTE : ""));
  for (const warning of warningsOf(opened, loaded)) server.log.warning(warning);
  if (tracingProblem !== undefined) server.log.warning(tracingProblem);
  if (folder !== undefined) await sayMemory(server.log, folder, loaded, settings);
  // Alone on the last line, for people to click and programs to read.
  process.stdout.write(`${url}\n`);
  if (open) openInBrowser(url, server.log.warning);
}

/** Variable with the supervisor's process id: in another program's cluster, such as pm2's, `cluster.isWorker` is true, too. */
const SUPERVISOR = "PARLEY_SUPERVISOR";

/** Whether `superviseWorkers` has started this process. The programs that a project starts do not inherit the answer. */
function isSupervised(): boolean {
  const supervisor = process.env[SUPERVISOR];
  delete process.env[SUPERVISOR];
  return supervisor === String(process.ppid);
}

async function loadDemo(): Promise<AgentModule> {
  const { demoAgent } = await import("../project/demo-agent.ts");
  return { agent: demoAgent() };
}

/** Warnings about what is unsafe, lost when the process ends, or ignored, and what to do about it. */
export function warningsOf({ folder, settings, inherited }: OpenedProject, loaded: AgentModule): string[] {
  return [
    ...publicWarnings(settings, signerOf(loaded) !== undefined),
    stateSecretWarning(loaded, settings),
    folder === undefined ? undefined : approvalNotice(loaded, settings),
    memoryAdvice(settings),
    ...unknownNames(inherited),
  ].filter((warning) => typeof warning === "string");
}

/** @throws ConfigError */
function refuseWithoutRedis({ redisUrl, workers }: Settings): void {
  if (redisUrl !== "") return;
  throw new ConfigError(
    `${workers} workers need Redis to share runs and limits. Set PARLEY_REDIS_URL, or start without --workers and PARLEY_WORKERS.`,
  );
}

const DEMO_NOTE = "\nThere is no agent.ts in this folder, so the demo agent is served.\n";

/** Below this, a key or secret can be guessed: 20 random characters are some 100 bits. */
const MIN_KEY_CHARS = 20;

const isShort = (secret: string): boolean => secret.length < MIN_KEY_CHARS;

/** What is unsafe if other machines can reach the server, and what to set. */
function publicWarnings(settings: Settings, alwaysSigns: boolean): (string | false)[] {
  if (!isPublic(settings)) return [];
  const { host, apiKeys, chatKeys, widgetKeys, allowedOrigins, stateSecrets } = settings;
  const keys = { PARLEY_API_KEY: apiKeys, PARLEY_CHAT_KEY: chatKeys, PARLEY_WIDGET_KEY: widgetKeys };
  const short = Object.entries(keys).flatMap(([name, list]) => (list.some(isShort) ? [name] : []));
  const why = isLoopbackHost(host) ? "PARLEY_TRUSTED_PROXIES is set" : `HOST is ${host}`;
  return [
    !settings.requiresKey &&
      `Other machines can reach this server (${why}) and chat without a key. Set PARLEY_API_KEY, PARLEY_CHAT_KEY or PARLEY_WIDGET_KEY.`,
    short.length > 0 &&
      `A key of fewer than ${MIN_KEY_CHARS} characters can be guessed: ${short.join(", ")}. Make one with: openssl rand -hex 24`,
    widgetKeys.length > 0 &&
      allowedOrigins.length === 0 &&
      "Any site can use the widget key. Set PARLEY_ALLOWED_ORIGINS to the sites that may.",
    stateSecrets.length === 0 &&
      !alwaysSigns &&
      "Clients can change the conversations that they send back. Set PARLEY_STATE_SECRET to sign them; make one with: openssl rand -hex 32",
    stateSecrets.some(isShort) &&
      `A PARLEY_STATE_SECRET has fewer than ${MIN_KEY_CHARS} characters and can be guessed. Make one with: openssl rand -hex 32`,
  ];
}
