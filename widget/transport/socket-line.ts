/** One WebSocket, from its opening to its end. */

import type { SocketRequest } from "../../server/protocol/chat.ts";
import { CLOSE } from "../../server/protocol/close-codes.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { ErrorEvent, SocketEvent } from "../../server/protocol/events.ts";
import { strings, type TextName } from "../strings.ts";
import { parseEvent } from "./parse-event.ts";
import { TransportError } from "./transport.ts";

/** A proxy that swallows the upgrade answers nothing at all: give up and try HTTP. */
const OPEN_WITHIN_MS = 6_000;

/** What the server says on it; events of a run are numbered. */
export type LineEvent = SocketEvent & { readonly id?: number };

/** Who hears what the line says. */
export interface LineListener {
  onEvent(event: LineEvent): void;
  /** Called once. The end is an event when the server named its reason, else an error of ours. */
  onEnd(end: ErrorEvent | TransportError): void;
}

export class SocketLine {
  readonly #socket: WebSocket;
  readonly #listener: LineListener;
  #end: ErrorEvent | TransportError | undefined;
  /** The last error event: a refusal comes as an event and as a close code. */
  #lastError: ErrorEvent | undefined;
  #heard = false;
  #wasUnsent = 0;

  private constructor(socket: WebSocket, listener: LineListener) {
    this.#socket = socket;
    this.#listener = listener;
    socket.addEventListener("message", ({ data }) => this.#receive(data));
    socket.addEventListener("close", ({ code }) => this.#finish(endOf(code, this.#lastError)));
  }

  /** Dials. Rejects with `unreachable` when the line cannot be opened. */
  static open(url: URL, listener: LineListener): Promise<SocketLine> {
    return new Promise((resolve, reject) => {
      let socket: WebSocket;
      try {
        socket = new WebSocket(url);
      } catch (cause) {
        // A page on HTTPS may not dial ws://: the browser throws at once.
        reject(new TransportError("unreachable", { cause }));
        return;
      }
      const fail = () => {
        clearTimeout(timer);
        reject(new TransportError("unreachable"));
        socket.close();
      };
      const timer = setTimeout(fail, OPEN_WITHIN_MS);
      socket.addEventListener("error", fail, { once: true });
      socket.addEventListener("open", () => {
        clearTimeout(timer);
        resolve(line);
      });
      const line = new SocketLine(socket, listener);
    });
  }

  /** Why the line is over; `undefined` while it is open, and while it closes. */
  get end(): ErrorEvent | TransportError | undefined {
    return this.#end;
  }

  get isOpen(): boolean {
    return this.#end === undefined && this.#socket.readyState === WebSocket.OPEN;
  }

  /** Characters that were given to the line and have not left; an ended line sends no more. */
  get unsent(): number {
    return this.#end ? 0 : this.#socket.bufferedAmount;
  }

  /** Whether nothing came in, and nothing went out that had to, since this was asked last. */
  isSilent(): boolean {
    const { unsent } = this;
    const silent = !this.#heard && unsent === this.#wasUnsent;
    this.#heard = false;
    this.#wasUnsent = unsent;
    return silent;
  }

  /** A line that is closing drops it: the listener then hears of the end. */
  send(request: SocketRequest): void {
    this.#socket.send(JSON.stringify(request));
  }

  close(why: TransportError["code"] = "connection_lost"): void {
    this.#finish(new TransportError(why));
    this.#socket.close();
  }

  #receive(data: unknown): void {
    if (this.#end) return;
    this.#heard = true;
    try {
      const event = parseEvent(String(data));
      if (event?.type === "error") this.#lastError = event;
      if (event) this.#listener.onEvent(event);
    } catch (error) {
      this.#finish(error instanceof TransportError ? error : new TransportError("unreadable"));
      this.#socket.close();
    }
  }

  #finish(end: ErrorEvent | TransportError): void {
    if (this.#end) return;
    this.#end = end;
    this.#listener.onEnd(end);
  }
}

/** What a close code says, and whether sending again may help. */
const REASONS: Record<number, readonly [ErrorCode, TextName, retryable: boolean]> = {
  [CLOSE.UNAUTHORIZED]: ["unauthorized", "keyRefused", false],
  [CLOSE.FORBIDDEN]: ["forbidden", "siteForbidden", false],
  [CLOSE.RATE_LIMITED]: ["rate_limited", "rateLimited", true],
  [CLOSE.TOO_LARGE]: ["request_too_large", "requestTooLarge", false],
};

function endOf(closeCode: number, lastError: ErrorEvent | undefined): ErrorEvent | TransportError {
  // What a server that stops has to say it says in an event. Firefox closes the lines of a page that is left with the same code,
  // and the next page goes on with the answer.
  if (closeCode === CLOSE.SHUTTING_DOWN && lastError?.code === "shutting_down") return lastError;
  const reason = REASONS[closeCode];
  if (!reason) return new TransportError("connection_lost");
  const [code, text, retryable] = reason;
  if (lastError?.code === code) return lastError;
  return { type: "error", data: strings[text], code, retryable };
}
