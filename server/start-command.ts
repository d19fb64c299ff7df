/** `parley start`: from what was typed to a server that answers. */

import type { Flags } from "./config.ts";
import { readConfig } from "./config.ts";
import { findProject, projectHere } from "./project/load-project.ts";
import { readEnvironment } from "./read-environment.ts";
import { startAlone } from "./start-alone.ts";

export interface StartCommand {
  /** As it was typed; absent for the agent in the working directory or, where there is none, the demo agent. */
  project: string | undefined;
  flags: Flags;
  /** The built command. */
  cli: string;
  version: string;
}

/** @throws SetupError */
export async function startCommand({ project, flags, cli, version }: StartCommand): Promise<void> {
  const folder = project === undefined ? projectHere() : findProject(project);
  const inherited = { ...process.env };
  const readSettings = () => readEnvironment(inherited, folder);
  const env = readSettings();
  const config = readConfig(flags, env);
  const plan = { folder, flags, env, config, readSettings, cli, version };
  if (config.workers === 1) return startAlone(plan);
  const { startPrimary } = await import("./start-primary.ts");
  await startPrimary(plan);
}
