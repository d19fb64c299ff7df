/** Runs over `WS /ws/chat`. Dials on first need, and again when the line broke between two runs. */

import type { SocketRequest } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { EventQueue } from "./event-queue.ts";
import { type LineEvent, SocketLine } from "./socket-line.ts";
import {
  ANSWER_WITHIN_MS,
  type ChatTransport,
  type ChatTurn,
  type Endpoint,
  isTerminal,
  type RunEvent,
  type RunPosition,
  SILENCE_MS,
  TransportError,
} from "./transport.ts";

/** More than a line takes in one go. */
const MUCH_UNSENT = 65_536;

/** Unused for so long, a line may have died in a sleep of the machine, which nobody was told of. */
const FRESH_MS = 300_000;

export class SocketTransport implements ChatTransport {
  readonly #endpoint: Endpoint;
  #line: Promise<SocketLine> | undefined;
  /** The line as it was when a message was last sent. */
  #sender: SocketLine | undefined;
  #usedAt = 0;
  #run: EventQueue<RunEvent> | undefined;
  #clearing: { settle: (refusal?: ErrorEvent) => void } | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  get unsent(): number {
    return this.#sender?.unsent ?? 0;
  }

  /** Opens the line unless it is open. Rejects with `unreachable` when that is impossible. */
  async connect(): Promise<SocketLine> {
    const existing = await this.#line?.catch(() => undefined);
    if (existing?.isOpen && Date.now() < this.#usedAt + FRESH_MS) return existing;
    existing?.close();
    const dialled = SocketLine.open(this.#url(), {
      onEvent: (event) => this.#receive(event),
      onEnd: (end) => {
        if (this.#line === dialled) this.#line = undefined;
        this.#endRun(end);
        this.#clearing?.settle(end instanceof TransportError ? undefined : end);
      },
    });
    this.#line = dialled;
    this.#usedAt = Date.now();
    dialled.catch(() => {
      if (this.#line === dialled) this.#line = undefined;
    });
    return dialled;
  }

  run(turn: ChatTurn, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#exchange({ ...turn, attachments: [...turn.attachments] }, signal);
  }

  resume(position: RunPosition, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#exchange({ type: "resume", ...position }, signal);
  }

  async *#exchange(request: SocketRequest, signal: AbortSignal): AsyncGenerator<RunEvent> {
    const line = await this.connect();
    this.#endpoint.onOpen?.();
    if (signal.aborted) return;
    const run = new EventQueue<RunEvent>();
    this.#run = run;
    const silence = setInterval(() => line.isSilent() && line.close("silent"), SILENCE_MS);
    let deadline: ReturnType<typeof setTimeout> | undefined;
    const stop = () => {
      // A run that was cleared is over already.
      if (this.#run !== run) return;
      if (line.unsent > MUCH_UNSENT) {
        // The word would come after all of that: hanging up ends both, and who has sent the message cancels it.
        line.close();
      } else {
        line.send({ type: "stop" });
        deadline = setTimeout(() => {
          run.end();
          line.close();
        }, ANSWER_WITHIN_MS);
      }
    };
    signal.addEventListener("abort", stop, { once: true });
    try {
      this.#sender = line;
      if (line.end) this.#endRun(line.end);
      else line.send(request);
      yield* run;
    } finally {
      clearInterval(silence);
      clearTimeout(deadline);
      signal.removeEventListener("abort", stop);
      if (this.#run === run) this.#run = undefined;
      this.#usedAt = Date.now();
    }
  }

  async clear(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    // A line that is not open has nothing to forget.
    if (this.#line) await this.#askToClear(await this.#line.catch(() => undefined));
  }

  async check(): Promise<ErrorEvent | undefined> {
    // `cleared` is the one answer that a socket gives without a run, so it proves that the key opened it.
    return this.#askToClear(await this.connect());
  }

  close(): void {
    const line = this.#line;
    this.#line = undefined;
    line?.then((opened) => opened.close()).catch(() => undefined);
  }

  #askToClear(line: SocketLine | undefined): Promise<ErrorEvent | undefined> {
    if (!line) return Promise.resolve(undefined);
    if (line.end) {
      return Promise.resolve(line.end instanceof TransportError ? undefined : line.end);
    }
    return new Promise((resolve) => {
      const deadline = setTimeout(() => line.close(), ANSWER_WITHIN_MS);
      const clearing = {
        settle: (refusal?: ErrorEvent) => {
          clearTimeout(deadline);
          this.#clearing = undefined;
          resolve(refusal);
        },
      };
      this.#clearing?.settle();
      this.#clearing = clearing;
      line.send({ type: "clear" });
    });
  }

  #receive(event: LineEvent): void {
    if (event.type === "cleared") {
      this.#clearing?.settle();
      return;
    }
    this.#run?.push(event);
    if (isTerminal(event)) this.#run?.end();
  }

  #endRun(end: ErrorEvent | TransportError): void {
    if (end instanceof TransportError) {
      this.#run?.end(end);
    } else {
      this.#run?.push(end);
      this.#run?.end();
    }
  }

  #url(): URL {
    const url = new URL("ws/chat", this.#endpoint.server);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const key = this.#endpoint.key();
    // [api] A browser cannot set headers on a socket: the key travels in the query.
    if (key !== undefined) url.searchParams.set("key", key);
    return url;
  }
}
