/** Builds the parts of a server and joins them: the only place that does, with `create-runs.ts` and `create-service.ts`. */

import { knownKeyIds } from "./access.ts";
import { type Config, hasKeys, livePartOf } from "./config.ts";
import { createRuns } from "./create-runs.ts";
import { createService } from "./create-service.ts";
import { Door } from "./door.ts";
import { flushSpans } from "./flush-spans.ts";
import { createHttpServer, listen } from "./http-server.ts";
import { Admission } from "./limits/admission.ts";
import { LargeBodyLine } from "./limits/large-body-line.ts";
import { Late } from "./node/late.ts";
import { meterAdmission } from "./observe/metered-admission.ts";
import { Metrics } from "./observe/metrics.ts";
import { observeWith } from "./observer.ts";
import { OpenSockets } from "./open-sockets.ts";
import { prepareAll } from "./prepare.ts";
import { CLOSE } from "./protocol/close-codes.ts";
import type { LateChatEndpoints } from "./routes/chat-endpoints.ts";
import { routesFor, socketsFor } from "./routes/index.ts";
import { type Serving, serveRequests } from "./serve-requests.ts";
import { serveSockets } from "./serve-sockets.ts";
import type { AgentServerOptions, ServerParts } from "./server-options.ts";

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
    drained ??= runs.hub.drain(config.times.drain);
    return drained;
  };
  const current = () => live;
  const open = new OpenSockets();
  const parts = (options.parts ?? ownParts)(current);
  const metrics = config.metrics ? metricsOf(options, open) : undefined;
  const observer = observeWith(log, metrics);
  const admission = metrics ? meterAdmission(parts.admission, metrics) : parts.admission;
  const places = parts.observer;
  const runs = createRuns(options, current, { admission, observer, metrics, places });
  const shared = { ...parts, admission };
  const service = createService(options, current, shared, { ...runs, observer, metrics });
  const chat: LateChatEndpoints = new Late(async () => {
    const [{ chatEndpoints }] = await Promise.all([import("./routes/chat-endpoints.ts"), runs.hub.prepare()]);
    return chatEndpoints(service);
  });
  const door = new Door(current, admission, log);
  const serving: Serving = { config: current, door, log, observer };
  const tracing = { prepare: options.openTelemetry };
  const sockets = new Late(async () => {
    const { SocketServer } = await import("./http/socket-server.ts");
    return new SocketServer(config.maxBodyBytes, config.times.send);
  });
  const endpoints = { prepare: () => chat.come() };
  const handshakes = { prepare: async () => (await sockets.come()).prepare() };
  const http = createHttpServer(config, { isWorker: options.parts !== undefined });
  serveRequests(http, serving, routesFor(service, chat));
  serveSockets(http, serving, socketsFor(chat), sockets, admission, open);
  return {
    listen: () => listen(http, config),
    // What every message needs comes first, then what some do.
    prepare: () => prepareAll([endpoints, options.provider, handshakes, service.files, tracing]),
    reload(next) {
      live = { ...config, ...livePartOf(next) };
      const known = knownKeyIds(live);
      const revoked = runs.hub.revoke(({ keyId }) => (keyId === undefined ? hasKeys(live.keys) : !known.has(keyId)));
      return open.recheck(live) + revoked;
    },
    metrics: () => metrics?.render() ?? "",
    drain,
    leave: () => void http.close(),
    async close() {
      await drain();
      const closed = new Promise((resolve) => http.close(resolve));
      // Also those whose handshake waits for its code.
      const lines = await sockets.come().catch(() => undefined);
      await lines?.closeAll(CLOSE.SHUTTING_DOWN, "shutting_down");
      http.closeAllConnections();
      await closed;
      await chat.now?.close();
      metrics?.close();
      await flushSpans(options.openTelemetry?.());
    },
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

function metricsOf({ agent }: AgentServerOptions, open: OpenSockets): Metrics {
  const hosted = (agent.settings.hostedTools ?? []).map(({ type }) => type);
  const tools = [...agent.tools.keys(), ...hosted];
  return new Metrics({ model: agent.model, tools, sockets: () => open.size });
}
