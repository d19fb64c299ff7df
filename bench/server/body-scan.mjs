import { MARK, MAX_ORDER_CHARS, readOrder } from "./order.mjs";

/** Bodies up to this are kept whole. */
const SMALL_BYTES = 64 * 1024;

/**
 * Finds the order in a request's body while it arrives, without keeping or parsing what is large: the fake model must
 * not be the one that stalls when attachments arrive.
 */
export class BodyScan {
  bytes = 0;
  #kept = [];
  #tail = Buffer.alloc(0);
  #order;

  push(chunk) {
    this.bytes += chunk.length;
    if (this.bytes <= SMALL_BYTES) this.#kept.push(chunk);
    // A piece that begins in the middle of an order needs the end of the piece before.
    const start = Buffer.concat([this.#tail, chunk.subarray(0, MAX_ORDER_CHARS)]);
    this.#look(start);
    this.#look(chunk);
    this.#tail = chunk.subarray(-MAX_ORDER_CHARS);
  }

  #look(bytes) {
    const at = bytes.indexOf(MARK);
    if (at === -1) return;
    const text = bytes.toString("latin1", at, at + MAX_ORDER_CHARS);
    // One that is cut off here is whole in the next `start`.
    if (/;id=\d+;/.test(text)) this.#order = readOrder(text);
  }

  /** @throws Error when there was none. */
  order() {
    if (this.#order !== undefined) return this.#order;
    throw new Error("The request holds no order of the benchmark.");
  }

  /** Large bodies always want one. */
  get wantsStream() {
    if (this.bytes > SMALL_BYTES) return true;
    return Buffer.concat(this.#kept).includes('"stream":true');
  }
}
