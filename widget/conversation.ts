/** What was said, and the state that each question was asked from. Pure: knows no line and no storage. */

import type { Attachment } from "../server/protocol/attachments.ts";
import type { ConversationState } from "../server/protocol/chat.ts";
import { emptyReply, type Message, type Question, type Reply, type SentFile, stopTools } from "./transcript.ts";
import type { ChatTurn } from "./transport/transport.ts";

/** The files of so many messages are kept for sending them again: each may have some 64 MiB of them. */
const KEPT_WITH_FILES = 3;

/** A message as the composer hands it over. */
export interface OutgoingMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** How the transcript shows the attachments, in the same order. */
  readonly files: readonly SentFile[];
}

/** What a conversation can be built from again. */
export interface ConversationData {
  readonly messages: readonly Message[];
  readonly state: ConversationState;
  /** By id of a question: the state it was asked from, where it is known. */
  readonly forks: ReadonlyMap<string, Fork>;
  /** Whether older messages were left out. */
  readonly cut: boolean;
}

/** A draft as a tab keeps it: of its files the names alone. */
export interface KeptDraft {
  readonly text: string;
  readonly files: readonly string[];
}

export class Conversation implements ConversationData {
  #messages: readonly Message[] = [];
  #state: ConversationState = {};
  #forks = new Map<string, Fork>();
  #attachments = new Map<string, readonly Attachment[]>();
  #count = 0;
  #cut = false;

  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** What the next question is asked from. */
  get state(): ConversationState {
    return this.#state;
  }

  /** What an earlier question was asked from; without one, what the next is. */
  stateFor(id: string | undefined): ConversationState {
    return id ? stateOf(this.#forks.get(id), this.#state) : this.#state;
  }

  get forks(): ReadonlyMap<string, Fork> {
    return this.#forks;
  }

  get cut(): boolean {
    return this.#cut;
  }

  get lastQuestion(): Question | undefined {
    return this.#messages.findLast((message) => message.role === "user");
  }

  /** The last reply, if nothing was asked after it. */
  get lastReply(): Reply | undefined {
    const last = this.#messages.at(-1);
    return last?.role === "assistant" ? last : undefined;
  }

  ask({ text, attachments, files }: OutgoingMessage): void {
    const id = this.#nextId();
    // A draft's file holds its bytes: the transcript takes what it shows, and no more.
    const shown = files.map(({ name, mediaType, size, url }) => ({ name, mediaType, size, url }));
    this.#forks.set(id, forkOf(this.#state));
    this.#keep(id, attachments);
    this.#messages = [...this.#messages, { role: "user", id, text, files: shown }];
  }

  /** Makes room for the answer to the last question; one that has begun goes on. */
  expectReply(): void {
    if (!this.lastReply) this.#messages = [...this.#messages, emptyReply(this.#nextId())];
  }

  changeReply(change: (reply: Reply) => Reply): void {
    const reply = this.lastReply;
    if (reply) this.#messages = [...this.#messages.slice(0, -1), change(reply)];
  }

  /** Takes a reply with another `feedback` in the place of the same one. */
  rate(rated: Reply): void {
    this.#messages = this.#messages.map((message) => (message.id === rated.id ? rated : message));
  }

  /** To be called when the person stops the run. */
  stopTools(): void {
    this.changeReply(stopTools);
  }

  dropReply(): void {
    if (this.lastReply) this.#messages = this.#messages.slice(0, -1);
  }

  /** Goes on from a state that the server returned. */
  advance(state: ConversationState): void {
    this.#state = state;
  }

  /** The question as it was sent; without its files when they are no longer here. */
  outgoing({ id, text, files }: Question): OutgoingMessage {
    const attachments = this.#attachments.get(id) ?? [];
    return { text, attachments, files: attachments.length === files.length ? files : [] };
  }

  /** Whether a question can be asked again as it was: from where it was asked, with its files. */
  canRepeat({ id, files }: Question): boolean {
    return this.#forks.has(id) && (files.length === 0 || this.#attachments.has(id));
  }

  /** What to send to have the last question answered; nothing where that is impossible. */
  get turn(): Omit<ChatTurn, "run"> | undefined {
    const question = this.lastQuestion;
    if (!question || !this.canRepeat(question)) return undefined;
    const { text: message, attachments } = this.outgoing(question);
    return { message, attachments, state: this.#state };
  }

  /** Back to before the question: it and what followed are gone. */
  rewind(id: string): void {
    const at = this.#messages.findIndex((message) => message.id === id);
    if (at === -1) return;
    for (const gone of this.#messages.slice(at)) this.#attachments.delete(gone.id);
    this.#messages = this.#messages.slice(0, at);
    this.#state = this.stateFor(id);
  }

  /** Back to the last question, to ask it again; `afresh` without what was said before it. */
  rewindReply(afresh: boolean): void {
    const question = this.lastQuestion;
    if (!question) return;
    if (afresh) this.#forks.set(question.id, {});
    this.#messages = this.#messages.slice(0, this.#messages.indexOf(question) + 1);
    this.#state = this.stateFor(question.id);
  }

  clear(): void {
    this.restore({ messages: [], state: {}, forks: new Map(), cut: false });
  }

  restore({ messages, state, forks, cut }: ConversationData): void {
    this.#messages = messages;
    this.#state = state;
    this.#forks = new Map(forks);
    this.#attachments.clear();
    this.#cut = cut;
    this.#count = Math.max(this.#count, Number(messages.at(-1)?.id.slice(1) ?? 0));
  }

  #keep(id: string, attachments: readonly Attachment[]): void {
    if (attachments.length > 0) this.#attachments.set(id, attachments);
    const [oldest] = this.#attachments.keys();
    if (oldest && this.#attachments.size > KEPT_WITH_FILES) this.#attachments.delete(oldest);
  }

  #nextId(): string {
    this.#count += 1;
    return `m${this.#count}`;
  }
}

/**
 * The state before a question. What a later state begins with is not kept twice: of a history, its length is enough. A
 * history that was slimmed meanwhile is taken up as it is now.
 */
export type Fork = Omit<ConversationState, "conversation_history"> & { readonly conversation_history?: number };

function forkOf({ conversation_history: history, ...rest }: ConversationState): Fork {
  return history === undefined ? rest : { ...rest, conversation_history: history.length };
}

function stateOf({ conversation_history: length, ...rest }: Fork = {}, latest: ConversationState): ConversationState {
  if (length === undefined) return rest;
  const { conversation_history: history } = latest;
  return history === undefined ? {} : { ...rest, conversation_history: history.slice(0, length) };
}
