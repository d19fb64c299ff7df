import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * The body of a response whose head has left, in pieces that leave at once. `ServerResponse.write` makes three pieces of
 * memory of a chunk (its length, its text, the end of its line) and lets go of them in the next tick: with a packet for each
 * token that is a tenth of all that a token costs. Here a chunk (RFC 9112, 7.1) is one text, written to the connection.
 */
export class PromptBody {
  readonly #res: ServerResponse;
  readonly #onDrain: () => void;
  /** The connection, while it is full: it may outlive the response. */
  #full: Socket | undefined;

  /** `onDrain` is called whenever a full line can take more. */
  constructor(res: ServerResponse, onDrain: () => void) {
    this.#res = res;
    this.#onDrain = onDrain;
    res.on("drain", onDrain);
    res.once("close", () => this.#full?.off("drain", this.#drained));
  }

  /** Whether the peer takes less than was written. */
  get isFull(): boolean {
    return this.#full !== undefined || this.#res.writableNeedDrain;
  }

  /** `text` is not empty, and `bytes` its size in UTF-8. `false`: the line is full until `onDrain`. */
  write(text: string, bytes: number): boolean {
    const { socket, chunkedEncoding } = this.#res;
    // Without a connection an earlier answer on it comes first; without chunks a client speaks HTTP/1.0.
    if (socket === null || !chunkedEncoding) return this.#res.write(text);
    const chunk = `${bytes.toString(16)}\r\n${text}\r\n`;
    // In ASCII alone both are the same, and this one needs no look at each character.
    if (socket.write(chunk, bytes === text.length ? "latin1" : "utf8")) return true;
    if (this.#full === undefined) {
      this.#full = socket;
      socket.once("drain", this.#drained);
    }
    return false;
  }

  readonly #drained = (): void => {
    this.#full = undefined;
    this.#onDrain();
  };
}
