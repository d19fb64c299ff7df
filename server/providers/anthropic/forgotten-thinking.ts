import type { HistoryMessage } from "../../protocol/chat.ts";

/** Messages whose thinking the API has refused to take back. */
export class ForgottenThinking {
  readonly #messages = new WeakSet<HistoryMessage>();

  has(message: HistoryMessage): boolean {
    return this.#messages.has(message);
  }

  /** `false` when there was none left to forget. */
  forget(messages: readonly HistoryMessage[]): boolean {
    const known = messages.filter((message) => !this.#messages.has(message));
    for (const message of known) this.#messages.add(message);
    return known.length > 0;
  }
}
