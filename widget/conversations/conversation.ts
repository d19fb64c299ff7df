/**
 * A conversation as an immutable value: a tree of messages, one branch of which is shown, the states of its branches,
 * and the messages in the queue. `operations.ts` derives new values from it. Pure: knows no connection and no storage.
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
  /** Whether it is only sent on request: the answer before it was stopped, or is another one than the user saw. */
  readonly isHeld?: boolean;
}

/** A run that has not ended. */
export interface CurrentRun extends RunPosition {
  /** Id of its answer; absent while its message waits. */
  readonly answer?: string | undefined;
  /** The user has stopped it: it is never sent from now on, and none of its calls wait for a decision. */
  readonly isStopped?: true;
}

/** The stored part of a conversation. */
export interface ConversationData {
  /** All messages of all branches, each after its parent. */
  readonly tree: readonly Message[];
  /** Id of the last message of the shown branch; absent before the first message. */
  readonly head: string | undefined;
  /** By the id of the answer that they follow, or of a message that was sent with another state than its parent's. */
  readonly states: Readonly<Record<string, StoredState>>;
  /** The state that the first messages were sent with, if older ones were left out; `null` if it is not known. */
  readonly root: ConversationState | null;
  /** Whether older messages were left out. */
  readonly isCut: boolean;
  /** The agent's title for it. */
  readonly title?: string | undefined;
  /** The user's name for it. */
  readonly name?: string | undefined;
  /** Whether its last answer has ended while another conversation was shown, and was not read since. */
  readonly isUnread?: boolean;
  /** Messages that were written while an answer was running, and wait for its end; the oldest comes first. */
  readonly queued?: readonly QueuedMessage[];
  readonly run?: CurrentRun | undefined;
  /** Number of message ids given so far: none is given twice. */
  readonly count?: number;
  /** The number of the last operation applied of each tab, for the tabs seen last; the last of them is at the end. */
  readonly seen?: Readonly<Record<string, number>>;
}

export interface Conversation extends ConversationData {
  /** The shown branch, from its first message to its last. It follows from `tree` and `head`. */
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

/** The part of it that is stored. */
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

/** The answer to the user's last message. */
export function lastAnswerOf({ messages }: Conversation): AssistantMessage | undefined {
  const last = messages.findLast(({ role }) => role !== "page");
  return last?.role === "assistant" ? last : undefined;
}

export function childrenOf({ tree }: ConversationData, id: string | undefined): readonly Message[] {
  return tree.filter(({ parent }) => parent === id);
}

/** The ids of all messages in the place of this one, itself included; the oldest comes first. */
export function alternativesOf(conversation: Conversation, { id, parent, role }: Message): readonly string[] {
  if (conversation.tree.length === conversation.messages.length) return [id];
  return childrenOf(conversation, parent).flatMap((it) => (it.role === role ? [it.id] : []));
}

/** The end of the branch below a message; of several, the one that was added to last. */
export function newestBelow({ tree }: ConversationData, id: string | undefined): string | undefined {
  const below = new Set([id]);
  for (const message of tree) if (below.has(message.parent)) below.add(message.id);
  return [...below].at(-1);
}

/** The state that the next message is sent with. */
export function stateOf(conversation: Conversation): ConversationState {
  return stateAt(conversation, conversation.head) ?? {};
}

/** The state after a message; `undefined` if it is not known. */
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

/** The last state that was put together, for each `states`. */
const built = new WeakMap<
  object,
  { readonly id: string; readonly root: unknown; readonly state: ConversationState | undefined }
>();

/** Whether the state that a message was sent with is known. */
export function knowsState(conversation: ConversationData, { id }: UserMessage): boolean {
  const holder = holderOf(conversation, id);
  return (holder ? conversation.states[holder.id] : conversation.root) !== null;
}

/** Whether a message still exists, in any branch, and can be sent again with the state that it was sent with. */
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
