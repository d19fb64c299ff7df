/**
 * Messages as a tree, of which one branch is in sight. An answer that is given again and a message that is changed
 * stand beside what was there before, and each branch goes on with its own state. Pure: knows no connection and no
 * storage.
 */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { StartRequest } from "../transport/transport.ts";
import { fullState, type StoredState, storedState } from "./branch-states.ts";
import {
  type AssistantMessage,
  emptyAnswer,
  type Message,
  type PageMessage,
  type SentFile,
  type UserMessage,
} from "./messages.ts";

/** The files of so many messages are kept for sending them again: each may have some 64 MiB of them. */
const MESSAGES_WITH_FILES = 3;

/** A message as the composer hands it over. */
export interface OutgoingMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** How the conversation shows the attachments, in the same order. */
  readonly files: readonly SentFile[];
  /** Ids of the pending messages that it is made of. */
  readonly pending?: readonly string[];
}

/** A message that was written while an answer was running, and waits for its end. */
export interface PendingMessage {
  readonly id: string;
  readonly text: string;
  readonly files: readonly SentFile[];
  /** Whether it is not sent unasked: the answer was stopped, or a tab is sending it and may not live to do so. */
  readonly isHeld?: boolean;
}

/** A change that is made in the store, too, where another tab may have made its own. */
export type PendingChange = (list: readonly PendingMessage[]) => readonly PendingMessage[];

/** What a conversation can be built from again. */
export interface ConversationData {
  /** All messages of all branches, each behind its parent. */
  readonly tree: readonly Message[];
  /** Id of the last message of the branch in sight; absent before the first message. */
  readonly head: string | undefined;
  /** By the id of the answer that they come after, or of the message that was sent with another one than its parent's. */
  readonly states: Readonly<Record<string, StoredState>>;
  /** What the first messages were sent with, where older ones were left out; `null` where that is not known. */
  readonly root: ConversationState | null;
  /** Whether older messages were left out. */
  readonly isCut: boolean;
  /** The files of messages, as far as they are here, by the id of the message. */
  readonly attachments?: ReadonlyMap<string, readonly Attachment[]>;
}

export const EMPTY_CONVERSATION: ConversationData = { tree: [], head: undefined, states: {}, root: {}, isCut: false };

export class Conversation {
  /** The branch in sight, from its first message to its last. */
  messages: readonly Message[] = [];
  isCut = false;
  /** Changes with the conversation, but not when another tab has added to it. */
  key: object = {};
  /** In the order in which they came. */
  #tree = new Map<string, Message>();
  #states: Record<string, StoredState> = {};
  #root: ConversationState | null = {};
  #attachments = new Map<string, readonly Attachment[]>();
  #count = 0;
  /** The state that was built last, and of what. */
  #built: readonly [StoredState, ConversationState | undefined] = [null, undefined];

  get data(): ConversationData {
    const { isCut, head } = this;
    const [states, root, attachments] = [this.#states, this.#root, this.#attachments];
    return { tree: [...this.#tree.values()], head, states, root, isCut, attachments };
  }

  get head(): string | undefined {
    return this.messages.at(-1)?.id;
  }

  /** What the next message is sent with. */
  get state(): ConversationState {
    return this.#stateAt(this.head) ?? {};
  }

  /** The state behind the last answer. */
  set state(state: ConversationState) {
    const { lastAnswer } = this;
    if (!lastAnswer) return;
    const { id, parent } = lastAnswer;
    this.#states = { ...this.#states, [id]: storedState(state, this.#stateAt(parent)) };
  }

  /** The state that an earlier message was sent with; without one, that of the next. */
  stateFor(id: string | undefined): ConversationState {
    return (id !== undefined && this.#stateAt(id, "user")) || this.state;
  }

  get lastQuestion(): UserMessage | undefined {
    return this.messages.findLast((message) => message.role === "user");
  }

  /** The answer to the last message of the person. */
  get lastAnswer(): AssistantMessage | undefined {
    const last = this.messages.findLast(({ role }) => role !== "page");
    return last?.role === "assistant" ? last : undefined;
  }

  /** Everything that is needed to have the last message answered; `undefined` if its files are gone. */
  get start(): Omit<StartRequest, "run"> | undefined {
    const question = this.lastQuestion;
    if (!question || !this.canRepeat(question)) return undefined;
    const { text: message, attachments } = this.outgoing(question);
    return { message, attachments, state: this.#stateAt(question.id) ?? {} };
  }

  /** Whether a message is still here, in whichever branch, and can be sent again with the state that it was sent with. */
  canReplace(id: string): boolean {
    const message = this.#tree.get(id);
    return message?.role === "user" && this.knowsState(message);
  }

  /** Whether it is known what a message was sent with. */
  knowsState({ id }: UserMessage): boolean {
    const holder = this.#holderOf(id);
    return (holder === undefined ? this.#root : this.#states[holder]) !== null;
  }

  /** Whether a message can be sent again as it was: with the same state and files. */
  canRepeat(question: UserMessage): boolean {
    const { id, files } = question;
    return this.knowsState(question) && (files.length === 0 || this.#attachments.has(id));
  }

  /** A message as it was sent; without its files if they are no longer here. */
  outgoing({ id, text, files }: UserMessage): OutgoingMessage {
    const attachments = this.#attachments.get(id) ?? [];
    return { text, attachments, files: attachments.length === files.length ? files : [] };
  }

  /** Adds a message of the person behind the last one; in place of another one, if that is named, as a new branch. */
  ask({ pending, ...outgoing }: OutgoingMessage, replaces?: string): void {
    // It may be out of sight: another tab can have shown another branch meanwhile.
    const replaced = this.#tree.get(replaces ?? "");
    if (replaced) this.#show(replaced.parent);
    const id = this.#nextId();
    this.#keepAttachments(id, outgoing.attachments);
    this.#add({ role: "user", id, parent: this.head, ...shownOf(outgoing), at: Date.now(), pending });
  }

  /** Adds a message of the page behind the last one. Returns its id. */
  addOfPage(message: Pick<PageMessage, "text" | "name">): string {
    const id = this.#nextId();
    this.#add({ ...message, role: "page", id, parent: this.head, at: Date.now() });
    return id;
  }

  /** Adds an empty answer to the last message; one that has begun goes on. */
  expectAnswer(): void {
    if (!this.lastAnswer) this.#add(emptyAnswer(this.#nextId(), this.head));
  }

  changeAnswer(change: (message: AssistantMessage) => AssistantMessage): void {
    const answer = this.lastAnswer;
    if (!answer) return;
    const changed = change(answer);
    this.#tree.set(answer.id, changed);
    this.messages = this.messages.with(this.messages.lastIndexOf(answer), changed);
  }

  dropAnswer(): void {
    if (this.lastAnswer) this.#remove(this.lastAnswer.id);
  }

  /** Puts a message in the place of the one with the same id. */
  replace(changed: Message): void {
    if (this.#tree.has(changed.id)) this.#tree.set(changed.id, changed);
    this.messages = this.messages.map((message) => (message.id === changed.id ? changed : message));
  }

  /**
   * Takes a message back that was not sent, or not sent again: what was there before is in sight again. Returns whether
   * it is gone.
   */
  withdraw({ id, parent }: UserMessage): boolean {
    this.dropAnswer();
    const isGone = this.#childrenOf(id).length === 0;
    if (isGone) this.#remove(id);
    this.#show(this.#newestBelow(isGone ? parent : id));
    return isGone;
  }

  /** Has the last message answered once more; `afresh` as the first of a new conversation. */
  answerAgain(afresh: boolean): void {
    const { lastAnswer: answer, lastQuestion: question } = this;
    if (!question) return;
    if (answer && answer.blocks.length === 0) this.#remove(answer.id);
    this.messages = this.messages.slice(0, this.messages.indexOf(question) + 1);
    if (!afresh) return;
    // Its earlier answers belong to the state that it was sent with.
    if (this.#childrenOf(question.id).length > 0) this.ask(this.outgoing(question), question.id);
    this.#states = { ...this.#states, [this.head ?? ""]: { rest: {} } };
  }

  clear(): void {
    this.restore(EMPTY_CONVERSATION);
  }

  /** Empties it. Returns what brings back all that was there. */
  setAside(): () => void {
    const { data } = this;
    const attachments = new Map(this.#attachments);
    this.clear();
    return () => {
      this.restore(data);
      this.#attachments = attachments;
    };
  }

  restore({ tree, head, states, root, isCut }: ConversationData): void {
    // Before another one is shown, there is none.
    if (tree.length === 0) this.key = {};
    const known = this.#tree;
    this.#tree = new Map(tree.map((message) => [message.id, message]));
    // What is stored has neither data nor pictures of the files that are here.
    for (const sent of known.values()) {
      const now = this.#stillSent(sent);
      if (now) this.#tree.set(now.id, { ...now, files: (sent as UserMessage).files });
      else this.#attachments.delete(sent.id);
    }
    this.#states = states;
    this.#root = root;
    this.isCut = isCut;
    this.#count = Math.max(this.#count, Number(tree.at(-1)?.id.slice(1) ?? 0));
    this.#show(head);
  }

  /** Takes over the data of files that has been read, where what it was `read` for is still as it was. */
  addFiles(read: ConversationData, { tree, states, root, attachments = new Map() }: ConversationData): void {
    for (const message of tree) {
      const { id } = message;
      const files = attachments.get(id);
      if (this.#stillSent(message) && !this.#attachments.has(id)) {
        this.replace(message);
        if (files) this.#attachments.set(id, files);
      }
      if (this.#states[id] === read.states[id] && states[id]) this.#states = { ...this.#states, [id]: states[id] };
    }
    if (this.#root === read.root) this.#root = root;
    this.#built = [null, undefined];
  }

  /** The message of the person that is also what another page load, or this one before, knows under its id. */
  #stillSent({ id, role, at }: Message): UserMessage | undefined {
    const now = this.#tree.get(id);
    return role === "user" && now?.role === "user" && now.at === at ? now : undefined;
  }

  /** The messages that stand in one place of the conversation, itself included: the oldest comes first. */
  alternatives({ id, parent, role }: Message): readonly string[] {
    if (this.#tree.size === this.messages.length) return [id];
    return this.#childrenOf(parent).filter((id) => this.#tree.get(id)?.role === role);
  }

  /** Brings into sight the branch with a message, as it was last added to. */
  switchTo(id: string): void {
    if (this.#tree.has(id)) this.#show(this.#newestBelow(id));
  }

  /** The nearest message before this one, itself included, that has a state. */
  #holderOf(id: string | undefined): string | undefined {
    for (let at = id; at !== undefined; at = this.#tree.get(at)?.parent) {
      if (this.#states[at] !== undefined) return at;
    }
    return undefined;
  }

  #stateAt(id: string | undefined, role?: Message["role"]): ConversationState | undefined {
    if (role && this.#tree.get(id ?? "")?.role !== role) return undefined;
    const holder = this.#holderOf(id);
    const stored = holder === undefined ? undefined : this.#states[holder];
    if (holder === undefined || stored === undefined) return this.#root ?? undefined;
    if (this.#built[0] !== stored || stored === null) {
      this.#built = [stored, fullState(stored, () => this.#stateAt(this.#tree.get(holder)?.parent))];
    }
    return this.#built[1];
  }

  #childrenOf(id: string | undefined): readonly string[] {
    return [...this.#tree.values()].filter(({ parent }) => parent === id).map((child) => child.id);
  }

  /** The end of the branch behind a message that was added to last. */
  #newestBelow(id: string | undefined): string | undefined {
    const below = new Set([id]);
    for (const message of this.#tree.values()) if (below.has(message.parent)) below.add(message.id);
    return [...below].at(-1);
  }

  #show(head: string | undefined): void {
    const messages: Message[] = [];
    for (let at = this.#tree.get(head ?? ""); at; at = this.#tree.get(at.parent ?? "")) messages.push(at);
    this.messages = messages.toReversed();
  }

  #add(message: Message): void {
    this.#tree.set(message.id, message);
    this.messages = [...this.messages, message];
  }

  /** The last message of the branch in sight. One that the page has added to stays. */
  #remove(id: string): void {
    if (this.#childrenOf(id).length > 0) return;
    const { [id]: _, ...states } = this.#states;
    this.#states = states;
    this.#tree.delete(id);
    this.#attachments.delete(id);
    this.messages = this.messages.filter((message) => message.id !== id);
  }

  #keepAttachments(id: string, attachments: readonly Attachment[]): void {
    if (attachments.length > 0) this.#attachments.set(id, attachments);
    const [oldest] = this.#attachments.keys();
    if (oldest && this.#attachments.size > MESSAGES_WITH_FILES) this.#attachments.delete(oldest);
  }

  #nextId(): string {
    this.#count += 1;
    return `m${this.#count}`;
  }
}

/** A file of the composer holds its bytes: a message has only what it shows. */
export function shownOf({ text, files }: OutgoingMessage): Pick<UserMessage, "text" | "files"> {
  return { text, files: files.map(({ attachment: _, ...file }: SentFile & { attachment?: Attachment }) => file) };
}
