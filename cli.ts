#!/usr/bin/env node
/** The command `parley`: arguments in, one running server or one sentence out. */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Agent } from "./server/agent/define.ts";
import { type Config, hasKeys, readConfig, secretsOf } from "./server/config.ts";
import type { KeyKind } from "./server/http/caller.ts";
import { createAgentServer } from "./server/index.ts";
import { createLog, type Log } from "./server/log.ts";
import { isLoopbackHost } from "./server/origins.ts";
import { demoAgent } from "./server/project/demo-agent.ts";
import { findProject, loadAgent } from "./server/project/load-project.ts";
import { loadOptionalPackage } from "./server/project/optional-package.ts";
import { SetupError } from "./server/providers/failures/provider-error.ts";
import { resolveModels } from "./server/providers/index.ts";
import { readEnvironment } from "./server/read-environment.ts";
import { reloadOnHangup } from "./server/reload.ts";
import { closeWithProcess } from "./server/shutdown.ts";

/** Replaced by the build with the version of package.json. */
declare const PARLEY_VERSION: string;

const HELP = `parley - serve one AI agent over REST, SSE and WebSocket, with a chat page and a widget

Usage
  parley start [project] [--port 8080] [--host 127.0.0.1]

  project         Folder that holds agent.ts (or .mts, .js, .mjs) and perhaps .env.
                  Without it the built-in demo agent is served: no key, no network.

Options
  --port <port>   Port to listen on; 0 takes a free one. Environment: PORT.
  --host <host>   Address to listen on; 0.0.0.0 is every one. Environment: HOST.
  -h, --help      Show this text.
  -v, --version   Show the version.
`;

async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = readArguments(argv);
  if (values.version) return print(PARLEY_VERSION);
  const [command, project, ...extra] = positionals;
  if (values.help || command === undefined || command === "help") return print(HELP.trimEnd());
  if (command !== "start")
    throw new SetupError(`There is no command "${command}". See parley --help.`);
  if (extra.length > 0) throw new SetupError("Give one project only: parley start <project>.");
  await start(project, values);
}

function readArguments(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        port: { type: "string" },
        host: { type: "string" },
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
      },
    });
  } catch (error) {
    const [problem] = error instanceof Error ? error.message.split(/[.\n]/, 1) : [];
    throw new SetupError(`${problem ?? "These options are not known"}. See parley --help.`);
  }
}

async function start(
  project: string | undefined,
  flags: { port?: string; host?: string },
): Promise<void> {
  const folder = project === undefined ? undefined : findProject(project);
  const inherited = { ...process.env };
  const readSettings = () => readEnvironment(inherited, folder);
  const env = readSettings();
  // The agent's module reads it while it is imported, and packages of providers do as well.
  Object.assign(process.env, env);
  const config = readConfig(flags, env);
  const agent = folder === undefined ? demoAgent() : await loadAgent(folder);
  const provider = await resolveModels([agent.model, ...agent.fallbacks], {
    env,
    times: config.times,
    settings: agent.settings,
    loadPackage: (name) => loadOptionalPackage(name, folder),
  });
  const secrets = secretsOf(env);
  const log = createLog((line) => process.stderr.write(`${line}\n`), secrets, {
    format: config.log.format ?? (process.stderr.isTTY ? "pretty" : "json"),
    level: config.log.level,
  });
  const built = dirname(fileURLToPath(import.meta.url));
  const server = createAgentServer({
    agent,
    provider,
    config,
    log,
    publicFolder: join(built, "public"),
    parseWorker: join(built, "parse-worker.js"),
  });
  const url = await listen(server, config);
  closeWithProcess(server, log);
  reloadOnHangup({ env, flags, readSettings, server, secrets, log });
  announce(agent, config, url, log);
}

async function listen(
  server: { listen(): Promise<string> },
  { host, port }: Config,
): Promise<string> {
  try {
    return await server.listen();
  } catch (error) {
    throw new SetupError(whyNot(error, host, port), { cause: error });
  }
}

function whyNot(error: unknown, host: string, port: number): string {
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      return `Port ${port} is in use. Choose another with --port, or stop the program that uses it.`;
    case "EACCES":
      return `Port ${port} may not be used by this user. Choose one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `"${host}" is not an address of this machine. Choose one with --host, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`;
  }
}

/** The URL stands alone on the last line, for people to click and scripts to read. */
function announce(agent: Agent, config: Config, url: string, log: Log): void {
  const kinds = (Object.keys(config.keys) as KeyKind[]).filter(
    (kind) => config.keys[kind].length > 0,
  );
  print(`Parley ${PARLEY_VERSION}
  name   ${agent.name}
  agent  ${agent.agent}
  model  ${[agent.model, ...agent.fallbacks].join(", else ")}
  keys   ${kinds.length > 0 ? kinds.join(", ") : "none: whoever reaches this address can chat"}`);
  if (!hasKeys(config.keys) && !isLoopbackHost(config.host)) {
    log.warning(
      `${config.host} can be reached from other machines and no key is set. Set PARLEY_API_KEY, PARLEY_CHAT_KEY or PARLEY_WIDGET_KEY.`,
    );
  }
  print(url);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const text =
    error instanceof SetupError ? error.message : error instanceof Error ? error.stack : error;
  process.stderr.write(`parley: ${text}\n`);
  process.exit(1);
});
