/** Runs that processes with the same Redis share: a run belongs to one of them, and clients of all can read it. */

import { randomUUID } from "node:crypto";
import type { Run } from "../runs/run.ts";
import type { RunHandle, RunReader } from "../runs/run-handle.ts";
import { cannotMark, createMemoryRunStore, type MarkKind, type RunStore } from "../runs/run-store.ts";
import { NOW, orAlone, type RedisConnection } from "./connection.ts";
import { EventPublisher, type PublishedRun, type PublisherOptions } from "./event-publisher.ts";
import { Inbox, type Message, type MessageType } from "./inbox.ts";
import { type Claim, eventsKey, RemoteRun } from "./remote-run.ts";

/** How long a run stays known after its process has died. */
const CLAIM_MS = 30_000;
const RENEW_CLAIMS_MS = 10_000;

/** How long a run is kept alive after another process has last sent "hold". */
const HOLD_MS = 5000;

/** Sets the claim, or returns the existing one. */
const CLAIM = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '' end
return redis.call('GET', KEYS[1])`;

/** Adds a name, with the time at which it is forgotten. Beyond `max`, the oldest go or the new one is refused. */
const SET_MARK = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known and ARGV[3] == 'refuse' and redis.call('ZCARD', KEYS[1]) >= max then return 'full' end
redis.call('ZADD', KEYS[1], now + ms, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - max)
if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], math.ceil(ms)) end
return known and 'known' or 'new'`;

const MARK = `${NOW}
local max, ms = tonumber(ARGV[2]), tonumber(ARGV[4])
${SET_MARK}`;

/** The id of Redis' current start: after a restart it may have loaded an older copy of its data from disk. */
const START = `
local info = redis.pcall('INFO', 'server')
local start = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''`;

/**
 * The ledger's name is a member of the sorted set, beside the marks: whatever removes one removes both. Returns the existing
 * name, or sets this one, followed by the id of Redis' start and the time, by its clock, until which the ledger is needed.
 */
const LEDGER = `${NOW}${START}
local ms = tonumber(ARGV[2])
local name = redis.call('ZRANGEBYSCORE', KEYS[1], '+inf', '+inf')[1]
if not name then
  name = ARGV[1]
  redis.call('ZADD', KEYS[1], '+inf', name)
end
if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], math.ceil(ms)) end
return string.format('%s.%s.%.0f', name, start, now + ms)`;

const MARK_IN = `${NOW}${START}
local max, ms = tonumber(ARGV[2]), tonumber(ARGV[6]) - now
if start ~= ARGV[5] or ms <= 0 or not redis.call('ZSCORE', KEYS[1], ARGV[4]) then return 'lost' end
${SET_MARK}`;

const IS_MARKED = `${NOW}
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
return ends and tonumber(ends) > now and 1 or 0`;

/** Deletes the claim if it is still this process' own, and the events. */
const DELETE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('DEL', KEYS[2])`;

/** A named run of this process. */
interface OwnRun {
  run: Run;
  token: string;
  /** The value of the claim in Redis. */
  claim: string;
  events: PublishedRun;
  elsewhere: ReadersElsewhere;
}

export class RedisRunStore implements RunStore {
  readonly #redis: RedisConnection;
  readonly #inbox: Inbox;
  /** All runs of this process, unnamed ones included, and the marks that are used while Redis is away. */
  readonly #own = createMemoryRunStore();
  /** Includes runs whose name is being claimed: other processes may know of them before this one does. */
  readonly #named = new Map<string, OwnRun>();
  readonly #publisher: EventPublisher;
  /** If two messages with one name arrive at once, the second waits for what the first finds. */
  readonly #claiming = new Map<string, Promise<RunHandle>>();
  readonly #timer: NodeJS.Timeout;

  constructor(redis: RedisConnection, options: Omit<PublisherOptions, "keepMs">) {
    this.#redis = redis;
    this.#publisher = new EventPublisher(redis, { ...options, keepMs: CLAIM_MS });
    this.#inbox = new Inbox(redis, (message) => this.#receive(message));
    this.#timer = setInterval(() => this.#renewClaims(), RENEW_CLAIMS_MS).unref();
    // Redis may have lost everything, also of runs that have ended.
    redis.onReturn(() => this.#renewAll());
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
    const claim = await orAlone(
      () => this.#redis.command("GET", this.#claimKey(key)),
      () => null,
    );
    // Meanwhile the name may have been claimed by this process.
    const late = this.#claiming.get(key) ?? this.#named.get(key)?.run;
    if (late !== undefined || typeof claim !== "string") return late;
    return new RemoteRun(this.#redis, this.#inbox, claim);
  }

  async forget(key: string, run: Run): Promise<void> {
    await this.#own.forget(key, run);
    const named = this.#named.get(key);
    if (named?.run !== run) return;
    this.#named.delete(key);
    const { events, claim, token } = named;
    // Redis keeps the events of a run that was answered to its end, also when this process stops.
    if (events.isEnded) await this.#publisher.finish(events);
    else {
      events.close();
      const keys = [this.#claimKey(key), eventsKey(this.#redis, token)];
      await orAlone(
        () => this.#redis.script(DELETE, keys, [claim]),
        () => undefined,
      ).finally(() => this.#emit(named, "gone"));
    }
    // What Redis has not accepted by now will not be read.
    events.close();
  }

  async mark(key: string, ms: number, kind: MarkKind): Promise<"new" | "known"> {
    const { purpose, max, alone } = kind;
    // Marked here, too, in case Redis is away later.
    const own = alone === "allow" ? await this.#own.mark(key, ms, kind) : undefined;
    const script = () =>
      this.#redis.script(MARK, [this.#marksKey(kind)], [this.#redis.keyOf("mark", key), max, alone, ms]);
    const answer = await orAlone(script, () => own ?? refuseAlone());
    if (answer === "full") throw cannotMark(`There are ${max} ${purpose} already.`);
    return own === "known" || answer === "known" ? "known" : "new";
  }

  async isMarked(key: string, kind: MarkKind): Promise<boolean> {
    const own = kind.alone === "allow" ? await this.#own.isMarked(key, kind) : undefined;
    if (own === true) return true;
    const script = () => this.#redis.script(IS_MARKED, [this.#marksKey(kind)], [this.#redis.keyOf("mark", key)]);
    return (await orAlone(script, () => own ?? refuseAlone())) === 1;
  }

  /** While Redis is away the name is "none", and calls that are proposed under it cannot be approved later. */
  async ledger(ms: number, kind: MarkKind): Promise<string> {
    const script = () => this.#redis.script(LEDGER, [this.#marksKey(kind)], [`ledger:${randomUUID()}`, ms]);
    return String(await orAlone(script, () => "none"));
  }

  /** Marks the key unhashed: if Redis lost the secret for the hash, the key would be another one. */
  async markIn(ledger: string, key: string, kind: MarkKind): Promise<"new" | "known" | "lost"> {
    const { purpose, max, alone } = kind;
    const [name = "", start = "", until = "0"] = ledger.split(".");
    const values = [key, max, alone, name, start, until];
    const answer = await orAlone(() => this.#redis.script(MARK_IN, [this.#marksKey(kind)], values), refuseAlone);
    if (answer === "full") throw cannotMark(`There are ${max} ${purpose} already.`);
    return answer === "lost" || answer === "known" ? answer : "new";
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#publisher.flush();
  }

  #claimKey(key: string): string {
    return this.#redis.keyOf("run", key);
  }

  #marksKey({ purpose }: MarkKind): string {
    return `${this.#redis.prefix}marks:${purpose}`;
  }

  async #claim(key: string, run: Run): Promise<RunHandle> {
    const token = randomUUID();
    const claim = JSON.stringify({ inbox: this.#inbox.id, id: run.id, digest: run.digest, token } satisfies Claim);
    const events = this.#publisher.open({
      stream: eventsKey(this.#redis, token),
      claimKey: this.#claimKey(key),
      claim,
      kept: () => run.log.kept(),
      onWritten: () => this.#emit(own, "news"),
      onTaken: () => this.#lose(key, run),
    });
    const own: OwnRun = { run, token, claim, events, elsewhere: new ReadersElsewhere(run) };
    this.#named.set(key, own);
    const script = () => this.#redis.script(CLAIM, [this.#claimKey(key)], [claim, CLAIM_MS]);
    const other = await orAlone(script, () => "").catch((fault) => {
      this.#named.delete(key);
      throw fault;
    });
    if (typeof other === "string" && other !== "") {
      this.#named.delete(key);
      return new RemoteRun(this.#redis, this.#inbox, other);
    }
    run.log.follow((batch) => events.add(batch));
    return this.#own.claim(key, run, true);
  }

  /**
   * Another process has claimed this name while this one could not be reached. If both answers could be read under it,
   * a client could get the beginning of one and the end of the other.
   */
  #lose(key: string, run: Run): void {
    const named = this.#named.get(key);
    if (named?.run !== run) return;
    this.#named.delete(key);
    named.events.close();
    this.#emit(named, "gone");
    void this.#own.forget(key, run);
    run.abort("lost");
  }

  #renewClaims(): void {
    for (const { events } of this.#named.values()) if (!events.isEnded) events.renew();
    void this.#publisher.flush();
  }

  #renewAll(): void {
    for (const { events } of this.#named.values()) events.renew();
    void this.#publisher.flush();
  }

  #receive({ type, token, from }: Message): void {
    const own = [...this.#named.values()].find((named) => named.token === token);
    if (own === undefined) return;
    if (type === "hold") this.#hold(own, from);
    else if (type === "stop") void own.run.stop();
    else own.run.discard();
  }

  /** A client of that process reads the run. The reply shows that this process is alive. */
  #hold(own: OwnRun, from: string): void {
    const asksAgain = own.elsewhere.hold(from);
    // A client there lacks the end: Redis may have evicted it, as it does when its memory is full.
    if (asksAgain && own.events.isEnded) own.events.renew();
    this.#send(from, "news", own.token);
  }

  #emit({ elsewhere, token }: OwnRun, type: MessageType): void {
    for (const inbox of elsewhere.inboxes()) this.#send(inbox, type, token);
  }

  /** A lost message does no harm: readers at other processes ask again. */
  #send(inbox: string, type: MessageType, token: string): void {
    this.#inbox.send(inbox, type, token).catch(() => {});
  }
}

/** The other processes whose clients read a run. While there are any, one reader of this process reads for them. */
class ReadersElsewhere {
  readonly #run: Run;
  /** By inbox. */
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #reader: Promise<RunReader> | undefined;

  constructor(run: Run) {
    this.#run = run;
  }

  inboxes(): Iterable<string> {
    return this.#timers.keys();
  }

  /** Keeps the run alive for `HOLD_MS`. Returns whether that process was keeping it alive already. */
  hold(inbox: string): boolean {
    const timer = this.#timers.get(inbox);
    clearTimeout(timer);
    this.#timers.set(inbox, setTimeout(() => this.#letGo(inbox), HOLD_MS).unref());
    this.#reader ??= readOn(this.#run);
    return timer !== undefined;
  }

  #letGo(inbox: string): void {
    this.#timers.delete(inbox);
    if (this.#timers.size > 0) return;
    void this.#reader?.then((reader) => reader.close());
    this.#reader = undefined;
  }
}

/** Reads each event at once, so that clients of other processes never delay the run. */
async function readOn(run: Run): Promise<RunReader> {
  const reader = await run.read("oldest");
  const takeAll = async () => {
    while (!(await reader.next()).done);
  };
  takeAll()
    .catch(() => {})
    .finally(() => reader.close());
  return reader;
}

function refuseAlone(): never {
  throw cannotMark("Redis is away.");
}
