/**
 * The stored form of a conversation: a row, which is all of it at one moment, and the operations since then, each in a
 * row of its own. `read-row.ts` joins them again. The data of files is stored apart (`kept-files.ts`), keys never.
 */

import type { Attachment } from "../../server/protocol/attachments.ts";
import { toJson } from "../../server/protocol/json.ts";
import { withoutData, withParts } from "./branch-states.ts";
import { branchOf, type Conversation, type ConversationData, dataOf, type QueuedMessage } from "./conversation.ts";
import { type Message, textOf } from "./messages.ts";
import type { NumberedOperation, Operation } from "./operations.ts";

/** The owner of a conversation. */
export interface Owner {
  /** Another agent at the same address must not get it. */
  readonly agent: string;
  /** As `/api/info` names them; empty or absent without a user. */
  readonly user?: string;
  /** Whether it belongs to one tab, or to the browser, which lists it. */
  readonly kept: "tab" | "browser";
}

/** Everything that a reload must not lose. */
export interface StoredConversation extends ConversationData, Owner {
  readonly id: string;
  /** When it was saved, in milliseconds. */
  readonly updatedAt: number;
  /** The clock of the last operation that it contains. */
  readonly clock: number;
  /** The files of messages, as far as they are here, by the id of the message. */
  readonly attachments?: ReadonlyMap<string, readonly Attachment[]>;
}

/** Incremented when older versions of the chat could misread what is written. */
export const VERSION = 6;

export type Row = StoredConversation & { readonly version: number };

/** An operation after the row. `id` orders all of a conversation: by clock, tab, and number in the tab. */
export interface Entry extends NumberedOperation {
  readonly id: string;
  /** Larger than that of all entries that the tab knew. */
  readonly clock: number;
}

/** What a list of conversations shows, without any of their messages. */
export interface Summary extends Owner {
  readonly id: string;
  readonly updatedAt: number;
  readonly title: string;
  /** Whether its answer was not received completely. */
  readonly isRunning: boolean;
  /** Whether its answer has ended while another conversation was shown, and is unread. Absent before version 6. */
  readonly isUnread?: boolean | undefined;
  /** Whether messages of the user wait in it. Absent if an earlier version has stored it. */
  readonly isQueued?: boolean | undefined;
  /** In characters, about. */
  readonly size: number;
  /** The clock of its row: another tab may have written a new one. -1 if a tab was left without reading the store. */
  readonly clock: number;
}

/** Returned for a conversation that another version has written, or that is damaged. It stays stored. */
export const UNREADABLE = "unreadable";

const TITLE_CHARS = 60;

export function entryOf(conversation: string, clock: number, own: NumberedOperation): Entry {
  const { writer, number, operation } = own;
  const id = `${conversation} op ${digits(clock)} ${writer} ${digits(number)}`;
  return { id, clock, writer, number, operation: withParts(withoutPicturesOf(operation), withoutData) };
}

const digits = (value: number) => `${value}`.padStart(9, "0");

/** Pictures are not stored: they are read from the data of the files. */
function withoutPicturesOf(operation: Operation): Operation {
  if (operation.type !== "ask" && operation.type !== "queue") return operation;
  return { ...operation, message: withoutPictures(operation.message) } as Operation;
}

export function summaryOf(id: string, conversation: Conversation, owner: Owner, clock: number): Summary {
  const { tree, states, root, run, isUnread, queued } = conversation;
  const { agent, user = "" } = owner;
  // A conversation with only the page's messages, such as a greeting, is not listed.
  const kept = tree.some(({ role }) => role === "user") ? owner.kept : "tab";
  const size = charsOf([...tree, ...Object.values(states), root]);
  const shown = { title: titleOf(conversation), isRunning: !!run, isUnread, isQueued: queued.length > 0 };
  return { id, agent, user, kept, updatedAt: Date.now(), ...shown, size, clock };
}

/** The user's name for it, else the agent's title, else the first message of the user. */
function titleOf({ name, title, tree, head }: ConversationData): string {
  const branch = branchOf(tree, head);
  const first = branch.find(({ role }) => role === "user") ?? branch[0];
  const [file] = first?.role === "user" ? first.files : [];
  const said = ((first && textOf(first).trim()) || (file?.name ?? "")).replace(/\s+/g, " ");
  return name ?? title ?? [...said].slice(0, TITLE_CHARS).join("");
}

/** A copy to be stored, without the data of files. */
export function rowOf(id: string, conversation: Conversation, owner: Owner, clock: number): Row {
  const data = dataOf(conversation);
  const { states, root, tree, queued } = conversation;
  const slim = withParts({ states, root, tree }, withoutData);
  const shown = { tree: slim.tree.map(withoutPictures), queued: queued.map(withoutPictures) };
  return { ...data, ...owner, ...slim, ...shown, id, clock, updatedAt: Date.now(), version: VERSION };
}

/** Messages and states never change: each is measured once. */
const sizes = new WeakMap<object, number>();

export function sizeOf(part: object): number {
  const size = sizes.get(part) ?? toJson(part).length;
  sizes.set(part, size);
  return size;
}

export const charsOf = (parts: readonly (object | null)[]): number =>
  parts.reduce((sum, part) => sum + (part ? sizeOf(part) : 0), 0);

function withoutPictures<It extends Message | QueuedMessage | object>(message: It): It {
  if (!("files" in message) || !Array.isArray(message.files) || message.files.length === 0) return message;
  return { ...message, files: message.files.map(({ picture: _, isKept: __, ...file }) => file) };
}
