/** What a tab stores of a chat: which conversation it shows, the drafts, and the scroll position. */

import { isRecord, toJson } from "../../server/protocol/json.ts";
import { forget, recall, remember } from "../storage/storage.ts";
import type { RunPosition } from "../transport/transport.ts";

/** A draft as it is stored: of its files, only the names. */
export interface Written {
  readonly text: string;
  readonly files: readonly string[];
  /** Puts it back into the composer with its files, which no storage keeps: present as long as the page lives. */
  readonly putBack?: () => void;
}

/** Identifies a message that is being changed. */
export interface EditedMessage {
  /** Its id in the store; absent if nothing is stored. */
  readonly conversation: string | undefined;
  readonly id: string;
}

/** The draft in the composer, and that of a message that is being changed. */
export interface Draft extends Written {
  readonly edit?: Edit | undefined;
}

export type Edit = EditedMessage & Written;

export const NOTHING_WRITTEN: Written = { text: "", files: [] };

export const isEmpty = ({ text, files }: Written): boolean => text === "" && files.length === 0;

/** The scroll position in a conversation. */
export interface Place {
  /** Id of a message. */
  readonly message: string;
  /** The index of its first block that is in view. */
  readonly block: number;
  /** The part of the block that is above the view, from 0 to 1. */
  readonly part: number;
}

export interface SlotContent {
  /** Id of the conversation in the store; absent before the first message. */
  readonly id?: string | undefined;
  /** Its user, as `/api/info` names them; empty without one. */
  readonly user: string;
  /** By the id of the conversation; that of a new one under an empty string. */
  readonly drafts: Readonly<Record<string, Written>>;
  /** The message that is being changed, in any conversation: there is one at a time. */
  readonly edit?: Edit | undefined;
  /** The last event that the page was informed of. The stored conversation may be older. */
  readonly reported?: RunPosition | undefined;
  readonly place?: Place | undefined;
}

export const nameOf = ({ href }: URL): string => `agent-chat-session:${href}`;

/** The name of a slot. Two chats of one server with the same `id` show the same conversation. */
export const slotOf = (server: URL, id: string): string => nameOf(server) + (id && `#${id}`);

export const readSlot = (name: string): SlotContent | undefined => parse(recall(name, "sessionStorage") ?? "");

/** Returns whether there was room for it. */
export const writeSlot = (name: string, content: SlotContent): boolean =>
  remember(name, toJson(content), "sessionStorage");

export const clearSlot = (name: string): void => forget(name, "sessionStorage");

function parse(text: string): SlotContent | undefined {
  try {
    const { id, user, draft, drafts, edit, reported, place } = JSON.parse(text);
    const known = typeof id === "string" ? id : undefined;
    return {
      id: known,
      user: String(user ?? ""),
      // Before version 6 there was one draft for all conversations, which included the message being changed.
      drafts: writtenIn(drafts ?? { [known ?? ""]: draft }),
      edit: editOf(edit ?? draft?.edit),
      reported: isRecord(reported) ? { run: String(reported.run), after: Number(reported.after) } : undefined,
      place: isRecord(place)
        ? { message: String(place.message), block: Number(place.block), part: Number(place.part) }
        : undefined,
    };
  } catch {
    return undefined;
  }
}

/** A damaged draft does not affect the others. */
function writtenIn(drafts: unknown): SlotContent["drafts"] {
  const entries = isRecord(drafts) ? Object.entries(drafts) : [];
  return Object.fromEntries(entries.map(([id, draft]) => [id, writtenOf(draft) ?? NOTHING_WRITTEN]));
}

function editOf(edit: unknown): Edit | undefined {
  const written = writtenOf(edit);
  if (!written || !isRecord(edit)) return undefined;
  const { conversation, id } = edit;
  return { ...written, id: String(id), conversation: typeof conversation === "string" ? conversation : undefined };
}

function writtenOf(value: unknown): Written | undefined {
  if (!isRecord(value) || typeof value.text !== "string" || !Array.isArray(value.files)) return undefined;
  return { text: value.text, files: value.files.map(String) };
}
