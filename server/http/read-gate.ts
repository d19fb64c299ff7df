/** Read of one sender in one turn of the event loop, about: else the next two megabytes of a quick one come before anybody else. */
const TURN_BYTES = 256 * 1024;

/** What is read. */
interface Readable {
  pause(): unknown;
  resume(): unknown;
}

/** Stops reading while there is a reason to, and for a turn of the event loop after so many bytes, so that others have theirs. */
export class ReadGate {
  readonly #source: Readable;
  /** Reasons not to read. */
  #reasons = 0;
  #bytes = 0;
  #isReleased = false;

  constructor(source: Readable) {
    this.#source = source;
  }

  /** Bytes came. */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#isReleased || this.#bytes < TURN_BYTES) return;
    this.#bytes = 0;
    this.close();
    setImmediate(() => this.open());
  }

  /** There is a reason not to read, which `open` takes back. */
  close(): void {
    if (!this.#isReleased && this.#reasons++ === 0) this.#source.pause();
  }

  /** The reason that a `close` gave is no more. */
  open(): void {
    if (!this.#isReleased && --this.#reasons === 0) this.#source.resume();
  }

  /** Reads on for good, whatever reasons there are or will be: nothing of it is kept any more. */
  release(): void {
    this.#isReleased = true;
    this.#source.resume();
  }
}
