/**
 * What is stored of a conversation; `read-row.ts` makes it one again. Data of files is kept beside it (`kept-files.ts`),
 * keys never.
 */

import { type Json, records, toJson } from "../../server/protocol/json.ts";
import { withoutData, withParts } from "./branch-states.ts";
import type { SessionData } from "./chat-session.ts";
import type { PendingMessage } from "./conversation.ts";
import type { UNREADABLE } from "./lease.ts";
import { type Message, textOf } from "./messages.ts";

/** Everything that a reload must not lose. */
export interface StoredConversation extends SessionData {
  readonly id: string;
  /** Another agent at the same address must not get it. */
  readonly agent: string;
  /** As `/api/info` names them; empty or absent without a user. */
  readonly user?: string;
  /** For the tab that has it, or for the browser, which lists it. */
  readonly kept: "tab" | "browser";
  /** What the person calls it. */
  readonly name?: string | undefined;
  /** When it was saved, in milliseconds. */
  readonly updatedAt: number;
  /** How often it was saved. */
  readonly revision: number;
  /** Reads the data of its files, too. Present where some is kept. */
  readonly withFiles?: () => Promise<StoredConversation>;
}

/** What a list of conversations shows, without any of their messages. */
export interface Summary
  extends Pick<StoredConversation, "id" | "agent" | "user" | "kept" | "name" | "updatedAt" | "revision"> {
  readonly title: string;
  /** Whether its answer was not received to its end. */
  readonly isRunning: boolean;
  /** In characters, about. */
  readonly size: number;
  /** The element that has written it last, and until when no other one may. */
  readonly writer: string;
  readonly until: number;
}

/** Grows when older versions of the chat could misread what is written. */
export const VERSION = 5;

/** What is stored under an id. */
export type Found = StoredConversation | typeof UNREADABLE | undefined;

const TITLE_CHARS = 60;

export type Row = StoredConversation & { readonly version: number };

/** What is pending in a conversation. It is kept beside the row: each tab may add to it. */
export interface Queue {
  readonly id: string;
  readonly pending: readonly PendingMessage[];
}

export function summaryOf(conversation: StoredConversation, writer: string, until: number): Summary {
  const { id, agent, user = "", name, updatedAt, revision, run, tree, states, root } = conversation;
  // What a page adds before the person has said anything, such as a greeting, would fill the list.
  const kept = tree.some(({ role }) => role === "user") ? conversation.kept : "tab";
  const title = titleOf(conversation);
  return {
    id,
    agent,
    user,
    kept,
    name,
    updatedAt,
    revision,
    title,
    isRunning: !!run,
    size: charsOf([...tree, ...Object.values(states), root]),
    writer,
    until,
  };
}

/** What the person calls it, else the agent, else their first message. */
function titleOf({ name, title, tree, head }: StoredConversation): string {
  const branch = branchOf(tree, head);
  const first = branch.find(({ role }) => role === "user") ?? branch[0];
  const [file] = first?.role === "user" ? first.files : [];
  const said = ((first && textOf(first).trim()) || (file?.name ?? "")).replace(/\s+/g, " ");
  return name ?? title ?? [...said].slice(0, TITLE_CHARS).join("");
}

/** A copy to be stored, without the data of files. */
export function toRow({ pending: _, attachments: __, withFiles: ___, ...conversation }: StoredConversation): Row {
  const { tree, states, root } = conversation;
  const slim = withParts({ states, root }, withoutData);
  return { ...conversation, ...slim, version: VERSION, tree: tree.map(withoutPictures) };
}

/** An answer that comes, while the rest of its conversation stays as it was written before. */
export interface AnswerRow extends Pick<StoredConversation, "id" | "updatedAt" | "revision" | "run"> {
  readonly answer: Message;
}

export const answerKey = (id: string): string => `${id} answer`;

/** What has changed since a conversation was written; `undefined` if it is more than an answer that comes. */
export function answerRow(written: StoredConversation | undefined, now: StoredConversation): AnswerRow | undefined {
  const { id, updatedAt, revision, run, tree } = now;
  if (!run || tree.length !== written?.tree.length) return undefined;
  const known: object = { ...written, updatedAt, revision, run, tree };
  const changed = tree.filter((message, index) => message !== written.tree[index]);
  const isSame = Object.entries(now).every(([name, value]) => known[name as keyof object] === value);
  const [answer] = changed;
  if (!isSame || !answer || changed.length > 1) return undefined;
  return { id: answerKey(id), updatedAt, revision, run, answer };
}

export function branchOf(tree: readonly Message[], head: string | undefined): readonly Message[] {
  const byId = new Map(tree.map((message) => [message.id, message]));
  const branch: Message[] = [];
  for (let at = byId.get(head ?? ""); at; at = byId.get(at.parent ?? "")) branch.push(at);
  return branch.toReversed();
}

/** What is pending, without what is damaged of it. */
export function pendingOf(queue: Queue | undefined): readonly PendingMessage[] {
  const hasText = (it: Json, name: string) => typeof it[name] === "string";
  return records(queue?.pending)
    .filter((it) => hasText(it, "id") && hasText(it, "text"))
    .map((it) => ({ ...it, files: records(it.files).filter((file) => hasText(file, "name")) }) as never);
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

export function withoutPictures<It extends Message | PendingMessage>(message: It): It {
  if (!("files" in message) || message.files.length === 0) return message;
  return { ...message, files: message.files.map(({ picture: _, isKept: __, ...file }) => file) };
}
