/** Runs the built command in a process of its own, with only the settings of the test. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PROCESS_MS, within } from "./deadline.ts";
import type { Cleanup } from "./start-server.ts";
import { temporaryProject } from "./temporary-project.ts";

export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** The output folder of the build; the variable `OUT` names another one. */
export const DIST = resolve(REPOSITORY, process.env.OUT ?? "dist");

const COMMAND = join(REPOSITORY, "dist/cli.js");

/** Parley as npm installs it, without optional packages, plus these files; returns the path of its command. */
export function installed(t: Cleanup, files: Readonly<Record<string, string>> = {}): string {
  const manifest = readFileSync(join(REPOSITORY, "package.json"), "utf8");
  const folder = temporaryProject(t, { "package.json": manifest, ...files });
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), { recursive: true });
  for (const name of Object.keys(JSON.parse(manifest).dependencies)) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(REPOSITORY, "node_modules", name), link);
  }
  return join(folder, "dist/cli.js");
}

export interface CommandOptions {
  env?: Readonly<Record<string, string>>;
  /** Working directory. Default: a folder without a project that nothing else writes to. */
  cwd?: string;
  /** An output that is never read and whose pipe is closed. */
  unread?: "stdout" | "stderr";
  /** An output whose pipe stays open but is never read. */
  stalled?: "stdout" | "stderr";
  /** Path of the command, if not the built one. */
  cli?: string;
  /** Path of the Node to run with, if not the one that runs the test. */
  node?: string;
  /** Time that a server may take until it listens, in milliseconds. Default: `PROCESS_MS`. */
  startMs?: number;
  /** Maximum size of a file that the command can write, in kilobytes: simulates a full disk. */
  maxFileKilobytes?: number;
}

export interface CommandEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A command that is running. */
export class Command {
  readonly #child: ChildProcess;
  readonly #ended: Promise<CommandEnd>;
  readonly #output = { stdout: "", stderr: "" };
  #wake: (() => void) | undefined;

  constructor(args: readonly string[], options: CommandOptions) {
    const { env = {}, cwd = join(REPOSITORY, "test"), cli = COMMAND, unread, stalled } = options;
    const { maxFileKilobytes } = options;
    const node = [options.node ?? process.execPath, cli, ...args];
    // `ulimit -f` counts units of 512 bytes.
    const limit = maxFileKilobytes && `ulimit -f ${2 * maxFileKilobytes} && exec "$@"`;
    const [program = "", ...rest] = limit ? ["sh", "-c", limit, "sh", ...node] : node;
    this.#child = spawn(program, rest, {
      cwd,
      env: { PATH: process.env.PATH ?? "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    if (unread !== undefined) this.#child[unread]?.destroy();
    for (const name of (["stdout", "stderr"] as const).filter((each) => each !== stalled)) {
      this.#child[name]?.setEncoding("utf8").on("data", (text: string) => {
        this.#output[name] += text;
        this.#wake?.();
      });
    }
    this.#ended = once(this.#child, "close").then(([code]) => ({ code, ...this.#output }));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  get stderr(): string {
    return this.#output.stderr;
  }

  /** Resolves when the command ends, without a time limit. */
  get ended(): Promise<CommandEnd> {
    return this.#ended;
  }

  /** Waits until the command ends; kills it after `PROCESS_MS`. */
  async end(): Promise<CommandEnd> {
    try {
      return await within(this.#ended, "the end of the command", PROCESS_MS);
    } finally {
      this.kill("SIGKILL");
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits for a match in the output; fails if the command ends without one. */
  async printed(name: "stdout" | "stderr", pattern: RegExp, ms = PROCESS_MS): Promise<string> {
    for (;;) {
      const match = pattern.exec(this.#output[name]);
      if (match !== null) return match[1] ?? match[0];
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const ended = this.#ended.then((end) => {
        throw new Error(`the command ended: ${JSON.stringify(end)}`);
      });
      await within(Promise.race([woken, ended]), String(pattern), ms);
    }
  }
}

/** Runs a command to its end. */
export function run(args: readonly string[], options: CommandOptions = {}): Promise<CommandEnd> {
  return new Command(args, options).end();
}

export interface StartedCommand {
  command: Command;
  /** Without a slash at the end. */
  url: string;
  /** Host name and port. */
  host: string;
  socketUrl: string;
}

/** Starts a server on a free port and waits until it listens; it is killed at the end of the test. */
export async function start(
  t: Cleanup,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<StartedCommand> {
  const command = new Command(["start", ...args], { ...options, env: { PORT: "0", ...options.env } });
  t.after(async () => {
    command.kill("SIGKILL");
    await command.end();
  });
  const url = await command.printed("stdout", /^(http:\/\/\S+)\/\n$/m, options.startMs);
  const { host } = new URL(url);
  return { command, url, host, socketUrl: `ws://${host}/ws/chat` };
}

/** Starts `parley dev` on a free port and waits until it listens; it is killed at the end of the test. */
export async function startDev(
  t: Cleanup,
  folder: string,
  { env = {}, args = [], ...options }: CommandOptions & { args?: readonly string[] } = {},
) {
  const command = new Command(["dev", folder, ...args], { ...options, env: { PORT: "0", ...env } });
  t.after(async () => {
    command.kill("SIGKILL");
    await command.end();
  });
  const page = await command.printed("stdout", /^(http:\/\/\S+#dev=\S+)\n$/m);
  const [url = "", token = ""] = page.split("/#dev=");
  const write = (name: string, text: string) => {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const info = async () => (await fetch(`${url}/api/info`)).json();
  return { command, url, token, write, info, socketUrl: `${url.replace("http", "ws")}/ws/chat` };
}

const IN_A_TERMINAL = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
output = b""
while b"http://" not in output:
    output += os.read(terminal, 4096)
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(output.decode(), "ended with", os.waitstatus_to_exitcode(status))
`;

/** Starts the command in its own terminal, which closes once it listens. Resolves with the output and exit code. */
export async function startInATerminal(args: readonly string[], env: CommandOptions["env"] = {}): Promise<string> {
  const command = [process.execPath, COMMAND, "start", "--port", "0", ...args];
  const options = { env: { PATH: process.env.PATH ?? "", ...env }, timeout: 60_000 };
  const { stdout } = await promisify(execFile)("python3", ["-c", IN_A_TERMINAL, ...command], options);
  return stdout;
}
