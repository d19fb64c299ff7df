/** `parley start` as a user runs it: the built command in a process of its own. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

const COMMAND = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

export interface SpawnedServer {
  /** Of the page, as printed; ends with "/". */
  url: string;
  /** Host name and port. */
  host: string;
  /** Everything printed on standard output. */
  output: string;
}

/**
 * Starts the command on a free port and stops it after the test. It gets none of the developer's own
 * settings. Rejects with what the command printed when it ends instead of listening.
 */
export async function spawnParley(
  t: Pick<TestContext, "after">,
  project: string | undefined,
  env: Record<string, string> = {},
): Promise<SpawnedServer> {
  const args = ["start", ...(project === undefined ? [] : [project]), "--port", "0"];
  const child = spawn(process.execPath, [COMMAND, ...args], {
    cwd: REPOSITORY,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let output = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [, found] = /^(http:\S+)\n$/m.exec(output) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once("close", () => reject(new Error(`parley ended: ${output}${errors}`)));
  });
  return { url, host: new URL(url).host, output };
}
