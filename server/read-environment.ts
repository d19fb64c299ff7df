/** The settings of a process: its environment, and the files that fill in what is not set there. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readEnvFile } from "./project/load-project.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { type Environment, text } from "./read-setting.ts";

/**
 * What is set already wins over the file that `PARLEY_ENV_FILE` names, and that over `.env` in the project's folder.
 * The files are read anew each time. @throws SetupError
 */
export function readEnvironment(env: Environment, folder: string | undefined): Environment {
  const project = folder === undefined ? undefined : join(folder, ".env");
  const extra = text(env, "PARLEY_ENV_FILE");
  if (extra !== undefined && !existsSync(extra)) {
    throw new SetupError("PARLEY_ENV_FILE names a file that is not there.");
  }
  return {
    ...(project !== undefined && existsSync(project) ? readEnvFile(project) : {}),
    ...(extra === undefined ? {} : readEnvFile(extra)),
    ...env,
  };
}
