/** Messages, and the state that each message of the person was sent with. Pure: knows no connection and no storage. */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { StartRequest } from "../transport/transport.ts";
import {
  type AssistantMessage,
  emptyAnswer,
  type Message,
  type SentFile,
  type StateSnapshot,
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
}

/** What a conversation can be built from again. */
export interface ConversationData {
  readonly messages: readonly Message[];
  /** What the next message is sent with. */
  readonly state: ConversationState;
  /** Whether older messages were left out. */
  readonly isCut: boolean;
}

export class Conversation implements ConversationData {
  messages: readonly Message[] = [];
  state: ConversationState = {};
  isCut = false;
  #attachments = new Map<string, readonly Attachment[]>();
  #count = 0;

  /** The state that an earlier message was sent with; without one, that of the next. */
  stateFor(id: string | undefined): ConversationState {
    const message = this.messages.find((it) => it.id === id);
    return message?.role === "user" ? stateOf(message.stateBefore, this.state) : this.state;
  }

  get lastQuestion(): UserMessage | undefined {
    return this.messages.findLast((message) => message.role === "user");
  }

  /** The answer to the last message of the person. */
  get lastAnswer(): AssistantMessage | undefined {
    const last = this.messages.at(-1);
    return last?.role === "assistant" ? last : undefined;
  }

  /** Everything that is needed to have the last message answered; `undefined` if its files are gone. */
  get start(): Omit<StartRequest, "run"> | undefined {
    const question = this.lastQuestion;
    if (!question || !this.canRepeat(question)) return undefined;
    const { text: message, attachments } = this.outgoing(question);
    return { message, attachments, state: this.state };
  }

  /** Whether a message can be sent again as it was: with the same state and files. */
  canRepeat({ id, files, stateBefore }: UserMessage): boolean {
    return stateBefore !== undefined && (files.length === 0 || this.#attachments.has(id));
  }

  /** A message as it was sent; without its files if they are no longer here. */
  outgoing({ id, text, files }: UserMessage): OutgoingMessage {
    const attachments = this.#attachments.get(id) ?? [];
    return { text, attachments, files: attachments.length === files.length ? files : [] };
  }

  ask({ text, attachments, files }: OutgoingMessage): void {
    const id = this.#nextId();
    // A file of the composer holds its bytes: the message has only what it shows.
    const shown = files.map(({ name, mediaType, size, picture }) => ({ name, mediaType, size, picture }));
    this.#keepAttachments(id, attachments);
    const stateBefore = snapshotOf(this.state);
    this.messages = [...this.messages, { role: "user", id, text, files: shown, stateBefore }];
  }

  /** Adds an empty answer to the last message; one that has begun goes on. */
  expectAnswer(): void {
    if (!this.lastAnswer) this.messages = [...this.messages, emptyAnswer(this.#nextId())];
  }

  changeAnswer(change: (message: AssistantMessage) => AssistantMessage): void {
    const answer = this.lastAnswer;
    if (answer) this.messages = this.messages.with(-1, change(answer));
  }

  dropAnswer(): void {
    if (this.lastAnswer) this.messages = this.messages.slice(0, -1);
  }

  /** Puts a message in the place of the one with the same id. */
  replace(changed: Message): void {
    this.messages = this.messages.map((message) => (message.id === changed.id ? changed : message));
  }

  /** Removes a message of the person and all after it. */
  rewind(id: string): void {
    const at = this.messages.findIndex((message) => message.id === id);
    if (at === -1) return;
    for (const { id: removed } of this.messages.slice(at)) this.#attachments.delete(removed);
    this.state = this.stateFor(id);
    this.messages = this.messages.slice(0, at);
  }

  /** Removes the last answer, to have the message answered again; `afresh` as the first of a new conversation. */
  rewindAnswer(afresh: boolean): void {
    const question = this.lastQuestion;
    if (!question) return;
    const before = this.messages.slice(0, this.messages.indexOf(question));
    this.messages = [...before, afresh ? { ...question, stateBefore: {} } : question];
    this.state = this.stateFor(question.id);
  }

  clear(): void {
    this.restore({ messages: [], state: {}, isCut: false });
  }

  /** Empties it. Returns what brings back all that was there. */
  setAside(): () => void {
    const { messages, state, isCut } = this;
    const attachments = this.#attachments;
    this.clear();
    return () => {
      this.restore({ messages, state, isCut });
      this.#attachments = attachments;
    };
  }

  restore({ messages, state, isCut }: ConversationData): void {
    this.messages = messages;
    this.state = state;
    this.#attachments = new Map();
    this.isCut = isCut;
    this.#count = Math.max(this.#count, Number(messages.at(-1)?.id.slice(1) ?? 0));
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

function snapshotOf({ conversation_history: history, ...rest }: ConversationState): StateSnapshot {
  return history === undefined ? rest : { ...rest, conversation_history: history.length };
}

function stateOf(snapshot: StateSnapshot = {}, latest: ConversationState): ConversationState {
  const { conversation_history: length, ...rest } = snapshot;
  if (length === undefined) return rest;
  const { conversation_history: history } = latest;
  return history === undefined ? {} : { ...rest, conversation_history: history.slice(0, length) };
}
