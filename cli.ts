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

  project         Folder that holds agent.ts (or .mts, .js, .mjs) and perhaps .env.
                  Without it, the agent in the working directory is served or, where there
                  is none, the built-in demo agent: no key, no network.

Options
  --port <port>   Port to listen on; 0 takes a free one. Environment: PORT.
  --host <host>   Address to listen on; 0.0.0.0 is every one. Environment: HOST.
  --workers <n>   Processes that share the port, or auto: one for each processor. Needs Redis.
                  Environment: PARLEY_WORKERS, PARLEY_REDIS_URL.
  --open          Open the chat page in the browser.
  -h, --help      Show this text.
  -v, --version   Show the version.
`;

async function main(argv: string[]): Promise<void> {
  const { values, positionals } = readArguments(argv);
  const [command, project, ...extra] = positionals;
  if (values.version) return print(`${readVersion()}\n`);
  if (values.help || command === undefined || command === "help") return print(HELP);
  if (command !== "start") throw new ConfigError(`There is no command "${command}". ${adviceFor(command)}`);
  if (extra.length > 0) throw new ConfigError("Give one project only: parley start <project>.");
  refuseSwallowedOption(project);
  await startCommand(
    project,
    { port: values.port, host: values.host, workers: values.workers },
    { open: values.open === true },
  );
}

function adviceFor(command: string): string {
  const isPath = /[/\\.]/.test(command) || existsSync(command);
  return isPath ? `Did you mean: parley start ${command}?` : "See parley --help.";
}

/** npm takes options before `--` for itself, and hands on their values alone. @throws ConfigError */
function refuseSwallowedOption(project: string | undefined): void {
  if (project === undefined || process.env.npm_lifecycle_event !== "start" || existsSync(project)) return;
  const option = ["port", "host"].find((name) => process.env[`npm_config_${name}`] !== undefined);
  if (option === undefined) return;
  throw new ConfigError(`npm kept --${option} for itself. Write "npm start -- --${option} ${project}".`);
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
    throw new ConfigError(`${problem ?? "These options are not known"}. See parley --help.`);
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
