/** One conversation: what was said, the state to send back, and at most one run at a time. */

import type { Attachment } from "../server/protocol/attachments.ts";
import type { ConversationState } from "../server/protocol/chat.ts";
import type { ErrorEvent, StreamEvent } from "../server/protocol/events.ts";
import { strings } from "./strings.ts";
import {
  applyEvent,
  emptyReply,
  type Failure,
  failReply,
  type Message,
  type Reply,
  type SentFile,
  stopReply,
} from "./transcript.ts";
import { type ChatTransport, TransportError } from "./transport/transport.ts";

/** `locked`: a message waits until the person has entered a key that the server takes. */
export type SessionStatus = "idle" | "running" | "stopping" | "locked";

/** A message as the composer hands it over. */
export interface OutgoingMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** How the transcript shows the attachments. */
  readonly files: readonly SentFile[];
}

export interface SessionOptions {
  readonly transport: ChatTransport;
  /** Called after every change of what the session shows. */
  readonly onChange: () => void;
  /** Gives the error to show, or `undefined` when the person is asked for a key and the message waits for it. */
  readonly judgeError: (error: ErrorEvent) => ErrorEvent | undefined;
  readonly now?: () => number;
}

interface Run {
  readonly stop: AbortController;
}

export class ChatSession {
  readonly #options: SessionOptions;
  readonly #now: () => number;
  #messages: readonly Message[] = [];
  #status: SessionStatus = "idle";
  #state: ConversationState = {};
  #outgoing: OutgoingMessage | undefined;
  #run: Run | undefined;
  #clearing: Promise<void> = Promise.resolve();
  #count = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  get status(): SessionStatus {
    return this.#status;
  }

  /** Whether a run is going on, also while it is being stopped. */
  get busy(): boolean {
    return this.#status === "running" || this.#status === "stopping";
  }

  /** Sends a message and resolves when its run has ended. Refused while another run goes on. */
  async send(outgoing: OutgoingMessage): Promise<void> {
    if (this.#status !== "idle")
      throw new Error(`cannot send while the session is ${this.#status}`);
    const { text, files } = outgoing;
    this.#outgoing = outgoing;
    this.#messages = [...this.#messages, { role: "user", id: this.#nextId(), text, files }];
    await this.#start();
  }

  /** Asks the run to stop; what was said so far stays. */
  stop(): void {
    if (this.#status !== "running") return;
    this.#setStatus("stopping");
    this.#run?.stop.abort();
  }

  /** Sends the last message again, in place of its failed reply. */
  async retry(): Promise<void> {
    if (this.#status !== "idle" || !this.#outgoing) return;
    const last = this.#messages.at(-1);
    if (last?.role !== "assistant" || !last.failure) return;
    this.#messages = this.#messages.slice(0, -1);
    await this.#start();
  }

  /** Like `retry`, as a new conversation: for a state that the server no longer knows. */
  async retryAfresh(): Promise<void> {
    this.#state = {};
    await this.retry();
  }

  /** Goes on with the message that waited for a key. */
  async unlock(): Promise<void> {
    if (this.#status === "locked") await this.#start();
  }

  /** Forgets the conversation, and ends the run if there is one. */
  async reset(): Promise<void> {
    this.#run = undefined;
    this.#messages = [];
    this.#state = {};
    this.#outgoing = undefined;
    this.#setStatus("idle");
    this.#clearing = this.#options.transport.clear();
    await this.#clearing;
  }

  async #start(): Promise<void> {
    const { transport } = this.#options;
    const outgoing = this.#outgoing;
    if (!outgoing) return;
    const run: Run = { stop: new AbortController() };
    this.#run = run;
    this.#messages = [...this.#messages, emptyReply(this.#nextId())];
    this.#setStatus("running");
    const { text: message, attachments } = outgoing;
    try {
      // A run that starts before `cleared` has come would be cleared with the old conversation.
      await this.#clearing;
      const turn = { message, attachments, state: this.#state };
      for await (const event of transport.run(turn, run.stop.signal)) {
        if (this.#run !== run) return;
        if (this.#handle(event) === "locked") return;
      }
      this.#endReply(run, stopReply);
    } catch (error) {
      const failure = failureOf(error);
      this.#endReply(run, (reply, now) => failReply(reply, failure, now));
      if (!(error instanceof TransportError)) throw error;
    } finally {
      if (this.#run === run) {
        this.#run = undefined;
        if (this.#status !== "locked") this.#setStatus("idle");
      }
    }
  }

  #handle(event: StreamEvent): SessionStatus {
    const shown = event.type === "error" ? this.#options.judgeError(event) : event;
    if (!shown) {
      this.#messages = this.#messages.slice(0, -1);
      this.#setStatus("locked");
      return "locked";
    }
    if (event.type === "done") this.#state = event.state;
    if (event.type === "error" && event.state) this.#state = event.state;
    this.#changeReply((reply) => applyEvent(reply, shown, this.#now()));
    return this.#status;
  }

  /** Ends a reply that no terminal event has ended. */
  #endReply(run: Run, end: (reply: Reply, now: number) => Reply): void {
    if (this.#run !== run) return;
    this.#changeReply((reply) => (reply.status === "streaming" ? end(reply, this.#now()) : reply));
  }

  #changeReply(change: (reply: Reply) => Reply): void {
    const last = this.#messages.at(-1);
    if (last?.role !== "assistant") return;
    this.#messages = [...this.#messages.slice(0, -1), change(last)];
    this.#options.onChange();
  }

  #setStatus(status: SessionStatus): void {
    this.#status = status;
    this.#options.onChange();
  }

  #nextId(): string {
    this.#count += 1;
    return `m${this.#count}`;
  }
}

function failureOf(error: unknown): Failure {
  const code = error instanceof TransportError ? error.code : "unreadable";
  const messages = {
    unreachable: strings.unreachable,
    connection_lost: strings.connectionLost,
    unreadable: strings.unreadable,
  };
  return { code, message: messages[code], retryable: true };
}
