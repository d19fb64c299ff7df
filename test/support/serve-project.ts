/** Serves a project like `parley start`, but in this process: starting another process takes a second. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createProjectServer, openProject, summaryOf } from "../../server/commands/open-project.ts";
import { warningsOf } from "../../server/commands/start.ts";
import { readEnvironment } from "../../server/config/environment.ts";
import { demoAgent } from "../../server/project/demo-agent.ts";
import { findProject, loadProject } from "../../server/project/load-project.ts";
import { atEnd, setEnvironment } from "./at-end.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

export interface ServedProject {
  /** Without a slash at the end. */
  url: string;
  host: string;
  socketUrl: string;
  /** The summary that `parley start` prints. */
  summary: string;
  /** The warnings that `parley start` prints. */
  warnings: string[];
  /** The records that the server has logged. */
  log: readonly string[];
}

/** `project`: files, a folder, or none for the demo. The environment is `env` plus the project's `.env`. */
export async function serveProject(
  t: Cleanup,
  project?: Readonly<Record<string, string>> | string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServedProject> {
  const folder = typeof project === "object" ? temporaryProject(t, project) : project && findProject(project);
  const quiet = { PARLEY_DRAIN_SECONDS: "0", PARLEY_LOG: "json", ...env };
  const opened = openProject(folder, {}, () => readEnvironment(quiet, folder));
  // The agent's module reads variables of its own.
  setEnvironment(t, opened.env as Record<string, string>);
  const loaded = folder === undefined ? { agent: demoAgent() } : await loadProject(folder);
  const log: string[] = [];
  const { server } = await createProjectServer(opened, loaded, { logSink: (record) => log.push(record) });
  atEnd(t, () => server.drain());
  server.http.listen(0, "127.0.0.1");
  await once(server.http, "listening");
  const host = `127.0.0.1:${(server.http.address() as AddressInfo).port}`;
  const told = { summary: summaryOf(loaded, opened.settings), warnings: warningsOf(opened, loaded), log };
  return { url: `http://${host}`, host, socketUrl: `ws://${host}/ws/chat`, ...told };
}
