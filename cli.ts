#!/usr/bin/env node
/** The command `parley`: arguments in, a running server or one sentence out. */

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { startCommand } from "./server/commands/start.ts";
import { ConfigError } from "./server/errors.ts";
import { readVersion } from "./server/project/own-files.ts";

const HELP = `parley - serve one AI agent over REST, SSE and WebSocket, with a chat page and a widget

Usage
  parley start [project] [--port 8080] [--host 127.0.0.1] [--workers 1] [--open]

  project         Folder with an agent.ts (or .mts, .js, .mjs) and, if needed, a .env file.
                  Default: the working directory or, if it has no agent, a built-in demo
                  agent that needs no key and no network.

Options
  --port <port>   Port to listen on; 0 picks a free one. Environment: PORT.
  --host <host>   Address to listen on; 0.0.0.0 lets other machines connect. Environment: HOST.
  --workers <n>   Number of processes that share the port; auto starts one per processor.
                  More than one needs Redis. Environment: PARLEY_WORKERS, PARLEY_REDIS_URL.
  --open          Open the chat page in your browser.
  -h, --help      Show this text.
  -v, --version   Show the version.

Examples
  parley start --open
  parley start ./my-agent --port 3000
`;

async function main(argv: string[]): Promise<void> {
  const { values, positionals } = readArguments(argv);
  const [command, project, ...extra] = positionals;
  if (values.version) return print(`${readVersion()}\n`);
  if (values.help || command === undefined || command === "help") return print(HELP);
  if (command !== "start") throw new ConfigError(`There is no command "${command}". ${adviceFor(command)}`);
  if (extra.length > 0) throw new ConfigError("Too many arguments: parley start takes one project folder.");
  refuseSwallowedOption(project, values);
  await startCommand(
    project,
    { port: values.port, host: values.host, workers: values.workers },
    { open: values.open === true },
  );
}

function adviceFor(command: string): string {
  const isPath = /[/\\.]/.test(command) || existsSync(command);
  return isPath ? `Did you mean: parley start ${command}?` : "Use: parley start. See parley --help.";
}

/** npm takes options before `--` for itself, and hands on their values alone, or with `--port=80` nothing. @throws ConfigError */
function refuseSwallowedOption(project: string | undefined, given: { port?: string; host?: string }): void {
  if (process.env.npm_lifecycle_event !== "start" || (project !== undefined && existsSync(project))) return;
  const swallowed = (name: string) => process.env[`npm_config_${name}`];
  const option = (["port", "host"] as const).find((name) => swallowed(name) !== undefined && given[name] === undefined);
  if (option === undefined) return;
  const value = project ?? swallowed(option);
  throw new ConfigError(`npm kept --${option} for itself. Write "npm start -- --${option} ${value}".`);
}

function readArguments(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        port: { type: "string" },
        host: { type: "string" },
        open: { type: "boolean" },
        workers: { type: "string" },
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
      },
    });
  } catch (error) {
    const [problem] = error instanceof Error ? error.message.split(/[.\n]/, 1) : [];
    throw new ConfigError(`${problem ?? "The options cannot be read"}. See parley --help.`);
  }
}

function print(text: string): void {
  process.stdout.write(text);
}

/** The program that reads a stream may go away. That ends no conversation. */
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  process.stderr.write(`parley: ${error instanceof ConfigError ? message : stack}\n`);
  process.exit(1);
});
