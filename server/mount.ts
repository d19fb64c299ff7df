/** What hosts import as `parley-agent/server`: an agent on a server that is not ours. */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { checkAgent } from "./agent/define.ts";
import { mountedEnvironment, unknownNames } from "./config/environment.ts";
import { basePath as basePathKind } from "./config/kinds.ts";
import { nearestName } from "./config/nearest-name.ts";
import { loadIfInstalled, loadOptionalPackage } from "./config/optional-package.ts";
import { readSettings, UNKNOWN_HOST } from "./config/settings.ts";
import { ConfigError } from "./errors.ts";
import type { Handler } from "./http/dispatch.ts";
import { serveWithoutOffer } from "./http/server.ts";
import type { Log } from "./observe/log.ts";
import type { OpenTelemetry } from "./observe/tracing.ts";
import type { AgentDefinition, Authenticate } from "./parley-agent.ts";
import { publicFolder } from "./project/own-files.ts";
import { approvalNotice, createCore, stateSecretWarning } from "./server.ts";

export interface ParleyOptions {
  /** What `defineAgent` returned. */
  agent: AgentDefinition;
  /** Says who sends each message. */
  authenticate?: Authenticate | undefined;
  /** Settings by their names, such as `PARLEY_STATE_SECRET`. They win over the environment; no `.env` is read. */
  settings?: Readonly<Record<string, string>> | undefined;
  /** What all addresses begin with, such as `/support`. Default: nothing. */
  basePath?: string | undefined;
}

/** An agent that a server of your own answers with. The functions may be passed on as they are. */
export interface Parley {
  /** Answers a request. One that is not Parley's goes to `next`; without `next`, it is 404. */
  readonly handle: (req: IncomingMessage, res: ServerResponse, next?: () => void) => void;
  /** Takes the offer of a WebSocket. Returns `false`, and has done nothing, for one that is not Parley's. */
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
  /** Takes no new messages, lets running answers end within `PARLEY_DRAIN_SECONDS`, and closes the sockets. */
  readonly close: () => Promise<void>;
  /** The text for Prometheus. */
  readonly metrics: () => Promise<string>;
}

/** Rejects with an error that says what is wrong with the agent, a setting or an option. */
export async function createParley(options: ParleyOptions): Promise<Parley> {
  const { agent: definition, authenticate, given } = checkOptions(options);
  const agent = checkAgent(definition);
  const env = mountedEnvironment(process.env, given);
  const settings = { ...readSettings(env), host: UNKNOWN_HOST };
  const tracing = openTelemetry();
  const { handler, log, metrics, drain } = await createCore({
    agent,
    authenticate,
    settings,
    env,
    publicFolder,
    loadPackage: (name) => loadOptionalPackage(name, undefined),
    openTelemetry: tracing.api,
  });
  const secretWarning = stateSecretWarning(settings, { agent, authenticate });
  for (const warning of [
    secretWarning,
    approvalNotice({ agent }, settings),
    tracing.problem,
    ...unknownNames(process.env),
  ]) {
    if (warning !== undefined) log.warning(warning);
  }
  let closed: Promise<void> | undefined;
  return {
    handle: handleOf(handler, settings.basePath, log),
    upgrade: upgradeOf(handler),
    close() {
      closed ??= drain();
      return closed;
    },
    metrics: async () => metrics(),
  };
}

const OPTIONS = ["agent", "authenticate", "settings", "basePath"];

/** @throws ConfigError */
function checkOptions({ agent, authenticate, settings = {}, basePath, ...more }: ParleyOptions) {
  for (const name of Object.keys(more)) {
    throw new ConfigError(`createParley has no option ${name}. Did you mean ${nearestName(name, OPTIONS, Infinity)}?`);
  }
  if (agent === undefined) {
    throw new ConfigError("createParley needs an agent: createParley({ agent: defineAgent({ … }) }).");
  }
  if (authenticate !== undefined && typeof authenticate !== "function") {
    throw new ConfigError("authenticate must be a function, which says who sends a message.");
  }
  if (basePath === undefined || basePath === "") return { agent, authenticate, given: settings };
  if (settings.PARLEY_BASE_PATH !== undefined) {
    throw new ConfigError("Say the path once: take PARLEY_BASE_PATH out of settings, or leave basePath out.");
  }
  const given = { ...settings, PARLEY_BASE_PATH: basePathKind.parse(String(basePath), "basePath") };
  return { agent, authenticate, given };
}

/** A broken package is a warning: the agent works without it. */
function openTelemetry(): { api?: OpenTelemetry; problem?: string } {
  try {
    return { api: loadIfInstalled("@opentelemetry/api", undefined) as OpenTelemetry };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function handleOf(handler: Handler, basePath: string, log: Log): Parley["handle"] {
  let hasWarned = false;
  /** Express says where it has mounted us. Below another path, no request would ever be ours. */
  const warnOfOtherPath = ({ baseUrl = "" }: IncomingMessage & { baseUrl?: string }) => {
    if (hasWarned || `${basePath}/`.toLowerCase().startsWith(`${baseUrl}/`.toLowerCase())) return;
    hasWarned = true;
    const now = basePath === "" ? "has no basePath" : `has the basePath "${basePath}"`;
    log.warning(`Parley is mounted at ${baseUrl} but ${now}: pass basePath: "${baseUrl}" to createParley.`);
  };
  return (req, res, next) => {
    if (next === undefined || handler.owns(req)) {
      handler.request(req, res);
      return;
    }
    warnOfOtherPath(req);
    next();
  };
}

/** By their `upgrade`: several agents may listen on one server. */
const HANDLERS = new WeakMap<object, Handler>();

function upgradeOf(handler: Handler): Parley["upgrade"] {
  const upgrade: Parley["upgrade"] = (req, socket, head) => {
    const { server } = req.socket as Socket & { server?: Server };
    const handlers = server?.listeners("upgrade").map((listener) => HANDLERS.get(listener)) ?? [];
    // Where nobody else listens, a connection that all leave alone would stay open for ever: the first one takes it.
    const isOurs = handlers[0] === handler && handlers.every((one) => one?.owns(req) === false);
    if (!handler.owns(req) && !isOurs) return false;
    if (handler.upgrade(req, socket as Socket, head)) return true;
    if (server === undefined) return false;
    serveWithoutOffer(server, req, socket, head);
    return true;
  };
  HANDLERS.set(upgrade, handler);
  return upgrade;
}
