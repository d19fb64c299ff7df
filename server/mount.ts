/** What hosts import as `parley-agent/server`: an agent on the host's own server. */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AGENT_FIELDS, type AgentModule, checkModule } from "./agent/define.ts";
import { meantField } from "./agent/fields.ts";
import { approvalNotice, stateSecretWarning } from "./agent/served-agent.ts";
import { mountedEnvironment, unknownNames } from "./config/environment.ts";
import { basePath as basePathKind } from "./config/kinds.ts";
import { loadOpenTelemetry, loadOptionalPackage } from "./config/optional-package.ts";
import { readSettings, UNKNOWN_HOST } from "./config/settings.ts";
import { ConfigError } from "./errors.ts";
import type { Handler } from "./http/dispatch.ts";
import { serveWithoutOffer } from "./http/server.ts";
import type { Log } from "./observe/log.ts";
import type { AgentDefinition, Authenticate } from "./parley-agent.ts";
import { publicFolder } from "./project/own-files.ts";
import { isRecord } from "./protocol/json.ts";
import { createCore } from "./server.ts";

/** A module that exports an agent, as `import * as agent` imports it. */
export interface AgentExports {
  /** What `defineAgent` returned. */
  default: AgentDefinition;
  /** Says who sends each message. */
  authenticate?: Authenticate | undefined;
  /** Closes what the module has opened; called after the agent's last run. */
  close?: (() => unknown) | undefined;
}

export interface ParleyOptions {
  /**
   * What `defineAgent` returned, or the module that exports it, imported with `import * as agent`. The module's
   * `authenticate` and `close` are used, too.
   */
  agent: AgentDefinition | AgentExports;
  /** Says who sends each message, if the agent's module does not export `authenticate`. */
  authenticate?: Authenticate | undefined;
  /** Settings by their names, such as `PARLEY_STATE_SECRET`. They override the environment; no `.env` is read. */
  settings?: Readonly<Record<string, string>> | undefined;
  /** Prefix of all paths, such as `/support`. Default: none. */
  basePath?: string | undefined;
}

/** An agent that your own server serves. The functions may be passed on as they are. */
export interface Parley {
  /** Answers a request. If it is not for Parley, calls `next` or, without `next`, answers 404. */
  readonly handle: (req: IncomingMessage, res: ServerResponse, next?: () => void) => void;
  /** Accepts a WebSocket. Returns `false`, without having done anything, for an upgrade that is not for Parley. */
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
  /** Takes no new messages, lets running answers end within `PARLEY_DRAIN_SECONDS`, and closes the sockets. */
  readonly close: () => Promise<void>;
  /** The metrics in Prometheus' text format. */
  readonly metrics: () => Promise<string>;
}

/** Rejects with an error that says what is wrong with the agent, a setting or an option. */
export async function createParley(options: ParleyOptions): Promise<Parley> {
  const { module, given } = checkOptions(options);
  const env = mountedEnvironment(process.env, given);
  const settings = { ...readSettings(env), host: UNKNOWN_HOST };
  const tracing = loadOpenTelemetry(undefined);
  const { handler, log, metrics, drain, begin } = await createCore({
    ...module,
    settings,
    env,
    publicFolder,
    loadPackage: (name, only) => loadOptionalPackage(name, undefined, only),
    openTelemetry: tracing.api,
  });
  const secretWarning = stateSecretWarning(module, settings);
  const identity = { id: module.agent.id, secrets: [...settings.stateSecrets, settings.redisUrl].filter(Boolean) };
  const warningOfTwin = twinWarning(identity);
  identities.add(identity);
  for (const warning of [
    secretWarning,
    warningOfTwin,
    approvalNotice(module, settings),
    tracing.problem,
    ...unknownNames(process.env),
  ]) {
    if (warning !== undefined) log.warning(warning);
  }
  begin();
  let closed: Promise<void> | undefined;
  return {
    handle: handleOf(handler, settings.basePath, log),
    upgrade: upgradeOf(handler),
    close() {
      closed ??= drain().finally(() => identities.delete(identity));
      return closed;
    },
    metrics: async () => metrics(),
  };
}

/** An agent accepts states with its id that are signed with one of these secrets, or are in the same Redis. */
interface Identity {
  readonly id: string;
  readonly secrets: readonly string[];
}

/** The agents that this process serves, only for the warning. */
const identities = new Set<Identity>();

function twinWarning({ id, secrets }: Identity): string | undefined {
  const isTwin = (other: Identity) => other.id === id && other.secrets.some((secret) => secrets.includes(secret));
  if (![...identities].some(isTwin)) return undefined;
  return `This process serves another agent with the id "${id}" and the same secret or Redis, so each takes the other's conversations and approvals. Give one of them an id of its own: defineAgent({ id: "…" }). If it is the same agent made anew, close() the former one.`;
}

const OPTIONS = ["agent", "authenticate", "settings", "basePath"];

/** @throws ConfigError */
function checkOptions(options: Partial<ParleyOptions> | null | undefined) {
  const { agent, authenticate, settings = {}, basePath, ...more } = options ?? {};
  if (agent === undefined) {
    const isAgent = ["default", "model", "run"].some((field) => field in more);
    const problem = isAgent ? "takes the agent as an option" : "needs an agent";
    throw new ConfigError(`createParley ${problem}: createParley({ agent: defineAgent({ … }) }).`);
  }
  for (const name of Object.keys(more)) throw new ConfigError(`createParley has no option ${name}. ${placeOf(name)}`);
  if (!isRecord(settings)) throw new ConfigError('settings must be an object, such as { PARLEY_STATE_SECRET: "…" }.');
  const module = readModule(agent, authenticate);
  if (basePath === undefined || basePath === "") return { module, given: settings };
  if (settings.PARLEY_BASE_PATH !== undefined) {
    throw new ConfigError("Give the path once: take PARLEY_BASE_PATH out of settings, or leave basePath out.");
  }
  const given = { ...settings, PARLEY_BASE_PATH: basePathKind.parse(String(basePath), "basePath") };
  return { module, given };
}

/** Says where a name belongs that is not an option. */
function placeOf(name: string): string {
  if (Object.hasOwn(AGENT_FIELDS, name)) return `It is a field of the agent: defineAgent({ ${name}, … }).`;
  if (name === "close") return "Export it beside the agent, and pass the module, as import * as agent has it.";
  if (/^[A-Z_]+$/.test(name)) return `It is a setting: settings: { ${name}: "…" }.`;
  const meant = meantField(name, OPTIONS);
  return meant === undefined ? `Its options are ${OPTIONS.join(", ")}.` : `Did you mean ${meant}?`;
}

/** @throws ConfigError */
function readModule(agent: unknown, authenticate: unknown): AgentModule {
  const exports = exportsOf(agent);
  if (authenticate !== undefined && exports.authenticate !== undefined) {
    throw new ConfigError("The agent's module exports authenticate, and it is an option, too. Keep one of the two.");
  }
  return checkModule(authenticate === undefined ? exports : { ...exports, authenticate });
}

function exportsOf(agent: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(agent) || !("default" in agent)) return { default: agent };
  const { default: inner } = agent;
  // An ES module imports a module of CommonJS as the default export.
  return isRecord(inner) && "default" in inner ? inner : agent;
}

function handleOf(handler: Handler, basePath: string, log: Log): Parley["handle"] {
  let hasWarned = false;
  /** `baseUrl` is where Express has mounted Parley. If `basePath` does not fit, no request would ever match. */
  const warnOfOtherPath = ({ baseUrl = "" }: IncomingMessage & { baseUrl?: string }) => {
    if (hasWarned || `${basePath}/`.toLowerCase().startsWith(`${baseUrl}/`.toLowerCase())) return;
    hasWarned = true;
    const now = basePath === "" ? "has no basePath" : `has the basePath "${basePath}"`;
    log.warning(`Parley is mounted at ${baseUrl} but ${now}: pass basePath: "${baseUrl}" to createParley.`);
  };
  return (req, res, next) => {
    if (req === undefined)
      throw new ConfigError("parley.handle is the listener itself: pass it on without calling it.");
    if (next === undefined || handler.owns(req)) {
      handler.request(req, res);
      return;
    }
    warnOfOtherPath(req);
    next();
  };
}

/** By their `upgrade`, to find other agents that listen on the same server. */
const HANDLERS = new WeakMap<object, Handler>();

function upgradeOf(handler: Handler): Parley["upgrade"] {
  const upgrade: Parley["upgrade"] = (req, socket, head) => {
    const { server } = req.socket as Socket & { server?: Server };
    const handlers = server?.listeners("upgrade").map((listener) => HANDLERS.get(listener)) ?? [];
    // If only agents listen, a connection that none of them owns would stay open for ever: the first one answers it.
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
