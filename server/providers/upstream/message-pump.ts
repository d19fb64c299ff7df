import type { SseMessage } from "../../protocol/sse.ts";
import type { Tell } from "../provider.ts";
import type { SseConnection } from "./connection.ts";

/** What is made of the messages of one stream. */
export interface MessageReader<Event> {
  /** Adds what a message says to `said`. `false`: what follows does not matter. Throws `ProviderError`. */
  read(message: SseMessage, said: Event[]): boolean;
}

/**
 * Takes what came of a stream when its packet is read, and tells what was said in it: from the upstream's bytes to the
 * client's there is no promise, unless who is told has one waited for.
 */
export class MessagePump<Event> {
  readonly #connection: SseConnection;
  readonly #reader: MessageReader<Event>;
  readonly #tell: Tell<Event>;
  readonly #broken: (cause: unknown) => never;
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};
  /** While something is told, and for ever once all was. */
  #isBusy = true;
  #goesOn = true;
  /** What the stream said that ends it, once all before was told. */
  #failure: { readonly error: unknown } | undefined;

  /** `broken` throws what a connection that broke comes to. */
  constructor(
    connection: SseConnection,
    reader: MessageReader<Event>,
    tell: Tell<Event>,
    broken: (cause: unknown) => never,
  ) {
    this.#connection = connection;
    this.#reader = reader;
    this.#tell = tell;
    this.#broken = broken;
  }

  /**
   * Tells what is in the first messages and in all that follow. Resolves when no more is to be told; rejects with what the
   * reader, `tell` or `broken` threw. To be called once.
   */
  run(first: readonly SseMessage[] | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#connection.follow(this.#onNews);
      this.#work(this.#take(first));
    });
  }

  /** Not yet: Node tells of each HTTP chunk of a packet by itself, and what came together leaves together. */
  readonly #onNews = (): void => {
    if (this.#isBusy) return;
    this.#isBusy = true;
    process.nextTick(this.#goOn);
  };

  readonly #goOn = (): void => this.#work(undefined);

  /** Takes what there is, once there is room for it. */
  #work(room: Promise<void> | undefined): void {
    this.#isBusy = true;
    try {
      while (room === undefined && this.#goesOn) {
        if (!this.#connection.hasNews) {
          this.#connection.wait();
          this.#isBusy = false;
          return;
        }
        room = this.#take(this.#next());
      }
      if (room !== undefined) room.then(this.#goOn, this.#reject);
      else if (this.#failure !== undefined) throw this.#failure.error;
      else this.#resolve();
    } catch (error) {
      this.#reject(error);
    }
  }

  #next(): SseMessage[] | undefined {
    try {
      return this.#connection.next();
    } catch (cause) {
      return this.#broken(cause);
    }
  }

  /** What stands before a message that is a failure is told. */
  #take(messages: readonly SseMessage[] | undefined): Promise<void> | undefined {
    const said: Event[] = [];
    try {
      this.#goesOn = messages?.every((message) => this.#reader.read(message, said)) ?? false;
    } catch (error) {
      this.#goesOn = false;
      this.#failure = { error };
    }
    return said.length > 0 ? this.#tell(said) : undefined;
  }
}
