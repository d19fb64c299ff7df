/** One conversation with the server: at most one run at a time, over as many connections as it takes. */

import type { ApprovalDecision, ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import {
  type RunEvent,
  type RunPosition,
  type StartRequest,
  type Transport,
  TransportError,
} from "../transport/transport.ts";
import { Conversation, type ConversationData, type OutgoingMessage } from "./conversation.ts";
import {
  type AssistantMessage,
  applyEvent,
  type Failure,
  failAnswer,
  type Message,
  stopAnswer,
  stopTools,
  type ToolBlock,
  type UserMessage,
  waitingCalls,
} from "./messages.ts";
import type { ReconnectPolicy } from "./reconnect-policy.ts";
import { isRunLost, ResumableRun } from "./resumable-run.ts";

export type { OutgoingMessage } from "./conversation.ts";

export interface SendOptions {
  /** Id of the earlier message whose place it takes. The messages after that one are removed. */
  readonly replaces?: string | undefined;
}

/** Whether a message was taken. The composer empties itself only after `accepted`. `refused`: the server takes none. */
export type SendOutcome = "accepted" | "empty" | "busy" | "refused";

export interface SendResult {
  readonly outcome: SendOutcome;
  /** Resolves when the run has ended, also one that waits for a key or the network. A refused message has none. */
  readonly ended: Promise<void>;
}

/** `locked`: the message waits for a key that the server accepts, for the user to be known, or for `unlock`. */
export type SessionStatus = "idle" | "running" | "stopping" | "locked";

/** What the owner of a session is informed of. */
export interface SessionListener {
  /** After every change of the messages or the status. */
  onChange(): void;
  /** A piece of an answer's text. Not called again for what an earlier page load has reported already. */
  onToken(text: string, messageId: string): void;
  /** A tool was called, or its call has another status. Likewise. */
  onTool(call: ToolBlock, messageId: string): void;
  /** An answer has ended: done, failed or stopped. Likewise. */
  onAnswerEnd(message: AssistantMessage): void;
}

export interface SessionOptions extends SessionListener {
  readonly transport: Transport;
  readonly reconnect: ReconnectPolicy;
  /** What goes with each message. */
  readonly metadata?: () => Pick<StartRequest, "metadata">;
  /**
   * The error as the conversation shows it; `undefined` if the message waits for a key, or for the user to be known.
   */
  readonly classifyError: (error: ErrorEvent) => ErrorEvent | undefined;
}

/** All that is needed to go on with a conversation, also with a run that has not ended. */
export interface SessionData extends ConversationData {
  readonly run?: RunPosition | undefined;
}

/** How long a conversation that the person has closed can be brought back. */
const UNDO_FOR_MS = 10_000;

/** A conversation that the person has closed, until it is brought back or forgotten. */
interface ClosedConversation {
  readonly data: SessionData;
  readonly bringBack: () => void;
  readonly forget: () => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

export class ChatSession {
  readonly #options: SessionOptions;
  readonly #conversation = new Conversation();
  #status: SessionStatus = "idle";
  #run: ResumableRun | undefined;
  /** Events of a restored run up to this number were reported by an earlier page load. */
  #reportedUntil = 0;
  #clearing: Promise<void> = Promise.resolve();
  /** Ends the waiting of a run for a key. */
  #endWaiting = () => {};
  #closed: ClosedConversation | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get messages(): readonly Message[] {
    return this.#conversation.messages;
  }

  get status(): SessionStatus {
    return this.#status;
  }

  /** Whether a run has not ended, also while it is being stopped or waits for a key. */
  get busy(): boolean {
    return this.#status !== "idle";
  }

  /** Whether older messages of the conversation were left out when it was stored. */
  get isCut(): boolean {
    return this.#conversation.isCut;
  }

  /** Whether the last message has no answer at all yet and waits for the connection. */
  get isQueued(): boolean {
    const isWaiting = this.#options.reconnect.state !== "online" && this.#status !== "stopping";
    return this.busy && isWaiting && (this.#conversation.lastAnswer?.blocks.length ?? 0) === 0;
  }

  /** Whether a message is on its way, and nothing of its answer is there. */
  get isUnanswered(): boolean {
    return this.busy && this.#conversation.lastAnswer?.blocks.length === 0;
  }

  get lastQuestion(): UserMessage | undefined {
    return this.#conversation.lastQuestion;
  }

  /** Whether `undo` can bring back a conversation. */
  get canUndo(): boolean {
    return this.#closed !== undefined;
  }

  /** Of one that was closed, as long as it can be brought back. */
  get data(): SessionData {
    if (this.#closed) return this.#closed.data;
    const { messages, state, isCut } = this.#conversation;
    return { messages, state, isCut, run: this.#run?.position };
  }

  /** Whether a message can be changed and sent again, with the state that it was sent with. */
  canEdit({ stateBefore }: UserMessage): boolean {
    return !this.busy && stateBefore !== undefined;
  }

  /** Whether the last message can be sent again. */
  get canRetry(): boolean {
    const { lastQuestion } = this.#conversation;
    return !this.busy && lastQuestion !== undefined && this.#conversation.canRepeat(lastQuestion);
  }

  /** What goes with a message that takes the place of an earlier one, or with the next: it counts for the size. */
  stateFor(id: string | undefined): ConversationState {
    return this.#conversation.stateFor(id);
  }

  /** A message as it was sent; without its files if they are no longer here. */
  outgoing(message: UserMessage): OutgoingMessage {
    return this.#conversation.outgoing(message);
  }

  /** Sends a message, unless it is empty or a run has not ended. */
  send(outgoing: OutgoingMessage, { replaces }: SendOptions = {}): SendResult {
    if (outgoing.text.trim() === "" && outgoing.attachments.length === 0) return notSent("empty");
    if (this.busy) return notSent("busy");
    this.forgetClosed();
    this.#changeAnswer(stopTools);
    if (replaces !== undefined) this.#conversation.rewind(replaces);
    this.#conversation.ask(outgoing);
    return { outcome: "accepted", ended: this.#follow(this.#newRun()) };
  }

  /** Answers the tool calls that wait for approval, each of them exactly once. The same answer goes on. */
  decide(decisions: readonly ApprovalDecision[]): SendResult {
    if (this.busy) return notSent("busy");
    const { lastAnswer } = this.#conversation;
    const open = new Set(lastAnswer ? waitingCalls(lastAnswer).map(({ callId }) => callId) : []);
    const isComplete = decisions.length === open.size && decisions.every(({ id }) => open.delete(id));
    if (open.size > 0 || !isComplete || decisions.length === 0) return notSent("empty");
    this.#changeAnswer((answer) => reopenedAnswer(answer, decisions));
    const start = { message: "", attachments: [], state: this.#conversation.state, approvals: decisions };
    return { outcome: "accepted", ended: this.#follow(new ResumableRun({ ...this.#options, start })) };
  }

  /** Keeps the person's rating: the same message with another `feedback`. */
  rate(rated: AssistantMessage): void {
    this.#conversation.replace(rated);
    this.#options.onChange();
  }

  /** Asks the server to end the run; the text so far stays. */
  stop(): void {
    if (!this.#run) return;
    this.#changeAnswer(stopTools);
    this.#setStatus("stopping");
    this.#run.stop();
    this.#endWaiting();
  }

  /** Follows a run no longer, which goes on at the server, until `resume`. The connection is the caller's to close. */
  pause(): void {
    this.#run?.pause();
  }

  resume(): void {
    this.#run?.resume();
  }

  /**
   * Sends the last message again, in place of its answer; `afresh` as the first of a new conversation, for a state that
   * the server no longer has.
   */
  async retry({ afresh = false } = {}): Promise<void> {
    if (afresh ? this.busy : !this.canRetry) return;
    this.#conversation.rewindAnswer(afresh);
    await this.#follow(this.#newRun());
  }

  /** Removes a message that is queued, or was refused, and returns it as it was to be sent. */
  withdraw(isRefused = false): OutgoingMessage | undefined {
    const [run, question] = [this.#run, this.#conversation.lastQuestion];
    if (!run || !question || !(isRefused ? run.isUnsent : this.isQueued)) return undefined;
    const outgoing = this.#conversation.outgoing(question);
    this.#leaveRun();
    this.#conversation.rewind(question.id);
    this.#setStatus("idle");
    return outgoing;
  }

  /** Continues with the message that waits for a key. */
  unlock(): void {
    if (this.#status !== "locked") return;
    this.#setStatus("running");
    this.#endWaiting();
  }

  /**
   * Begins a new conversation in place of this one, which `undo` brings back as it is: its run goes on at the server
   * meanwhile. After a while, and before the next message, it is forgotten.
   */
  close(): void {
    if (this.messages.length === 0) return;
    const { data } = this;
    const [run, status, endWaiting] = [this.#run, this.#status, this.#endWaiting];
    run?.pause();
    if (run) this.#options.transport.close();
    const restore = this.#conversation.setAside();
    this.#run = undefined;
    this.#endWaiting = () => {};
    const bringBack = () => {
      restore();
      this.#run = run;
      this.#endWaiting = endWaiting;
      run?.resume();
      this.#setStatus(status);
    };
    const forget = () => {
      this.#clearing = this.#options.transport.clear();
      run?.stop();
      endWaiting();
      this.#options.onChange();
    };
    this.#closed = { data, bringBack, forget, timer: setTimeout(() => this.forgetClosed(), UNDO_FOR_MS) };
    this.#setStatus("idle");
  }

  /** Brings back the conversation that was closed. */
  undo(): void {
    this.#takeClosed()?.bringBack();
  }

  /** Ends the run of the conversation that was closed, which can no longer be brought back. */
  forgetClosed(): void {
    this.#takeClosed()?.forget();
  }

  #takeClosed(): ClosedConversation | undefined {
    const closed = this.#closed;
    clearTimeout(closed?.timer);
    this.#closed = undefined;
    return closed;
  }

  /** Removes the conversation and ends its run. Resolves when the server has forgotten it. */
  async reset(): Promise<void> {
    this.forgetClosed();
    this.#conversation.clear();
    this.#clearing = this.#options.transport.clear();
    this.#leaveRun();
    this.#setStatus("idle");
    await this.#clearing;
  }

  /**
   * Goes on with an earlier conversation. A run that had not ended waits for `unlock`; its events up to number
   * `reportedUntil` were reported by an earlier page load.
   */
  restore(data: SessionData, reportedUntil = 0): void {
    const { run } = data;
    // The same answer arrives here, too, and brings what is missing.
    if (run && this.#run?.position.run === run.run) return;
    this.#leaveRun();
    this.#conversation.restore(data);
    this.#reportedUntil = reportedUntil;
    this.#status = run ? "locked" : "idle";
    if (run) void this.#follow(this.#newRun(run));
    this.#options.onChange();
  }

  #newRun(position?: RunPosition): ResumableRun {
    if (!position) this.#reportedUntil = 0;
    // Decisions are not stored: without them, what would be sent is the message, which declines the calls.
    const isDecided = this.#conversation.lastAnswer?.blocks.some((block) => block.type === "tool" && block.approval);
    const start = isDecided ? undefined : this.#conversation.start;
    return new ResumableRun({ ...this.#options, start, position });
  }

  /** Follows a run until it has ended, or another one has its place. */
  async #follow(run: ResumableRun): Promise<void> {
    this.#run = run;
    this.#conversation.expectAnswer();
    try {
      do {
        if (this.#status === "locked") await new Promise<void>((resolve) => (this.#endWaiting = resolve));
        if (this.#run !== run) return;
        this.#conversation.expectAnswer();
        if (this.#status !== "stopping") this.#setStatus("running");
        // A run that starts before `cleared` has arrived would be cleared with the old conversation.
        await this.#clearing;
      } while (!(await this.#receiveAll(run)));
      if (this.#run === run) this.#endAnswer((answer) => stopAnswer(answer, Date.now()));
    } catch (error) {
      const failure: Failure = { code: "unreadable", retryable: true };
      if (this.#run === run) this.#endAnswer((answer) => failAnswer(answer, failure, Date.now()));
      if (!(error instanceof TransportError)) throw error;
    } finally {
      if (this.#run === run) {
        this.#run = undefined;
        this.#setStatus("idle");
      }
    }
  }

  /** Adds the events of a run to the answer; `false` if a key is needed before its end. */
  async #receiveAll(run: ResumableRun): Promise<boolean> {
    let isKeyNeeded = false;
    await run.follow((event) => {
      if (this.#run !== run) return;
      const shown = event.type === "error" ? this.#classify(event) : event;
      if (shown) this.#receive(shown, run);
      else isKeyNeeded = true;
    });
    if (!isKeyNeeded || this.#run !== run) return true;
    if (this.#conversation.lastAnswer?.blocks.length === 0) this.#conversation.dropAnswer();
    this.#setStatus("locked");
    return false;
  }

  #classify(event: ErrorEvent): ErrorEvent | undefined {
    // The server's sentence is about a run that the person knows nothing of.
    if (isRunLost(event)) return { ...event, data: "", retryable: true };
    return this.#options.classifyError(event);
  }

  #receive(event: RunEvent, run: ResumableRun): void {
    const isEnd = event.type === "done" || event.type === "error";
    if (isEnd && event.state) this.#conversation.state = event.state;
    const isReported = event.id !== undefined && event.id <= this.#reportedUntil;
    this.#changeAnswer((answer) => {
      const next = applyEvent(answer, event, Date.now(), run.reference);
      return isEnd ? { ...next, run: run.position.run } : next;
    }, isReported);
    const { lastAnswer } = this.#conversation;
    if (event.type === "token" && lastAnswer && !isReported) this.#options.onToken(event.data, lastAnswer.id);
  }

  /** Ends an answer that no terminal event has ended. */
  #endAnswer(end: (answer: AssistantMessage) => AssistantMessage): void {
    this.#changeAnswer((answer) => (answer.status === "streaming" ? end(answer) : answer));
  }

  /** Changes the last answer, and reports what has happened in it unless an earlier page load has. */
  #changeAnswer(change: (answer: AssistantMessage) => AssistantMessage, isReported = false): void {
    const before = this.#conversation.lastAnswer;
    this.#conversation.changeAnswer(change);
    const after = this.#conversation.lastAnswer;
    this.#options.onChange();
    if (!before || !after || isReported) return;
    after.blocks.forEach((block, index) => {
      const known = before.blocks[index];
      if (block === known || block.type !== "tool") return;
      if (known?.type !== "tool" || known.status !== block.status) this.#options.onTool(block, after.id);
    });
    if (before.status === "streaming" && after.status !== "streaming") this.#options.onAnswerEnd(after);
  }

  /** Follows the run no longer, and asks the server to end it. */
  #leaveRun(): void {
    const run = this.#run;
    this.#run = undefined;
    run?.stop();
    this.#endWaiting();
  }

  #setStatus(status: SessionStatus): void {
    this.#status = status;
    this.#options.onChange();
  }
}

function notSent(outcome: SendOutcome): SendResult {
  return { outcome, ended: Promise.resolve() };
}

/** Approved calls run from now on; declined ones have failed. Their results come as events. */
function reopenedAnswer(answer: AssistantMessage, decisions: readonly ApprovalDecision[]): AssistantMessage {
  const approved = new Map(decisions.map(({ id, approved }) => [id, approved]));
  const blocks = answer.blocks.map((block) => {
    if (block.type !== "tool" || block.status !== "waiting") return block;
    return { ...block, status: approved.get(block.callId) ? "running" : "failed" } as const;
  });
  const { finishReason: _, ...rest } = answer;
  return { ...rest, blocks, status: "streaming" };
}
