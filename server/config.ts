/** Flags and environment become one frozen `Config`, once, at the start. Mistakes stop the start. */

import type { ToolLimits } from "./agent/runner.ts";
import type { KeyKind } from "./http/caller.ts";
import type { ProxyPolicy } from "./limits/client-address.ts";
import type { Limits } from "./limits/limits.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "./log.ts";
import { type MemoryDefaults, memoryDefaults } from "./memory-defaults.ts";
import { crypto } from "./node/crypto.ts";
import { isLoopbackHost, type OriginPolicy, parseOrigins } from "./origins.ts";
import { SetupError } from "./providers/failures/provider-error.ts";
import { LIVE_LIMITS, readLimits, readMessageLimits, readResume, readToolLimits } from "./read-limits.ts";
import { readProxies } from "./read-proxies.ts";
import { type Environment, keyList, list, number, oneOf, seconds } from "./read-setting.ts";
import { readWorkers } from "./read-workers.ts";
import type { MessageLimits } from "./routes/parse-chat.ts";
import type { ResumeSettings } from "./runs/run-hub.ts";

export type { Environment };

export type KeyPools = Readonly<Record<KeyKind, readonly string[]>>;

export interface LogSettings {
  /** Without one the command decides: pretty on a terminal, JSON elsewhere. */
  readonly format: LogFormat | undefined;
  readonly level: LogLevel;
}

export interface Config {
  readonly port: number;
  readonly host: string;
  /** Processes that serve. 1: this one does, without any others. */
  readonly workers: number;
  readonly keys: KeyPools;
  readonly origins: OriginPolicy;
  /** The first signs states, all verify; empty: states are not signed. */
  readonly stateSecrets: readonly string[];
  readonly maxAttachments: number;
  readonly maxBodyBytes: number;
  /** How many bodies over 1 MiB are read at once. */
  readonly maxLargeBodies: number;
  /** Bytes per second that one of them must bring; 0: any pace. */
  readonly minUploadRate: number;
  /** Bytes of all messages that are being received or answered. */
  readonly maxRequestBytesTotal: number;
  /** TCP connections, idle ones included. */
  readonly maxConnections: number;
  readonly message: MessageLimits;
  readonly tools: ToolLimits;
  readonly limits: Limits;
  /** How long and how much of a run is kept for a client that lost its line. */
  readonly resume: ResumeSettings;
  readonly proxies: ProxyPolicy;
  readonly times: Times;
  /** New at each start. What ids of keys and places of runs are made with, so that they tell nothing of either. */
  readonly idSecret: () => Buffer;
  readonly log: LogSettings;
  /** Whether `GET /metrics` is served. */
  readonly metrics: boolean;
}

/** What can change while the server runs. */
export type LiveConfig = Pick<
  Config,
  "keys" | "origins" | "stateSecrets" | "maxAttachments" | "message" | "tools" | "limits" | "proxies"
>;

export function livePartOf(config: Config): LiveConfig {
  const { keys, origins, stateSecrets, maxAttachments, message, tools, limits, proxies } = config;
  return { keys, origins, stateSecrets, maxAttachments, message, tools, limits, proxies };
}

/** The variables behind it. */
export const LIVE_SETTINGS: ReadonlySet<string> = new Set([
  "PARLEY_API_KEY",
  "PARLEY_CHAT_KEY",
  "PARLEY_WIDGET_KEY",
  "PARLEY_ALLOWED_ORIGINS",
  "PARLEY_STATE_SECRET",
  "PARLEY_MAX_ATTACHMENTS",
  ...LIVE_LIMITS,
]);

/** All in milliseconds. */
export interface Times {
  /** How long running answers may finish after SIGTERM. */
  readonly drain: number;
  /** Silence on an SSE stream before a comment is sent. */
  readonly keepAlive: number;
  /** From a model request to the first byte of its answer. */
  readonly firstChunk: number;
  /** Silence inside a model's answer. */
  readonly idle: number;
  /** A whole run: model requests and tools. */
  readonly run: number;
  /** For which a client may take nothing of what is sent to it. */
  readonly send: number;
  /** For a request's headers. */
  readonly header: number;
  /** For a whole request with its body, and for one large socket message. */
  readonly body: number;
}

export interface Flags {
  port?: string | undefined;
  host?: string | undefined;
  workers?: string | undefined;
}

/**
 * `memory`: defaults that follow from the heap of this process.
 * @throws SetupError that names the flag or variable and what would be right.
 */
export function readConfig(flags: Flags, env: Environment, memory = memoryDefaults()): Config {
  // An empty one would listen on every address: `--host "$UNSET"` must not publish a server.
  const host = flags.host || env.HOST || "127.0.0.1";
  const keys: KeyPools = {
    api: keyList(env, "PARLEY_API_KEY"),
    chat: keyList(env, "PARLEY_CHAT_KEY"),
    widget: keyList(env, "PARLEY_WIDGET_KEY"),
  };
  const openByDefault = hasKeys(keys) || !isLoopbackHost(host);
  return Object.freeze({
    port: readPort(flags, env),
    host,
    workers: readWorkers(flags.workers, env),
    keys,
    origins: parseOrigins(list(env, "PARLEY_ALLOWED_ORIGINS"), openByDefault),
    stateSecrets: list(env, "PARLEY_STATE_SECRET"),
    maxAttachments: number(env, "PARLEY_MAX_ATTACHMENTS", 10, { integer: true }),
    ...readBodyBytes(env, memory),
    maxLargeBodies: number(env, "PARLEY_MAX_LARGE_BODIES", 8, { integer: true, min: 1 }),
    minUploadRate: number(env, "PARLEY_MIN_UPLOAD_RATE", 16_384, { integer: true }),
    maxConnections: number(env, "PARLEY_MAX_CONNECTIONS", 10_000, { integer: true, min: 1 }),
    message: readMessageLimits(env),
    tools: readToolLimits(env),
    limits: readLimits(env),
    resume: readResume(env, memory),
    proxies: readProxies(env),
    idSecret: newSecret(),
    metrics: oneOf(env, "PARLEY_METRICS", ["on", "off"]) !== "off",
    log: Object.freeze({
      format: oneOf(env, "PARLEY_LOG", LOG_FORMATS),
      level: oneOf(env, "PARLEY_LOG_LEVEL", LOG_LEVELS) ?? "info",
    }),
    times: Object.freeze({
      drain: seconds(env, "PARLEY_DRAIN_SECONDS", 30, 0),
      keepAlive: seconds(env, "PARLEY_KEEP_ALIVE_SECONDS", 15),
      firstChunk: seconds(env, "PARLEY_FIRST_CHUNK_SECONDS", 60),
      idle: seconds(env, "PARLEY_IDLE_SECONDS", 60),
      run: seconds(env, "PARLEY_RUN_SECONDS", 600),
      send: seconds(env, "PARLEY_SEND_SECONDS", 60),
      ...readRequestTimes(env),
    }),
  });
}

/** Made by the first who asks for it: a start would wait for `node:crypto`. */
function newSecret(): () => Buffer {
  let secret: Buffer | undefined;
  return () => {
    secret ??= crypto().randomBytes(32);
    return secret;
  };
}

function readBodyBytes(
  env: Environment,
  { bodyBytes, requestBytesTotal }: MemoryDefaults,
): Pick<Config, "maxBodyBytes" | "maxRequestBytesTotal"> {
  const whole = { integer: true, min: 1 };
  const maxBodyBytes = number(env, "PARLEY_MAX_BODY_BYTES", bodyBytes, whole);
  const fallback = Math.max(requestBytesTotal, maxBodyBytes);
  const total = number(env, "PARLEY_MAX_REQUEST_BYTES_TOTAL", fallback, whole);
  if (total >= maxBodyBytes) return { maxBodyBytes, maxRequestBytesTotal: total };
  throw new SetupError(
    `PARLEY_MAX_REQUEST_BYTES_TOTAL must not be below PARLEY_MAX_BODY_BYTES (${maxBodyBytes}), or the largest message would never be taken.`,
  );
}

function readRequestTimes(env: Environment): Pick<Times, "header" | "body"> {
  const header = seconds(env, "PARLEY_HEADER_SECONDS", 20);
  // 64 MiB at about 5 Mbit/s.
  const body = seconds(env, "PARLEY_BODY_SECONDS", 120);
  if (header <= body) return { header, body };
  throw new SetupError(
    "PARLEY_HEADER_SECONDS must not be above PARLEY_BODY_SECONDS, which counts from the same moment.",
  );
}

/** Everything in the environment that must never be written down: keys, tokens and secrets, ours and others'. */
export function secretsOf(env: Environment): string[] {
  return Object.entries(env)
    .filter(([name]) => /_(?:KEY|TOKEN|SECRET|PASSWORD)(?:_|$)/.test(name))
    .flatMap(([, value = ""]) => [value, ...value.split(",")])
    .map((value) => value.trim())
    .filter((value) => value.length >= MIN_SECRET_CHARS);
}

/** Shorter values are words that a log needs. */
const MIN_SECRET_CHARS = 6;

export function hasKeys(keys: KeyPools): boolean {
  return Object.values(keys).some((pool) => pool.length > 0);
}

function readPort(flags: Flags, env: Environment): number {
  const [name, text] = flags.port === undefined ? ["PORT", env.PORT] : ["--port", flags.port];
  if (text === undefined || text === "") return 8080;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new SetupError(`${name} must be a number from 0 to 65535, but is "${text}".`);
}
