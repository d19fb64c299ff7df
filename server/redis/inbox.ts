/** What processes say to each other about a run. Each listens to one channel of Redis: its inbox. */

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { RedisConnection } from "./connection.ts";

/**
 * The process of a run is asked to "stop" or "discard" it, or to "hold" it because a client elsewhere reads it. It answers each
 * "hold", and says by "news" that Redis may have new events, or by "gone" that none will come.
 */
export type MessageType = "stop" | "discard" | "hold" | "news" | "gone";

export interface Message {
  type: MessageType;
  /** Names the run. */
  token: string;
  /** The inbox of the process that sends it. */
  from: string;
}

export class Inbox {
  readonly id = randomUUID();
  readonly #redis: RedisConnection;
  /** Clients of this process that read runs of others: an event has the name of a run's token. */
  readonly #readers = new EventEmitter().setMaxListeners(0);

  /** `onAsked` gets what others ask of the runs of this process. */
  constructor(redis: RedisConnection, onAsked: (message: Message) => void) {
    this.#redis = redis;
    redis.listen(this.#channel(this.id), (text) => {
      const message = JSON.parse(text) as Message;
      if (message.type === "news" || message.type === "gone") this.#readers.emit(message.token, message.type);
      else onAsked(message);
    });
  }

  /** Resolves with whether a process listens there. @throws RedisAway */
  async send(to: string, type: MessageType, token: string): Promise<boolean> {
    const message: Message = { type, token, from: this.id };
    return Number(await this.#redis.command("PUBLISH", this.#channel(to), JSON.stringify(message))) > 0;
  }

  /** Calls the listener with what the process of this run says of it. Returns what ends that. */
  follow(token: string, listener: (type: MessageType) => void): () => void {
    this.#readers.on(token, listener);
    return () => this.#readers.off(token, listener);
  }

  #channel(id: string): string {
    return `${this.#redis.prefix}inbox:${id}`;
  }
}
