/** What several processes share through Redis. Who writes what, and when: docs/internals/redis.md. */

import type { LoadPackage } from "../config/optional-package.ts";
import type { Settings } from "../config/settings.ts";
import { ConfigError } from "../errors.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { RunStore } from "../runs/run-store.ts";
import type { StateStore } from "../runs/state-store.ts";
import { RedisConnection, type RedisPackage } from "./connection.ts";
import { createRedisLimiter } from "./limiter.ts";
import { RedisRunStore } from "./run-store.ts";
import { RedisStateStore } from "./state-store.ts";

export interface Shared {
  readonly limiter: Limiter;
  readonly store: RunStore;
  readonly states: StateStore;
  readonly isUp: boolean;
  /** The first one signs states if no setting has a secret for that; all of them verify. */
  readonly stateSecrets: readonly string[];
  /** Writes what waits, releases this process' slots, and disconnects. */
  close(): Promise<void>;
}

/**
 * Connects to `PARLEY_REDIS_URL`. `notice` and `warn` get a sentence for each change. @throws ConfigError for a missing
 * package, a wrong URL, and a Redis that is away although `PARLEY_REDIS_REQUIRED` is on
 */
export async function connectShared(
  settings: Settings,
  agentId: string,
  loadPackage: LoadPackage,
  { notice, warn }: { notice(sentence: string): void; warn(sentence: string): void },
): Promise<Shared> {
  const { redisUrl, redisPrefix, redisRequired, resumeSeconds, resumeBytes } = settings;
  const redisPackage = (await loadPackage("@redis/client")) as RedisPackage;
  let wasAway = false;
  const redis = new RedisConnection(redisPackage, {
    url: redisUrl,
    prefix: redisPrefix,
    agentId,
    onChange(isUp, problem) {
      if (isUp && wasAway) notice("Redis is back: runs and limits are shared again.");
      if (!isUp) warn(`Redis is away (${problem}): runs and limits of this process are its own until it is back.`);
      wasAway = !isUp;
    },
  });
  const limiter = createRedisLimiter(redis);
  const store = new RedisRunStore(redis, { graceMs: resumeSeconds * 1000, maxBytes: resumeBytes });
  await redis.connect();
  if (!redis.isUp) {
    if (redisRequired) {
      redis.close();
      throw new ConfigError(
        `Redis cannot be used at PARLEY_REDIS_URL (${redis.problem}). Start it, or set PARLEY_REDIS_REQUIRED=off.`,
      );
    }
    wasAway = true;
    warn(
      `Redis does not answer at PARLEY_REDIS_URL (${redis.problem}): until it does, this process shares no runs and limits with others.`,
    );
  }
  return {
    limiter,
    store,
    states: new RedisStateStore(redis),
    get isUp() {
      return redis.isUp;
    },
    get stateSecrets() {
      return redis.secretsFor("states");
    },
    async close() {
      await Promise.all([limiter.close(), store.close()]);
      redis.close();
    },
  };
}
