/** One conversation with the server: at most one run at a time, over as many connections as it takes. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ApprovalDecision, ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import {
  type RunEvent,
  type RunPosition,
  type StartRequest,
  type Transport,
  TransportError,
} from "../transport/transport.ts";
import {
  Conversation,
  type ConversationData,
  type OutgoingMessage,
  type PendingChange,
  type PendingMessage,
  shownOf,
} from "./conversation.ts";
import {
  type AssistantMessage,
  applyEvent,
  askAgain,
  type Failure,
  failAnswer,
  type GoingOn,
  isCut,
  type Message,
  markCall,
  type PageMessage,
  reopenAnswer,
  stopAnswer,
  stopTools,
  type ToolBlock,
  type UserMessage,
  waitingCalls,
  withoutDecisions,
} from "./messages.ts";
import type { ReconnectPolicy } from "./reconnect-policy.ts";
import { isRunLost, ResumableRun, randomId } from "./resumable-run.ts";

export type { OutgoingMessage } from "./conversation.ts";

export interface SendOptions {
  /** Id of the earlier message whose place it takes: a new branch begins there, and the one before stays. */
  readonly replaces?: string | undefined;
}

/**
 * Whether a message was taken. The composer empties itself only after `accepted`. `refused`: the server takes none, or the
 * message that it was to replace is gone. `elsewhere`: another tab has gone on with the conversation. `full`: too many are
 * pending.
 */
export type SendOutcome = "accepted" | "empty" | "busy" | "refused" | "elsewhere" | "full";

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
  /** What waits for the end of the answer has changed, and is to be kept. */
  readonly onPending?: (change: PendingChange) => void;
}

/** All that is needed to go on with a conversation, also with a run that has not ended. */
export interface SessionData extends ConversationData {
  readonly run?: RunPosition | undefined;
  /** What the agent calls it. */
  readonly title?: string | undefined;
  /** How often the person has rated an answer or decided about a call. */
  readonly marks?: number;
  readonly pending?: readonly PendingMessage[] | undefined;
}

/** Another text as soon as there is another message or mark, or a run has begun or ended; empty without messages. */
export function progressOf({ head, run, marks = 0 }: Partial<SessionData> = {}): string {
  return head === undefined ? "" : `${head} ${run?.run} ${marks}`;
}

/** So many messages wait for the end of an answer at most. */
const MAX_PENDING = 3;

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
  /** What was written while an answer was running, and waits for its end. */
  pending: readonly PendingMessage[] = [];
  /** The bytes of its files. */
  readonly pendingFiles = new Map<string, readonly Attachment[]>();
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
  #ended: Promise<void> = Promise.resolve();
  /** What the agent calls the conversation. */
  #title: string | undefined;
  #marks = 0;

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

  /** Resolves when the run has ended that goes on now. */
  get ended(): Promise<void> {
    return this.#ended;
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

  /** Whether an answer comes that has not gone on from an earlier end. */
  get isAnswerNew(): boolean {
    return this.busy && this.#conversation.lastAnswer?.goesOn === undefined;
  }

  /** The calls that wait for the person's decision, and can be decided about now. */
  get waitingCalls(): readonly ToolBlock[] {
    const { lastAnswer } = this.#conversation;
    return this.busy || !lastAnswer || lastAnswer.forgotten ? [] : waitingCalls(lastAnswer);
  }

  get lastQuestion(): UserMessage | undefined {
    return this.#conversation.lastQuestion;
  }

  /** The answer to the last message of the person. */
  get lastAnswer(): AssistantMessage | undefined {
    return this.#conversation.lastAnswer;
  }

  /** Whether `undo` can bring back a conversation. */
  get canUndo(): boolean {
    return this.#closed !== undefined;
  }

  /** What is stored: the conversation that was closed, as long as it can be brought back, or the one in sight. */
  get data(): SessionData {
    if (this.#closed) return this.#closed.data;
    const { pending } = this;
    return { ...this.#conversation.data, title: this.#title, run: this.#run?.position, marks: this.#marks, pending };
  }

  /** See `progressOf`. */
  get progress(): string {
    const { head } = this.#conversation;
    return progressOf(this.#closed?.data ?? { head, run: this.#run?.position, marks: this.#marks });
  }

  /** What the next message is sent with. */
  get state(): ConversationState {
    return this.#conversation.state;
  }

  /** Whether a message can be changed and sent again, with the state that it was sent with. */
  canEdit(message: UserMessage): boolean {
    return !this.busy && this.canReplace(message.id);
  }

  /** Whether a message is still here, in sight or not, and can be changed as soon as no run goes on. */
  canReplace(id: string): boolean {
    return this.#conversation.canReplace(id);
  }

  /** Whether the last message can be sent again, or what had its answer go on. */
  get canRetry(): boolean {
    const { lastQuestion, lastAnswer } = this.#conversation;
    if (this.busy) return false;
    return (
      lastAnswer?.goesOn !== undefined || (lastQuestion !== undefined && this.#conversation.canRepeat(lastQuestion))
    );
  }

  /** The messages that stand in one place of the conversation, itself included: the oldest comes first. */
  alternatives(message: Message): readonly string[] {
    return this.#conversation.alternatives(message);
  }

  /** Brings into sight the branch with a message, unless a run has not ended. */
  switchTo(id: string): void {
    if (this.busy) return;
    this.#holdPending();
    this.#conversation.switchTo(id);
    this.#options.onChange();
  }

  /** Whether the last answer was cut, and can go on. */
  get canContinue(): boolean {
    const { lastAnswer } = this.#conversation;
    const isKnown = Object.keys(this.#conversation.state).length > 0;
    return !this.busy && isKnown && lastAnswer !== undefined && isCut(lastAnswer);
  }

  /** What goes with a message that takes the place of an earlier one, or with the next: it counts for the size. */
  stateFor(id: string | undefined): ConversationState {
    return this.#conversation.stateFor(id);
  }

  /** Has a message wait for the end of the answer. Returns whether there was room for it. */
  queue(outgoing: OutgoingMessage): boolean {
    if (this.pending.length >= MAX_PENDING) return false;
    const message = { id: randomId(), ...shownOf(outgoing) };
    if (outgoing.attachments.length > 0) this.pendingFiles.set(message.id, outgoing.attachments);
    this.changePending((list) => [...list, message]);
    return true;
  }

  changePending(change: PendingChange): void {
    const before = this.pending;
    this.pending = change(before);
    for (const { id } of before) if (!this.pending.some((it) => it.id === id)) this.pendingFiles.delete(id);
    this.#options.onPending?.(change);
    this.#options.onChange();
  }

  /** Has nothing that is pending sent unasked: it was written in view of something else. */
  #holdPending(): void {
    if (this.pending.length > 0) this.changePending((list) => list.map((it) => ({ ...it, isHeld: true })));
  }

  /** Takes over what the store has. What stands in the conversation was sent. */
  setPending(list: readonly PendingMessage[] = []): void {
    if (list.length + this.pending.length === 0) return;
    const { tree } = this.#conversation.data;
    const sent = new Set(tree.flatMap((it) => (it.role === "user" && it.pending) || []));
    const known = new Map(this.pending.map((it) => [it.id, it.files]));
    // A page that has sent it did not live to say so.
    if (list.some(({ id }) => sent.has(id))) this.#options.onPending?.((all) => all.filter(({ id }) => !sent.has(id)));
    // What is stored has no pictures.
    this.pending = list.filter(({ id }) => !sent.has(id)).map((it) => ({ ...it, files: known.get(it.id) ?? it.files }));
    this.#options.onChange();
  }

  /** A message as it was sent; without its files if they are no longer here. */
  outgoing(message: UserMessage): OutgoingMessage {
    return this.#conversation.outgoing(message);
  }

  /** See `Conversation.addFiles`. */
  addFiles(read: SessionData, filled: SessionData): void {
    this.#conversation.addFiles(read, filled);
  }

  /** Sends a message, unless it is empty or a run has not ended. */
  send(outgoing: OutgoingMessage, { replaces }: SendOptions = {}): SendResult {
    if (outgoing.text.trim() === "" && outgoing.attachments.length === 0) return notSent("empty");
    if (this.busy) return notSent("busy");
    if (replaces !== undefined && !this.canReplace(replaces)) return notSent("refused");
    this.forgetClosed();
    // What is asked waits in its own branch, to be decided there.
    if (replaces === undefined) this.#changeAnswer(stopTools);
    else this.#holdPending();
    this.#conversation.ask(outgoing, replaces);
    return { outcome: "accepted", ended: this.#follow(this.#newRun()) };
  }

  /**
   * Adds a message of the page behind the last one, once no run goes on any more. Resolves with its id, or without one
   * where another conversation has taken the place of this one meanwhile. `claim` rejects where another tab goes on with
   * this one then.
   */
  async addOfPage(message: Pick<PageMessage, "text" | "name">, claim = async () => {}): Promise<string | undefined> {
    const { key } = this.#conversation;
    while (this.busy && key === this.#conversation.key) {
      await this.#ended;
      if (key === this.#conversation.key) await claim();
    }
    if (key !== this.#conversation.key) return undefined;
    const id = this.#conversation.addOfPage(message);
    this.#options.onChange();
    return id;
  }

  /** Whether a message in place of decisions declines what is asked. Who is asked for words alone answers with it. */
  get writingDeclines(): boolean {
    return this.waitingCalls.some(({ approval }) => !approval?.question);
  }

  /** Answers the tool calls that wait for approval, each of them exactly once. The same answer goes on. */
  decide(decisions: readonly ApprovalDecision[]): SendResult {
    if (this.busy) return notSent("busy");
    const open = new Set(this.waitingCalls.map(({ callId }) => callId));
    const isComplete = decisions.length === open.size && decisions.every(({ id }) => open.delete(id));
    if (open.size > 0 || !isComplete || decisions.length === 0) return notSent("empty");
    return this.#goOn({ approvals: decisions });
  }

  /** Keeps the decision about a call that waits, or takes it back. */
  mark(callId: string, decision: ToolBlock["decision"]): void {
    if (!this.waitingCalls.some((call) => call.callId === callId)) return;
    this.#marks += 1;
    this.#changeAnswer((answer) => markCall(answer, callId, decision));
  }

  /** The decisions as they stand now; absent until each call that waits has one. */
  get decisions(): readonly ApprovalDecision[] | undefined {
    const { waitingCalls: calls } = this;
    const decisions = calls.flatMap(({ callId: id, decision }) => (decision ? [{ ...decision, id }] : []));
    return calls.length > 0 && decisions.length === calls.length ? decisions : undefined;
  }

  /** Has the last answer go on where it was cut. */
  continue(): SendResult {
    return this.canContinue ? this.#goOn({ continue: true }) : notSent(this.busy ? "busy" : "empty");
  }

  #goOn(goesOn: GoingOn): SendResult {
    this.forgetClosed();
    const before = this.#conversation.lastAnswer;
    this.#changeAnswer((answer) => reopenAnswer(answer, goesOn, Date.now()));
    return { outcome: "accepted", ended: this.#follow(this.#newRun(), before) };
  }

  /** Keeps what the person thinks of an answer, or has decided about its calls: the same message with more. */
  keep(message: AssistantMessage): void {
    this.#marks += 1;
    this.#conversation.replace(message);
    this.#options.onChange();
  }

  /** Asks the server to end the run; the text so far stays. */
  stop(): void {
    if (!this.#run) return;
    this.#holdPending();
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
   * Sends the last message again, for another answer, or has a failed answer go on; `afresh` as the first of a new
   * conversation, for a state that the server no longer has.
   */
  async retry({ afresh = false } = {}): Promise<void> {
    if (afresh ? this.busy : !this.canRetry) return;
    const goesOn = afresh ? undefined : this.#conversation.lastAnswer?.goesOn;
    if (goesOn) return this.#goOn(goesOn).ended;
    this.#conversation.answerAgain(afresh);
    await this.#follow(this.#newRun());
  }

  /** Removes a message that is queued, or was refused, and returns it as it was to be sent, with the names of files that are gone. */
  withdraw(isRefused = false): OutgoingMessage | undefined {
    const [run, question] = [this.#run, this.#conversation.lastQuestion];
    if (!run || !question || !(isRefused ? run.isUnsent : this.isQueued)) return undefined;
    const outgoing = { ...this.#conversation.outgoing(question), files: question.files };
    this.#leaveRun();
    const isGone = this.#conversation.withdraw(question);
    this.#status = "idle";
    this.#changeAnswer(askAgain);
    return isGone ? outgoing : undefined;
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
    this.#title = undefined;
    this.#marks = 0;
    this.pending = [];
    this.#endWaiting = () => {};
    const bringBack = () => {
      restore();
      this.setPending(data.pending);
      this.#title = data.title;
      this.#marks = data.marks ?? 0;
      this.#run = run;
      this.#endWaiting = endWaiting;
      run?.resume();
      this.#setStatus(status);
    };
    const forget = () => {
      for (const { id } of data.pending ?? []) this.pendingFiles.delete(id);
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
    this.#title = undefined;
    this.#marks = 0;
    this.pending = [];
    this.pendingFiles.clear();
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
    this.#title = data.title;
    this.#marks = data.marks ?? 0;
    // The same answer arrives here, too, and brings what is missing: only the messages before may have been rated.
    if (run && this.#run?.position.run === run.run) {
      const { lastAnswer } = this.#conversation;
      const tree = data.tree.map((message) => (message.id === lastAnswer?.id ? lastAnswer : message));
      this.#conversation.restore({ ...data, tree });
      this.#options.onChange();
      return;
    }
    // What was in its place goes on at the server, which has one run on each connection.
    if (this.#run) this.#options.transport.close();
    this.#run?.leave();
    this.#run = undefined;
    this.#endWaiting();
    const before = this.#conversation.lastAnswer;
    this.#conversation.restore(data);
    this.setPending(data.pending);
    this.#reportedUntil = reportedUntil;
    this.#status = run ? "locked" : "idle";
    if (run) void this.#follow(this.#newRun(run));
    this.#options.onChange();
    // It has come to its end in another tab, which was quicker.
    this.#report(
      before,
      data.tree.find(({ id }) => id === before?.id),
    );
  }

  #newRun(position?: RunPosition): ResumableRun {
    if (!position) this.#reportedUntil = 0;
    const { lastAnswer, state } = this.#conversation;
    const goesOn = lastAnswer?.goesOn;
    const start = goesOn ? { message: "", attachments: [], state, ...goesOn } : this.#conversation.start;
    return new ResumableRun({ ...this.#options, start, position });
  }

  #follow(run: ResumableRun, before?: AssistantMessage): Promise<void> {
    this.#ended = this.#followToEnd(run, before);
    return this.#ended;
  }

  /** Follows a run until it has ended, or another one has its place. `before`: the answer that was to go on with it. */
  async #followToEnd(run: ResumableRun, before?: AssistantMessage): Promise<void> {
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
      // What the server has not heard of can still be decided, and go on.
      const unheard = before && !run.wasSent && withoutDecisions(before);
      if (this.#run === run) this.#endAnswer((answer) => unheard || stopAnswer(answer, Date.now()));
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
    // What had the answer go on is sent again with the state that it was sent with.
    const isUndone = event.type === "error" && event.retryable && this.#conversation.lastAnswer?.goesOn;
    if (isEnd && event.state && !isUndone) this.#conversation.state = event.state;
    if (event.type === "done" && event.title !== undefined) this.#title = event.title;
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
    if (!isReported) this.#report(before, after);
  }

  /** Reports what has become of an answer. */
  #report(before: AssistantMessage | undefined, after: Message | undefined): void {
    if (!before || after?.role !== "assistant") return;
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
