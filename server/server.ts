/** Builds the parts of the server and connects them. */

import type { Server } from "node:http";
import type { Agent, AgentModule } from "./agent/define.ts";
import type { HookQueue } from "./agent/hook-queue.ts";
import { HOOK_MS } from "./agent/hooks.ts";
import {
  AgentRuntime,
  type AnswerSource,
  modelSource,
  ServedAgent,
  type ServingParts,
  stateSecretsOf,
} from "./agent/served-agent.ts";
import type { ToolSource } from "./agent/tool-sources.ts";
import { createAccess } from "./auth/access.ts";
import { Origins } from "./auth/origins.ts";
import type { LoadPackage } from "./config/optional-package.ts";
import { secretsOf } from "./config/secrets.ts";
import { applyLive, type Environment, type Settings, UNKNOWN_HOST } from "./config/settings.ts";
import { openDoors } from "./doors/index.ts";
import { createHandler, type Handler, type HandlerParts } from "./http/dispatch.ts";
import type { Routes } from "./http/routes.ts";
import { closeServer, createHttpServer } from "./http/server.ts";
import { type SocketOptions, WebSockets } from "./http/websocket.ts";
import { createMemoryLimiter } from "./limits/limiter.ts";
import { MemoryBudget } from "./limits/memory-budget.ts";
import { MessageLimits } from "./limits/message-limits.ts";
import type { McpServers } from "./mcp/servers.ts";
import { createLog, type Log } from "./observe/log.ts";
import { createMetrics, type Metrics, renderMetrics } from "./observe/metrics.ts";
import type { RunSink } from "./observe/run-observer.ts";
import { observeRuns } from "./observe/run-recorder.ts";
import type { OpenTelemetry } from "./observe/tracing.ts";
import { ownThread, readVersion } from "./project/own-files.ts";
import { resolveModels } from "./providers/index.ts";
import type { Shared } from "./redis/shared.ts";
import type { Identity } from "./routes/identity.ts";
import { routesOf, socketRoutesOf } from "./routes/index.ts";
import { LargeMessages } from "./routes/large-messages.ts";
import type { Service } from "./routes/service.ts";
import { loadSite } from "./routes/site.ts";
import { RunRegistry } from "./runs/run-registry.ts";
import { createMemoryRunStore } from "./runs/run-store.ts";

/** Everything that serves one agent, except a server that listens. */
export interface ParleyCore {
  handler: Handler;
  log: Log;
  /**
   * Applies the live settings of `next`. Returns how many sockets and runs were ended because their key or origin is no
   * longer allowed.
   */
  reload(next: Settings): number;
  /**
   * Serves another agent from the next message on; running answers keep theirs. Rejects with a `ConfigError` that says
   * what the agent's model needs, and then nothing has changed. What an agent's module has opened is closed after that
   * agent's last run. `keepsConversations`: whether the new agent can continue the former agent's conversations.
   */
  replaceAgent(next: AgentModule): Promise<{ keepsConversations: boolean }>;
  /** Called once clients can connect: connects to the agent's MCP servers. */
  begin(): void;
  /** The files that the agent's page shows. */
  pageFiles(): readonly string[];
  /** The metrics of this process in Prometheus' format. */
  metrics(): string;
  /** Whether an answer is running. */
  isBusy(): boolean;
  /**
   * Lets running answers finish within `drainSeconds`, then closes everything. `closeServer` is called in between, to
   * close the server that the handler is on.
   */
  drain(closeServer?: () => Promise<void>): Promise<void>;
}

/** Modules that most servers never need: each is loaded if a setting, an installed package or the agent requires it. */
const OPTIONAL = {
  redis: () => import("./redis/shared.ts"),
  hosted: () => import("./hosted/source.ts"),
  identity: () => import("./routes/identity.ts"),
  approvals: () => import("./agent/approvals.ts"),
  decisions: () => import("./agent/decisions.ts"),
  hooks: () => import("./agent/hook-queue.ts"),
  prices: () => import("./agent/prices.ts"),
  page: () => import("./agent/owners-page.ts"),
  mcp: () => import("./mcp/servers.ts"),
  tracing: () => import("./observe/tracing.ts"),
  workers: () => import("./observe/worker-metrics.ts"),
};

export interface ParleyServer extends ParleyCore {
  http: Server;
}

/** How long a connection may stay open after the server has ended it. */
const LINGER_MS = 2000;

/** How long `authenticate` may take. */
const AUTHENTICATE_MS = 10_000;

export interface ParleyServerOptions extends AgentModule {
  settings: Settings;
  /** The environment from which the settings were read: its secrets are kept out of the log. */
  env?: Environment | undefined;
  /** Loads an optional package, such as a provider's SDK. */
  loadPackage?: LoadPackage | undefined;
  /** Replaces the source that would be made from the agent's `model` or `run`. */
  source?: AnswerSource | undefined;
  /** Gets each log record as text with a line end, in place of standard error. */
  logSink?: ((record: string) => void) | undefined;
  /** The project's folder, which has the images of its page. */
  folder?: string | undefined;
  /** Folder of the built chat page and widget. */
  publicFolder: string;
  /** Path of the worker that parses large messages, in place of Parley's own. */
  parseWorker?: string | undefined;
  /** The package `@opentelemetry/api`, if it is installed: runs are then traced. */
  openTelemetry?: OpenTelemetry | undefined;
  /** Whether this process is a worker of `parley start --workers`: its metrics page then covers all workers. */
  isWorker?: boolean | undefined;
  /** Reports runs in place of the log. */
  story?: ((log: Log) => RunSink) | undefined;
  /** Additional sinks for runs. */
  sinks?: ((log: Log) => readonly RunSink[]) | undefined;
  /** Routes besides our own. */
  routes?: ((service: Service) => Routes) | undefined;
  /** Called with each request before its route is found. @throws ApiError */
  guard?: HandlerParts["guard"];
  /** How long a connection may stay open after the server has ended it. */
  lingerMs?: number | undefined;
  /** How long `authenticate` may take. */
  authenticateMs?: number | undefined;
  /** How long a function of the project may take, except a tool's `execute`. */
  hookMs?: number | undefined;
}

/** @throws ConfigError */
export async function createParleyServer(options: ParleyServerOptions): Promise<ParleyServer> {
  const { settings, lingerMs = LINGER_MS } = options;
  const core = await createCore(options);
  const http = createHttpServer(core.handler, settings, lingerMs);
  http.once("listening", core.begin);
  return { ...core, http, drain: () => core.drain(() => closeServer(http, lingerMs)) };
}

/** @throws ConfigError */
export async function createCore(options: ParleyServerOptions): Promise<ParleyCore> {
  const { settings, openTelemetry, lingerMs = LINGER_MS } = options;
  const log = createLog(settings, options.logSink);
  // The agent's module may have set variables of the process.
  for (const env of [options.env ?? {}, process.env]) log.hide(secretsOf(env));
  const shared = settings.redisUrl === "" ? undefined : await connect(options, log);
  let queue: Promise<HookQueue> | undefined;
  const hooks = () => (queue ??= createHooks(options, log, (hook, outcome) => metrics.hook(hook, outcome)));
  const toolServers = new ToolServers(options, log, (...call) => metrics.toolServer(...call));
  const serving = { ...options, log, toolServers, parts: servingParts(options, { log, shared, hooks }) };
  const first = await serve(options, serving).catch((error) => giveUp(error, shared));
  const runtime = new AgentRuntime(first, serving.parts.hookMs, log.failure);
  const metrics = createMetrics({
    model: () => runtime.current.agent.model,
    isTool: (name) => runtime.current.isTool(name),
    openSockets: () => sockets.size,
    redisUp: shared && (() => shared.isUp),
    toolServers: () => toolServers.states,
  });
  const tracing = openTelemetry && (await OPTIONAL.tracing()).createTracing(openTelemetry);
  const runLog = options.story?.(log) ?? log;
  const sinks: RunSink[] = [runLog, metrics, ...(tracing ? [tracing] : []), ...(options.sinks?.(log) ?? [])];
  const origins = new Origins(settings);
  const access = createAccess(settings, origins, log.warning);
  const service = await createService(options, { runtime, log, metrics, sinks, shared, origins, access });
  const sockets = createSockets(service, { lingerMs, onError: metrics.error });
  service.site.own(first.page);
  const handler = createHandlerOf(options, service, { ...(await openDoors(service)), sockets, metrics, lingerMs });
  return {
    handler,
    log,
    reload(next) {
      applyLive(settings, next);
      const ended = service.runs.revoke((caller) => !access.isKnown(caller));
      return ended + sockets.recheck((credentials) => access.authorize(credentials, "socket"));
    },
    async replaceAgent(next) {
      const served = await serve(next, serving);
      service.site.own(served.page);
      return runtime.replace(served);
    },
    begin: () => toolServers.begin(),
    pageFiles: () => runtime.current.page?.paths ?? [],
    metrics: () => renderMetrics(metrics.families()),
    isBusy: () => service.runs.isBusy,
    async drain(closeServer) {
      await service.runs.drain(settings.drainSeconds * 1000);
      await Promise.all([closeServer?.(), sockets.closeAll()]);
      await (await queue)?.drain();
      await service.largeMessages.close();
      await shared?.close();
      await runtime.close();
      await Promise.all(sinks.map((sink) => sink.close?.()));
    },
  };
}

function createHandlerOf(
  { routes: more, guard }: ParleyServerOptions,
  service: Service,
  { routes: ofDoors, ...parts }: Pick<HandlerParts, "routes" | "doors" | "sockets" | "metrics" | "lingerMs">,
): Handler {
  const { settings, access, origins, limits, log } = service;
  const { basePath, sendSeconds } = settings;
  const routes = { ...routesOf(service), ...ofDoors, ...more?.(service) };
  // A host's server has its own paths for what concerns its process.
  if (settings.host === UNKNOWN_HOST) delete routes["GET /metrics"];
  const socketRoutes = socketRoutesOf(service);
  const sendMs = sendSeconds * 1000;
  return createHandler({ routes, socketRoutes, guard, access, origins, limits, log, basePath, sendMs, ...parts });
}

/** Disconnects from Redis: the process may continue without this agent. */
async function giveUp(error: unknown, shared: Shared | undefined): Promise<never> {
  await shared?.close();
  throw error;
}

function createSockets(
  { limits, memory, settings }: Service,
  more: Pick<SocketOptions, "lingerMs" | "onError">,
): WebSockets {
  const { maxBodyBytes: maxBytes, bodySeconds, sendSeconds } = settings;
  const times = { messageMs: bodySeconds * 1000, sendMs: sendSeconds * 1000 };
  return new WebSockets({ limits, memory, maxBytes, ...times, ...more });
}

interface Observing extends Pick<Service, "runtime" | "log" | "origins" | "access"> {
  metrics: Metrics;
  sinks: readonly RunSink[];
  /** Absent without Redis. */
  shared: Shared | undefined;
}

async function createHooks(
  { hookMs: maxMs = HOOK_MS }: ParleyServerOptions,
  { warning: warn, failure: fail }: Log,
  count: Metrics["hook"],
): Promise<HookQueue> {
  return new (await OPTIONAL.hooks()).HookQueue({ maxMs, count, warn, fail });
}

async function createService(
  options: ParleyServerOptions,
  { runtime, log, metrics, sinks, shared, origins, access }: Observing,
): Promise<Service> {
  const { settings, authenticateMs: maxMs = AUTHENTICATE_MS } = options;
  const { parseWorker = ownThread("server/routes/parse-worker.ts") } = options;
  const limits = new MessageLimits(shared?.limiter ?? createMemoryLimiter(), settings, metrics.limited);
  const identifying = { access, origins, limits, log, metrics, maxMs };
  let identity: Identity | undefined;
  return {
    runtime,
    settings,
    origins,
    limits,
    identity: async () => (identity ??= new (await OPTIONAL.identity()).Identity(identifying)),
    access,
    memory: new MemoryBudget(settings.maxRequestBytesTotal),
    largeMessages: new LargeMessages(parseWorker),
    runs: new RunRegistry({
      store: shared?.store ?? createMemoryRunStore(),
      limits,
      settings,
      observeRun: observeRuns(sinks),
      fail: log.failure,
      onQueue: metrics.queued,
    }),
    log,
    site: loadSite(options.publicFolder),
    states: shared?.states,
    version: readVersion,
    metricsPage: settings.metrics ? await metricsPage(metrics, options.isWorker) : undefined,
  };
}

async function metricsPage({ families }: Metrics, isWorker = false): Promise<() => Promise<string>> {
  const read = isWorker ? (await OPTIONAL.workers()).metricsOfAllWorkers(families) : families;
  return async () => renderMetrics(await read());
}

async function connect(
  { agent, settings, loadPackage = (name) => import(name) }: ParleyServerOptions,
  log: Log,
): Promise<Shared> {
  const { connectShared } = await OPTIONAL.redis();
  return connectShared(settings, agent.id, loadPackage, { notice: log.notice, warn: log.warning });
}

function servingParts(
  { settings, hookMs = HOOK_MS }: ParleyServerOptions,
  { log, shared, hooks }: Pick<Observing, "log" | "shared"> & Pick<ServingParts, "hooks">,
): ServingParts {
  const { strike, warning: warn } = log;
  return { settings, stateSecrets: stateSecretsOf(settings, shared), hooks, hookMs, strike, warn, warned: new Set() };
}

/** The MCP servers, created once an agent names some. */
class ToolServers {
  readonly #create: () => Promise<McpServers>;
  #servers: McpServers | undefined;
  #hasBegun = false;

  constructor(
    { hookMs = HOOK_MS, loadPackage: load = (name) => import(name) }: ParleyServerOptions,
    { notice, warning: warn }: Log,
    observe: Metrics["toolServer"],
  ) {
    this.#create = async () => new (await OPTIONAL.mcp()).McpServers({ load, hookMs, notice, warn, observe });
  }

  get states(): McpServers["states"] {
    return this.#servers?.states ?? [];
  }

  begin(): void {
    this.#hasBegun = true;
    this.#servers?.open();
  }

  /** @throws ConfigError */
  async sourceFor({ mcp }: Agent): Promise<ToolSource | undefined> {
    if (mcp === undefined) return undefined;
    this.#servers ??= await this.#create();
    if (this.#hasBegun) this.#servers.open();
    return this.#servers.sourceOf(mcp);
  }
}

interface Serving extends ParleyServerOptions {
  log: Log;
  toolServers: ToolServers;
  parts: ServingParts;
}

/** @throws ConfigError */
async function serve(module: AgentModule, options: Serving): Promise<ServedAgent> {
  const provider = options.source ?? (await createSource(module.agent, options));
  await loadFor(module);
  const { onRunEnd, onFeedback } = module.agent.hooks;
  const hooks = (onRunEnd ?? onFeedback) && (await options.parts.hooks());
  const costOf =
    module.agent.prices === undefined
      ? undefined
      : (await OPTIONAL.prices()).checkPrices(module.agent, options.parts.warn);
  const { chat } = module.agent;
  const { folder = "." } = options;
  const page = chat === undefined ? undefined : (await OPTIONAL.page()).checkPage(chat, folder, options.parts.warn);
  const tools = await options.toolServers.sourceFor(module.agent);
  return new ServedAgent(module, provider, options.parts, { hooks, costOf, page, tools });
}

/** Loads the modules that messages will need: an update in place may delete their files before the first message. */
async function loadFor({ agent, authenticate }: AgentModule): Promise<void> {
  const { onMessage, onAnswer } = agent.hooks;
  // With what carries tools out.
  const hasTools =
    (agent.ownRun ?? agent.mcp) !== undefined || agent.toolSources.some((it) => it.toolsFor ?? it.fixed.length > 0);
  await Promise.all([
    authenticate && OPTIONAL.identity(),
    (onMessage ?? onAnswer) && OPTIONAL.decisions(),
    hasTools && OPTIONAL.approvals(),
  ]);
}

async function createSource(
  agent: Agent,
  { settings, log, loadPackage = (name) => import(name) }: Serving,
): Promise<AnswerSource> {
  if (agent.ownRun !== undefined) {
    const { hostedSource } = await OPTIONAL.hosted();
    return hostedSource(agent.ownRun, { settings, notice: log.notice });
  }
  const { models, accepts, settings: modelSettings } = agent;
  return modelSource(await resolveModels(models, { settings, modelSettings, accepts, loadPackage }));
}
