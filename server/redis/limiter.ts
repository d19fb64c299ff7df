/** Rates and slots that all processes with the same Redis share. While Redis is away, this process counts alone. */

import { randomUUID } from "node:crypto";
import { createMemoryLimiter, type Limiter, once, type Rate, type Release, type SlotPool } from "../limits/limiter.ts";
import { NOW, orAlone, type RedisConnection } from "./connection.ts";

/**
 * GCRA as in memory: a key holds the moment at which its bucket is full again. The clock is that of Redis. The last argument
 * says whether the tokens are taken.
 */
const TAKE = `${NOW}
local wait, fullAt = 0, {}
for i, key in ipairs(KEYS) do
  local last = tonumber(redis.call('GET', key)) or now
  fullAt[i] = math.max(last, now) + 60000 / ARGV[i]
  wait = math.max(wait, fullAt[i] - now - 60000)
end
if wait > 0.001 then return tostring(wait) end
if ARGV[#KEYS + 1] == 'take' then
  for i, key in ipairs(KEYS) do
    redis.call('SET', key, string.format('%.3f', fullAt[i]), 'PX', math.ceil(fullAt[i] - now))
  end
end
return '0'`;

/** A pool is a sorted set of leases, each with the time at which it expires: slots of a dead process become free. */
const ACQUIRE = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local max = tonumber(ARGV[1])
if max > 0 and redis.call('ZCARD', KEYS[1]) >= max then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`;

const RENEW = `${NOW}
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ARGV[1], ARGV[i + 1])
  redis.call('PEXPIRE', key, ARGV[1])
end`;

const LEASE_MS = 15_000;
const RENEW_MS = 4000;

/** Leases that are renewed by one command. */
const RENEWED_AT_ONCE = 500;

export interface RedisLimiter extends Limiter {
  /** Gives back all slots of this process. */
  close(): Promise<void>;
}

export function createRedisLimiter(redis: RedisConnection): RedisLimiter {
  const alone = createMemoryLimiter();
  /** The pool's key of each slot that this process has, by the id of its lease. */
  const leases = new Map<string, string>();
  const timer = setInterval(() => void renew().catch(() => {}), RENEW_MS).unref();

  async function count(
    rates: readonly Rate[],
    mode: "take" | "peek",
    byMyself: () => Promise<number>,
  ): Promise<number> {
    const limited = rates.filter(({ perMinute }) => perMinute > 0);
    if (limited.length === 0) return 0;
    const keys = limited.map(({ name }) => redis.keyOf("rate", name));
    const perMinutes = limited.map(({ perMinute }) => perMinute);
    return Number(await orAlone(() => redis.script(TAKE, keys, [...perMinutes, mode]), byMyself));
  }

  async function renew(): Promise<void> {
    const all = [...leases];
    for (let from = 0; from < all.length; from += RENEWED_AT_ONCE) {
      // Some may have been released meanwhile.
      const some = all.slice(from, from + RENEWED_AT_ONCE).filter(([id]) => leases.has(id));
      if (some.length === 0) continue;
      await redis.script(
        RENEW,
        some.map(([, key]) => key),
        [LEASE_MS, ...some.map(([id]) => id)],
      );
    }
  }

  async function acquire({ name, max }: SlotPool): Promise<Release | undefined> {
    const [id, key] = [randomUUID(), redis.keyOf("pool", name)];
    if (Number(await redis.script(ACQUIRE, [key], [max, id, LEASE_MS])) === 0) return undefined;
    leases.set(id, key);
    return once(() => {
      leases.delete(id);
      redis.command("ZREM", key, id).catch(() => {});
    });
  }

  return {
    take: (rates) => count(rates, "take", () => alone.take(rates)),
    peek: (rate) => count([rate], "peek", () => alone.peek(rate)),
    acquire: (pool) =>
      orAlone(
        () => acquire(pool),
        () => alone.acquire(pool),
      ),

    async close() {
      clearInterval(timer);
      const given = [...leases].map(([id, key]) => redis.command("ZREM", key, id));
      // Replies come in the order of the commands: slots released before are then released in Redis, too.
      await Promise.allSettled([...given, redis.command("PING")]);
    },
  };
}
