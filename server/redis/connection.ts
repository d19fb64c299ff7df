/** The connection to Redis or Valkey: whether it is up, and commands that never wait long. */

import { createHash } from "node:crypto";
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
  unsubscribe(channel: string): Promise<void>;
  destroy(): void;
}

export interface RedisPackage {
  createClient(options: {
    url: string;
    disableOfflineQueue: boolean;
    socket: { connectTimeout: number; reconnectStrategy(retries: number): number };
  }): RedisClient;
}

export interface RedisOptions {
  url: string;
  /** Processes with another secret share nothing, even on the same Redis. */
  secret: string;
  /** Called with whether Redis is there, when that changes. */
  onChange(isUp: boolean): void;
}

/** A command takes no longer, also while Redis is frozen or cut off. */
const COMMAND_MS = 500;

const CONNECT_MS = 2000;

/** How often a Redis that was away is tried. */
const RETRY_MS = 1000;

/** Redis is away: what was asked of it has to be done in this process alone. */
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
  readonly #listeners = new Map<string, Set<(message: string) => void>>();
  #isUp = false;

  /** @throws ConfigError for a URL that is none */
  constructor({ createClient }: RedisPackage, options: RedisOptions) {
    this.#options = options;
    this.prefix = `parley:${createHash("sha256").update(options.secret).digest("hex").slice(0, 12)}:`;
    try {
      this.#client = createClient({
        url: options.url,
        // A command waits for no connection: it fails at once.
        disableOfflineQueue: true,
        socket: { connectTimeout: CONNECT_MS, reconnectStrategy: () => RETRY_MS },
      });
      this.#subscriber = this.#client.duplicate();
    } catch (cause) {
      throw new ConfigError("PARLEY_REDIS_URL must be a URL such as redis://user:password@127.0.0.1:6379/0.", {
        cause,
      });
    }
    for (const client of [this.#client, this.#subscriber]) client.on("error", () => this.#setUp(false));
    this.#pingTimer = setInterval(() => void this.#ping(), RETRY_MS).unref();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when Redis is there, or has not come in time: it is tried on and on. */
  async connect(): Promise<void> {
    const connecting = Promise.all([this.#client.connect(), this.#subscriber.connect()]);
    // It fails only when this connection is closed meanwhile.
    connecting.catch(() => {});
    await Promise.race([connecting, after(CONNECT_MS)]);
    await this.#ping();
  }

  /** Rejects with `RedisAway`, or with what Redis says is wrong. */
  async command(...args: readonly (string | number)[]): Promise<unknown> {
    if (!this.#isUp) throw new RedisAway("Redis is away");
    return this.#send(args.map(String));
  }

  /** Runs a Lua script: in one step, so that no other process comes in between. */
  script(source: string, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    return this.command("EVAL", source, keys.length, ...keys, ...values);
  }

  /** Resolves when the channel is listened to: a message that is published after that is not missed. */
  async listen(channel: string, listener: (message: string) => void): Promise<() => void> {
    if (!this.#isUp) throw new RedisAway("Redis is away");
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    if (listeners.size === 1) {
      const onMessage = (message: string) => {
        for (const each of listeners) each(message);
      };
      try {
        await within(this.#subscriber.subscribe(channel, onMessage));
      } catch (cause) {
        this.#listeners.delete(channel);
        throw new RedisAway("Redis is away", { cause });
      }
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      this.#subscriber.unsubscribe(channel).catch(() => {});
    };
  }

  close(): void {
    clearInterval(this.#pingTimer);
    for (const client of [this.#client, this.#subscriber]) client.destroy();
  }

  async #ping(): Promise<void> {
    const isReady = this.#client.isReady && this.#subscriber.isReady;
    const isUp =
      isReady &&
      (await this.#send(["PING"]).then(
        () => true,
        () => false,
      ));
    this.#setUp(isUp);
  }

  async #send(args: readonly string[]): Promise<unknown> {
    try {
      return await within(this.#client.sendCommand(args));
    } catch (error) {
      // An answer such as "OOM command not allowed" comes from a Redis that is there, and cannot be used either.
      if (error instanceof Error && /^(?:NOSCRIPT|WRONGTYPE|ERR)\b/.test(error.message)) throw error;
      this.#setUp(false);
      throw new RedisAway("Redis is away", { cause: error });
    }
  }

  #setUp(isUp: boolean): void {
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    this.#options.onChange(isUp);
  }
}

async function within<Value>(answer: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new RedisAway("Redis did not answer in time")), COMMAND_MS);
  });
  answer.catch(() => {});
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
