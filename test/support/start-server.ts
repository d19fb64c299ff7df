/** A real server in this process, on a free port; it closes at the end of the test. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import { type AnswerSource, modelSource } from "../../server/agent/served-agent.ts";
import type { Authenticate } from "../../server/auth/authenticate.ts";
import { readSettings } from "../../server/config/settings.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { createParleyServer, type ParleyServer, type ParleyServerOptions } from "../../server/server.ts";
import { atEnd } from "./at-end.ts";
import { DIST } from "./command.ts";
import { holdToDescription } from "./described.ts";
import { type ScriptedOptions, type ScriptedProvider, scriptedProvider, type Turn } from "./scripted-provider.ts";

export type Cleanup = Pick<TestContext, "after">;

export interface ServerOptions extends ScriptedOptions {
  agent?: Partial<AgentDefinition>;
  /** The turns of the scripted model. If absent, `agent.model` is resolved as in the command. */
  turns?: readonly Turn[];
  /** A provider made by the test. */
  provider?: Provider | AnswerSource;
  env?: Readonly<Record<string, string | undefined>>;
  /** Folder of the browser's files, in place of the build's. */
  publicFolder?: string | undefined;
  /** The worker that parses large messages, in place of the built file. */
  parseWorker?: string;
  /** Routes besides our own, such as a door's. */
  routes?: ParleyServerOptions["routes"];
  /** Enables tracing. */
  openTelemetry?: ParleyServerOptions["openTelemetry"];
  /** The project's folder, with the images of its page. */
  folder?: string;
  /** Identifies the sender of each message, within `authenticateMs`. */
  authenticate?: Authenticate | undefined;
  authenticateMs?: number;
  /** Closes resources of the agent's module. */
  close?: () => unknown;
  /** Time limit of a hook, in milliseconds. */
  hookMs?: number;
  /** Time in milliseconds that a client has to disconnect after the server has ended a connection. */
  lingerMs?: number;
  /** Address to listen on, as with `--host`. */
  host?: string;
  /** Default: 0, which is any free port. */
  port?: number;
}

export interface TestServer {
  /** Without a path and without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Address of `/ws/chat`. */
  readonly socketUrl: string;
  /** The records that the server has logged. */
  readonly log: readonly string[];
  /** The model, for servers with `turns`. */
  readonly model: ScriptedProvider;
  readonly server: ParleyServer;
  /** Drains, then closes, like a signal. */
  close(): Promise<void>;
}

const sourceOf = (provider: Provider | AnswerSource) => ("model" in provider ? modelSource(provider) : provider);

/** Aborts all that a test has left running as soon as the test ends. */
const NO_DRAIN = { PARLEY_DRAIN_SECONDS: "0" };

export async function startServer(t: Cleanup, options: ServerOptions = {}): Promise<TestServer> {
  const { turns, env = {}, host = "127.0.0.1", port = 0 } = options;
  const settings = readSettings({ ...NO_DRAIN, ...env, PORT: String(port), HOST: host });
  const model = scriptedProvider(turns ?? [], options);
  const log: string[] = [];
  const server = await createParleyServer({
    agent: checkAgent({ name: "Acme Support", model: "demo", ...options.agent }),
    settings,
    env,
    source: options.provider ? sourceOf(options.provider) : turns && model,
    logSink: (record) => log.push(record),
    publicFolder: options.publicFolder ?? join(DIST, "public"),
    parseWorker: options.parseWorker ?? join(DIST, "parse-worker.js"),
    routes: options.routes,
    folder: options.folder,
    openTelemetry: options.openTelemetry,
    lingerMs: options.lingerMs ?? 100,
    authenticate: options.authenticate,
    authenticateMs: options.authenticateMs,
    hookMs: options.hookMs,
    close: options.close,
  });
  holdToDescription(t, server.http, settings.basePath);
  const close = onlyOnce(() => server.drain());
  atEnd(t, close);
  server.http.listen(port, host);
  await once(server.http, "listening");
  const { port: actual } = server.http.address() as AddressInfo;
  const address = `${host.includes(":") ? `[${host}]` : "127.0.0.1"}:${actual}`;
  return {
    url: `http://${address}`,
    port: actual,
    socketUrl: `ws://${address}/ws/chat`,
    log,
    model,
    server,
    close,
  };
}

/** A test may close the server itself; the clean-up then waits for the same promise. */
function onlyOnce(close: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= close();
    return closed;
  };
}

/** Paths that anybody may GET, with or without a key. */
export const OPEN_PATHS = ["/", "/?embed=1", "/api/info", "/openapi.json", "/health", "/health/ready", "/widget.js"];
