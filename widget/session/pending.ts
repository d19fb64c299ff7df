/**
 * Messages that were written while an answer was running, and are sent when it has ended. Loaded with the first one; the
 * session holds them.
 */

import type { ChatSession, SendResult } from "./chat-session.ts";
import type { Client } from "./client.ts";
import type { OutgoingMessage, PendingMessage } from "./conversation.ts";

/** The sessions of which something pending is about to be sent, until it is, or cannot be. */
const sending = new WeakMap<ChatSession, Promise<void>>();

/** Ids of what is being sent of them. */
const taking = new WeakMap<ChatSession, readonly string[]>();

/** Ids of what the person sends in place of an answer, from when that is stopped: it asks for nothing more. */
const following = new WeakMap<ChatSession, readonly string[]>();

interface PendingSender {
  /** Ids of what the person wants to be sent now, in place of the rest of the answer, or after one that is not as it should be. */
  readonly asked: readonly string[] | undefined;
  /** Resolves with the reason why nothing can be sent now, if there is one. */
  readonly admit: () => Promise<string | undefined>;
  readonly send: (message: OutgoingMessage) => SendResult;
}

/** Sends what comes next, if it is time, or the person asks for it. */
export async function sendPending(client: Client, sender: PendingSender): Promise<void> {
  const { session } = client;
  const { asked } = sender;
  const before = sending.get(session);
  if (before) {
    if (!asked) return;
    await before;
    if (!session.busy) return sendPending(client, sender);
    // Something was sent by itself: the rest of what they asked for comes behind it.
    release(session, asked);
    return;
  }
  const isAsked = session.pending.some((it) => asked?.includes(it.id) && isSendable(session, it));
  if (!(asked ? isAsked : isDue(client))) return;
  const sent = sendAll(client, sender).finally(() => {
    sending.delete(session);
    taking.delete(session);
    following.delete(session);
    // What could not be sent asks again.
    if (asked) session.changePending((list) => list);
  });
  sending.set(session, sent);
  await sent;
}

async function sendAll(client: Client, sender: PendingSender): Promise<void> {
  // Where another tab was quicker, something may be left: nothing else would say that it is time.
  while ((await sendNext(client, sender)) === "elsewhere" && !sender.asked && isDue(client));
}

async function sendNext(client: Client, { asked, admit, send }: PendingSender): Promise<string | undefined> {
  const { session, keeper } = client;
  const { id } = keeper.shown;
  if (asked && session.busy) {
    following.set(session, asked);
    session.stop();
    await session.ended;
  }
  const reason = await admit();
  if (reason === "refused") session.changePending(held);
  // Another conversation may be shown by now.
  if (reason || id !== keeper.shown.id || !(asked || isDue(client))) return reason;
  if (asked) release(session, asked);
  const last = session.messages.at(-1)?.id;
  const taken = await take(client);
  // It stays held in the conversation and the branch that it was written in, also if the element has left the page.
  const isElsewhere = id !== keeper.shown.id || (last && !session.messages.some((it) => it.id === last));
  if (taken.length === 0 || isElsewhere || !client.isOpen) return undefined;
  const ids = idsOf(taken);
  const { outcome } = send({
    text: taken.map(({ text }) => text).join("\n\n"),
    attachments: taken.flatMap(({ id }) => session.pendingFiles.get(id) ?? []),
    files: taken.flatMap(({ files }) => files),
    pending: ids,
  });
  if (outcome === "accepted") session.changePending((list) => list.filter(({ id }) => !ids.includes(id)));
  // The answer was asked for once more meanwhile.
  else release(session, ids);
  return undefined;
}

/**
 * Takes what comes next, so that no other tab does: until it stands in the conversation it is held, and stays if this
 * tab does not live to send it.
 */
async function take({ session, keeper }: Client): Promise<readonly PendingMessage[]> {
  let taken = nextOf(session, session.pending);
  await keeper.queue((list) => {
    taken = nextOf(session, list);
    taking.set(session, idsOf(taken));
    return list.map((it) => (taken.includes(it) ? { ...it, isHeld: true } : it));
  });
  // The person may have taken one out meanwhile. What is kept has no pictures.
  return session.pending.filter((it) => taken.some(({ id }) => id === it.id));
}

/** What is sent next: texts as one message, and one with files by itself, since files have limits together. */
function nextOf(session: ChatSession, list: readonly PendingMessage[]): readonly PendingMessage[] {
  const ready = list.filter((it) => !it.isHeld && !lacksFiles(session, it));
  const end = ready.findIndex(({ files }) => files.length > 0);
  return ready.slice(0, end < 0 ? undefined : Math.max(end, 1));
}

/** Whether something is to be sent now, and the server takes messages of this person. */
function isDue({ session, isKnown, refusal, key, keeper }: Client): boolean {
  const isAdmitted = isKnown && !refusal && !key.prompt && !keeper.isRestoring;
  return isAdmitted && !session.busy && isOver(session) && nextOf(session, session.pending).length > 0;
}

/** Whether the last answer is as it should be: what was cut can go on, and what has failed be asked again. */
function isOver({ lastAnswer }: ChatSession): boolean {
  return lastAnswer?.status === "done" && lastAnswer.finishReason === "stop" && !lastAnswer.forgotten;
}

/** Whether a message is sent only if the person says so. */
export function asks(session: ChatSession, message: PendingMessage): boolean {
  const isStuck = !session.busy && session.waitingCalls.length === 0 && !isOver(session);
  const isHeld = message.isHeld === true && !taking.get(session)?.includes(message.id);
  const isFollowing = following.get(session)?.includes(message.id);
  return (!isFollowing && (isStuck || isHeld)) || lacksFiles(session, message);
}

/** Whether there is something of it to send. */
export function isSendable(session: ChatSession, message: PendingMessage): boolean {
  return message.text !== "" || !lacksFiles(session, message);
}

/** Whether a reload has lost its files, or another tab has them. */
export function lacksFiles({ pendingFiles }: ChatSession, { id, files }: PendingMessage): boolean {
  return files.length > 0 && !pendingFiles.has(id);
}

/** These may be sent, also without files that are gone. */
function release(session: ChatSession, ids: readonly string[]): void {
  const lacking = session.pending.filter((it) => it.text && lacksFiles(session, it)).map(({ id }) => id);
  session.changePending((list) =>
    list.map((it) => {
      if (!ids.includes(it.id)) return it;
      const { isHeld: _, ...released } = it;
      return lacking.includes(it.id) ? { ...released, files: [] } : released;
    }),
  );
}

const idsOf = (list: readonly PendingMessage[]) => list.map(({ id }) => id);

/** Nothing of it is sent unasked. */
function held(list: readonly PendingMessage[]): readonly PendingMessage[] {
  return list.map((it) => ({ ...it, isHeld: true }));
}
