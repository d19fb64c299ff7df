/** Conversation states that the server keeps in Redis: any process can continue them. */

import { randomUUID } from "node:crypto";
import { cannotMark } from "../runs/run-store.ts";
import { isAnother, type KeptState, MemoryStateStore, STATE_MS, type StateStore } from "../runs/state-store.ts";
import { orAlone, type RedisConnection } from "./connection.ts";

/** UTF-16 units in one command: all others wait behind it, and a Redis that is too slow for one counts as away. */
const PIECE_CHARS = 256 * 1024;

/** How long replaced pieces stay, for processes that are reading them. */
const LEAVING_MS = 10_000;

/** Stores the head of a state, unless the stored one is of another version than the one that it replaces. */
const SAVE = `
local kept = redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1)
if ARGV[1] ~= '' and kept ~= '' and kept ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

export class RedisStateStore implements StateStore {
  readonly #redis: RedisConnection;
  /** States that Redis could not take: newer than those that it has. */
  readonly #own = new MemoryStateStore();

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async load(key: string): Promise<KeptState | undefined> {
    const own = await this.#own.load(key);
    if (own !== undefined) return own;
    // A state that cannot be read now may still exist: the conversation must not begin anew because of that.
    return orAlone(
      () => this.#load(this.#redis.keyOf("state", key)),
      () => {
        throw cannotMark("Redis is away.");
      },
    );
  }

  async save(key: string, json: string, from?: string): Promise<boolean> {
    const own = this.#own.versionOf(key);
    if (isAnother(own, from)) return false;
    return orAlone(
      async () => {
        const isSaved = await this.#save(this.#redis.keyOf("state", key), json, own === undefined ? from : undefined);
        if (isSaved) this.#own.drop(key);
        return isSaved;
      },
      () => this.#own.save(key, json, from),
    );
  }

  /** The head has the version and the first piece. */
  async #load(name: string): Promise<KeptState | undefined> {
    const head = await this.#take(name);
    if (head === undefined) return undefined;
    const end = head.indexOf("\n");
    const version = head.slice(0, end);
    let json = head.slice(end + 1);
    for (const place of placesOf(name, version)) {
      const piece = await this.#take(place);
      if (piece === undefined) return undefined;
      json += piece;
    }
    return { json, version };
  }

  async #take(place: string): Promise<string | undefined> {
    const text = await this.#redis.command("GETEX", place, "PX", STATE_MS);
    return typeof text === "string" ? text : undefined;
  }

  async #save(name: string, json: string, from = ""): Promise<boolean> {
    const [first = "", ...pieces] = split(json);
    const version = `${randomUUID()}.${pieces.length}`;
    for (const [index, place] of placesOf(name, version).entries()) {
      await this.#redis.command("SET", place, pieces[index] ?? "", "PX", STATE_MS);
    }
    const isSaved = (await this.#redis.script(SAVE, [name], [from, `${version}\n${first}`, STATE_MS])) === 1;
    for (const place of placesOf(name, isSaved ? from : version)) {
      await this.#redis.command("PEXPIRE", place, LEAVING_MS);
    }
    return isSaved;
  }
}

/** The keys of the pieces after the first one. */
function placesOf(name: string, version: string): string[] {
  const [id, count] = version.split(".");
  return Array.from({ length: Number(count ?? 0) }, (_, index) => `${name}:${id}:${index}`);
}

/** Splits a text, but no surrogate pair. */
function split(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += pieces.at(-1)?.length ?? 0) {
    const isInPair = /[\ud800-\udbff]/.test(text.charAt(at + PIECE_CHARS - 1));
    pieces.push(text.slice(at, at + PIECE_CHARS - (isInPair ? 1 : 0)));
  }
  return pieces;
}
