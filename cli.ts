#!/usr/bin/env node
/** The command `parley`: runs a command, or prints one sentence that says what is wrong. */

import { existsSync } from "node:fs";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { startCommand } from "./server/commands/start.ts";
import { secretsOf, strike } from "./server/config/secrets.ts";
import { ConfigError, UsageError } from "./server/errors.ts";
import { readVersion } from "./server/project/own-files.ts";

/** One command of `parley`. */
interface Command {
  /** Its arguments and options, as people write them. */
  usage: string;
  /** What it does, in one line. */
  summary: string;
  options: ParseArgsConfig["options"] & {};
  /** What an option stands for without its value, if the value may be omitted. */
  bare?: Readonly<Record<string, string>>;
  run(project: string | undefined, values: Values): Promise<void>;
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

const COMMANDS: Readonly<Record<string, Command>> = {
  start: {
    usage: "start [project] [--port 8080] [--host 127.0.0.1] [--workers 1] [--open]",
    summary: "Serves an agent.",
    options: {
      port: { type: "string" },
      host: { type: "string" },
      workers: { type: "string" },
      open: { type: "boolean" },
    },
    run: (project, { port, host, workers, open }) =>
      startCommand(project, { port: text(port), host: text(host), workers: text(workers) }, { open: open === true }),
  },
  dev: {
    usage: "dev [project] [--port 8080] [--no-open] [--trace] [--inspect[=9229]]",
    summary: "Serves an agent while you write it, and reloads it when a file changes.",
    options: {
      port: { type: "string" },
      "no-open": { type: "boolean" },
      trace: { type: "boolean" },
      inspect: { type: "string" },
    },
    bare: { "--inspect": "--inspect=9229" },
    async run(project, { port, "no-open": closed, inspect, trace }) {
      const { devCommand } = await import("./server/commands/dev.ts");
      const options = { port: text(port), open: closed !== true, inspect: text(inspect), trace: trace === true };
      await devCommand(project, options);
    },
  },
};

const EVERYWHERE = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;

async function main([name, ...args]: string[]): Promise<void> {
  if (name === "--version" || name === "-v") return print(`${readVersion()}\n`);
  if (name === undefined || ["help", "--help", "-h"].includes(name)) return print(overview());
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw new UsageError(`There is no command "${name}". ${adviceFor(name)}`);
  const { values, positionals } = readArguments(name, args, command);
  if (values.version) return print(`${readVersion()}\n`);
  if (values.help) return print((await import("./server/commands/help.ts")).helpOf(name, command));
  const [project, ...extra] = positionals;
  if (extra.length > 0) throw new UsageError(`Too many arguments: parley ${name} takes one project folder.`);
  if (process.env.npm_command !== undefined) (await import("./server/commands/npm.ts")).endWithNpm();
  await command.run(project, values);
}

function overview(): string {
  const rows = Object.values(COMMANDS).map(({ usage, summary }) => `  parley ${usage}\n      ${summary}\n`);
  return `parley - serve one AI agent over REST, SSE and WebSocket, with a chat page and a widget

Commands
${rows.join("")}
Options
  -h, --help      Show the help, also of a command: parley start --help.
  -v, --version   Show the version.
`;
}

function adviceFor(command: string): string {
  const isPath = /[/\\.]/.test(command) || existsSync(command);
  return isPath ? `Did you mean: parley start ${command}?` : "See parley --help.";
}

/** @throws UsageError */
function readArguments(name: string, given: string[], { options, bare = {} }: Command) {
  try {
    const args = given.map((arg) => (Object.hasOwn(bare, arg) ? (bare[arg] ?? arg) : arg));
    return parseArgs({ args, allowPositionals: true, options: { ...options, ...EVERYWHERE } });
  } catch (error) {
    const [problem] = error instanceof Error ? error.message.split(/[.\n]/, 1) : [];
    throw new UsageError(`${problem ?? "The options cannot be read"}. See parley ${name} --help.`);
  }
}

/** The value of an option that takes a text. */
function text(value: Values[string]): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function print(output: string): void {
  process.stdout.write(output);
}

/** The program that reads these streams may end. This must not end the conversations. */
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const text = String(error instanceof ConfigError ? message : stack);
  process.stderr.write(`parley: ${strike(text, secretsOf(process.env))}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
});
