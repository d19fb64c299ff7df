/** Sends queued messages when the answer has ended, or takes them out of the queue. Loaded when the first message is queued. */

import type { ChatSession, SendOutcome, SendResult } from "./chat-session.ts";
import type { OutgoingMessage, QueuedMessage } from "./conversation.ts";

/** Queued messages that are being sent. */
interface Sending {
  readonly ended: Promise<void>;
  /** Ids of messages that the user sends in place of the rest of an answer: they need no further request. */
  readonly following: readonly string[];
}

const sending = new WeakMap<ChatSession, Sending>();

export interface QueueSender {
  /** Ids of messages that the user wants to send now: in place of the rest of the answer, or after one that ended badly. */
  readonly asked?: readonly string[] | undefined;
  /** Whether the server accepts messages from this user, and the element is in the page. */
  readonly isReady: () => boolean;
  /** Resolves with the reason why nothing can be sent now, if there is one. */
  readonly admit: () => Promise<SendOutcome | undefined>;
  readonly send: (message: OutgoingMessage) => Promise<SendResult>;
}

/** The field in which a queued message is changed. */
export interface MessageField {
  /** Whether a message can be added to the draft there. If not, tells the user. */
  canJoin(message: OutgoingMessage): Promise<boolean>;
  restoreUnsent(message: OutgoingMessage): void;
}

/** Takes a queued message out; to be changed, it is put into `field`, or stays if it has too many files for that. */
export async function takeOut(session: ChatSession, id: string, field: MessageField | undefined): Promise<void> {
  const find = () => session.queued.find((it) => it.id === id);
  const attachments = session.queuedFiles.get(id) ?? [];
  const message = find();
  if (field && message && !(await field.canJoin({ ...message, attachments }))) return;
  // It may have been sent in the meantime.
  if (!message || !find()) return;
  session.changeQueue({ type: "unqueue", ids: [id] });
  field?.restoreUnsent({ ...message, attachments });
}

/** Sends the next messages, if they are due or the user asks for it. */
export async function sendQueued(session: ChatSession, sender: QueueSender): Promise<void> {
  const { asked } = sender;
  const before = sending.get(session);
  if (before) {
    if (!asked) return;
    await before.ended;
    if (!session.busy) return sendQueued(session, sender);
    // A message was sent alone: the others that the user asked for follow it.
    release(session, asked);
    return;
  }
  const isAsked = session.queued.some((it) => asked?.includes(it.id) && isSendable(session, it));
  if (!(asked ? isAsked : isDue(session, sender))) return;
  const ended = sendAll(session, sender).finally(() => {
    sending.delete(session);
    // Updates the view: messages that could not be sent wait for the user again.
    session.wake();
  });
  sending.set(session, { ended, following: (session.busy && asked) || [] });
  await ended;
}

async function sendAll(session: ChatSession, sender: QueueSender): Promise<void> {
  // If another tab was quicker, some messages may be left, and nothing else would send them.
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

/** Whether a message is to be sent now. */
function isDue(session: ChatSession, { isReady }: QueueSender): boolean {
  return isReady() && !session.goesOn && isOver(session) && nextOf(session, session.queued).length > 0;
}

/** Whether the last answer is complete: one that was cut off can be continued, and a failed one retried. */
function isOver({ lastAnswer }: ChatSession): boolean {
  return lastAnswer?.status === "done" && lastAnswer.finishReason === "stop" && !lastAnswer.forgotten;
}

/** Whether a message is only sent if the user asks for it. */
export function asks(session: ChatSession, message: QueuedMessage): boolean {
  const isStuck = !session.busy && session.waitingCalls.length === 0 && !isOver(session);
  const isFollowing = sending.get(session)?.following.includes(message.id);
  return (!isFollowing && (isStuck || message.isHeld === true)) || lacksFiles(session, message);
}

/** Whether there is anything of the message to send. */
export function isSendable(session: ChatSession, message: QueuedMessage): boolean {
  return message.text !== "" || !lacksFiles(session, message);
}

/** Whether a reload has lost its files, or another tab has them. */
export function lacksFiles({ queuedFiles }: ChatSession, { id, files }: QueuedMessage): boolean {
  return files.length > 0 && !queuedFiles.has(id);
}

/** Allows these messages to be sent, even without files that are gone. */
function release(session: ChatSession, ids: readonly string[]): void {
  const lacking = session.queued.filter((it) => it.text && lacksFiles(session, it)).map(({ id }) => id);
  session.changeQueue({ type: "release", ids, lacking });
}
