/** Runs that all processes with the same Redis know: a run belongs to one of them, and clients of all can read it. */

import { randomUUID } from "node:crypto";
import type { NumberedEvent } from "../protocol/events.ts";
import type { Run, RunHandle } from "../runs/run.ts";
import { cannotMark, createMemoryRunStore, type MarkKind, type RunStore } from "../runs/run-store.ts";
import { RedisAway, type RedisConnection } from "./connection.ts";
import { EventPublisher, type PublishedRun } from "./event-publisher.ts";
import { type Claim, type InstanceMessage, RemoteRun, type RunKeys } from "./remote-run.ts";

/** A run whose process died is known for so long. */
const CLAIM_MS = 30_000;
const RENEW_CLAIMS_MS = 10_000;

/** A process counts as dead when it was silent for so long. */
const HEARTBEAT_MS = 5000;
const BEAT_MS = 1500;

/** Sets the claim, or gives the one that is there. */
const CLAIM = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '' end
return redis.call('GET', KEYS[1])`;

/** A sorted set of names, each with the moment at which it is forgotten. Of too many, the oldest go, or the new one is refused. */
const MARK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local ms, max = tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known and ARGV[4] == 'refuse' and redis.call('ZCARD', KEYS[1]) >= max then return 'full' end
redis.call('ZADD', KEYS[1], now + ms, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - max)
if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], ms) end
return known and 'known' or 'new'`;

const IS_MARKED = `
local time = redis.call('TIME')
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
return ends and tonumber(ends) > time[1] * 1000 + time[2] / 1000 and 1 or 0`;

/** Deletes a claim that is still this process' own, and the events. */
const DELETE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[2], '')`;

/** Keys and values come in pairs: claim and stream, and what the claim holds. Gives the numbers of those that others have. */
const RENEW = `
local taken = {}
for i = 2, #ARGV do
  local key, stream = KEYS[2 * i - 3], KEYS[2 * i - 2]
  local claim = redis.pcall('GET', key)
  if type(claim) == 'string' and claim ~= ARGV[i] then
    table.insert(taken, i - 2)
  else
    redis.call('SET', key, ARGV[i], 'PX', ARGV[1])
    redis.call('PEXPIRE', stream, ARGV[1])
  end
end
return taken`;

/** Claims that are renewed by one command. */
const RENEWED_AT_ONCE = 200;

/** A named run of this process. */
interface OwnRun {
  run: Run;
  token: string;
  /** What Redis holds. */
  claim: string;
  events: PublishedRun;
}

export interface RedisRunStoreOptions {
  /** How long the events of a run stay after its end. */
  graceMs: number;
  /** Bytes of events that are kept of one run. */
  maxBytes: number;
}

export class RedisRunStore implements RunStore {
  readonly #redis: RedisConnection;
  readonly #instance = randomUUID();
  readonly #keys: RunKeys;
  /** The runs of this process, with those that have no name, and what holds while Redis is away. */
  readonly #own = createMemoryRunStore();
  readonly #named = new Map<string, OwnRun>();
  readonly #publisher: EventPublisher;
  /** Two messages of one name may come to this process at once: the second waits for what the first finds. */
  readonly #claiming = new Map<string, Promise<RunHandle>>();
  readonly #timers: NodeJS.Timeout[];
  #isListening = false;

  constructor(redis: RedisConnection, options: RedisRunStoreOptions) {
    this.#redis = redis;
    this.#publisher = new EventPublisher(redis, { ...options, keepMs: CLAIM_MS });
    const { prefix } = redis;
    this.#keys = {
      claim: (key) => redis.keyOf("run", key),
      events: (token) => `${prefix}events:${token}`,
      instance: (id) => `${prefix}instance:${id}`,
      inbox: (id) => `${prefix}inbox:${id}`,
      news: (token) => `${prefix}news:${token}`,
      marks: (purpose) => `${prefix}marks:${purpose}`,
    };
    const every = (ms: number, task: () => Promise<unknown>) =>
      setInterval(() => void task().catch(() => {}), ms).unref();
    this.#timers = [every(BEAT_MS, () => this.#beat()), every(RENEW_CLAIMS_MS, () => this.#renewClaims())];
    // It may have lost everything, and readers elsewhere wait for a sign.
    redis.onReturn(() => {
      this.#beat().catch(() => {});
      this.#renewClaims().catch(() => {});
    });
  }

  /** Makes this process known. Does nothing while Redis is away; it is tried on and on. */
  async open(): Promise<void> {
    await this.#beat().catch(() => {});
  }

  async claim(key: string, run: Run, isNamed: boolean): Promise<RunHandle> {
    if (!isNamed) return this.#own.claim(key, run, false);
    const known = this.#claiming.get(key) ?? this.#named.get(key)?.run;
    if (known !== undefined) return known;
    const claiming = this.#claim(key, run).finally(() => this.#claiming.delete(key));
    this.#claiming.set(key, claiming);
    return claiming;
  }

  async find(key: string): Promise<RunHandle | undefined> {
    const own = this.#claiming.get(key) ?? (await this.#own.find(key));
    if (own !== undefined) return own;
    const claim = await this.#orAlone(() => this.#redis.command("GET", this.#keys.claim(key)), null);
    // It may have become this process' own meanwhile.
    const late = this.#claiming.get(key) ?? this.#named.get(key)?.run;
    if (late !== undefined || typeof claim !== "string") return late;
    return new RemoteRun(this.#redis, key, claim, this.#keys);
  }

  async forget(key: string, run: Run): Promise<void> {
    await this.#own.forget(key, run);
    const named = this.#named.get(key);
    if (named?.run !== run) return;
    this.#named.delete(key);
    const { events, claim, token } = named;
    // Of a run that was answered to its end, Redis keeps the events, also when this process stops.
    if (events.isEnded) await this.#publisher.finish(events);
    else {
      events.close();
      const keys = [this.#keys.claim(key), this.#keys.events(token)];
      await this.#orAlone(() => this.#redis.script(DELETE, keys, [claim, this.#keys.news(token)]), undefined);
    }
    // What Redis has not taken by now will not be read.
    events.close();
  }

  async mark(key: string, ms: number, kind: MarkKind): Promise<"new" | "known"> {
    const { purpose, max, alone } = kind;
    // Known here also when Redis is away later.
    const own = alone === "allow" ? await this.#own.mark(key, ms, kind) : undefined;
    const names = this.#keys.marks(purpose);
    const script = () => this.#redis.script(MARK, [names], [this.#redis.keyOf("mark", key), ms, max, alone]);
    const answer = await this.#marks(own, script);
    if (answer === "full") throw cannotMark(`There are ${max} ${purpose} already.`);
    return own === "known" || answer === "known" ? "known" : "new";
  }

  async isMarked(key: string, kind: MarkKind): Promise<boolean> {
    const own = kind.alone === "allow" ? await this.#own.isMarked(key, kind) : undefined;
    if (own === true) return true;
    const names = this.#keys.marks(kind.purpose);
    const script = () => this.#redis.script(IS_MARKED, [names], [this.#redis.keyOf("mark", key)]);
    return (await this.#marks(own, script)) === 1;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#publisher.flush();
    await this.#orAlone(() => this.#redis.command("DEL", this.#keys.instance(this.#instance)), undefined);
  }

  async #claim(key: string, run: Run): Promise<RunHandle> {
    const token = randomUUID();
    const claim: Claim = { instance: this.#instance, id: run.id, digest: run.digest, token };
    const text = JSON.stringify(claim);
    const script = () => this.#redis.script(CLAIM, [this.#keys.claim(key)], [text, CLAIM_MS]);
    const other = await this.#orAlone(script, "");
    if (typeof other === "string" && other !== "") return new RemoteRun(this.#redis, key, other, this.#keys);
    const events = this.#publisher.open({
      stream: this.#keys.events(token),
      claimKey: this.#keys.claim(key),
      claim: text,
      news: this.#keys.news(token),
      onTaken: () => this.#lose(key, run),
    });
    this.#named.set(key, { run, token, claim: text, events });
    run.onEvents = (batch: readonly NumberedEvent[]) => events.add(batch);
    return this.#own.claim(key, run, true);
  }

  /**
   * Another process has answered the message under this name, while this one could not be reached. Were both answers read
   * under one name, a client could get the beginning of one and the end of the other.
   */
  #lose(key: string, run: Run): void {
    const named = this.#named.get(key);
    if (named?.run !== run) return;
    this.#named.delete(key);
    named.events.close();
    void this.#own.forget(key, run);
    run.abort("lost");
  }

  async #beat(): Promise<void> {
    if (!this.#isListening) {
      await this.#redis.listen(this.#keys.inbox(this.#instance), (message) => this.#receive(message));
      this.#isListening = true;
    }
    await this.#redis.command("SET", this.#keys.instance(this.#instance), 1, "PX", HEARTBEAT_MS);
  }

  async #renewClaims(): Promise<void> {
    const keys = [...this.#named.keys()];
    for (let from = 0; from < keys.length; from += RENEWED_AT_ONCE) {
      const some = keys.slice(from, from + RENEWED_AT_ONCE).flatMap((key) => {
        const named = this.#named.get(key);
        return named === undefined || named.run.isEnded ? [] : [{ key, ...named }];
      });
      if (some.length === 0) continue;
      const names = some.flatMap(({ key, token }) => [this.#keys.claim(key), this.#keys.events(token)]);
      const taken = await this.#redis.script(RENEW, names, [CLAIM_MS, ...some.map(({ claim }) => claim)]);
      for (const index of taken as number[]) {
        const lost = some[index];
        if (lost !== undefined) this.#lose(lost.key, lost.run);
      }
    }
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as InstanceMessage;
    const named = [...this.#named.values()].find(({ token }) => token === message.token);
    if (named === undefined) return;
    if (message.type === "hold") named.run.hold(message.ms);
    else if (message.type === "stop") void named.run.stop();
    else named.run.discard();
  }

  /** While Redis is away, gives what this process knows, or rejects where that is not enough. */
  async #marks<Own>(own: Own, shared: () => Promise<unknown>): Promise<unknown> {
    try {
      return await shared();
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error;
      if (own === undefined) throw cannotMark("Redis is away.");
      return own;
    }
  }

  async #orAlone<Value>(shared: () => Promise<Value>, alone: Value): Promise<Value> {
    try {
      return await shared();
    } catch (error) {
      if (error instanceof RedisAway) return alone;
      throw error;
    }
  }
}
