/** `parley start` in one process, which does everything. */

import { dirname } from "node:path";
import { announce } from "./announce.ts";
import { type Config, type Flags, secretsOf } from "./config.ts";
import { listen, loadServer } from "./load-server.ts";
import { logOfProcess } from "./log-of-process.ts";
import type { Environment } from "./read-setting.ts";
import { reloadOnHangup } from "./reload.ts";
import { closeWithProcess } from "./shutdown.ts";

/** What the command was told to start. */
export interface StartPlan {
  /** The project's; absent for the demo agent. */
  folder: string | undefined;
  flags: Flags;
  env: Environment;
  config: Config;
  /** Reads the environment's files anew. @throws SetupError */
  readSettings(): Environment;
  /** The built command. */
  cli: string;
  version: string;
}

/** @throws SetupError */
export async function startAlone(plan: StartPlan): Promise<void> {
  const { folder, flags, env, config, readSettings, cli, version } = plan;
  const secrets = secretsOf(env);
  const log = logOfProcess(config.log, secrets);
  const { agent, server } = await loadServer({ folder, env, config, log, built: dirname(cli) });
  const url = await listen(server, config);
  closeWithProcess(server, log);
  const apply = (next: Config) => server.reload(next);
  reloadOnHangup({ env, config, flags, readSettings, apply, secrets, log });
  announce({ version, agent, config, url, log });
}
