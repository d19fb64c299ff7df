/** A real server in this process, on a free port, that closes itself with the test. */

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
  /** What the scripted model says. Without it, `agent.model` is resolved as the command does. */
  turns?: readonly Turn[];
  /** A model that the test has made itself. */
  provider?: Provider | AnswerSource;
  env?: Readonly<Record<string, string | undefined>>;
  /** The browser's files, in place of those of this build. */
  publicFolder?: string | undefined;
  /** The worker that parses large messages, in place of the built file. */
  parseWorker?: string;
  /** Routes besides our own, such as a door's. */
  routes?: ParleyServerOptions["routes"];
  /** With it, runs are traced. */
  openTelemetry?: ParleyServerOptions["openTelemetry"];
  /** The project's, with the images of its page. */
  folder?: string;
  /** Says who sends each message, within `authenticateMs`. */
  authenticate?: Authenticate | undefined;
  authenticateMs?: number;
  /** Closes what the agent's module has opened. */
  close?: () => unknown;
  /** How long a hook may take. */
  hookMs?: number;
  /** How long a client may stay after the server has said that the connection is over. */
  lingerMs?: number;
  /** Address to listen on, as with `--host`. */
  host?: string;
  /** 0, which is a free port, unless the test says otherwise. */
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
  /** As a signal does: drains, then closes. */
  close(): Promise<void>;
}

const sourceOf = (provider: Provider | AnswerSource) => ("model" in provider ? modelSource(provider) : provider);

/** Aborts whatever a test has left running as soon as the test is over. */
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

/** A test may close the server itself; the clean-up then waits for the same end. */
function onlyOnce(close: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= close();
    return closed;
  };
}

/** What everybody may GET, with or without a key. */
export const OPEN_PATHS = ["/", "/?embed=1", "/api/info", "/openapi.json", "/health", "/health/ready", "/widget.js"];
