/** From a project's folder to a server that can listen: for a process that serves alone, and for each worker. */

import { join } from "node:path";
import type { Agent } from "./agent/define.ts";
import type { Config } from "./config.ts";
import { type AgentServer, createAgentServer } from "./index.ts";
import type { Log } from "./log.ts";
import { crypto } from "./node/crypto.ts";
import type { OpenTelemetry } from "./observe/trace-run.ts";
import { loadAgent } from "./project/load-project.ts";
import { loadIfInstalled, loadOptionalPackage } from "./project/optional-package.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { resolveModels } from "./providers/index.ts";
import type { Environment } from "./read-setting.ts";
import type { ServerParts } from "./server-options.ts";

export interface ServerToLoad {
  /** Absent: the demo agent. */
  folder: string | undefined;
  env: Environment;
  config: Config;
  log: Log;
  /** Where the built files are. */
  built: string;
  parts?: ((config: () => Config) => ServerParts) | undefined;
}

/** @throws SetupError for a mistake in the project or its settings */
export async function loadServer({
  folder,
  env,
  config,
  log,
  built,
  parts,
}: ServerToLoad): Promise<{ agent: Agent; server: AgentServer }> {
  // The agent's module reads it while it is imported, and packages of providers do as well.
  Object.assign(process.env, env);
  const agent = folder === undefined ? await demo() : await loadAgent(folder);
  const provider = await resolveModels([agent.model, ...agent.fallbacks], {
    env,
    times: config.times,
    settings: agent.settings,
    loadPackage: (name) => loadOptionalPackage(name, folder),
  });
  const server = createAgentServer({
    agent,
    provider,
    config,
    log,
    publicFolder: join(built, "public"),
    parseWorker: join(built, "parse-worker.js"),
    ...(parts === undefined ? {} : { parts }),
    openTelemetry: openTelemetryOf(folder, log),
  });
  return { agent, server };
}

async function demo(): Promise<Agent> {
  return (await import("./project/demo-agent.ts")).demoAgent();
}

/**
 * Until what the first message needs is loaded, in milliseconds. Not at once: whoever waits for the start asks for
 * `/health` then, and must not wait for that.
 */
const PREPARE_MS = 250;

/** A broken one is told and nothing more: an SDK that takes spans could not have loaded it either. */
function openTelemetryOf(folder: string | undefined, log: Log): () => OpenTelemetry | undefined {
  let api: unknown;
  let isLoaded = false;
  return () => {
    if (isLoaded) return api as OpenTelemetry | undefined;
    isLoaded = true;
    try {
      api = loadIfInstalled("@opentelemetry/api", folder);
    } catch (error) {
      log.failure(error);
    }
    return api as OpenTelemetry | undefined;
  };
}

/** Listens, and says in a sentence why it cannot. @throws SetupError */
export async function listen(
  server: Pick<AgentServer, "listen"> & Partial<Pick<AgentServer, "prepare">>,
  { host, port }: Pick<Config, "host" | "port">,
): Promise<string> {
  try {
    const url = await server.listen();
    setTimeout(() => {
      // Loads it: ids are made of it.
      crypto();
      // What fails here is told by the first message.
      server.prepare?.().catch(() => {});
    }, PREPARE_MS).unref();
    return url;
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
    case "EAI_AGAIN":
      return `Nobody said in time which address "${host}" is. Try again, or choose an address with --host, such as 127.0.0.1 or 0.0.0.0.`;
    default:
      return `Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`;
  }
}
