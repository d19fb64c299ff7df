/**
 * A conversation as a value: messages as a tree, of which one branch is in sight, each with its own state, and what waits
 * to be sent. It never changes: `operations.ts` makes another one of it. Pure: knows no connection and no storage.
 */

import type { Attachment } from "../../server/protocol/attachments.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { RunPosition } from "../transport/transport.ts";
import { fullState, type StoredState } from "./branch-states.ts";
import type { AssistantMessage, Message, SentFile, UserMessage } from "./messages.ts";

/** A message as the composer hands it over. */
export interface OutgoingMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** How the conversation shows the attachments, in the same order. */
  readonly files: readonly SentFile[];
  /** Ids of the queued messages that it is made of. */
  readonly queued?: readonly string[];
}

/** A message that was written while an answer was running, and waits for its end. */
export interface QueuedMessage {
  readonly id: string;
  readonly text: string;
  readonly files: readonly SentFile[];
  /** Whether it is sent only if the person says so: the answer before it was stopped, or is another one than they saw. */
  readonly isHeld?: boolean;
}

/** A run that has not ended. */
export interface CurrentRun extends RunPosition {
  /** Id of its answer; absent while its message waits. */
  readonly answer?: string | undefined;
  /** The person has stopped it: it is never sent from now on, and nothing of it waits for them. */
  readonly isStopped?: true;
}

/** What is stored of a conversation. */
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
  /** What the agent calls it. */
  readonly title?: string | undefined;
  /** What the person calls it. */
  readonly name?: string | undefined;
  /** Whether its last answer has ended while another conversation was shown, and was not read since. */
  readonly isUnread?: boolean;
  /** What was written while an answer was running, and waits for its end: the oldest comes first. */
  readonly queued?: readonly QueuedMessage[];
  readonly run?: CurrentRun | undefined;
  /** How many messages have had an id: none is given twice. */
  readonly count?: number;
  /** Up to which number it has the operations of each tab: those of the tabs that were seen last, the last one at the end. */
  readonly seen?: Readonly<Record<string, number>>;
}

export interface Conversation extends ConversationData {
  /** The branch in sight, from its first message to its last. It follows from `tree` and `head`. */
  readonly messages: readonly Message[];
  readonly queued: readonly QueuedMessage[];
  readonly count: number;
  readonly seen: Readonly<Record<string, number>>;
}

export const EMPTY_DATA: ConversationData = { tree: [], head: undefined, states: {}, root: {}, isCut: false };

export function conversationOf(data: ConversationData): Conversation {
  const {
    tree,
    head,
    states,
    root,
    isCut,
    title,
    name,
    run,
    queued = [],
    isUnread = false,
    count = 0,
    seen = {},
  } = data;
  const messages = branchOf(tree, head);
  const last = Math.max(count, ...tree.map(({ id }) => Number(id.slice(1))));
  const shown = { messages, head: messages.at(-1)?.id };
  return { tree, ...shown, states, root, isCut, title, name, queued, isUnread, run, count: last, seen };
}

/** What of it is stored. */
export function dataOf({ messages: _, ...data }: Conversation): ConversationData {
  return data;
}

/** The branch that ends with a message. */
export function branchOf(tree: readonly Message[], head: string | undefined): readonly Message[] {
  const byId = new Map(tree.map((message) => [message.id, message]));
  const branch: Message[] = [];
  for (let at = byId.get(head ?? ""); at; at = byId.get(at.parent ?? "")) branch.push(at);
  return branch.toReversed();
}

export function findMessage({ tree }: ConversationData, id: string | undefined): Message | undefined {
  return id === undefined ? undefined : tree.findLast((message) => message.id === id);
}

export function lastQuestionOf({ messages }: Conversation): UserMessage | undefined {
  return messages.findLast((message) => message.role === "user");
}

/** The answer to the last message of the person. */
export function lastAnswerOf({ messages }: Conversation): AssistantMessage | undefined {
  const last = messages.findLast(({ role }) => role !== "page");
  return last?.role === "assistant" ? last : undefined;
}

export function childrenOf({ tree }: ConversationData, id: string | undefined): readonly Message[] {
  return tree.filter(({ parent }) => parent === id);
}

/** The messages that stand in one place of the conversation, itself included: the oldest comes first. */
export function alternativesOf(conversation: Conversation, { id, parent, role }: Message): readonly string[] {
  if (conversation.tree.length === conversation.messages.length) return [id];
  return childrenOf(conversation, parent).flatMap((it) => (it.role === role ? [it.id] : []));
}

/** The end of the branch behind a message that was added to last. */
export function newestBelow({ tree }: ConversationData, id: string | undefined): string | undefined {
  const below = new Set([id]);
  for (const message of tree) if (below.has(message.parent)) below.add(message.id);
  return [...below].at(-1);
}

/** What the next message is sent with. */
export function stateOf(conversation: Conversation): ConversationState {
  return stateAt(conversation, conversation.head) ?? {};
}

/** The state behind a message; `undefined` where it is not known. */
export function stateAt(conversation: ConversationData, id: string | undefined): ConversationState | undefined {
  const { states, root } = conversation;
  const holder = holderOf(conversation, id);
  const stored = holder && states[holder.id];
  if (!holder || stored === undefined) return root ?? undefined;
  const known = built.get(states);
  if (known?.id === holder.id && known.root === root) return known.state;
  const state = fullState(stored, () => stateAt(conversation, holder.parent));
  built.set(states, { id: holder.id, root, state });
  return state;
}

/** The state that was put together last. */
const built = new WeakMap<
  object,
  { readonly id: string; readonly root: unknown; readonly state: ConversationState | undefined }
>();

/** Whether it is known what a message was sent with. */
export function knowsState(conversation: ConversationData, { id }: UserMessage): boolean {
  const holder = holderOf(conversation, id);
  return (holder ? conversation.states[holder.id] : conversation.root) !== null;
}

/** Whether a message is still here, in whichever branch, and can be sent again with the state that it was sent with. */
export function canReplace(conversation: ConversationData, id: string): boolean {
  const message = findMessage(conversation, id);
  return message?.role === "user" && knowsState(conversation, message);
}

/** The nearest message before this one, itself included, that has a state. */
function holderOf(conversation: ConversationData, id: string | undefined): Message | undefined {
  let at = findMessage(conversation, id);
  while (at && conversation.states[at.id] === undefined) at = findMessage(conversation, at.parent);
  return at;
}
