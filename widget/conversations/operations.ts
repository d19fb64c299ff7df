/**
 * The operations on a conversation, as values, and their effects. Ids and times are part of the operation: the same
 * operations in the same order make the same conversation in every tab. An operation that no longer applies, because
 * another tab was quicker, changes nothing.
 */

import type { RunEvent } from "../transport/transport.ts";
import type { StoredState } from "./branch-states.ts";
import {
  branchOf,
  type Conversation,
  type CurrentRun,
  childrenOf,
  findMessage,
  lastAnswerOf,
  lastQuestionOf,
  newestBelow,
  type QueuedMessage,
} from "./conversation.ts";
import {
  type AssistantMessage,
  applyEvent,
  askAgain,
  emptyAnswer,
  type Failure,
  type Feedback,
  failAnswer,
  type GoingOn,
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

type Sent = Pick<UserMessage, "text" | "files">;

/** The id of a run, and when the operation was made. */
interface Start {
  readonly run: string;
  readonly at: number;
}

/** The user has sent a message: after the last one, or as a new branch in place of another one. */
interface Ask extends Start {
  readonly type: "ask";
  readonly message: Sent & Pick<UserMessage, "queued">;
  readonly replaces?: string | undefined;
}

/** The last message is answered once more; with `first`, it is sent as given there, first in a new conversation. */
interface AnswerAgain extends Start {
  readonly type: "answer_again";
  readonly first?: Sent;
}

/** An event of a run. `reference` names a run that fails; `state` replaces that of the event. */
interface Received extends Start {
  readonly type: "event";
  readonly event: RunEvent;
  readonly reference: string;
  readonly state?: StoredState;
  /** Earlier events that are stored in the same entry. */
  readonly before?: readonly Pick<Received, "event" | "at">[];
}

export type Operation =
  | Ask
  | AnswerAgain
  | Received
  /** The last answer is continued. */
  | (Start & { readonly type: "reopen"; readonly goesOn: GoingOn })
  /** The page has added a message after the last one. */
  | { readonly type: "add"; readonly message: Pick<PageMessage, "text" | "name">; readonly at: number }
  /** `await`: the run gets an empty answer; `pause`: it is removed for as long as the message waits. */
  | { readonly type: "await" | "pause"; readonly run: string }
  /** A run ends without a terminal event: the user has stopped it, or it has failed. */
  | (Start & { readonly type: "end"; readonly failure?: Failure })
  /** Restores the answer as it was before a continuation that the server never received. */
  | { readonly type: "close_again"; readonly run: string; readonly answer: AssistantMessage }
  /** The user stops a run: none of its tools run any more. */
  | { readonly type: "stop"; readonly run: string }
  /** The message of a run is withdrawn before it was sent: what was there before is shown again. */
  | { readonly type: "withdraw"; readonly run: string }
  /** Rates an answer, by its run. Answers from before runs were stored have only an id. */
  | { readonly type: "rate"; readonly id: string; readonly run?: string; readonly feedback: Feedback | undefined }
  /** The user has decided about a call of the last answer, or takes the decision back. */
  | { readonly type: "mark"; readonly callId: string; readonly decision: ToolBlock["decision"] }
  /** Shows the branch that contains a message; of several, the one that was added to last. */
  | { readonly type: "switch"; readonly id: string }
  | { readonly type: "rename"; readonly name: string | undefined }
  /** `unread`: the last answer has ended while another conversation was shown; `read`: it is shown now. */
  | { readonly type: "unread" | "read" }
  /** A message waits for the end of the answer. */
  | { readonly type: "queue"; readonly message: QueuedMessage }
  /** The user has removed messages from the queue. */
  | { readonly type: "unqueue"; readonly ids: readonly string[] }
  /** Queued messages are only sent on request from now on. */
  | { readonly type: "hold" }
  /** These messages may be sent; those in `lacking` without their files, which are gone. */
  | { readonly type: "release"; readonly ids: readonly string[]; readonly lacking: readonly string[] };

export function apply(conversation: Conversation, operation: Operation): Conversation {
  switch (operation.type) {
    case "ask":
      return ask(idle(conversation, operation.at), operation);
    case "answer_again":
      return answerAgain(idle(conversation, operation.at), operation);
    case "event":
      return (operation.before ?? [])
        .map((it) => ({ ...operation, ...it }))
        .concat(operation)
        .reduce(receive, conversation);
    case "reopen":
      return reopen(idle(conversation, operation.at), operation);
    case "add":
      return append(conversation, { ...operation.message, role: "page", at: operation.at });
    case "await":
      return isOf(conversation, operation.run) ? awaited(conversation) : conversation;
    case "pause":
      return isOf(conversation, operation.run) ? paused(conversation) : conversation;
    case "end": {
      const { run, failure, at } = operation;
      const ended = (it: AssistantMessage) => (failure ? failAnswer(it, failure, at) : stopAnswer(it, at));
      return end(conversation, run, (answer) => withStop(ended(answer), conversation.run));
    }
    case "close_again": {
      const { run, answer } = operation;
      return end(conversation, run, ({ id, parent }) => ({ ...withoutDecisions(answer), id, parent }));
    }
    case "stop":
      return isOf(conversation, operation.run) ? stop(conversation) : conversation;
    case "withdraw":
      return isOf(conversation, operation.run) ? withdraw(conversation) : conversation;
    case "rate":
      return rate(conversation, operation);
    case "mark":
      return mark(conversation, operation.callId, operation.decision);
    case "switch": {
      const isHere = !conversation.run && findMessage(conversation, operation.id);
      return isHere ? show(held(conversation), newestBelow(conversation, operation.id)) : conversation;
    }
    case "rename":
      return { ...conversation, name: operation.name };
    case "unread":
    case "read": {
      const isUnread = operation.type === "unread";
      return isUnread === conversation.isUnread ? conversation : { ...conversation, isUnread };
    }
    default:
      return { ...conversation, queued: queueOf(conversation, operation) };
  }
}

/** An operation, the tab that it comes from, and its number there. */
export interface NumberedOperation {
  readonly writer: string;
  readonly number: number;
  readonly operation: Operation;
}

/**
 * The last seen operation is known for this many tabs. An operation can arrive twice only while its tab is alive and
 * has not read the store since the page was left; browsers keep such pages for minutes, and only a few.
 */
const MAX_WRITERS = 50;

/** Applies operations in their order, except those that the conversation has seen already. */
export function fold(from: Conversation, operations: readonly NumberedOperation[]): Conversation {
  let conversation = from;
  for (const it of operations) {
    if (hasSeen(conversation, it)) continue;
    try {
      conversation = apply(conversation, it.operation);
    } catch {
      // Scripts of the site can change what is stored: what is damaged of it is left out.
    }
    conversation = withSeen(conversation, it);
  }
  return conversation;
}

export const hasSeen = ({ seen }: Conversation, { writer, number }: NumberedOperation): boolean =>
  number <= (seen[writer] ?? 0);

/** Marks an operation as seen. The tab that was seen last comes last. */
export function withSeen(conversation: Conversation, { writer, number }: NumberedOperation): Conversation {
  const others = Object.entries(conversation.seen).filter(([other]) => other !== writer);
  return { ...conversation, seen: Object.fromEntries([...others.slice(1 - MAX_WRITERS), [writer, number]]) };
}

/**
 * The fewest operations with the same effect on `stored`: without those that change nothing, such as events that
 * another tab has received, too, and with successive events of a run in one operation.
 */
export function merged<It extends NumberedOperation>(stored: Conversation, operations: readonly It[]): readonly It[] {
  const groups: It[][] = [];
  let now = stored;
  for (const it of operations) {
    const next = apply(now, it.operation);
    if (next === now) continue;
    now = next;
    const group = groups.at(-1);
    if (runOf(it) && runOf(it) === runOf(group?.[0])) group?.push(it);
    else groups.push([it]);
  }
  return groups.map((group) => {
    const last = group.pop() as It;
    const before = group.map(({ operation }) => ({
      event: (operation as Received).event,
      at: (operation as Received).at,
    }));
    return before.length === 0 ? last : { ...last, operation: { ...last.operation, before } };
  });
}

/** The run of an event. */
const runOf = (it: NumberedOperation | undefined) => it?.operation.type === "event" && it.operation.run;

type QueueOperation = Extract<Operation, { readonly type: "queue" | "unqueue" | "hold" | "release" }>;

function queueOf({ queued, tree }: Conversation, operation: QueueOperation): readonly QueuedMessage[] {
  switch (operation.type) {
    case "queue": {
      const { message } = operation;
      const isKnown = queued.some(({ id }) => id === message.id) || tree.some((it) => isMadeOf(it, [message.id]));
      return isKnown ? queued : [...queued, message];
    }
    case "unqueue":
      return queued.filter(({ id }) => !operation.ids.includes(id));
    case "hold":
      return queued.map((message) => ({ ...message, isHeld: true }));
    case "release":
      return queued.map((message) => {
        if (!operation.ids.includes(message.id)) return message;
        const { isHeld: _, ...released } = message;
        return operation.lacking.includes(message.id) ? { ...released, files: [] } : released;
      });
    default:
      throw new Error("what is stored is damaged");
  }
}

const isMadeOf = (message: Message, ids: readonly string[]): boolean =>
  message.role === "user" && ids.some((id) => message.queued?.includes(id));

const held = (conversation: Conversation): Conversation =>
  conversation.queued.length === 0 ? conversation : apply(conversation, { type: "hold" });

/** Whether this run is in progress. */
export const isOf = ({ run }: Conversation, id: string): boolean => run?.run === id;

function ask(conversation: Conversation, { message, replaces, run, at }: Ask): Conversation {
  // It may be in a hidden branch: another tab may have switched in the meantime.
  const replaced = findMessage(conversation, replaces);
  // If a message is replaced, the calls that wait in the old branch can still be decided there.
  const before = replaced ? show(held(conversation), replaced.parent) : changeAnswer(conversation, stopTools);
  const queued = before.queued.filter(({ id }) => !message.queued?.includes(id));
  return started({ ...append(before, { ...message, role: "user", at }), queued }, run);
}

function answerAgain(conversation: Conversation, { first: message, run, at }: AnswerAgain): Conversation {
  const question = lastQuestionOf(conversation);
  if (!question) return conversation;
  const answer = lastAnswerOf(conversation);
  const rest = answer?.blocks.length === 0 ? remove(conversation, answer.id) : conversation;
  const before = show(rest, question.id);
  if (!message) return started(before, run);
  // If it was answered, those answers belong to the state of then: it is added again, as a new branch.
  const isAnswered = childrenOf(before, question.id).length > 0;
  const first = isAnswered ? append(show(before, question.parent), { ...message, role: "user", at }) : before;
  return started({ ...first, states: { ...first.states, [first.head ?? ""]: { rest: {} } } }, run);
}

function reopen(conversation: Conversation, { goesOn, run, at }: Start & { readonly goesOn: GoingOn }): Conversation {
  const answer = lastAnswerOf(conversation)?.id;
  const reopened = changeAnswer(conversation, (it) => reopenAnswer(it, goesOn, at));
  return answer === undefined ? conversation : { ...reopened, run: { run, after: 0, answer } };
}

const started = (conversation: Conversation, run: string): Conversation =>
  awaited({ ...conversation, run: { run, after: 0 } });

/** Adds an empty answer to the last message, unless the run has one. */
function awaited(conversation: Conversation): Conversation {
  const { run } = conversation;
  if (!run || run.answer !== undefined) return conversation;
  const next = append(conversation, emptyAnswer(""));
  return { ...next, run: { ...run, answer: next.head } };
}

function paused(conversation: Conversation): Conversation {
  const { run } = conversation;
  const answer = findMessage(conversation, run?.answer);
  if (!run || answer?.role !== "assistant" || answer.blocks.length > 0) return conversation;
  const without = remove(conversation, answer.id);
  return without === conversation ? conversation : { ...without, run: { ...run, answer: undefined } };
}

function receive(conversation: Conversation, { event, run, reference, state, at }: Received): Conversation {
  const isNew = event.id === undefined || event.id > (conversation.run?.after ?? 0);
  if (!isOf(conversation, run) || !isNew) return conversation;
  const isEnd = event.type === "done" || event.type === "error";
  const before = awaited(conversation);
  const position: CurrentRun = { run, after: 0, ...before.run, ...(event.id !== undefined && { after: event.id }) };
  const { answer = "" } = position;
  const next = changeMessage({ ...before, run: isEnd ? undefined : position }, answer, (it) => {
    const changed = applyEvent(it as AssistantMessage, event, at, reference);
    return isEnd ? { ...withStop(changed, position), run } : changed;
  });
  if (!isEnd) return next;
  const title = (event.type === "done" && event.title) || next.title;
  return { ...next, title, ...(state && { states: { ...next.states, [answer]: state } }) };
}

/** Ends the run without a terminal event. */
function end(conversation: Conversation, run: string, change: (answer: AssistantMessage) => AssistantMessage) {
  if (!isOf(conversation, run)) return conversation;
  const before = awaited(conversation);
  const { answer = "" } = before.run ?? {};
  return changeMessage({ ...before, run: undefined }, answer, (it) => change(it as AssistantMessage));
}

/** Ends a run in progress: another tab has begun it, but could not store it. */
const idle = (conversation: Conversation, at: number): Conversation =>
  conversation.run ? end(conversation, conversation.run.run, (answer) => stopAnswer(answer, at)) : conversation;

function stop(conversation: Conversation): Conversation {
  const stopped = changeAnswer(held(conversation), stopTools);
  return stopped.run ? { ...stopped, run: { ...stopped.run, isStopped: true } } : stopped;
}

/** Calls that arrive after the user has stopped the run do not wait for a decision. */
const withStop = (answer: AssistantMessage, run: CurrentRun | undefined): AssistantMessage =>
  run?.isStopped ? stopTools(answer) : answer;

function withdraw(conversation: Conversation): Conversation {
  const question = lastQuestionOf(conversation);
  const answer = lastAnswerOf(conversation);
  // An answer that has messages after it is not removed: it stays as a stopped one.
  const ended = changeAnswer(conversation, (it) => stopAnswer(it, question?.at ?? 0));
  const rest = { ...(answer ? remove(ended, answer.id) : ended), run: undefined };
  if (!question) return rest;
  const isGone = childrenOf(rest, question.id).length === 0;
  const before = isGone ? remove(rest, question.id) : rest;
  return changeAnswer(show(before, newestBelow(before, isGone ? question.parent : question.id)), askAgain);
}

function rate(conversation: Conversation, { id, run, feedback }: Extract<Operation, { readonly type: "rate" }>) {
  const rated = conversation.tree.findLast((it) => it.role === "assistant" && (run ? it.run === run : it.id === id));
  return rated
    ? changeMessage(conversation, rated.id, (message) => ({ ...message, feedback }) as Message)
    : conversation;
}

function mark(conversation: Conversation, callId: string, decision: ToolBlock["decision"]): Conversation {
  const answer = lastAnswerOf(conversation);
  const isOpen = !conversation.run && answer && waitingCalls(answer).some((call) => call.callId === callId);
  return isOpen ? changeAnswer(conversation, (it) => markCall(it, callId, decision)) : conversation;
}

/** Changes the last answer, if there is one. */
function changeAnswer(conversation: Conversation, change: (answer: AssistantMessage) => AssistantMessage) {
  const answer = lastAnswerOf(conversation);
  return answer ? changeMessage(conversation, answer.id, (it) => change(it as AssistantMessage)) : conversation;
}

function changeMessage(conversation: Conversation, id: string, change: (message: Message) => Message): Conversation {
  const message = findMessage(conversation, id);
  if (!message) return conversation;
  const changed = change(message);
  const put = (list: readonly Message[]) => {
    const index = list.lastIndexOf(message);
    return index < 0 ? list : list.with(index, changed);
  };
  return { ...conversation, tree: put(conversation.tree), messages: put(conversation.messages) };
}

type New<Role extends Message> = Role extends Message ? Omit<Role, "id" | "parent"> : never;

/** Appends a message after the last one, with a new id. */
function append(conversation: Conversation, message: New<Message>): Conversation {
  const count = conversation.count + 1;
  const added = { ...message, id: `m${count}`, parent: conversation.head } as Message;
  const [tree, messages] = [
    [...conversation.tree, added],
    [...conversation.messages, added],
  ];
  return { ...conversation, count, tree, messages, head: added.id };
}

/** Removes the last message of a branch. A message with others after it stays. */
function remove(conversation: Conversation, id: string): Conversation {
  if (childrenOf(conversation, id).length > 0) return conversation;
  const { [id]: _, ...states } = conversation.states;
  const without = (list: readonly Message[]) => list.filter((message) => message.id !== id);
  const messages = without(conversation.messages);
  return { ...conversation, states, tree: without(conversation.tree), messages, head: messages.at(-1)?.id };
}

function show(conversation: Conversation, head: string | undefined): Conversation {
  const messages = branchOf(conversation.tree, head);
  return { ...conversation, messages, head: messages.at(-1)?.id };
}
