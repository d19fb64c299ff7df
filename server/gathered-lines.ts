/** How long a line may wait for others, in milliseconds. */
const GATHER_MS = 10;

/** So many characters wait for no more. */
const MAX_WAITING_CHARS = 64 * 1024;

/** Writes several lines at once where they can wait for each other. */
export class GatheredLines {
  readonly #output: (lines: string) => void;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(output: (lines: string) => void) {
    this.#output = output;
  }

  /** One that cannot wait is written now, behind all that wait: they stay in order. */
  add(line: string, canWait: boolean): void {
    this.#waiting += `${line}\n`;
    if (!canWait || this.#waiting.length >= MAX_WAITING_CHARS) this.write();
    else this.#timer ??= setTimeout(() => this.write(), GATHER_MS).unref();
  }

  /** Writes what waits. */
  write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    if (lines !== "") this.#output(lines);
  }
}
