/** The built command, in a process of its own, with no settings but those of the test. */

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

/** What the build has made; the variable names another folder for it. */
export const DIST = resolve(REPOSITORY, process.env.OUT ?? "dist");

const COMMAND = join(REPOSITORY, "dist/cli.js");

/** Parley as npm installs it, without the packages that are optional, and with these files; returns the path of its command. */
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
  /** Working directory; by default one that holds no project, and that nobody else writes to. */
  cwd?: string;
  /** What nobody reads, from the start on. */
  unread?: "stdout" | "stderr";
  /** What has a reader that takes nothing. */
  stalled?: "stdout" | "stderr";
  /** Path of the command, for one that is installed elsewhere. */
  cli?: string;
  /** Path of another Node than the one that runs the test. */
  node?: string;
  /** Milliseconds that a server may take until it listens; by default `PROCESS_MS`. */
  startMs?: number;
  /** The largest file that it can write, in kilobytes: as if the disk were full behind it. */
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
    // In POSIX's units of 512 bytes.
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

  /** How it ends, whenever that is. */
  get ended(): Promise<CommandEnd> {
    return this.#ended;
  }

  /** How it ended, by itself or by a signal; one that does not is killed. */
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

  /** The first match in what it prints; fails when it ends without one. */
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

/** Starts a server on a free port and waits until it listens; it is killed with the test. */
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

/** `parley dev` on a free port, when it listens; it is killed with the test. */
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

/** Starts it in a terminal of its own, and closes that when it listens. Resolves with its output and its end. */
export async function startInATerminal(args: readonly string[], env: CommandOptions["env"] = {}): Promise<string> {
  const command = [process.execPath, COMMAND, "start", "--port", "0", ...args];
  const options = { env: { PATH: process.env.PATH ?? "", ...env }, timeout: 60_000 };
  const { stdout } = await promisify(execFile)("python3", ["-c", IN_A_TERMINAL, ...command], options);
  return stdout;
}
