import { StringDecoder } from "node:string_decoder";
import { SseDecoder, type SseMessage } from "../../protocol/sse.ts";
import { UpstreamGarbage } from "../failures/failures.ts";
import type { StreamAnswer } from "./exchange.ts";
import type { UpstreamLine } from "./line.ts";

/** One request and the event stream that answers it. */
export class SseConnection {
  readonly #line: UpstreamLine;
  readonly #sse = new SseDecoder();
  /** Node's own makes strings of one byte per character where it can; a `TextDecoder` never does. */
  readonly #utf8 = new StringDecoder("utf8");

  constructor(line: UpstreamLine) {
    this.#line = line;
  }

  /** Sends the request and waits for the head of its answer. */
  async start(send: (signal: AbortSignal) => Promise<StreamAnswer>): Promise<void> {
    await this.#line.open(async (signal) => this.#line.take((await send(signal)).incoming));
  }

  /** Fulfilled when there is something for `next`. */
  news(): Promise<void> | undefined {
    return this.#line.news();
  }

  /** See `UpstreamLine`. */
  get hasNews(): boolean {
    return this.#line.hasNews;
  }

  /** See `UpstreamLine`. */
  follow(listener: () => void): void {
    this.#line.follow(listener);
  }

  /** See `UpstreamLine`. */
  wait(): void {
    this.#line.wait();
  }

  /** The next events of the stream, none where no whole one has come; `undefined` at its end. */
  next(): SseMessage[] | undefined {
    const bytes = this.#line.next();
    return bytes === undefined ? undefined : this.#decode(bytes);
  }

  #decode(bytes: Buffer): SseMessage[] {
    try {
      return this.#sse.feed(this.#utf8.write(bytes));
    } catch (cause) {
      throw new UpstreamGarbage("the stream holds an event without end", { cause });
    }
  }
}
