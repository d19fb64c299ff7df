/** Limits of one key, address and user, and of this process. Every limit is a setting that may change while it is in use. */

import type { Caller } from "../auth/access.ts";
import { addressGroup } from "../auth/client-address.ts";
import type { Settings } from "../config/settings.ts";
import { ApiError } from "../protocol/errors.ts";
import {
  createMemoryLimiter,
  type Limiter,
  MemoryRates,
  once,
  type Rate,
  type Release,
  type SlotPool,
  type Waiting,
} from "./limiter.ts";

/** The limit that refused a message, a socket or a key: of one key, address or user or, with `all_`, of the process. */
export type LimitName = "messages" | "runs" | "sockets" | "wrong_keys" | "all_runs" | "all_sockets";

export type { Release };

/** Seconds until a client should try again, where it is unknown when slots become free. */
const RETRY_AFTER_SECONDS = 2;

/** How many large messages may wait for a slot. */
const MAX_WAITING_UPLOADS = 64;

/** One address may have a quarter of the slots for large messages, so that a slow client does not keep others out. */
const UPLOAD_SHARE = 4;

export class MessageLimits {
  readonly #shared: Limiter;
  /** Limits per process: each further process allows as much again. */
  readonly #own = createMemoryLimiter();
  readonly #settings: Settings;
  readonly #onRefused: (limit: LimitName) => void;

  /**
   * `shared` counts the use by one key, address or user in all processes together. `onRefused` is called with the limit
   * that refused something.
   */
  constructor(shared: Limiter, settings: Settings, onRefused: (limit: LimitName) => void) {
    this.#shared = shared;
    this.#settings = settings;
    this.#onRefused = onRefused;
  }

  /**
   * Called for each key. Counts a wrong one in the same step, so that parallel guesses get no more tries than
   * sequential ones. @throws ApiError `rate_limited` after too many wrong keys from this address, also for a right one
   */
  async admitKey(address: string, isWrong: boolean): Promise<void> {
    const rate = this.#wrongKeys(address);
    const wait = await (isWrong ? this.#shared.take([rate]) : this.#shared.peek(rate));
    if (wait > 0) this.#refuse("wrong_keys", "Too many wrong keys came from this address.", wait);
  }

  /** Called before a message is read, and before `authenticate` is asked who sends it. @throws ApiError `rate_limited` */
  async admitMessage(caller: Caller): Promise<void> {
    this.#refuseMessage(await this.#shared.take(this.#messageRates(caller)));
  }

  /**
   * Called before `authenticate` is asked who sends a request that counts as a message only if it is refused. Takes from a
   * separate rate: otherwise a client could guess many tokens before the first one is counted. @throws ApiError `rate_limited`
   */
  async admitReader(caller: Caller): Promise<void> {
    const peeked = this.#messageRates(caller).map((rate) => this.#shared.peek(rate));
    const waits = await Promise.all([this.#takeAside("resumes", caller.address), ...peeked]);
    this.#refuseMessage(Math.max(...waits));
  }

  /** Counts a request that is not a message, but costs as much. */
  async countAsMessage(caller: Caller): Promise<void> {
    await this.#shared.take(this.#messageRates(caller));
  }

  /** Whether this address may ask who it is. Uses a separate rate, so that loading the page does not use up messages. */
  async takeInfo(address: string): Promise<boolean> {
    return (await this.#takeAside("info", address)) === 0;
  }

  /** Called once the user who sends a message is known. @throws ApiError `rate_limited` */
  async admitUser({ user }: Caller): Promise<void> {
    const shares = shareOfUser(user, this.#settings.ratePerUser);
    this.#refuseMessage(await this.#shared.take(shares.map(messageRate)));
  }

  /**
   * Called before the model is asked; waits for a slot. Rejects with the signal's reason when it is aborted meanwhile.
   * @throws ApiError `rate_limited` or `overloaded`
   */
  admitRun(caller: Caller, signal: AbortSignal): Promise<Release> {
    const { maxRuns, maxRunsPerKey, maxRunsPerAddress, widgetMaxRunsPerAddress, maxRunsPerUser } = this.#settings;
    const isWidget = caller.keyKind === "widget";
    const shares = [
      ...sharesOf(caller, maxRunsPerKey, isWidget ? widgetMaxRunsPerAddress : maxRunsPerAddress),
      ...shareOfUser(caller.user, maxRunsPerUser),
    ];
    const ofCaller = shares.map(({ name, max }): WantedSlot => {
      const pool = { name: `runs ${name}`, max };
      const refusal = () => tryAgain("rate_limited", "Too many of your messages are being answered. Please try again.");
      return { acquire: () => this.#shared.acquire(pool), limit: "runs", refusal };
    });
    const waiting = { maxWaiting: this.#settings.maxQueuedRuns, maxMs: this.#settings.queueSeconds * 1000, signal };
    const all: WantedSlot = {
      acquire: () => this.#own.acquire({ name: "runs", max: maxRuns }, waiting),
      limit: "all_runs",
      refusal: () => overloaded(waiting),
    };
    return this.#acquireAll([...ofCaller, all]);
  }

  /** @throws ApiError `rate_limited` or `overloaded` */
  admitSocket({ address }: Caller): Promise<Release> {
    const all: WantedSlot = {
      acquire: () => this.#own.acquire({ name: "sockets", max: this.#settings.maxSockets }),
      limit: "all_sockets",
      refusal: () => tryAgain("overloaded", "The server has too many connections. Please try again."),
    };
    const ofCaller = shareOf(address, this.#settings.maxSocketsPerAddress).map(({ name, max }): WantedSlot => {
      const pool = { name: `sockets ${name}`, max };
      const refusal = () => tryAgain("rate_limited", "Too many connections are open from this address.");
      return { acquire: () => this.#shared.acquire(pool), limit: "sockets", refusal };
    });
    return this.#acquireAll([all, ...ofCaller]);
  }

  /** Waits until a large message may be read. @throws ApiError `overloaded` */
  admitUpload(address: string, signal: AbortSignal): Promise<Release> {
    const max = this.#settings.maxLargeBodies;
    // The request itself times out after this time.
    const waiting = { maxWaiting: MAX_WAITING_UPLOADS, maxMs: this.#settings.bodySeconds * 1000, signal };
    const pools = [...shareOf(address, Math.ceil(max / UPLOAD_SHARE)), { name: "all", max }];
    const wanted = pools.map(({ name, max: most }): WantedSlot => {
      const pool = { name: `uploads ${name}`, max: most };
      return { acquire: () => this.#own.acquire(pool, waiting), refusal: () => overloaded(waiting) };
    });
    return this.#acquireAll(wanted);
  }

  socketRate(): SocketRate {
    return new SocketRate(this.#settings);
  }

  /** Wrong keys from loopback addresses are counted together: they may come through a proxy that the settings do not name. */
  #wrongKeys(address: string): Rate {
    return { name: `wrong keys ${addressGroup(address) ?? "loopback"}`, perMinute: this.#settings.wrongKeysPerAddress };
  }

  #messageRates(caller: Caller): Rate[] {
    const { ratePerKey, ratePerAddress, widgetRatePerAddress } = this.#settings;
    const isWidget = caller.keyKind === "widget";
    return sharesOf(caller, ratePerKey, isWidget ? widgetRatePerAddress : ratePerAddress).map(messageRate);
  }

  /** Takes from a separate rate, as large as that of the address's messages. Returns as `take` does. */
  #takeAside(kind: string, address: string): Promise<number> {
    const shares = shareOf(address, this.#settings.ratePerAddress, kind);
    return this.#shared.take(shares.map(({ name, max }) => ({ name, perMinute: max })));
  }

  #refuseMessage(wait: number): void {
    if (wait > 0) this.#refuse("messages", "Too many messages were sent. Please wait a little.", wait);
  }

  #refuse(limit: LimitName, sentence: string, waitMs: number): never {
    this.#onRefused(limit);
    throw rateLimited(sentence, waitMs);
  }

  /** Acquires a slot of each pool, or none. @throws ApiError of the first pool that is full */
  async #acquireAll(wanted: readonly WantedSlot[]): Promise<Release> {
    const acquired: Release[] = [];
    const releaseAll = once(() => {
      for (const release of acquired) release();
    });
    try {
      for (const { acquire, limit, refusal } of wanted) {
        const release = await acquire();
        if (release === undefined) {
          if (limit !== undefined) this.#onRefused(limit);
          throw refusal();
        }
        acquired.push(release);
      }
    } catch (error) {
      releaseAll();
      throw error;
    }
    return releaseAll;
  }
}

interface WantedSlot {
  acquire(): Promise<Release | undefined>;
  /** Its name in the metrics. */
  limit?: LimitName;
  refusal(): ApiError;
}

/** The pools of the caller's key and address. With a widget key, an address has a separate pool with another limit. */
function sharesOf({ keyKind, keyId, address }: Caller, ofKey: number, ofAddress: number): SlotPool[] {
  const ownKey = keyKind === "none" ? [] : [{ name: `key ${keyId}`, max: ofKey }];
  return [...ownKey, ...shareOf(address, ofAddress, keyKind === "widget" ? "widget" : "address")];
}

function shareOfUser(user: Caller["user"], max: number): SlotPool[] {
  return user === undefined ? [] : [{ name: `user ${user.id}`, max }];
}

function messageRate({ name, max }: SlotPool): Rate {
  return { name: `messages ${name}`, perMinute: max };
}

/** Empty for an address that is not counted. */
function shareOf(address: string, max: number, kind = "address"): SlotPool[] {
  const group = addressGroup(address);
  return group === undefined ? [] : [{ name: `${kind} ${group}`, max }];
}

/** Refused messages in a row after which a client counts as a broken or hostile program, not as a hasty person. */
const MAX_REFUSED_IN_A_ROW = 20;

/** The rate of one socket, counted in this process, which alone has the socket. */
export class SocketRate {
  readonly #settings: Settings;
  readonly #rates = new MemoryRates();
  #refusedInARow = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Whether the client keeps sending although it is refused. */
  get isAbused(): boolean {
    return this.#refusedInARow >= MAX_REFUSED_IN_A_ROW;
  }

  /** Counts a message. @throws ApiError `rate_limited` */
  count(): void {
    const wait = this.#rates.take([{ name: "messages", perMinute: this.#settings.ratePerSocket }]);
    this.#refusedInARow = wait > 0 ? this.#refusedInARow + 1 : 0;
    if (wait > 0) throw rateLimited("Too many messages on this connection. Please wait a moment.", wait);
  }
}

function rateLimited(message: string, waitMs: number): ApiError {
  return new ApiError("rate_limited", message, { retryAfter: Math.ceil(waitMs / 1000) });
}

function tryAgain(code: "rate_limited" | "overloaded", message: string): ApiError {
  return new ApiError(code, message, { retryAfter: RETRY_AFTER_SECONDS });
}

function overloaded({ maxMs }: Waiting): ApiError {
  return new ApiError("overloaded", "The server is busy. Please try again.", {
    retryAfter: Math.max(Math.ceil(maxMs / 1000), 1),
  });
}
