/** The connection to Redis or Valkey: whether it is up, and commands that never wait long. */

import { createHash, createHmac, randomBytes } from "node:crypto";
import { Late, within } from "../config/within.ts";
import { ConfigError } from "../errors.ts";

/** What Parley uses of `@redis/client`. */
export interface RedisClient {
  readonly isReady: boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "ready", listener: () => void): unknown;
  connect(): Promise<unknown>;
  duplicate(): RedisClient;
  sendCommand(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  destroy(): void;
}

export interface RedisPackage {
  createClient(options: {
    url: string;
    disableOfflineQueue: boolean;
    pingInterval: number;
    socket: { connectTimeout: number; socketTimeout: number; reconnectStrategy(retries: number): number };
  }): RedisClient;
}

export interface RedisOptions {
  url: string;
  /** The beginning of every key and channel. The hash of the agent's id follows. */
  prefix: string;
  /** Processes of another agent share nothing, even on the same Redis. */
  agentId: string;
  /** Called when Redis becomes available or unavailable; `problem` says why it is not. */
  onChange(isUp: boolean, problem: string): void;
}

/** Time limit of a command, even while Redis is frozen or cut off. */
const COMMAND_MS = 500;

const CONNECT_MS = 2000;

/** How often the connection is checked, and tried again. */
const RETRY_MS = 1000;

/** A connection that is silent for this long counts as dead, even if neither end has closed it, and is replaced. */
const SILENCE_MS = 5000;

/** The beginning of a script that needs the time (`now`), in milliseconds of Redis' clock. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000`;

/** Returns the stored secret, or stores this process' own. A value of another type is replaced. */
const KEEP_SECRET = `
redis.call('SET', KEYS[1], ARGV[1], 'NX')
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'string' then return kept end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`;

/** Redis is away: this process has to do without it. */
export class RedisAway extends Error {
  override readonly name = "RedisAway";
}

export class RedisConnection {
  /** Begins every key and channel. */
  readonly prefix: string;
  readonly #client: RedisClient;
  readonly #subscriber: RedisClient;
  readonly #options: RedisOptions;
  readonly #pingTimer: NodeJS.Timeout;
  #listening: { channel: string; listener(message: string): void; hasBegun: boolean } | undefined;
  readonly #upListeners = new Set<() => void>();
  /** Kept in Redis and common to all processes: `keyOf` hashes with it. Nothing is written before it is known. */
  #secret = randomBytes(32).toString("base64url");
  readonly #ownSecret = this.#secret;
  #isUp = false;
  #isClosed = false;
  #problem = "it does not answer";

  /** @throws ConfigError for an invalid URL */
  constructor({ createClient }: RedisPackage, options: RedisOptions) {
    this.#options = options;
    this.prefix = `${options.prefix}${createHash("sha256").update(options.agentId).digest("hex").slice(0, 12)}:`;
    try {
      this.#client = createClient({
        url: options.url,
        // Without a connection, a command fails at once.
        disableOfflineQueue: true,
        pingInterval: RETRY_MS,
        socket: { connectTimeout: CONNECT_MS, socketTimeout: SILENCE_MS, reconnectStrategy: () => RETRY_MS },
      });
      this.#subscriber = this.#client.duplicate();
    } catch (cause) {
      throw new ConfigError("PARLEY_REDIS_URL must be a URL such as redis://user:password@127.0.0.1:6379/0.", {
        cause,
      });
    }
    for (const client of [this.#client, this.#subscriber]) client.on("error", (error) => this.#setUp(false, error));
    this.#pingTimer = setInterval(() => void this.#probe(), RETRY_MS).unref();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Why Redis was away last. Quotes nothing that was sent. */
  get problem(): string {
    return this.#problem;
  }

  /** The key for a client's key, address or run. Does not show the name. */
  keyOf(kind: string, name: string): string {
    return `${this.prefix}${kind}:${createHmac("sha256", this.#secret).update(name).digest("base64url")}`;
  }

  /**
   * Secrets for one purpose. All processes have the first one, as long as Redis keeps what it is derived from; the
   * second is of this process, which used it before Redis was there.
   */
  secretsFor(purpose: string): string[] {
    const derived = [this.#secret, this.#ownSecret].map((secret) =>
      createHmac("sha256", secret)
        .update(JSON.stringify([purpose]))
        .digest("base64url"),
    );
    return [...new Set(derived)];
  }

  /** Listens to this channel whenever Redis is there. To be called before `connect`. */
  listen(channel: string, listener: (message: string) => void): void {
    this.#listening = { channel, listener, hasBegun: false };
  }

  /** Calls the listener each time Redis is back, perhaps without its data. */
  onReturn(listener: () => void): void {
    this.#upListeners.add(listener);
  }

  /** Resolves when Redis is there, or not in time: it is then tried again and again. */
  async connect(): Promise<void> {
    const connecting = () => Promise.all([this.#client.connect(), this.#subscriber.connect()]);
    await within(connecting, CONNECT_MS).catch(() => {});
    await this.#probe();
  }

  /** Rejects with `RedisAway`, or with the error that Redis returns. */
  async command(...args: readonly (string | number)[]): Promise<unknown> {
    if (!this.#isUp) throw new RedisAway("Redis is away");
    return this.#send(args.map(String));
  }

  /** Runs a Lua script atomically: commands of other processes do not run in between. */
  script(source: string, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    return this.command("EVAL", source, keys.length, ...keys, ...values);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pingTimer);
    for (const client of [this.#client, this.#subscriber]) client.destroy();
  }

  /**
   * A Redis that accepts no writes, because its memory is full or it is a replica, counts as away. If Redis has lost
   * the secret, the first process to get here stores it again.
   */
  async #probe(): Promise<void> {
    if (!this.#client.isReady || !this.#subscriber.isReady) return this.#setUp(false);
    try {
      await this.#beginToListen();
      this.#secret = String(await this.#send(["EVAL", KEEP_SECRET, "1", `${this.prefix}secret`, this.#secret]));
      this.#setUp(true);
    } catch {
      // It was noticed where it happened.
    }
  }

  /** Subscribes once: the client subscribes again by itself whenever it reconnects. */
  async #beginToListen(): Promise<void> {
    const listening = this.#listening;
    if (listening === undefined || listening.hasBegun) return;
    try {
      await within(() => this.#subscriber.subscribe(listening.channel, listening.listener), COMMAND_MS);
      listening.hasBegun = true;
    } catch (error) {
      this.#setUp(false, error);
      throw error;
    }
  }

  async #send(args: readonly string[]): Promise<unknown> {
    try {
      return await within(() => this.#client.sendCommand(args), COMMAND_MS);
    } catch (error) {
      // A reply such as "OOM command not allowed" comes from a Redis that is there, but cannot be used either. Of a
      // script, Redis 6 says the same after "ERR".
      const isFault = error instanceof Error && /^(?:NOSCRIPT|WRONGTYPE|ERR)\b(?!.*-[A-Z]+ )/.test(error.message);
      if (isFault) throw error;
      this.#setUp(false, error);
      throw new RedisAway("Redis is away", { cause: error });
    }
  }

  #setUp(isUp: boolean, error?: unknown): void {
    if (this.#isClosed) return;
    if (error !== undefined) this.#problem = problemOf(error);
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    this.#options.onChange(isUp, this.#problem);
    if (isUp) for (const listener of this.#upListeners) listener();
  }
}

/** A code such as `ECONNREFUSED` or `WRONGPASS`: the message after it may quote what was sent. */
function problemOf(error: unknown): string {
  if (error instanceof Late || !(error instanceof Error)) return "it does not answer in time";
  const code = "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : (/^(?:ERR\b.*-)?([A-Z]{3,})\b/.exec(error.message)?.[1] ?? error.name);
}

/** Calls `shared` or, while Redis is away, `alone`, for what this process can do by itself. */
export async function orAlone<Value>(
  shared: () => Promise<Value>,
  alone: () => Value | Promise<Value>,
): Promise<Value> {
  try {
    return await shared();
  } catch (error) {
    if (error instanceof RedisAway) return alone();
    throw error;
  }
}
