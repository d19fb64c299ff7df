/**
 * What running calls say that they do: at most four texts a second of each, and the last one always. They are kept with the other
 * events of the answer, for clients that come back, and must not crowd those out: the more there are, the rarer they become.
 */

import type { ToolProgressEvent } from "../protocol/events.ts";
import { cutLine, plainText } from "./plain-text.ts";

/** At least so long stands a text before clients get the next one of its call, while the answer has few. */
const EVERY_MS = 250;

/** So many texts double that time. */
const DOUBLED_BY = 128;

const MAX_EVERY_MS = 600_000;

const MAX_CHARS = 300;

/** What one call has said. */
interface Said {
  /** What clients have got of it. */
  sent: string;
  sentAt: number;
  /** What it has said last. */
  last: string;
}

/** What the calls of one answer say. */
export class Progress {
  readonly #calls = new Map<string, Said>();
  /** The calls that have said what clients have not got: there may be thousands of calls, and few that speak. */
  readonly #waiting = new Map<string, Said>();
  /** How many texts clients have got. */
  #count = 0;
  #wake = (): void => {};
  #due: Promise<undefined> | undefined;

  /** A call runs from now on. */
  begin(id: string): void {
    this.#calls.set(id, { sent: "", last: "", sentAt: Number.NEGATIVE_INFINITY });
  }

  /** Takes what a call says. Of one that does not run, nothing. */
  report(id: string, text: string): void {
    const said = this.#calls.get(id);
    const line = cutLine(plainText(text), MAX_CHARS);
    if (said === undefined || line === "") return;
    said.last = line;
    if (line === said.sent) this.#waiting.delete(id);
    else this.#waiting.set(id, said);
    this.#wake();
  }

  /** Resolves when a text may be sent. */
  due(): Promise<undefined> {
    this.#due ??= this.#untilDue();
    return this.#due;
  }

  async #untilDue(): Promise<undefined> {
    for (let ms = this.dueMs; ms !== 0; ms = this.dueMs) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        if (ms !== undefined) timer = setTimeout(resolve, ms).unref();
      });
      clearTimeout(timer);
    }
    this.#due = undefined;
  }

  /** In so many milliseconds the next text may be sent; `undefined`: none waits. */
  get dueMs(): number | undefined {
    if (this.#waiting.size === 0) return undefined;
    let first = Number.POSITIVE_INFINITY;
    for (const { sentAt } of this.#waiting.values()) first = Math.min(first, sentAt);
    return Math.max(0, first + this.#everyMs - performance.now());
  }

  /** The texts that may be sent now. */
  take(): ToolProgressEvent[] {
    const now = performance.now();
    return [...this.#waiting].flatMap(([id, said]) => (said.sentAt <= now - this.#everyMs ? this.#send(id, said) : []));
  }

  /** A call is over. Gives its last text, if that was not sent. */
  end(id: string): ToolProgressEvent[] {
    const said = this.#calls.get(id);
    this.#calls.delete(id);
    return said === undefined ? [] : this.#send(id, said);
  }

  get #everyMs(): number {
    return Math.min(EVERY_MS * 2 ** (this.#count / DOUBLED_BY), MAX_EVERY_MS);
  }

  #send(id: string, said: Said): ToolProgressEvent[] {
    if (!this.#waiting.delete(id)) return [];
    const { last: text } = said;
    this.#count++;
    said.sent = text;
    said.sentAt = performance.now();
    return [{ type: "tool_progress", data: { id, text } }];
  }
}
