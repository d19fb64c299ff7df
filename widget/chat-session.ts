/** One conversation with the server: at most one run at a time, carried on over lost lines. */

import type { ConversationState } from "../server/protocol/chat.ts";
import { CarriedRun } from "./carried-run.ts";
import { Conversation, type ConversationData, type OutgoingMessage } from "./conversation.ts";
import { ReplyWriter } from "./reply-writer.ts";
import type { SendOptions, SessionOptions, SessionStatus } from "./session-options.ts";
import type { Message, Question, Reply } from "./transcript.ts";
import { type RunPosition, TransportError } from "./transport/transport.ts";

export class ChatSession {
  readonly #options: SessionOptions;
  readonly #conversation = new Conversation();
  readonly #writer: ReplyWriter;
  #status: SessionStatus = "idle";
  #run: CarriedRun | undefined;
  #clearing: Promise<void> = Promise.resolve();
  /** Ends the waiting of a run for a key. */
  #goOn = () => {};

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#writer = new ReplyWriter(this.#conversation, options);
  }

  get messages(): readonly Message[] {
    return this.#conversation.messages;
  }

  get lastQuestion(): Question | undefined {
    return this.#conversation.lastQuestion;
  }

  /** All that is needed to go on with the conversation, and with a run that is not over. */
  get stored(): ConversationData & { run: RunPosition | undefined } {
    const { messages, state, forks, cut } = this.#conversation;
    return { messages, state, forks, cut, run: this.#run?.position };
  }

  /** See `ChatTransport`. */
  get unsent(): number {
    return this.#options.transport.unsent;
  }

  get status(): SessionStatus {
    return this.#status;
  }

  /** Whether a run is not over, also while it is being stopped or waits for a key. */
  get busy(): boolean {
    return this.#status !== "idle";
  }

  /** Whether the last message has not been answered at all and waits for the connection. */
  get isQueued(): boolean {
    const waits = this.#options.connection.state !== "up" && this.#status !== "stopping";
    return this.busy && waits && (this.#conversation.lastReply?.blocks.length ?? 0) === 0;
  }

  /** Whether a question can be changed and asked again, from where it was asked. */
  canEdit({ id }: Question): boolean {
    return !this.busy && this.#conversation.forks.has(id);
  }

  /** Whether the last question can be asked again. */
  get canRetry(): boolean {
    const question = this.#conversation.lastQuestion;
    return !this.busy && question !== undefined && this.#conversation.canRepeat(question);
  }

  /** What goes with a message that takes the place of an earlier one, or with the next. */
  stateFor(id: string | undefined): ConversationState {
    return this.#conversation.stateFor(id);
  }

  /** A question as it was sent; without its files when they are no longer here. */
  outgoing(question: Question): OutgoingMessage {
    return this.#conversation.outgoing(question);
  }

  /** Goes on with an earlier conversation. A run that was not over waits for `unlock`. */
  restore(data: ConversationData, run: RunPosition | undefined): void {
    // The same answer comes here, too, and brings what is missing.
    if (run && this.#run?.position.run === run.run) return;
    const before = this.#run;
    this.#run = undefined;
    this.#conversation.restore(data);
    before?.stop();
    this.#goOn();
    this.#status = run ? "locked" : "idle";
    if (run) void this.#carry(this.#newRun(run));
  }

  /**
   * Decides whether a message may be sent: while a run goes on, the message is not accepted, and the
   * result is `undefined`. An accepted message is sent; the promise resolves when its run is over,
   * also one that waits for a key, or is gone.
   */
  send(outgoing: OutgoingMessage, { replaces, onAccepted }: SendOptions = {}): Promise<void> | undefined {
    if (this.busy) return undefined;
    onAccepted?.();
    if (replaces !== undefined) this.#conversation.rewind(replaces);
    this.#conversation.ask(outgoing);
    return this.#carry(this.#newRun());
  }

  /** Keeps what the person thinks of a reply: the same one with another `feedback`. */
  rate(rated: Reply): void {
    this.#conversation.rate(rated);
    this.#options.onChange();
  }

  /** Asks the run to stop; what was said so far stays. */
  stop(): void {
    if (!this.#run) return;
    this.#conversation.stopTools();
    this.#setStatus("stopping");
    this.#run.stop();
    this.#goOn();
  }

  /** Asks the last question again, in place of its answer. */
  async retry(): Promise<void> {
    if (this.canRetry) await this.#repeat(false);
  }

  /** Like `retry`, as a new conversation: for a state that the server no longer knows. */
  async retryAfresh(): Promise<void> {
    if (!this.busy) await this.#repeat(true);
  }

  /** Takes back a message that is not answered at all, and gives it as it was to be sent. */
  withdraw(): OutgoingMessage | undefined {
    const [run, question] = [this.#run, this.#conversation.lastQuestion];
    if (!run || !question || !this.isQueued) return undefined;
    const outgoing = this.#conversation.outgoing(question);
    this.#run = undefined;
    run.stop();
    this.#goOn();
    this.#conversation.rewind(question.id);
    this.#setStatus("idle");
    return outgoing;
  }

  /** Goes on with the message that waited for a key. */
  unlock(): void {
    if (this.#status !== "locked") return;
    this.#setStatus("running");
    this.#goOn();
  }

  /** Forgets the conversation, and ends the run if there is one. */
  async reset(): Promise<void> {
    const run = this.#run;
    this.#run = undefined;
    this.#conversation.clear();
    this.#clearing = this.#options.transport.clear();
    run?.stop();
    this.#goOn();
    this.#setStatus("idle");
    await this.#clearing;
  }

  async #repeat(afresh: boolean): Promise<void> {
    this.#conversation.rewindReply(afresh);
    await this.#carry(this.#newRun());
  }

  #newRun(position?: RunPosition): CarriedRun {
    const { transport, connection } = this.#options;
    return new CarriedRun({ transport, connection, turn: this.#conversation.turn, position });
  }

  /** Follows a run until it is over, or another one has its place. */
  async #carry(run: CarriedRun): Promise<void> {
    this.#run = run;
    this.#conversation.expectReply();
    try {
      do {
        if (this.#status === "locked") {
          await new Promise<void>((resolve) => {
            this.#goOn = resolve;
          });
        }
        if (this.#run !== run) return;
        this.#conversation.expectReply();
        if (this.#status !== "stopping") this.#setStatus("running");
        // A run that starts before `cleared` has come would be cleared with the old conversation.
        await this.#clearing;
      } while (!(await this.#read(run)));
      if (this.#run === run) this.#writer.end();
    } catch (error) {
      if (this.#run === run) this.#writer.end(true);
      if (!(error instanceof TransportError)) throw error;
    } finally {
      if (this.#run === run) {
        this.#run = undefined;
        this.#setStatus("idle");
      }
    }
  }

  /** Shows what a run brings; `false` when a key is asked for before its end. */
  async #read(run: CarriedRun): Promise<boolean> {
    for await (const event of run.events()) {
      if (this.#run !== run) return true;
      if (this.#writer.write(event, run)) continue;
      this.#setStatus("locked");
      return false;
    }
    return true;
  }

  #setStatus(status: SessionStatus): void {
    this.#status = status;
    this.#options.onChange();
  }
}
