/** The run of a conversation: at most one at a time, over as many connections as it takes. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ApprovalDecision, ConversationState } from "../../server/protocol/chat.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { toJson } from "../../server/protocol/json.ts";
import type { FallbackTransport } from "../transport/fallback.ts";
import { type RunEvent, type RunPosition, type StartRequest, TransportError } from "../transport/transport.ts";
import { storedState } from "./branch-states.ts";
import {
  type Conversation,
  canReplace,
  findMessage,
  knowsState,
  lastAnswerOf,
  lastQuestionOf,
  type OutgoingMessage,
  type QueuedMessage,
  stateAt,
  stateOf,
} from "./conversation.ts";
import {
  type AssistantMessage,
  type Failure,
  type GoingOn,
  isCut,
  type Message,
  type PageMessage,
  type ToolBlock,
  type UserMessage,
  waitingCalls,
} from "./messages.ts";
import type { OpenConversation } from "./open-conversation.ts";
import { isOf, type Operation } from "./operations.ts";
import type { ReconnectPolicy } from "./reconnect-policy.ts";
import { isRunLost, ResumableRun, randomId } from "./resumable-run.ts";
import { shownOf } from "./sent-files.ts";

export interface SendOptions {
  /** Id of the earlier message that it replaces: a new branch begins there, and the old one stays. */
  readonly replaces?: string | undefined;
}

/**
 * Whether a message was accepted. The composer is emptied only after `accepted`. `refused`: the server accepts none, or
 * the message to replace is gone. `elsewhere`: another tab has continued the conversation. `full`: too many are queued.
 */
export type SendOutcome = "accepted" | "empty" | "busy" | "refused" | "elsewhere" | "full";

export interface SendResult {
  readonly outcome: SendOutcome;
  /** Resolves when the run has ended, even if it waits for a key or the network; at once if there is no run. */
  readonly ended: Promise<void>;
}

/** `locked`: the message waits for a key that the server accepts, for the user to be known, or for `unlock`. */
export type SessionStatus = "idle" | "running" | "stopping" | "locked";

/** Callbacks of a session. */
export interface SessionListener {
  /** After every change of the messages or the status. */
  onChange(): void;
  /** A piece of an answer's text. Not called again for what an earlier page load has reported already. */
  onToken(text: string, messageId: string): void;
  /** A tool was called, or the status of its call has changed. Likewise not called again. */
  onTool(call: ToolBlock, messageId: string): void;
  /** An answer has ended: done, failed or stopped. Likewise not called again. */
  onAnswerEnd(message: AssistantMessage): void;
}

export interface SessionOptions extends SessionListener {
  readonly conversation: OpenConversation;
  readonly transport: FallbackTransport;
  readonly reconnect: ReconnectPolicy;
  /** The metadata sent with each message. */
  readonly metadata?: () => Pick<StartRequest, "metadata">;
  /**
   * The error as the conversation shows it; `undefined` if the message waits for a key, or for the user to be known.
   */
  readonly classifyError: (error: ErrorEvent) => ErrorEvent | undefined;
}

/** Maximum number of messages that wait for the end of an answer. */
const MAX_QUEUED = 3;

/** A tab may be closed after it began a run and before it sent the message: after this time another tab sends it. */
const TAKE_OVER_AFTER_MS = 5_000;

export class ChatSession {
  /** The files of queued messages, by the id of the message. */
  readonly queuedFiles = new Map<string, readonly Attachment[]>();
  readonly conversation: OpenConversation;
  /** A connection of its own: its answer continues while another conversation is shown. */
  readonly transport: FallbackTransport;
  readonly #options: SessionOptions;
  #status: SessionStatus = "idle";
  #run: ResumableRun | undefined;
  /** Events of a restored run up to this number were reported by an earlier page load. */
  #reportedUntil = 0;
  /** Ends the waiting of a run for a key. */
  #endWaiting = () => {};
  /** Resolves when the current run has ended. */
  ended: Promise<void> = Promise.resolve();
  /** Whether a run is about to begin, while the store is asked. */
  #isStarting = false;
  #isPaused = false;
  #isClosed = false;
  /** To be called after the next change. */
  #waiting: (() => void)[] = [];
  #takingOver: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.conversation = options.conversation;
    this.transport = options.transport;
    this.conversation.onChange = () => this.#changed();
    this.conversation.onRebase = (before, after) => this.#rebased(before, after);
  }

  /** The conversation as it stands now. */
  get value(): Conversation {
    return this.conversation.value;
  }

  get messages(): readonly Message[] {
    return this.value.messages;
  }

  get status(): SessionStatus {
    return this.#isStarting && !this.busy ? "running" : this.#status;
  }

  /** Whether a run has not ended, also while it is being stopped or waits for a key. */
  get busy(): boolean {
    return this.#status !== "idle" || this.value.run !== undefined;
  }

  /** Whether it still has something to do while another conversation is shown. */
  get goesOn(): boolean {
    return this.busy || this.#isStarting;
  }

  /** Whether the last message has no answer at all yet and waits for the connection, or for the network. */
  get isQueued(): boolean {
    const { state, isOffline } = this.#options.reconnect;
    if (state === "online" && !(isOffline && this.#run?.isUnsent)) return false;
    return this.busy && this.#status !== "stopping" && !this.lastAnswer?.blocks.length;
  }

  /** Whether a message is on its way, and nothing of its answer has arrived. */
  get isUnanswered(): boolean {
    return this.busy && this.lastAnswer?.blocks.length === 0;
  }

  /** Whether an answer is running that does not continue an earlier one. */
  get isAnswerNew(): boolean {
    return this.busy && this.lastAnswer?.goesOn === undefined;
  }

  /** The calls that wait for the user's decision and can be decided now. */
  get waitingCalls(): readonly ToolBlock[] {
    return this.busy ? [] : waitingIn(this.value);
  }

  get lastQuestion(): UserMessage | undefined {
    return lastQuestionOf(this.value);
  }

  /** The answer to the user's last message. */
  get lastAnswer(): AssistantMessage | undefined {
    return lastAnswerOf(this.value);
  }

  /** The state that the next message is sent with. */
  get state(): ConversationState {
    return stateOf(this.value);
  }

  /** The current run, and the number of its last event that was reported. */
  get position(): RunPosition | undefined {
    return this.#run?.position;
  }

  /** Whether a message can be changed and sent again, with the state that it was sent with. */
  canEdit(message: UserMessage): boolean {
    return !this.busy && this.canReplace(message.id);
  }

  /** Whether a message still exists, in any branch, and can be changed as soon as no run is in progress. */
  canReplace(id: string): boolean {
    return canReplace(this.value, id);
  }

  /** Whether the last message can be sent again, or what was to continue its answer. */
  get canRetry(): boolean {
    const { lastQuestion, lastAnswer } = this;
    if (this.busy) return false;
    return lastAnswer?.goesOn !== undefined || (lastQuestion !== undefined && this.#canRepeat(lastQuestion));
  }

  /** Whether a message can be sent again as it was: with the same state and files. */
  #canRepeat(question: UserMessage): boolean {
    return knowsState(this.value, question) && this.conversation.files.has(question);
  }

  /** Shows the branch that contains a message, unless a run is in progress. Resolves with whether it is shown. */
  async switchTo(id: string): Promise<boolean> {
    return !this.busy && (await this.conversation.commit({ type: "switch", id })) !== undefined;
  }

  /** Whether the last answer was cut off and can be continued. */
  get canContinue(): boolean {
    const { lastAnswer } = this;
    const isKnown = Object.keys(this.state).length > 0;
    return !this.busy && isKnown && lastAnswer !== undefined && isCut(lastAnswer);
  }

  /** The state sent with a message that replaces `id`, or with the next one: it counts towards the request size. */
  stateFor(id: string | undefined): ConversationState {
    const message = findMessage(this.value, id);
    return (message?.role === "user" && stateAt(this.value, id)) || this.state;
  }

  /** Messages that were written while an answer was running, and wait for its end. */
  get queued(): readonly QueuedMessage[] {
    return this.value.queued;
  }

  /** Queues a message until the answer has ended. Returns whether there was room for it. */
  queue(outgoing: OutgoingMessage): boolean {
    if (this.queued.length >= MAX_QUEUED) return false;
    const message = { id: randomId(), ...shownOf(outgoing) };
    if (outgoing.attachments.length > 0) this.queuedFiles.set(message.id, outgoing.attachments);
    this.#change({ type: "queue", message });
    return true;
  }

  /** Changes the queue. */
  changeQueue(operation: Extract<Operation, { readonly type: "unqueue" | "hold" | "release" }>): void {
    this.#change(operation);
    const known = new Set(this.queued.map(({ id }) => id));
    for (const id of this.queuedFiles.keys()) if (!known.has(id)) this.queuedFiles.delete(id);
  }

  /**
   * Sends a message, unless it is empty or a run is in progress. The queued messages of which it is made must still be
   * queued, and not held: another tab may have sent them.
   */
  async send(outgoing: OutgoingMessage, { replaces }: SendOptions = {}): Promise<SendResult> {
    const { queued: ids = [], attachments, text } = outgoing;
    if (text.trim() === "" && attachments.length === 0) return notSent("empty");
    if (this.busy) return notSent("busy");
    if (replaces !== undefined && !this.canReplace(replaces)) return notSent("refused");
    const message = { ...shownOf(outgoing), ...(ids.length > 0 && { queued: ids }) };
    const isStill = ({ queued }: Conversation) => ids.every((id) => queued.some((it) => it.id === id && !it.isHeld));
    // Named after the queued message: if the store cannot tell which tab was first, the server answers it once.
    return this.#start({ type: "ask", message, replaces, ...this.#newStart(ids[0]) }, isStill, attachments);
  }

  /**
   * Appends a message of the page as soon as no run is in progress. Resolves with its id, or with `undefined` if
   * `isShown` says that another conversation is shown by then.
   */
  async addOfPage(message: Pick<PageMessage, "text" | "name">, isShown = () => true): Promise<string | undefined> {
    for (;;) {
      while (this.busy && isShown()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      if (!isShown()) return undefined;
      const added = await this.conversation.commit({ type: "add", message, at: Date.now() });
      if (added) return added.head;
    }
  }

  /** Whether a message sent instead of decisions declines the calls. If they only ask for words, it is the answer. */
  get writingDeclines(): boolean {
    return this.waitingCalls.some(({ approval }) => !approval?.question);
  }

  /** Decides all tool calls that wait for approval, each of them exactly once, and continues the same answer. */
  async decide(decisions: readonly ApprovalDecision[]): Promise<SendResult> {
    if (this.busy) return notSent("busy");
    const open = new Set(this.waitingCalls.map(({ callId }) => callId));
    const areAll = decisions.length === open.size && decisions.every(({ id }) => open.delete(id));
    if (!areAll || decisions.length === 0) return notSent("empty");
    // Decisions that were marked in another tab in the meantime take precedence.
    const marks = marksOf(this.value);
    return this.#goOn({ approvals: decisions }, (now) => marksOf(now) === marks);
  }

  /** Stores the decision about a waiting call, or takes it back. */
  mark(callId: string, decision: ToolBlock["decision"]): void {
    if (this.waitingCalls.some((call) => call.callId === callId)) this.#change({ type: "mark", callId, decision });
  }

  /** The current decisions; absent until each waiting call has one. */
  get decisions(): readonly ApprovalDecision[] | undefined {
    const { waitingCalls: calls } = this;
    const decisions = calls.flatMap(({ callId: id, decision }) => (decision ? [{ ...decision, id }] : []));
    return calls.length > 0 && decisions.length === calls.length ? decisions : undefined;
  }

  /** Continues the last answer where it was cut off. */
  async continue(): Promise<SendResult> {
    return this.canContinue ? this.#goOn({ continue: true }) : notSent(this.busy ? "busy" : "empty");
  }

  #goOn(goesOn: GoingOn, isStill?: (now: Conversation) => boolean): Promise<SendResult> {
    return this.#start({ type: "reopen", goesOn, ...this.#newStart() }, isStill);
  }

  #newStart(run = randomId()) {
    return { run, at: Date.now() };
  }

  /** Begins a run, unless another tab has continued the conversation in the meantime. */
  async #start(
    operation: Extract<Operation, { readonly type: "ask" | "answer_again" | "reopen" }>,
    isStill?: (now: Conversation) => boolean,
    attachments: readonly Attachment[] = [],
  ): Promise<SendResult> {
    if (this.#isStarting) return notSent("busy");
    const before = this.lastAnswer;
    this.#isStarting = true;
    const isTaken = await this.conversation.commit(operation, isStill).finally(() => {
      this.#isStarting = false;
    });
    if (!isTaken || !isOf(this.value, operation.run)) {
      this.#changed();
      return notSent("elsewhere");
    }
    if (this.#isClosed) return { outcome: "accepted", ended: Promise.resolve() };
    if (attachments.length > 0) this.conversation.addFiles(attachments);
    this.#reportedUntil = 0;
    this.#report(before, operation.type === "reopen" ? this.lastAnswer : findMessage(this.value, before?.id));
    return { outcome: "accepted", ended: this.#follow(this.#newRun(operation.run), before) };
  }

  /** Stores the user's rating of an answer. */
  rate({ id, run, feedback }: AssistantMessage): void {
    this.#change({ type: "rate", id, feedback, ...(run && { run }) });
  }

  /** Asks the server to end the run; the text so far stays. */
  stop(): void {
    const run = this.#run;
    if (!run) return;
    this.#change({ type: "stop", run: run.id });
    this.#end();
  }

  #end(): void {
    this.#setStatus("stopping");
    this.#run?.stop();
    this.#endWaiting();
  }

  /** Stops following the run until `resume`; it continues at the server. */
  pause(): void {
    this.#isPaused = true;
    clearTimeout(this.#takingOver);
    this.#run?.pause();
    this.transport.close();
  }

  resume(): void {
    this.#isPaused = false;
    this.#run?.resume();
    this.#followOther();
  }

  /**
   * Sends the last message again for another answer, or continues a failed answer. `afresh`: sends it as the first of a
   * new conversation, if the server no longer has the state.
   */
  async retry({ afresh = false } = {}): Promise<SendResult> {
    if (afresh ? this.busy : !this.canRetry) return notSent("busy");
    const goesOn = afresh ? undefined : this.lastAnswer?.goesOn;
    const again = this.lastQuestion && this.conversation.files.outgoing(this.lastQuestion);
    const first = afresh && again && { first: shownOf(again) };
    if (goesOn) return this.#goOn(goesOn);
    return this.#start({ type: "answer_again", ...first, ...this.#newStart() }, undefined, again?.attachments);
  }

  /** Removes a message that waits for the connection or was refused. Returns it, with the names of files that are gone. */
  withdraw(isRefused = false): OutgoingMessage | undefined {
    const [run, question] = [this.#run, this.lastQuestion];
    if (!run || !question || !(isRefused ? run.isUnsent : this.isQueued)) return undefined;
    const outgoing = { ...this.conversation.files.outgoing(question), files: question.files };
    this.leave(true);
    this.#change({ type: "withdraw", run: run.id });
    return findMessage(this.value, question.id) ? undefined : outgoing;
  }

  /** Continues with the message that waits for a key. */
  unlock(): void {
    if (this.#status !== "locked") return;
    this.#setStatus("running");
    this.#endWaiting();
  }

  /** Has everything that waits for the end of the run check again. */
  wake(): void {
    this.#changed();
  }

  /** To be called when the conversation was deleted or its user has left: nothing is sent or followed any more. */
  close(isToEnd = false): void {
    this.#isClosed = true;
    this.leave(isToEnd);
  }

  /** Stops following the run, which continues at the server or, with `isToEnd`, is ended there. */
  leave(isToEnd = false): void {
    clearTimeout(this.#takingOver);
    const run = this.#run;
    this.#run = undefined;
    if (isToEnd) run?.stop();
    else run?.leave();
    this.transport.close();
    this.#endWaiting();
    this.#setStatus("idle");
  }

  /**
   * Resumes a run of an earlier page load, once it is unlocked. Its events up to number `reportedUntil` were reported
   * there.
   */
  restore(reportedUntil = 0): void {
    const { run } = this.value;
    if (!run || this.#run?.id === run.run) return;
    this.#reportedUntil = reportedUntil;
    this.#status = run.isStopped ? "stopping" : "locked";
    void this.#follow(this.#newRun(run.run, run));
  }

  /** Another tab has changed the conversation. Its run is followed here, too, once the server certainly knows it. */
  #rebased(before: Conversation, after: Conversation): void {
    const { run } = after;
    this.#report(lastAnswerOf(before), findMessage(after, lastAnswerOf(before)?.id));
    if (run?.run === this.#run?.id) {
      // The user has stopped it in another tab, which may be closed before it asks the server to stop.
      if (run?.isStopped && this.#status !== "stopping") this.#end();
      return;
    }
    if (this.#run) this.leave();
    this.#changed();
    this.#followOther();
  }

  /** Follows the run of another tab, unless one is followed already. */
  #followOther(): void {
    clearTimeout(this.#takingOver);
    const { run } = this.value;
    if (!run || this.#run || this.#isClosed) return;
    const follow = () => {
      const { run: now } = this.value;
      if (now?.run !== run.run || this.#run) return;
      this.#reportedUntil = 0;
      void this.#follow(this.#newRun(now.run, now));
    };
    if (run.after > 0) follow();
    else this.#takingOver = setTimeout(follow, TAKE_OVER_AFTER_MS);
  }

  #newRun(id: string, position?: RunPosition): ResumableRun {
    const { lastAnswer, state } = this;
    const goesOn = lastAnswer?.goesOn;
    const start = goesOn ? { message: "", attachments: [], state, ...goesOn } : this.#startRequest;
    const run = new ResumableRun({ ...this.#options, id, start, position });
    // The tab in which the user stopped it may have been closed before it asked the server to stop.
    if (this.value.run?.isStopped) run.stop();
    return run;
  }

  /** The request to have the last message answered; `undefined` if its files are gone, or its state is unknown. */
  get #startRequest(): Omit<StartRequest, "run"> | undefined {
    const question = this.lastQuestion;
    if (!question || !this.#canRepeat(question)) return undefined;
    const { text: message, attachments } = this.conversation.files.outgoing(question);
    return { message, attachments, state: stateAt(this.value, question.id) ?? {} };
  }

  #follow(run: ResumableRun, before?: AssistantMessage): Promise<void> {
    this.ended = this.#followToEnd(run, before);
    return this.ended;
  }

  /** Follows a run until it has ended or another one replaces it. `before`: the answer before the run continued it. */
  async #followToEnd(run: ResumableRun, before?: AssistantMessage): Promise<void> {
    this.#run = run;
    if (this.#isPaused) run.pause();
    try {
      do {
        if (this.#status === "locked") await new Promise<void>((resolve) => (this.#endWaiting = resolve));
        if (this.#run !== run) return;
        this.conversation.change({ type: "await", run: run.id });
        if (this.#status !== "stopping") this.#setStatus("running");
      } while (!(await this.#receiveAll(run)));
      // If the server never received the continuation, the answer can still be decided about and continued.
      const isUnheard = before && !run.wasSent && this.lastAnswer?.goesOn;
      const at = Date.now();
      if (this.#run !== run || !isOf(this.value, run.id)) return;
      this.#change(isUnheard ? { type: "close_again", run: run.id, answer: before } : { type: "end", run: run.id, at });
    } catch (error) {
      const failure: Failure = { code: "unreadable", retryable: true };
      if (this.#run === run) this.#change({ type: "end", run: run.id, failure, at: Date.now() });
      if (!(error instanceof TransportError)) throw error;
    } finally {
      if (this.#run === run) {
        this.#run = undefined;
        this.#setStatus("idle");
      }
    }
  }

  /** Adds the events of a run to the answer; `false` if a key, or the user, is needed before its end. */
  async #receiveAll(run: ResumableRun): Promise<boolean> {
    let isKeyNeeded = false;
    await run.follow((event) => {
      if (this.#run !== run) return;
      const shown = event.type === "error" ? this.#classify(event) : event;
      if (shown) this.#receive(shown, run);
      else isKeyNeeded = true;
    });
    if (!isKeyNeeded || this.#run !== run) return true;
    this.conversation.change({ type: "pause", run: run.id });
    this.#setStatus("locked");
    return false;
  }

  #classify(event: ErrorEvent): ErrorEvent | undefined {
    // The server's message is about a run, which means nothing to the user.
    if (isRunLost(event)) return { ...event, data: "", retryable: true };
    return this.#options.classifyError(event);
  }

  #receive(event: RunEvent, { id: run, reference }: ResumableRun): void {
    const { state, ...rest } = { state: undefined, ...event };
    const isEnd = event.type === "done" || event.type === "error";
    const { lastAnswer } = this;
    // A continuation is sent again with the state that it was first sent with.
    const isUndone = event.type === "error" && event.retryable && lastAnswer?.goesOn;
    const added = isEnd && state && !isUndone && storedState(state, stateAt(this.value, lastAnswer?.parent));
    const isReported = event.id !== undefined && event.id <= this.#reportedUntil;
    const received = { type: "event", event: rest as RunEvent, run, reference, at: Date.now() } as const;
    this.#change({ ...received, ...(added && { state: added }) }, isReported);
    if (event.type === "token" && lastAnswer && !isReported) this.#options.onToken(event.data, lastAnswer.id);
  }

  /** Changes the conversation, and reports the changes of the last answer, unless an earlier page load has done so. */
  #change(operation: Operation, isReported = false): void {
    const before = this.lastAnswer;
    this.conversation.change(operation);
    const after = this.lastAnswer;
    this.#changed();
    if (!isReported) this.#report(before, after);
  }

  /** Reports the changes of an answer. */
  #report(before: AssistantMessage | undefined, after: Message | undefined): void {
    if (!before || before === after || after?.role !== "assistant" || after.id !== before.id) return;
    after.blocks.forEach((block, index) => {
      const known = before.blocks[index];
      if (block === known || block.type !== "tool") return;
      if (known?.type !== "tool" || known.status !== block.status) this.#options.onTool(block, after.id);
    });
    if (before.status === "streaming" && after.status !== "streaming") this.#options.onAnswerEnd(after);
  }

  #setStatus(status: SessionStatus): void {
    this.#status = status;
    this.#changed();
  }

  #changed(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
    this.#options.onChange();
  }
}

/** The calls of the last answer that wait for the user's decision. */
function waitingIn(conversation: Conversation): readonly ToolBlock[] {
  const answer = lastAnswerOf(conversation);
  return conversation.run || !answer || answer.forgotten ? [] : waitingCalls(answer);
}

/** The waiting calls and what is marked about them, as a text to be compared. */
const marksOf = (conversation: Conversation): string =>
  toJson(waitingIn(conversation).map(({ callId, decision }) => [callId, decision]));

function notSent(outcome: SendOutcome): SendResult {
  return { outcome, ended: Promise.resolve() };
}
