/** Runs shell blocks of the documents in a new folder, with this repository in place of the published package. */

import { execFile, spawn } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { post } from "./chat-transports.ts";
import { REPOSITORY } from "./command.ts";
import { PROCESS_MS, within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

const execute = promisify(execFile);

type Environment = Readonly<Record<string, string>>;

/** Runs a block to its end and returns its output. Fails at the first command that fails. */
export async function shell(text: string, options: { cwd?: string; env?: Environment } = {}): Promise<string> {
  const { cwd = REPOSITORY, env = environment() } = options;
  return (await execute("bash", ["--norc", "-ec", text], { cwd, env })).stdout;
}

/** Runs a block whose last command is a server, on a free port; returns the output so far once it listens. */
export async function serve(t: Cleanup, text: string, cwd: string = REPOSITORY, env = environment()): Promise<Served> {
  const child = spawn("bash", ["--norc", "-ec", text], {
    cwd,
    env: { ...env, PORT: "0" },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  const url = new Promise<string>((resolve, reject) => {
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding("utf8").on("data", (piece) => {
        printed += piece;
        const [, found] = /^(http:\/\/\S+)\/(?:#dev=\S+)?$/m.exec(printed) ?? [];
        if (found) resolve(found);
      });
    }
    child.once("close", () => reject(new Error(`the command ended: ${printed}`)));
  });
  t.after(() => {
    // Kills the shell and all its child processes.
    if (child.exitCode === null) process.kill(-(child.pid ?? 0), "SIGKILL");
  });
  return { url: await within(url, "the server's URL", PROCESS_MS), printed };
}

interface Served {
  /** Without a slash at the end. */
  url: string;
  printed: string;
}

/** The environment of a command, without the test runner's variables. */
function environment(tools?: string): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return { PATH: tools === undefined ? PATH : `${tools}:${PATH}`, HOME };
}

/** A new folder in which `npm install` links the packages of this repository and `xdg-open` records its argument. */
export interface NewFolder {
  path: string;
  env: Record<string, string>;
  /** The address that a browser was opened with. */
  opened(): Promise<string>;
}

export async function newFolder(t: Cleanup, files: Readonly<Record<string, string>> = {}): Promise<NewFolder> {
  const path = temporaryProject(t, {
    ...files,
    ".tools/npm": `#!/bin/sh\nexec "${process.execPath}" "${join(REPOSITORY, "test/support/npm-install.mjs")}" "$@"\n`,
    ".tools/xdg-open": '#!/bin/sh\nprintf %s "$1" > .tools/opened\n',
  });
  const tools = join(path, ".tools");
  for (const name of ["npm", "xdg-open"]) chmodSync(join(tools, name), 0o755);
  // A pipe, so that reading it waits until something is written.
  await execute("mkfifo", [join(tools, "opened")]);
  return {
    path,
    env: environment(tools),
    opened: async () => (await within(execute("cat", [join(tools, "opened")]), "a page that is opened")).stdout,
  };
}

/** Sends the agent a message and returns the response. */
export async function ask(url: string, message: string, headers: Record<string, string> = {}): Promise<Response> {
  return post({ url }, { message, stream: false }, { headers });
}
