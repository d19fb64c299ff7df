/**
 * Which conversation an element shows, kept in the tab's storage. The first element of a server has the same slot on
 * all pages of a site. Further ones, in the same page or in frames, have slots of their own, by their `id` and their
 * frame.
 */

import { isRecord, toJson } from "../../server/protocol/json.ts";
import { forget, namesIn, recall, remember } from "../storage/storage.ts";
import type { RunPosition } from "../transport/transport.ts";

/** A text that is being written, as it is kept: of its files the names alone. */
export interface Written {
  readonly text: string;
  readonly files: readonly string[];
}

/** Names a message that is being changed. */
export interface EditedMessage {
  /** In the store; absent where nothing is stored. */
  readonly conversation: string | undefined;
  readonly id: string;
}

/** What is in the composer, and in the place of a message that is being changed. */
export interface Draft extends Written {
  readonly edit?: (EditedMessage & Written) | undefined;
}

export const EMPTY_DRAFT: Draft = { text: "", files: [] };

/** Where a reader is in a conversation. */
export interface Place {
  /** Id of a message. */
  readonly message: string;
  /** The first block of it that is in view, by its number. */
  readonly block: number;
  /** How much of the block is above the view, of 1. */
  readonly part: number;
}

export interface SlotContent {
  /** Names the conversation in the store; absent before the first message. */
  readonly id?: string | undefined;
  /** Its user, as `/api/info` names them; empty without one. */
  readonly user: string;
  readonly draft: Draft;
  /** The last event that the page was informed of. The stored conversation may be older. */
  readonly reported?: RunPosition | undefined;
  readonly place?: Place | undefined;
  /** Whether a page shows it. A page that opens and finds it set is in a copied tab, or comes after a crash. */
  readonly isInUse: boolean;
}

/** On the window of each page and frame that has an element: the slots that are taken there, or reserved. */
const TAKEN: unique symbol = Symbol.for("agent-chat-slots");

declare global {
  interface Window {
    [TAKEN]?: Set<string>;
  }
}

/** The elements of this page that came while another one with the same `id` had their slot. */
const substitutes = new Map<TabSlot, () => void>();

export class TabSlot {
  readonly name: string;
  /** By server and `id`. */
  readonly #key: string;
  /** The slot that no other element has. */
  readonly #reserved: string;

  /** `onFree` is called when the element has left that had the slot before, and this one did not get it. */
  constructor(server: URL, id: string, onFree: () => void) {
    this.#key = `${server.href}#${id}`;
    const shared = sharedName(server);
    let reserved = `${shared}${framePath(window)}#${id}`;
    while (isTaken(reserved)) reserved += "+";
    this.#reserved = reserved;
    // An element that had its reserved slot once keeps it, also where it is the first this time: frames load in any
    // order.
    const hadReserved = recall(reserved, "sessionStorage") !== undefined;
    this.name = hadReserved || isTaken(shared) ? reserved : shared;
    window[TAKEN] ??= new Set();
    window[TAKEN].add(reserved).add(this.name);
    if (this.name === reserved && !hadReserved) substitutes.set(this, onFree);
    if (!this.read()) this.clear();
  }

  read(): SlotContent | undefined {
    return readSlot(this.name);
  }

  /** Returns whether there was room for it. */
  write(content: SlotContent): boolean {
    return remember(this.name, toJson(content), "sessionStorage");
  }

  /** An element that has its reserved slot keeps it, empty. */
  clear(): void {
    if (this.name === this.#reserved) remember(this.name, "", "sessionStorage");
    else this.erase();
  }

  erase(): void {
    forget(this.name, "sessionStorage");
  }

  /** Lets another element have it. */
  release(): void {
    window[TAKEN]?.delete(this.name);
    window[TAKEN]?.delete(this.#reserved);
    substitutes.delete(this);
    const next = [...substitutes.keys()].find((slot) => slot.#key === this.#key);
    if (next) substitutes.get(next)?.();
  }
}

/** Empties the slots of all users but one, also those of elements of other pages. */
export function forgetSlots(server: URL, user: string): void {
  for (const name of namesIn("sessionStorage")) {
    // A longer address is another server's.
    const isSlot = /^([@#]|$)/.test(name.split(sharedName(server))[1] ?? "/");
    const owner = isSlot && readSlot(name)?.user;
    if (owner && owner !== user) forget(name, "sessionStorage");
  }
}

const sharedName = ({ href }: URL): string => `agent-chat-session:${href}`;

const readSlot = (name: string): SlotContent | undefined => parse(recall(name, "sessionStorage") ?? "");

function parse(text: string): SlotContent | undefined {
  try {
    const { id, user, draft, reported, place, isInUse } = JSON.parse(text);
    return {
      id: typeof id === "string" ? id : undefined,
      user: String(user ?? ""),
      draft: draftOf(draft),
      reported: isRecord(reported) ? { run: String(reported.run), after: Number(reported.after) } : undefined,
      place: isRecord(place)
        ? { message: String(place.message), block: Number(place.block), part: Number(place.part) }
        : undefined,
      isInUse: isInUse === true,
    };
  } catch {
    return undefined;
  }
}

/** One that is damaged takes nothing else with it. */
function draftOf(draft: Draft): Draft {
  try {
    const { edit } = draft;
    const { conversation, id } = edit ?? {};
    return { ...written(draft), ...(edit && { edit: { ...written(edit), conversation, id: String(id) } }) };
  } catch {
    return EMPTY_DRAFT;
  }
}

function written({ text, files }: Written): Written {
  return { text: String(text), files: files.map(String) };
}

/** Whether an element of this tab has the slot: in this page, or in a frame of it. */
function isTaken(name: string, frame: Window = window.top ?? window): boolean {
  try {
    if (frame[TAKEN]?.has(name)) return true;
  } catch {
    // A frame of another origin has another storage, and may contain frames of this one.
  }
  for (let index = 0; index < frame.length; index += 1) {
    const child = frame[index];
    if (child && isTaken(name, child)) return true;
  }
  return false;
}

/** The way from the tab's page to this frame, by numbers. */
function framePath(frame: Window): string {
  const { parent } = frame;
  if (parent === frame) return "";
  let index = 0;
  while (index < parent.length && parent[index] !== frame) index += 1;
  return `${framePath(parent)}@${index}`;
}
