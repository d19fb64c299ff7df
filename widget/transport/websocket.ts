/** Runs over `WS /ws/chat`. Connects on first need, and again after the connection broke. */

import type { SocketRequest } from "../../server/protocol/chat.ts";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { type ErrorEvent, isTerminal } from "../../server/protocol/events.ts";
import { toJson } from "../../server/protocol/json.ts";
import { parseEvent, type SocketMessage } from "./parse-event.ts";
import {
  ANSWER_WITHIN_MS,
  type Endpoint,
  isResume,
  type RunEvent,
  type RunRequest,
  SILENCE_MS,
  type Transport,
  TransportError,
  type TransportErrorCode,
} from "./transport.ts";

/** A connection that was unused for this long may have died without an event while the machine was asleep. */
const FRESH_MS = 300_000;

/** A proxy that swallows the upgrade does not answer at all. */
const OPEN_WITHIN_MS = 6_000;

/** More bytes than a connection sends in one go. */
const MUCH_UNSENT = 65_536;

export class WebSocketTransport implements Omit<Transport, "cancel"> {
  readonly #endpoint: Endpoint;
  /** The last connection that was opened. */
  #connection: SocketConnection | undefined;
  /** The connection that is being opened. */
  #dial: Promise<SocketConnection> | undefined;
  #usedAt = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** How long the connection that is being opened has taken so far. */
  get openingForMs(): number {
    return this.#dial ? Date.now() - this.#usedAt : 0;
  }

  /** Resolves with the open connection, or with a new one. Rejects with `unreachable`, also when closed before. */
  async connect(): Promise<SocketConnection> {
    if (this.#connection?.isOpen && Date.now() < this.#usedAt + FRESH_MS) return this.#connection;
    this.#dial ??= this.#open();
    return this.#dial;
  }

  async run(request: RunRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    const connection = await this.connect();
    this.#endpoint.onOpen?.();
    if (signal.aborted) return;
    try {
      connection.authenticate(this.#endpoint.userToken?.());
      const message: SocketRequest = isResume(request) ? { type: "resume", ...request } : request;
      await connection.run(message, onEvent, signal);
    } finally {
      this.#usedAt = Date.now();
    }
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
    this.#dial = undefined;
  }

  #open(): Promise<SocketConnection> {
    this.#connection?.close();
    this.#usedAt = Date.now();
    const dial: Promise<SocketConnection> = openConnection(addressOf(this.#endpoint))
      .then((connection) => {
        if (this.#dial === dial) {
          this.#connection = connection;
          return connection;
        }
        connection.close();
        throw new TransportError("unreachable");
      })
      .finally(() => {
        if (this.#dial === dial) this.#dial = undefined;
      });
    return dial;
  }
}

export function addressOf({ server, key }: Endpoint): URL {
  const url = new URL("ws/chat", server);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  // [contract] A browser cannot set headers on a socket: the key travels in the query.
  const known = key();
  if (known !== undefined) url.searchParams.set("key", known);
  return url;
}

/** Rejects with `unreachable` if no connection can be opened. */
async function openConnection(url: URL): Promise<SocketConnection> {
  try {
    // A page on HTTPS may not connect to ws://: the browser throws at once.
    const socket = new WebSocket(url);
    const connection = new SocketConnection(socket);
    const timer = setTimeout(() => socket.close(), OPEN_WITHIN_MS);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    }).finally(() => clearTimeout(timer));
    return connection;
  } catch (cause) {
    throw new TransportError("unreachable", { cause });
  }
}

/** Why a connection has ended: an error of the server if it named its reason, else a failure of the connection. */
type ConnectionEnd = ErrorEvent | TransportError;

/** The run that the connection carries. */
interface ActiveRun {
  readonly onEvent: (event: RunEvent) => void;
  /** Settles the run's promise: without an error after the terminal event, or if the server does not end the run. */
  readonly settle: (error?: TransportError) => void;
}

/** One WebSocket, from its opening to its end. Carries at most one run at a time. */
class SocketConnection {
  readonly #socket: WebSocket;
  #end: ConnectionEnd | undefined;
  /** The last error event: a refusal arrives both as an event and as a close code. */
  #lastError: ErrorEvent | undefined;
  #run: ActiveRun | undefined;
  /** The token that was sent last. */
  #userToken = "";
  #hasReceived = false;
  #wasUnsent = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    socket.addEventListener("close", ({ code }) => this.#finish(endOf(code, this.#lastError)));
  }

  get isOpen(): boolean {
    return this.#end === undefined && this.#socket.readyState === WebSocket.OPEN;
  }

  /** Names the user of the next messages, if it is another one. */
  authenticate(token = ""): void {
    if (token !== this.#userToken) this.#send({ type: "authenticate", token });
    this.#userToken = token;
  }

  /** See `Transport.run`. */
  async run(request: SocketRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
    const silence = setInterval(() => this.#isSilent() && this.close("silent"), SILENCE_MS);
    let deadline: ReturnType<typeof setTimeout> | undefined;
    let run: ActiveRun | undefined;
    const askToStop = () => {
      // The run has ended already.
      if (this.#run !== run) return;
      // The request to stop would wait behind all of that. Closing the connection drops both; the run is cancelled.
      if (this.#socket.bufferedAmount > MUCH_UNSENT) {
        this.close();
        return;
      }
      this.#send({ type: "stop" });
      deadline = setTimeout(() => {
        run?.settle();
        this.close();
      }, ANSWER_WITHIN_MS);
    };
    signal.addEventListener("abort", askToStop, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        run = { onEvent, settle: (error) => (error ? reject(error) : resolve()) };
        this.#run = run;
        if (this.#end) this.#endRun(this.#end);
        else this.#send(request);
      });
    } finally {
      clearInterval(silence);
      clearTimeout(deadline);
      signal.removeEventListener("abort", askToStop);
      if (this.#run === run) this.#run = undefined;
    }
  }

  close(code: TransportErrorCode = "connection_lost"): void {
    this.#finish(new TransportError(code));
    this.#socket.close();
  }

  /** A connection that is closing drops the request: then its end settles the run. */
  #send(request: SocketRequest): void {
    this.#socket.send(toJson(request));
  }

  /** Whether nothing has arrived, and nothing that waits to be sent has left, since the last call. */
  #isSilent(): boolean {
    const { bufferedAmount: unsent } = this.#socket;
    const isSilent = !this.#hasReceived && unsent === this.#wasUnsent;
    this.#hasReceived = false;
    this.#wasUnsent = unsent;
    return isSilent;
  }

  #receive(json: string): void {
    if (this.#end) return;
    this.#hasReceived = true;
    let event: SocketMessage | undefined;
    try {
      event = parseEvent(json);
    } catch {
      this.close("unreadable");
      return;
    }
    if (!event || event.type === "cleared") return;
    if (event.type === "error") this.#lastError = event;
    this.#deliver(event);
  }

  #deliver(event: RunEvent): void {
    const run = this.#run;
    if (isTerminal(event)) this.#run = undefined;
    run?.onEvent(event);
    if (isTerminal(event)) run?.settle();
  }

  #finish(end: ConnectionEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#endRun(end);
  }

  #endRun(end: ConnectionEnd): void {
    if (end instanceof TransportError) this.#run?.settle(end);
    else this.#deliver(end);
  }
}

/** What a close code means (`close` of the error codes, and RFC 6455), and whether sending again may help. */
const REASONS: Record<number, readonly [code: ErrorCode, retryable: boolean]> = {
  4401: ["unauthorized", false],
  4403: ["forbidden", false],
  4429: ["rate_limited", true],
  1009: ["request_too_large", false],
};

/** RFC 6455, 7.4.1. */
const GOING_AWAY = 1001;

export function endOf(closeCode: number, lastError: ErrorEvent | undefined): ConnectionEnd {
  // A server that stops says so in an event. Firefox closes the connections of a page that is left with the same code,
  // and the next page continues the answer.
  if (closeCode === GOING_AWAY && lastError?.code === "shutting_down") return lastError;
  const reason = REASONS[closeCode];
  if (!reason) return new TransportError("connection_lost");
  const [code, retryable] = reason;
  return lastError?.code === code ? lastError : { type: "error", data: "", code, retryable };
}
