/** What the command starts. What each start needs is in one file of the build: see `build/late-files.mjs`. */

import type { Flags } from "./config.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { startCommand } from "./start-command.ts";
import { WORKER_COMMAND } from "./worker-command.ts";

/** What was typed, but for a call for help. */
export interface Typed {
  /** The command, and what follows it. */
  readonly words: readonly string[];
  readonly flags: Flags;
  /** The built command. */
  readonly cli: string;
  readonly version: string;
}

/** @throws SetupError */
export async function runCommand({ words, flags, cli, version }: Typed): Promise<void> {
  const [command, project, ...extra] = words;
  // How the primary process starts its workers; of no use to anybody else.
  if (command === WORKER_COMMAND && (await import("node:cluster")).default.isWorker) {
    const { startWorker } = await import("./start-worker.ts");
    return startWorker(cli);
  }
  if (command !== "start") {
    throw new SetupError(`There is no command "${command}". See parley --help.`);
  }
  if (extra.length > 0) throw new SetupError("Give one project only: parley start <project>.");
  await startCommand({ project, flags, cli, version });
}
