/** Installs the packages of this folder's lists, each list in a new folder. */

import { execFileSync } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { REPOSITORY } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";

const LISTS = { 20: "test/doors", 22: "test/doors/node-22", promptfoo: "test/doors/promptfoo" };

/** Without messages, and without running packages' scripts. */
const NPM = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/** Runs npm in a folder; retries once if a registry did not answer. */
export const npm = (cwd: string, ...args: string[]): Promise<unknown> =>
  twice(() => execFileSync("npm", [...args, ...NPM], { cwd }));

/** Installs a list and Parley, optionally with the files of a folder; returns the path. */
export async function install(list: keyof typeof LISTS, programs?: string, ...options: string[]): Promise<string> {
  const root = temporaryProject({ after } as Cleanup, { "list/.keep": "" });
  const folder = join(root, "list");
  for (const name of ["package.json", "package-lock.json"]) cpSync(join(LISTS[list], name), join(folder, name));
  if (programs !== undefined) cpSync(programs, folder, { recursive: true });
  await npm(folder, "ci", ...options);
  symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));
  return folder;
}
