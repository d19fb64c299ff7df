/** States of conversations that the server keeps for its clients, in Redis: any process goes on with them. */

import { cannotMark } from "../runs/run-store.ts";
import { MemoryStateStore, STATE_MS, type StateStore } from "../runs/state-store.ts";
import { orAlone, type RedisConnection } from "./connection.ts";

export class RedisStateStore implements StateStore {
  readonly #redis: RedisConnection;
  /** What Redis could not take: newer than what it has. */
  readonly #own = new MemoryStateStore();

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async load(key: string): Promise<string | undefined> {
    const own = await this.#own.load(key);
    if (own !== undefined) return own;
    // A state that cannot be read now may still be there: a conversation is not begun anew because of that.
    const state = await orAlone(
      () => this.#redis.command("GETEX", this.#keyOf(key), "PX", STATE_MS),
      () => {
        throw cannotMark("Redis is away.");
      },
    );
    return typeof state === "string" ? state : undefined;
  }

  async save(key: string, state: string): Promise<void> {
    this.#own.take(key);
    await orAlone(
      () => this.#redis.command("SET", this.#keyOf(key), state, "PX", STATE_MS),
      () => this.#own.save(key, state),
    );
  }

  #keyOf(key: string): string {
    return this.#redis.keyOf("state", key);
  }
}
