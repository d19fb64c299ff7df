/** Runs that all processes with the same Redis know: a run belongs to one of them, and clients of all can read it. */

import { randomUUID } from "node:crypto";
import type { NumberedEvent } from "../protocol/events.ts";
import type { Run, RunHandle } from "../runs/run.ts";
import { createMemoryRunStore, type RunStore } from "../runs/run-store.ts";
import { RedisAway, type RedisConnection } from "./connection.ts";
import { EventPublisher } from "./event-publisher.ts";
import { type Claim, type InstanceMessage, RemoteRun, type RunKeys } from "./remote-run.ts";

/** A run whose process died is known for so long. */
const CLAIM_MS = 30_000;
const RENEW_CLAIMS_MS = 10_000;

/** A process counts as dead when it was silent for so long. */
const HEARTBEAT_MS = 5000;
const BEAT_MS = 1500;

const EARLY_CANCEL_MS = 10 * 60_000;

/** Sets the claim, or gives the one that is there. */
const CLAIM = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '' end
return redis.call('GET', KEYS[1])`;

export interface RedisRunStoreOptions {
  /** How long the events of a run stay after its end. */
  graceMs: number;
  /** Bytes of events that are kept of one run. */
  maxBytes: number;
}

export class RedisRunStore implements RunStore {
  readonly #redis: RedisConnection;
  readonly #options: RedisRunStoreOptions;
  readonly #instance = randomUUID();
  readonly #keys: RunKeys;
  /** The runs of this process, with those that have no name, and what holds while Redis is away. */
  readonly #own = createMemoryRunStore();
  readonly #publishers = new Map<string, EventPublisher>();
  readonly #runs = new Map<string, Run>();
  /** Two messages of one name may come to this process at once: the second waits for what the first finds. */
  readonly #claiming = new Map<string, Promise<RunHandle>>();
  readonly #timers: NodeJS.Timeout[];
  #isListening = false;

  constructor(redis: RedisConnection, options: RedisRunStoreOptions) {
    this.#redis = redis;
    this.#options = options;
    const { prefix } = redis;
    this.#keys = {
      claim: (key) => `${prefix}run:${key}`,
      events: (key) => `${prefix}events:${key}`,
      cancel: (key) => `${prefix}cancel:${key}`,
      instance: (id) => `${prefix}instance:${id}`,
      inbox: (id) => `${prefix}inbox:${id}`,
      news: (key) => `${prefix}news:${key}`,
    };
    const every = (ms: number, task: () => Promise<unknown>) =>
      setInterval(() => void task().catch(() => {}), ms).unref();
    this.#timers = [every(BEAT_MS, () => this.#beat()), every(RENEW_CLAIMS_MS, () => this.#renewClaims())];
  }

  /** Makes this process known. Does nothing while Redis is away; it is tried on and on. */
  async open(): Promise<void> {
    await this.#beat().catch(() => {});
  }

  async claim(key: string, run: Run, isNamed: boolean): Promise<RunHandle> {
    const known = this.#claiming.get(key) ?? (await this.#own.find(key));
    if (known !== undefined) return known;
    if (!isNamed) return this.#own.claim(key, run, false);
    const claiming = this.#claim(key, run).finally(() => this.#claiming.delete(key));
    this.#claiming.set(key, claiming);
    return claiming;
  }

  async find(key: string): Promise<RunHandle | undefined> {
    const own = this.#claiming.get(key) ?? (await this.#own.find(key));
    if (own !== undefined) return own;
    const claim = await this.#orAlone(() => this.#redis.command("GET", this.#keys.claim(key)), null);
    return typeof claim === "string" ? this.#remoteRun(key, claim) : undefined;
  }

  async forget(key: string): Promise<void> {
    await this.#own.forget(key);
    this.#runs.delete(key);
    const publisher = this.#publishers.get(key);
    if (publisher === undefined) return;
    // Of a run that was answered to its end, Redis keeps the events, also when this process stops.
    if (publisher.isEnded) await publisher.flush();
    else await this.#orAlone(() => this.#delete(key), undefined);
    this.#publishers.delete(key);
  }

  async cancelEarly(key: string): Promise<void> {
    await this.#own.cancelEarly(key);
    await this.#orAlone(() => this.#redis.command("SET", this.#keys.cancel(key), 1, "PX", EARLY_CANCEL_MS), undefined);
  }

  async isCancelledEarly(key: string): Promise<boolean> {
    if (await this.#own.isCancelledEarly(key)) return true;
    return (await this.#orAlone(() => this.#redis.command("EXISTS", this.#keys.cancel(key)), 0)) === 1;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.allSettled([...this.#publishers.values()].map((publisher) => publisher.flush()));
    await this.#orAlone(() => this.#redis.command("DEL", this.#keys.instance(this.#instance)), undefined);
  }

  async #claim(key: string, run: Run): Promise<RunHandle> {
    const claim: Claim = { instance: this.#instance, id: run.id, digest: run.digest };
    const script = () => this.#redis.script(CLAIM, [this.#keys.claim(key)], [JSON.stringify(claim), CLAIM_MS]);
    const other = await this.#orAlone(script, "");
    if (typeof other === "string" && other !== "") return this.#remoteRun(key, other);
    const { graceMs, maxBytes } = this.#options;
    const publisher = new EventPublisher(this.#redis, {
      stream: this.#keys.events(key),
      claim: this.#keys.claim(key),
      news: this.#keys.news(key),
      maxBytes,
      keepMs: CLAIM_MS,
      graceMs,
    });
    this.#publishers.set(key, publisher);
    this.#runs.set(key, run);
    run.onEvents = (events: readonly NumberedEvent[]) => publisher.add(events);
    return this.#own.claim(key, run, true);
  }

  #remoteRun(key: string, claim: string): RemoteRun {
    return new RemoteRun(this.#redis, key, JSON.parse(claim) as Claim, this.#keys, this.#options.graceMs);
  }

  async #delete(key: string): Promise<void> {
    await this.#redis.command("DEL", this.#keys.claim(key), this.#keys.events(key));
    await this.#redis.command("PUBLISH", this.#keys.news(key), "");
  }

  async #beat(): Promise<void> {
    if (!this.#isListening) {
      await this.#redis.listen(this.#keys.inbox(this.#instance), (message) => this.#receive(message));
      this.#isListening = true;
    }
    await this.#redis.command("SET", this.#keys.instance(this.#instance), 1, "PX", HEARTBEAT_MS);
  }

  async #renewClaims(): Promise<void> {
    for (const [key, run] of this.#runs) {
      if (run.isEnded) continue;
      const claim: Claim = { instance: this.#instance, id: run.id, digest: run.digest };
      await this.#redis.command("SET", this.#keys.claim(key), JSON.stringify(claim), "PX", CLAIM_MS);
      await this.#redis.command("PEXPIRE", this.#keys.events(key), CLAIM_MS);
    }
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as InstanceMessage;
    const run = this.#runs.get(message.key);
    if (run === undefined) return;
    if (message.type === "hold") run.hold(message.ms);
    else if (message.type === "stop") void run.stop();
    else run.discard();
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
