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

  /** The next events of the stream; `undefined` at its end. */
  async read(): Promise<SseMessage[] | undefined> {
    for (;;) {
      const bytes = await this.#line.read();
      if (bytes === undefined) return undefined;
      const messages = this.#decode(bytes);
      if (messages.length > 0) return messages;
    }
  }

  #decode(bytes: Buffer): SseMessage[] {
    try {
      return this.#sse.feed(this.#utf8.write(bytes));
    } catch (cause) {
      throw new UpstreamGarbage("the stream holds an event without end", { cause });
    }
  }
}
