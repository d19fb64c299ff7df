import { Blocks } from "../http/blocks.ts";
import type { Caller } from "../http/caller.ts";
import { InvalidUtf8 } from "../http/parse-json.ts";
import type { MemoryHold } from "../http/request-memory.ts";
import type { LineListener, SocketLine } from "../http/socket-line.ts";
import type { FrameMeter } from "../limits/frame-meter.ts";
import { ApiError, invalidRequest, toApiError } from "../protocol/api-error.ts";
import { CLOSE, closeCodeOf } from "../protocol/close-codes.ts";
import { toErrorEvent } from "../protocol/error-event.ts";
import type { ReadingAccess, RunAccess, RunOrder } from "../runs/run-access.ts";
import type { RunEvent } from "../runs/run-log.ts";
import type { MessageParser } from "./message-parser.ts";
import type { SocketCommand } from "./parse-chat.ts";
import { RememberedState } from "./remembered-state.ts";
import type { Service } from "./service.ts";

/** Serves one accepted socket until it closes. */
export type ChatSocket = (line: SocketLine, caller: Caller, upgrade: UpgradeFacts) => void;

/** Resolves with what serves sockets, which may have to be loaded. */
export type SocketHandler = () => Promise<ChatSocket>;

/** What is known of the request that opened a socket. */
export type UpgradeFacts = Pick<RunOrder, "requestId" | "trace">;

/** `WS /ws/chat`: any number of messages, one run at a time. */
export const chatSocket =
  (service: Service, parser: MessageParser): ChatSocket =>
  (line, caller, upgrade) => {
    const conversation = new SocketConversation(service, parser, line, caller, upgrade);
    line.serve(conversation, service.intake, caller.address);
  };

type ChatCommand = Extract<SocketCommand, { type: "chat" }>;

/** The run that is answered on a socket, and how far the socket has read it. */
interface Answering {
  readonly run: RunAccess;
  readonly reading: ReadingAccess;
}

/** What one socket remembers: the last state, so that a plain `{message}` continues, and the run. */
class SocketConversation implements LineListener {
  readonly #service: Service;
  readonly #parser: MessageParser;
  readonly #line: SocketLine;
  readonly #caller: Caller;
  readonly #upgrade: UpgradeFacts;
  readonly #frames: FrameMeter;
  /** As the client got it; it is read again like any other. */
  readonly #state: RememberedState;
  #current: Answering | undefined;
  #closed = false;

  constructor(service: Service, parser: MessageParser, line: SocketLine, caller: Caller, upgrade: UpgradeFacts) {
    this.#service = service;
    this.#parser = parser;
    this.#line = line;
    this.#caller = caller;
    this.#upgrade = upgrade;
    this.#frames = service.admission.frames();
    this.#state = new RememberedState(service.memory);
  }

  /** The connection is closed for whoever goes on although it was told to wait. */
  mayTake(): boolean {
    try {
      this.#frames.count();
      return true;
    } catch (error) {
      this.#refuse(error);
      return false;
    }
  }

  async take(data: Buffer | readonly Buffer[], isBinary: boolean, memory: MemoryHold): Promise<void> {
    // Also of what waited while the message before it was read: nobody would hear the answer, which costs.
    if (this.#line.isClosing) return;
    try {
      if (isBinary) throw invalidRequest("", "Send text frames, not binary ones.");
      const { value } = this.#state;
      await this.#obey(await this.#parser.frame(Blocks.of(data), value), memory);
    } catch (error) {
      // RFC 6455, 8.1. A text in one frame ws has looked at itself.
      if (error instanceof InvalidUtf8) this.#line.close(CLOSE.NOT_UTF8, "");
      else this.#refuse(error);
    }
  }

  stalled(error: ApiError): void {
    this.#refuse(error);
    this.#line.close(closeCodeOf(error.code), error.code);
  }

  drained(): void {
    this.#current?.reading.resume();
  }

  closed(): void {
    this.#closed = true;
    this.#state.forget();
    this.#leave();
  }

  async #obey(command: SocketCommand, memory: MemoryHold): Promise<void> {
    switch (command.type) {
      case "clear":
        this.#clear();
        break;
      case "stop":
        await this.#current?.run.cancel();
        break;
      case "resume":
        await this.#resume(command.run, command.after);
        break;
      case "chat":
        await this.#start(command, memory);
    }
  }

  #clear(): void {
    const current = this.#leave();
    current?.run.abort("gone");
    this.#state.forget();
    this.#line.reply({ type: "cleared", data: "" });
  }

  async #start({ run: id, request }: ChatCommand, memory: MemoryHold): Promise<void> {
    await this.#service.admission.message(this.#caller);
    this.#refuseSecond();
    const { requestId, trace } = this.#upgrade;
    // Spelled out: to spread one object into another takes longer, and the first token waits for it.
    const order = {
      caller: this.#caller,
      requestId,
      trace,
      transport: "ws",
      request,
      memory,
      id,
      resumable: id !== undefined,
    } as const;
    const isNew = Object.keys(request.state).length === 0;
    this.#follow(await this.#service.runs.open(order), 0, isNew);
  }

  async #resume(id: string, after: number): Promise<void> {
    this.#refuseSecond();
    const run = await this.#service.runs.find(this.#caller, id);
    if (run.hasEndedWith(after)) {
      throw invalidRequest("/after", `This run has ended, and event ${after} was its last one.`);
    }
    this.#follow(run, after, false);
  }

  #refuseSecond(): void {
    if (this.#current === undefined) return;
    throw new ApiError("run_in_progress", "The last message is still being answered.");
  }

  /** `isNew`: the run begins a new conversation. */
  #follow(run: RunAccess, after: number, isNew: boolean): void {
    const reading = run.attach(after, {
      write: (events) => this.#send(events),
      end: () => this.#leave(),
      cut: () => this.#line.cut(),
    });
    if (this.#closed) {
      // The line was lost meanwhile; the run learns of it as of any other.
      reading.detach();
      return;
    }
    const current = { run, reading };
    this.#current = current;
    run.admitted.then(
      () => {
        if (this.#current !== current) return;
        // Should the run fail, the conversation before it does not come back.
        if (isNew) this.#state.forget();
        reading.resume();
      },
      (error: unknown) => {
        if (this.#current !== current) return;
        this.#leave();
        this.#refuse(error);
      },
    );
  }

  #send(events: readonly RunEvent[]): boolean {
    const newest = events.at(-1);
    // Before the client can know of it: its next message may come at once.
    if (newest?.last !== undefined) {
      this.#state.remember(newest);
      this.#leave();
    }
    return this.#line.write(events);
  }

  /** The run goes on without this socket, or is over. */
  #leave(): Answering | undefined {
    const current = this.#current;
    this.#current = undefined;
    current?.reading.detach();
    return current;
  }

  #refuse(error: unknown): void {
    const failure = toApiError(error);
    if (failure.code === "internal") this.#service.runner.report(error);
    this.#service.refused(failure.code);
    this.#line.reply(toErrorEvent(failure));
    if (this.#frames.isAbused) this.#line.close(CLOSE.RATE_LIMITED, failure.code);
  }
}
