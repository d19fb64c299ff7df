/** A real server in this process, on a free port, that closes itself with the test. */

import { join } from "node:path";
import type { TestContext } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import { type Environment, readConfig, secretsOf } from "../../server/config.ts";
import { type AgentServer, createAgentServer } from "../../server/index.ts";
import { createLog } from "../../server/log.ts";
import type { OpenTelemetry } from "../../server/observe/trace-run.ts";
import { resolveModels } from "../../server/providers/index.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { atEnd } from "./at-end.ts";
import { REPOSITORY } from "./command.ts";
import { type ScriptedOptions, type ScriptedProvider, scriptedProvider, type Turn } from "./scripted-provider.ts";

export type Cleanup = Pick<TestContext, "after">;

export interface ServerOptions extends ScriptedOptions {
  agent?: Partial<AgentDefinition>;
  /** What the scripted model says. Without it, `agent.model` is resolved as the command does. */
  turns?: readonly Turn[];
  /** A model that the test has made itself. */
  provider?: Provider;
  env?: Environment;
  /** What reads large messages in a thread, in place of the built file. */
  parseWorker?: string;
  /** With it, runs are traced. */
  openTelemetry?: OpenTelemetry;
  /** Address to listen on, as with `--host`. */
  host?: string;
  /** 0, a free one, unless told otherwise. */
  port?: number;
}

export interface TestServer {
  /** Without a path and without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Address of `/ws/chat`. */
  readonly socketUrl: string;
  /** Lines that the server has logged. */
  readonly log: readonly string[];
  /** The model, for servers with `turns`. */
  readonly model: ScriptedProvider;
  /** As a signal does: drains, then closes. */
  close(): Promise<void>;
}

/** Aborts whatever a test has left running as soon as the test is over. */
const NO_DRAIN = { PARLEY_DRAIN_SECONDS: "0" };

export async function startServer(t: Cleanup, options: ServerOptions = {}): Promise<TestServer> {
  const { turns, env = {}, host } = options;
  const config = readConfig({ port: String(options.port ?? 0), host }, { ...NO_DRAIN, ...env });
  const agent = checkAgent({ name: "Acme Support", model: "demo", ...options.agent });
  const model = scriptedProvider(turns ?? [], options);
  const resolve = () =>
    resolveModels([agent.model, ...agent.fallbacks], {
      env,
      times: config.times,
      settings: agent.settings,
      loadPackage: (name) => import(name),
    });
  const provider = options.provider ?? (turns === undefined ? await resolve() : model);
  const log: string[] = [];
  const server = createAgentServer({
    agent,
    provider,
    config,
    log: createLog((line) => log.push(line), secretsOf(env), {
      format: config.log.format ?? "pretty",
      level: config.log.level,
    }),
    publicFolder: "dist/public",
    parseWorker: options.parseWorker ?? join(REPOSITORY, "dist/parse-worker.js"),
    openTelemetry: () => options.openTelemetry,
  });
  const close = once(server);
  atEnd(t, close);
  const { port } = new URL(await server.listen());
  const address = `${host === "::1" ? "[::1]" : "127.0.0.1"}:${port}`;
  return {
    url: `http://${address}`,
    port: Number(port),
    socketUrl: `ws://${address}/ws/chat`,
    log,
    model,
    close,
  };
}

/** A test may close the server itself; the clean-up then waits for the same end. */
function once(server: AgentServer): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= server.close();
    return closed;
  };
}
