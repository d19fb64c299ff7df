#!/usr/bin/env node
/** The command `parley`: arguments in, one running server or one sentence out. */

import { fileURLToPath } from "node:url";
import { guardStandardStreams } from "./server/standard-streams.ts";

/** Replaced by the build with the version of package.json. */
declare const PARLEY_VERSION: string;

/** This script, whose neighbours are the other built files. */
const CLI = fileURLToPath(import.meta.url);

const HELP = `parley - serve one AI agent over REST, SSE and WebSocket, with a chat page and a widget

Usage
  parley start [project] [--port 8080] [--host 127.0.0.1] [--workers 1]

  project         Folder that holds agent.ts (or .mts, .js, .mjs) and perhaps .env.
                  Without it, the agent in the working directory is served or, where there
                  is none, the built-in demo agent: no key, no network.

Options
  --port <port>   Port to listen on; 0 takes a free one. Environment: PORT.
  --host <host>   Address to listen on; 0.0.0.0 is every one. Environment: HOST.
  --workers <n>   Processes that serve, or "auto" for one per processor; 1 unless told
                  otherwise. Environment: PARLEY_WORKERS.
  -h, --help      Show this text.
  -v, --version   Show the version.
`;

async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = readArguments(argv);
  if (values.version) return print(PARLEY_VERSION);
  const [command] = positionals;
  if (values.help || command === undefined || command === "help") return print(HELP.trimEnd());
  // Only now: a text of help needs no server.
  const { runCommand } = await import("./server/commands.ts");
  await runCommand({ words: positionals, flags: values, cli: CLI, version: PARLEY_VERSION });
}

interface Arguments {
  values: { port?: string; host?: string; workers?: string; help?: boolean; version?: boolean };
  positionals: readonly string[];
}

function readArguments(argv: readonly string[]): Arguments {
  // Most starts have words only, and loading Node's parser takes a twentieth of one.
  if (!argv.some((argument) => argument.startsWith("-"))) return { values: {}, positionals: argv };
  try {
    return process.getBuiltinModule("node:util").parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        port: { type: "string" },
        host: { type: "string" },
        workers: { type: "string" },
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
      },
    });
  } catch (error) {
    const [problem] = error instanceof Error ? error.message.split(/[.\n]/, 1) : [];
    throw new Mistake(`${problem ?? "These options are not known"}. See parley --help.`);
  }
}

/** Of whoever typed the command: told in a sentence, as a `SetupError` is. That one is in a file which comes later. */
class Mistake extends Error {
  override readonly name = "SetupError";
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

guardStandardStreams();
main(process.argv.slice(2)).catch((error: unknown) => {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  process.stderr.write(`parley: ${name === "SetupError" ? message : stack}\n`);
  process.exit(1);
});
