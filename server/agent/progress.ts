/**
 * Progress texts of running calls: at most four a second from each call, and always the last one. They are kept with
 * the other events of the answer, for clients that reconnect, and must not crowd those out: the more, the less often.
 */

import type { ToolProgressEvent } from "../protocol/events.ts";
import { cutLine, plainText } from "./plain-text.ts";

/** Minimum time between two texts of one call, in milliseconds, while the answer has few. */
const EVERY_MS = 250;

/** Number of texts that double that time. */
const DOUBLED_BY = 128;

const MAX_EVERY_MS = 600_000;

const MAX_CHARS = 300;

/** What one call has said. */
interface Said {
  /** The last text that clients got. */
  sent: string;
  sentAt: number;
  /** The last text that the call reported. */
  last: string;
}

/** The progress texts of the calls of one answer. */
export class Progress {
  readonly #calls = new Map<string, Said>();
  /** The calls with a text that was not sent yet: there may be thousands of calls, of which few report progress. */
  readonly #waiting = new Map<string, Said>();
  /** Number of texts that were sent. */
  #count = 0;
  #wake = (): void => {};
  #due: Promise<undefined> | undefined;

  /** Adds a call that starts to run. */
  begin(id: string): void {
    this.#calls.set(id, { sent: "", last: "", sentAt: Number.NEGATIVE_INFINITY });
  }

  /** Stores what a call says. Ignores a call that does not run. */
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

  /** Milliseconds until the next text may be sent; `undefined` if none waits. */
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

  /** Removes a call that has ended. Returns its last text, if that was not sent. */
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
