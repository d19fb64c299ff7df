import { type AccessPolicy, authorize, type Visitor } from "./access.ts";
import type { SocketLine } from "./http/socket-line.ts";
import { ApiError } from "./protocol/api-error.ts";
import { closeCodeOf } from "./protocol/close-codes.ts";
import { toErrorEvent } from "./protocol/error-event.ts";

/** The sockets that are open, with who opened them: a key that is taken away must not stay in use. */
export class OpenSockets {
  readonly #open = new Map<SocketLine, Visitor>();

  /** The same for all sockets. */
  readonly #onClosed = (line: SocketLine) => void this.#open.delete(line);

  add(line: SocketLine, visitor: Visitor): void {
    this.#open.set(line, visitor);
    line.onClose(this.#onClosed);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Closes every socket that could not be opened now, and says why. Returns how many those were. */
  recheck(policy: AccessPolicy): number {
    let closed = 0;
    for (const [line, visitor] of this.#open) {
      try {
        authorize(policy, visitor);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        line.reply(toErrorEvent(error));
        line.close(closeCodeOf(error.code), error.code);
        closed++;
      }
    }
    return closed;
  }
}
