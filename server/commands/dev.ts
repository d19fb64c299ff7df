/** `parley dev`: serves an agent to the person who writes it, on this machine alone, and reloads it when it changes. */

import { url as inspectorUrl, open as openInspector } from "node:inspector";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { AgentModule } from "../agent/define.ts";
import { unknownNames } from "../config/environment.ts";
import { type Environment, isLoopbackHost } from "../config/settings.ts";
import { projectSecret } from "../dev/folder.ts";
import { DevPage, withDevUsers } from "../dev/page.ts";
import { AgentReloader } from "../dev/reload.ts";
import { Story } from "../dev/story.ts";
import { Supervised, superviseDev } from "../dev/supervisor.ts";
import { Trace } from "../dev/trace.ts";
import { ConfigError } from "../errors.ts";
import type { Log } from "../observe/log.ts";
import { closeOnSignal, listen, onHangup } from "../process-life.ts";
import { ProjectLoader } from "../project/fresh-modules.ts";
import { findProject } from "../project/load-project.ts";
import {
  createProjectServer,
  type OpenedProject,
  openInBrowser,
  openProject,
  type ProjectServer,
  sayMemory,
  summaryOf,
} from "./open-project.ts";

interface DevOptions {
  port: string | undefined;
  /** Opens the page in the browser, if there is a terminal. */
  open: boolean;
  /** Port for a debugger. */
  inspect: string | undefined;
  /** Writes each request to a model, with its answer, to a file of the project. */
  trace: boolean;
}

const LOOPBACK = "127.0.0.1";

/** @throws ConfigError */
export async function devCommand(project: string | undefined, options: DevOptions): Promise<void> {
  const { port, open, inspect, trace } = options;
  const folder = findProject(project ?? ".");
  const supervised = Supervised.here();
  if (supervised === undefined) return superviseDev(folder);
  const { kept } = supervised;
  if (inspect !== undefined) inspectOn(inspect);
  let given: Environment = {};
  const secret = projectSecret(folder);
  const opened = openProject(folder, { port: kept === undefined ? port : String(kept.port) }, (env) => {
    given = env;
    return developing(env, secret);
  });
  Object.assign(process.env, given);
  const loader = new ProjectLoader(folder);
  const { choices, ...loaded } = withDevUsers(await loader.load());
  const page = new DevPage(kept?.token);
  page.choices = choices;
  const parts = { opened, folder, loaded, page, trace };
  const { server, reloadSettings, startWatchdog, tracingProblem } = await createServer(parts);
  const { log } = server;
  log.hide([page.token]);
  const url = await listen(server.http, opened.settings);

  const reloader = new AgentReloader({ folder, loader, server, page, id: loaded.agent.id });
  const settingsFiles = [join(folder, ".env"), given.PARLEY_ENV_FILE?.trim() ?? ""].filter(Boolean);
  supervised.onChange(async (changed) => {
    if (settingsFiles.some((path) => changed.has(path))) reloadSettings(".env");
    await reloader.reload(changed);
    sayServing();
  });
  const { port: boundPort } = server.http.address() as AddressInfo;
  const sayServing = () =>
    supervised.serves({ port: boundPort, token: page.token }, [...reloader.files, ...settingsFiles]);
  sayServing();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => page.close());
  startWatchdog();
  closeOnSignal(server, { isWorker: true, folder });
  onHangup(() => reloadSettings("SIGHUP"));

  const users = choices && `devUsers of the agent's module: ${choices.map(({ label }) => label).join(", ")}`;
  process.stdout.write(`${summaryOf(loaded, opened.settings, users)}\nReloads when a file changes. Ctrl-C stops it.\n`);
  for (const sentence of [hostNote(given), tracingProblem, ...unknownNames(opened.inherited)]) {
    if (sentence !== undefined) log.warning(sentence);
  }
  await sayMemory(log, folder, loaded, opened.settings);
  await supervised.isWatched;
  // After the `#`, which browsers do not send to a server.
  const address = `${url}#dev=${page.token}`;
  process.stdout.write(`${address}\n`);
  if (open && kept === undefined && process.stdout.isTTY && !process.env.CI) openInBrowser(address, log.warning);
}

/** The environment as `parley dev` needs it. @throws ConfigError */
function developing(env: Environment, secret: string): Environment {
  if (env.PARLEY_TRUSTED_PROXIES?.trim()) {
    throw new ConfigError(
      "parley dev serves this machine alone, so no proxy may pass requests on. Remove PARLEY_TRUSTED_PROXIES, or use parley start.",
    );
  }
  const { PARLEY_STATE_SECRET: own } = env;
  return {
    ...env,
    HOST: isLoopbackHost(env.HOST?.trim() ?? "") ? env.HOST : LOOPBACK,
    // The developer's own secret signs; the project's still verifies what it has signed.
    PARLEY_STATE_SECRET: own?.trim() ? `${own},${secret}` : (own ?? secret),
    PARLEY_LOG: env.PARLEY_LOG?.trim() || "pretty",
  };
}

function hostNote({ HOST }: Environment): string | undefined {
  if (!HOST?.trim() || isLoopbackHost(HOST.trim())) return undefined;
  return `HOST is ${HOST.trim()}, but parley dev listens on ${LOOPBACK} only. To serve other machines, use parley start.`;
}

interface DevServerParts {
  opened: OpenedProject;
  folder: string;
  loaded: AgentModule;
  page: DevPage;
  trace: boolean;
}

async function createServer({ opened, folder, loaded, page, trace }: DevServerParts): Promise<ProjectServer> {
  const hasColors = process.stderr.isTTY && !process.env.NO_COLOR;
  const write = (text: string) => void process.stderr.write(text);
  const isForPeople = opened.settings.log === "pretty";
  let story: Story | undefined;
  const createStory = (log: Log): Story => {
    story = new Story({ folder, log, hasColors, write });
    return story;
  };
  const { model } = loaded.agent;
  return createProjectServer(opened, loaded, {
    isDev: true,
    routes: () => page.routes,
    guard: page.guard,
    story: isForPeople ? createStory : undefined,
    sinks: trace
      ? (log) => [new Trace({ folder, model, log, onTraced: (request) => story?.request(request) })]
      : undefined,
  });
}

/** @throws ConfigError */
function inspectOn(port: string): void {
  const number = /^\d{1,5}$/.test(port) ? Number(port) : Number.NaN;
  if (!(number <= 65_535)) throw new ConfigError(`--inspect must be a port from 0 to 65535, but is "${port}".`);
  openInspector(number, LOOPBACK);
  if (inspectorUrl() !== undefined) return;
  throw new ConfigError(`A debugger cannot connect to port ${port}. Choose another, such as --inspect=0.`);
}
