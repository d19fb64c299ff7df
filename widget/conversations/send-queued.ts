/** Sends what was written while an answer was running, when that has ended, or takes it out. Loaded with the first message that is queued. */

import type { ChatSession, SendOutcome, SendResult } from "./chat-session.ts";
import type { OutgoingMessage, QueuedMessage } from "./conversation.ts";

/** Something queued is about to be sent, until it is, or cannot be. */
interface Sending {
  readonly ended: Promise<void>;
  /** Ids of what the person sends in place of an answer, which is stopped for it: it asks for nothing more. */
  readonly following: readonly string[];
}

const sending = new WeakMap<ChatSession, Sending>();

export interface QueueSender {
  /** Ids of what the person wants to be sent now, in place of the rest of the answer, or after one that is not as it should be. */
  readonly asked?: readonly string[] | undefined;
  /** Whether the server takes messages of this person, and the element is in the page. */
  readonly isReady: () => boolean;
  /** Resolves with the reason why nothing can be sent now, if there is one. */
  readonly admit: () => Promise<SendOutcome | undefined>;
  readonly send: (message: OutgoingMessage) => Promise<SendResult>;
}

/** Where a message is changed before it is sent. */
export interface MessageField {
  /** Whether a message can join what is being written there. If not, says so. */
  canJoin(message: OutgoingMessage): Promise<boolean>;
  restoreUnsent(message: OutgoingMessage): void;
}

/** Takes a queued message out; to be changed, it goes into `field`, or stays if it has too many files for that. */
export async function takeOut(session: ChatSession, id: string, field: MessageField | undefined): Promise<void> {
  const find = () => session.queued.find((it) => it.id === id);
  const attachments = session.queuedFiles.get(id) ?? [];
  const message = find();
  if (field && message && !(await field.canJoin({ ...message, attachments }))) return;
  // It may have been sent meanwhile.
  if (!message || !find()) return;
  session.changeQueue({ type: "unqueue", ids: [id] });
  field?.restoreUnsent({ ...message, attachments });
}

/** Sends what comes next, if it is time, or the person asks for it. */
export async function sendQueued(session: ChatSession, sender: QueueSender): Promise<void> {
  const { asked } = sender;
  const before = sending.get(session);
  if (before) {
    if (!asked) return;
    await before.ended;
    if (!session.busy) return sendQueued(session, sender);
    // A message was sent alone: the other messages that the person asked for follow it.
    release(session, asked);
    return;
  }
  const isAsked = session.queued.some((it) => asked?.includes(it.id) && isSendable(session, it));
  if (!(asked ? isAsked : isDue(session, sender))) return;
  const ended = sendAll(session, sender).finally(() => {
    sending.delete(session);
    // What could not be sent asks again.
    session.wake();
  });
  sending.set(session, { ended, following: (session.busy && asked) || [] });
  await ended;
}

async function sendAll(session: ChatSession, sender: QueueSender): Promise<void> {
  // Where another tab was quicker, something may be left: nothing else would say that it is time.
  while ((await sendNext(session, sender)) === "elsewhere" && !sender.asked && isDue(session, sender));
}

async function sendNext(session: ChatSession, sender: QueueSender): Promise<SendOutcome | undefined> {
  const { asked, admit, isReady } = sender;
  if (asked && session.busy) {
    session.stop();
    await session.ended;
  }
  const reason = await admit();
  if (reason === "refused") session.changeQueue({ type: "hold" });
  if (reason || !isReady() || !(asked || isDue(session, sender))) return reason;
  if (asked) release(session, asked);
  const next = nextOf(session, session.queued);
  if (next.length === 0) return undefined;
  const { outcome } = await sender.send({
    text: next.map(({ text }) => text).join("\n\n"),
    attachments: next.flatMap(({ id }) => session.queuedFiles.get(id) ?? []),
    files: next.flatMap(({ files }) => files),
    queued: next.map(({ id }) => id),
  });
  return outcome;
}

/** The next messages to send: texts as one message, a message with files alone, because files have a common limit. */
function nextOf(session: ChatSession, list: readonly QueuedMessage[]): readonly QueuedMessage[] {
  const ready = list.filter((it) => !it.isHeld && !lacksFiles(session, it));
  const end = ready.findIndex(({ files }) => files.length > 0);
  return ready.slice(0, end < 0 ? undefined : Math.max(end, 1));
}

/** Whether something is to be sent now. */
function isDue(session: ChatSession, { isReady }: QueueSender): boolean {
  return isReady() && !session.goesOn && isOver(session) && nextOf(session, session.queued).length > 0;
}

/** Whether the last answer is as it should be: what was cut can go on, and what has failed be asked again. */
function isOver({ lastAnswer }: ChatSession): boolean {
  return lastAnswer?.status === "done" && lastAnswer.finishReason === "stop" && !lastAnswer.forgotten;
}

/** Whether a message is sent only if the person says so. */
export function asks(session: ChatSession, message: QueuedMessage): boolean {
  const isStuck = !session.busy && session.waitingCalls.length === 0 && !isOver(session);
  const isFollowing = sending.get(session)?.following.includes(message.id);
  return (!isFollowing && (isStuck || message.isHeld === true)) || lacksFiles(session, message);
}

/** Whether there is something of it to send. */
export function isSendable(session: ChatSession, message: QueuedMessage): boolean {
  return message.text !== "" || !lacksFiles(session, message);
}

/** Whether a reload has lost its files, or another tab has them. */
export function lacksFiles({ queuedFiles }: ChatSession, { id, files }: QueuedMessage): boolean {
  return files.length > 0 && !queuedFiles.has(id);
}

/** These may be sent, also without files that are gone. */
function release(session: ChatSession, ids: readonly string[]): void {
  const lacking = session.queued.filter((it) => it.text && lacksFiles(session, it)).map(({ id }) => id);
  session.changeQueue({ type: "release", ids, lacking });
}
