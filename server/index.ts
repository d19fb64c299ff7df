/** The only place that builds the parts of a server and joins them. */

import { knownKeyIds } from "./access.ts";
import type { Agent } from "./agent/define.ts";
import { watchTogether } from "./agent/run-watch.ts";
import type { Runner } from "./agent/runner.ts";
import { type StateBinding, sealState } from "./agent/state.ts";
import { type Config, hasKeys, livePartOf } from "./config.ts";
import { Door } from "./door.ts";
import type { LargeBodies } from "./http/body.ts";
import { SocketServer } from "./http/socket-server.ts";
import { createHttpServer, listen } from "./http-server.ts";
import { Admission } from "./limits/admission.ts";
import type { AdmissionControl } from "./limits/admission-control.ts";
import { LargeBodyLine } from "./limits/large-body-line.ts";
import { RequestMemoryBudget } from "./limits/request-memory.ts";
import type { Log } from "./log.ts";
import { meterAdmission } from "./observe/metered-admission.ts";
import { Metrics } from "./observe/metrics.ts";
import { RunRecord } from "./observe/run-record.ts";
import type { OpenTelemetry } from "./observe/trace-run.ts";
import { type Observer, observeWith } from "./observer.ts";
import { OpenSockets } from "./open-sockets.ts";
import { frameAncestors } from "./origins.ts";
import { prepareAll } from "./prepare.ts";
import { CLOSE } from "./protocol/close-codes.ts";
import type { Provider } from "./providers/provider.ts";
import { routesFor, socketsFor } from "./routes/index.ts";
import { MessageParser } from "./routes/message-parser.ts";
import type { ChatRules } from "./routes/parse-chat.ts";
import type { Service } from "./routes/service.ts";
import { SiteFiles } from "./routes/site-files.ts";
import type { RunDirectory } from "./runs/run-access.ts";
import { type PlaceObserver, RunHub } from "./runs/run-hub.ts";
import type { WatchRun } from "./runs/run-settings.ts";
import { type Serving, serveRequests } from "./serve-requests.ts";
import { serveSockets } from "./serve-sockets.ts";
import { flushSpans, traceWith } from "./tracing.ts";

export interface AgentServerOptions {
  agent: Agent;
  provider: Provider;
  config: Config;
  log: Log;
  /** Folder of the built chat page and widget. */
  publicFolder: string;
  /** The built `parse-worker.ts`. */
  parseWorker: string;
  /** Gives the package where it is installed, and loads it the first time: runs are traced. */
  openTelemetry?: () => OpenTelemetry | undefined;
  /** For one of several processes that serve one address; told how to read the settings as they are now. */
  parts?: (config: () => Config) => ServerParts;
}

/** What a process has for itself, or shares with others that serve the same address. */
export interface ServerParts {
  readonly admission: AdmissionControl;
  readonly large: LargeBodies;
  /** Told of the runs of this process. */
  readonly observer: PlaceObserver | undefined;
  /** Where clients find runs: those of this process, and perhaps of others. */
  directory(own: RunHub): RunDirectory;
  /** The figures of all processes; `own` reads those of this one. */
  gatherMetrics(own: () => string): string | Promise<string>;
}

/** A server for one agent. */
export interface AgentServer {
  /** Resolves with the page's URL once connections are taken. Rejects when the address cannot be had. */
  listen(): Promise<string>;
  /** Makes what the first message would have to wait for. */
  prepare(): Promise<void>;
  /** Refuses new runs and resolves when those in progress are over, at the latest after the drain time. */
  drain(): Promise<void>;
  /** Takes no more connections. Those that are open stay. */
  leave(): void;
  /** Drains, then closes everything. */
  close(): Promise<void>;
  /**
   * Takes over what can change while the server runs: `LiveConfig`. Returns how many sockets and runs were
   * ended because their key or page may no longer be used.
   */
  reload(config: Config): number;
  /** The figures of this process, as `GET /metrics` gives them; "" when they are switched off. */
  metrics(): string;
}

export function createAgentServer(options: AgentServerOptions): AgentServer {
  const { config, log } = options;
  let live = config;
  let drained: Promise<void> | undefined;
  const drain = () => {
    admission.close();
    drained ??= hub.drain(config.times.drain);
    return drained;
  };
  const current = () => live;
  const open = new OpenSockets();
  const parts = (options.parts ?? ownParts)(current);
  const metrics = config.metrics ? metricsOf(options, open) : undefined;
  const observer = observeWith(log, metrics);
  const admission = metrics ? meterAdmission(parts.admission, metrics) : parts.admission;
  const state = stateOf(options, current);
  const runner = runnerOf(options, current, state);
  const watch = watchWith(options, observer, metrics);
  const hub = new RunHub(runner, admission, config.resume, config.idSecret, watch, parts.observer);
  const service = createService(
    options,
    current,
    { ...parts, admission },
    { runner, state, hub, observer, metrics },
  );
  const door = new Door(current, admission, log);
  const serving: Serving = { config: current, door, log, observer };
  const tracing = { prepare: options.openTelemetry };
  const sockets = new SocketServer(config.maxBodyBytes, config.times.send);
  const http = createHttpServer(config, { isWorker: options.parts !== undefined });
  serveRequests(http, serving, routesFor(service));
  serveSockets(http, serving, socketsFor(service), sockets, admission, open);
  return {
    listen: () => listen(http, config),
    prepare: () => prepareAll([service.files, sockets, options.provider, tracing]),
    reload(next) {
      live = { ...config, ...livePartOf(next) };
      const known = knownKeyIds(live);
      const revoked = hub.revoke(({ keyId }) =>
        keyId === undefined ? hasKeys(live.keys) : !known.has(keyId),
      );
      return open.recheck(live) + revoked;
    },
    metrics: () => metrics?.render() ?? "",
    drain,
    leave: () => void http.close(),
    async close() {
      await drain();
      const closed = new Promise((resolve) => http.close(resolve));
      await sockets.closeAll(CLOSE.SHUTTING_DOWN, "shutting_down");
      http.closeAllConnections();
      await closed;
      await service.parser.close();
      metrics?.close();
      await flushSpans(options.openTelemetry?.());
    },
  };
}

function watchWith(
  { agent, openTelemetry }: AgentServerOptions,
  observer: Observer,
  metrics: Metrics | undefined,
): WatchRun {
  const spans = traceWith(openTelemetry, agent);
  return ({ caller, trace, ...start }) => {
    metrics?.runBegins();
    const record = new RunRecord({ ...start, model: agent.model, key: caller.kind }, observer);
    const traced = spans({ ...start, trace });
    return traced === undefined ? record : watchTogether(record, traced);
  };
}

function ownParts(current: () => Config): ServerParts {
  const { maxLargeBodies, times } = current();
  return {
    admission: new Admission(() => current().limits),
    large: new LargeBodyLine(maxLargeBodies, times.body),
    observer: undefined,
    directory: (own) => own,
    gatherMetrics: (own) => own(),
  };
}

function stateOf(
  { agent, provider }: AgentServerOptions,
  current: () => Config,
): () => StateBinding {
  return () => ({
    kind: provider.stateKind,
    agent: agent.name,
    provider: provider.id,
    secrets: current().stateSecrets,
    limits: current().message,
  });
}

function runnerOf(
  { agent, provider, config, log }: AgentServerOptions,
  current: () => Config,
  state: () => StateBinding,
): Runner {
  return {
    agent,
    provider,
    maxRunMs: config.times.run,
    get toolLimits() {
      return current().tools;
    },
    seal: (unsealed) => sealState(unsealed, state()),
    report: (error) => log.failure(error),
  };
}

interface ServiceParts {
  runner: Runner;
  state: () => StateBinding;
  hub: RunHub;
  observer: Observer;
  metrics: Metrics | undefined;
}

function metricsOf({ agent }: AgentServerOptions, open: OpenSockets): Metrics {
  const hosted = (agent.settings.hostedTools ?? []).map(({ type }) => type);
  const tools = [...agent.tools.keys(), ...hosted];
  return new Metrics({ model: agent.model, tools, sockets: () => open.size });
}

function createService(
  { provider, config, publicFolder, parseWorker }: AgentServerOptions,
  current: () => Config,
  { admission, large, directory, gatherMetrics }: ServerParts,
  { runner, state, hub, observer, metrics }: ServiceParts,
): Service {
  const rules = (): ChatRules => ({
    state: state(),
    attachments: {
      maxCount: current().maxAttachments,
      mediaTypes: provider.mediaTypes,
      label: provider.label,
    },
    limits: current().message,
  });
  const memory = new RequestMemoryBudget(config.maxRequestBytesTotal);
  return {
    runner,
    rules,
    authRequired: () => hasKeys(current().keys),
    bodies: { limit: config.maxBodyBytes, large, minRate: config.minUploadRate },
    memory,
    intake: { large, memory, messageMs: config.times.body, minRate: config.minUploadRate },
    parser: new MessageParser(rules, parseWorker),
    admission,
    keepAliveMs: config.times.keepAlive,
    sendMs: config.times.send,
    files: new SiteFiles(publicFolder, runner.agent.name),
    frameAncestors: () => frameAncestors(current().origins),
    metrics: metrics && (async () => gatherMetrics(() => metrics.render())),
    refused: (code) => observer.error(code),
    runs: directory(hub),
  };
}
