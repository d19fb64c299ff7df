/** Flags and environment become one frozen `Config`, once, at the start. Mistakes stop the start. */

import type { KeyKind } from "./http/caller.ts";
import { isLoopbackHost, type OriginPolicy, parseOrigins } from "./origins.ts";
import { SetupError } from "./providers/failures/provider-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export type KeyPools = Readonly<Record<KeyKind, readonly string[]>>;

export interface Config {
  readonly port: number;
  readonly host: string;
  readonly keys: KeyPools;
  readonly origins: OriginPolicy;
  /** The first signs states, all verify; empty: states are not signed. */
  readonly stateSecrets: readonly string[];
  readonly maxAttachments: number;
  readonly maxBodyBytes: number;
  readonly times: Times;
}

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
}

export interface Flags {
  port?: string | undefined;
  host?: string | undefined;
}

/** @throws SetupError that names the flag or variable and what would be right. */
export function readConfig(flags: Flags, env: Environment): Config {
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
    keys,
    origins: parseOrigins(list(env, "PARLEY_ALLOWED_ORIGINS"), openByDefault),
    stateSecrets: list(env, "PARLEY_STATE_SECRET"),
    maxAttachments: number(env, "PARLEY_MAX_ATTACHMENTS", 10, { integer: true }),
    maxBodyBytes: number(env, "PARLEY_MAX_BODY_BYTES", 64 * 1024 * 1024, { integer: true, min: 1 }),
    times: Object.freeze({
      drain: seconds(env, "PARLEY_DRAIN_SECONDS", 30, 0),
      keepAlive: seconds(env, "PARLEY_KEEP_ALIVE_SECONDS", 15),
      firstChunk: seconds(env, "PARLEY_FIRST_CHUNK_SECONDS", 60),
      idle: seconds(env, "PARLEY_IDLE_SECONDS", 60),
      run: seconds(env, "PARLEY_RUN_SECONDS", 600),
    }),
  });
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

/**
 * A comma-separated list. A variable that is set and holds nothing stops the start: somebody meant to
 * protect the server with it, and an empty list would leave it open.
 */
function list(env: Environment, name: string): readonly string[] {
  const text = env[name];
  if (text === undefined) return [];
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  if (items.length === 0) {
    throw new SetupError(`${name} is set but empty. Give it a value, or remove it.`);
  }
  return items;
}

/** Keys travel in a header, which carries visible ASCII only: any other would never be accepted. */
function keyList(env: Environment, name: string): readonly string[] {
  const keys = list(env, name);
  if (keys.every((key) => /^[\x21-\x7e]+$/.test(key))) return keys;
  throw new SetupError(
    `${name} must hold keys of visible ASCII characters without spaces, separated by commas.`,
  );
}

/** Longest time that a Node timer can wait: a longer one would fire at once. */
const MAX_SECONDS = 2_147_483;

function seconds(env: Environment, name: string, fallback: number, min = 0.001): number {
  return number(env, name, fallback, { min, max: MAX_SECONDS }) * 1000;
}

function number(
  env: Environment,
  name: string,
  fallback: number,
  { min = 0, max = Number.MAX_SAFE_INTEGER, integer = false } = {},
): number {
  const text = env[name]?.trim();
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (value >= min && value <= max && (!integer || Number.isInteger(value))) return value;
  const kind = integer ? "a whole number" : "a number";
  const limit = max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`;
  throw new SetupError(`${name} must be ${kind} from ${min}${limit}, but is "${text}".`);
}
