/** Messages between processes about a run. Each process listens to one channel of Redis: its inbox. */

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { RedisConnection } from "./connection.ts";

/**
 * The process of a run is asked to "stop" or "discard" it, or to "hold" it because a client of another process reads
 * it. It sends "news" in reply to "hold" and when Redis may have new events, and "gone" if none will come.
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
  /** Readers of other processes' runs: the name of an event is the token of a run. */
  readonly #readers = new EventEmitter().setMaxListeners(0);

  /** `onAsked` gets what other processes ask of the runs of this one. */
  constructor(redis: RedisConnection, onAsked: (message: Message) => void) {
    this.#redis = redis;
    redis.listen(this.#channel(this.id), (text) => {
      const message = JSON.parse(text) as Message;
      if (message.type === "news" || message.type === "gone") this.#readers.emit(message.token, message.type);
      else onAsked(message);
    });
  }

  /** Resolves with whether a process listens to that inbox. @throws RedisAway */
  async send(to: string, type: MessageType, token: string): Promise<boolean> {
    const message: Message = { type, token, from: this.id };
    return Number(await this.#redis.command("PUBLISH", this.#channel(to), JSON.stringify(message))) > 0;
  }

  /** Calls the listener with the messages of this run's process. Returns a function that ends this. */
  follow(token: string, listener: (type: MessageType) => void): () => void {
    this.#readers.on(token, listener);
    return () => this.#readers.off(token, listener);
  }

  #channel(id: string): string {
    return `${this.#redis.prefix}inbox:${id}`;
  }
}
