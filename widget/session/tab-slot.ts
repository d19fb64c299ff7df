/**
 * Which conversation an element shows, kept in the tab's storage. The first element of a server has the same slot on
 * all pages of a site. Further ones, in the same page or in frames, have slots of their own, by their `id` and their
 * frame.
 */

import { isRecord } from "../../server/protocol/json.ts";
import type { RunPosition } from "../transport/transport.ts";
import { forget, recall, remember } from "./storage.ts";

/** What is in the composer, as it is kept: of its files the names alone. */
export interface Draft {
  readonly text: string;
  readonly files: readonly string[];
}

export const EMPTY_DRAFT: Draft = { text: "", files: [] };

export interface SlotContent {
  /** Of the conversation in the store; absent before the first message. */
  readonly id?: string | undefined;
  readonly draft: Draft;
  /** The last event that the page was informed of. The stored conversation may be older. */
  readonly reported?: RunPosition | undefined;
}

/** On the window of each page and frame that has an element: the slots that are taken there, or reserved. */
const TAKEN = Symbol.for("agent-chat-slots");

export class TabSlot {
  readonly name: string;
  /** The slot that is this element's alone; another one than the first. */
  readonly #own: string;

  constructor(server: URL, id: string) {
    const first = `agent-chat-session:${server.href}`;
    let own = `${first}${framePath(window)}#${id}`;
    while (isTaken(own)) own += "+";
    this.#own = own;
    // An element that once came second has its own slot, also where it is the first this time: frames load in any
    // order.
    const hasOwn = recall(own, "sessionStorage") !== undefined;
    this.name = hasOwn || isTaken(first) ? own : first;
    takenHere().add(own).add(this.name);
    if (!this.read()) this.clear();
  }

  read(): SlotContent | undefined {
    return parse(recall(this.name, "sessionStorage") ?? "");
  }

  /** Returns whether there was room for it. */
  write(content: SlotContent): boolean {
    return remember(this.name, JSON.stringify(content), "sessionStorage");
  }

  /** An element that came second goes on having a slot of its own, an empty one. */
  clear(): void {
    if (this.name === this.#own) remember(this.name, "", "sessionStorage");
    else this.erase();
  }

  erase(): void {
    forget(this.name, "sessionStorage");
  }

  /** Lets another element have it. */
  release(): void {
    takenHere().delete(this.name);
    takenHere().delete(this.#own);
  }
}

/** Whether the browser blocks the tab's storage: then a reload finds nothing. */
export function isTabStorageBlocked(): boolean {
  try {
    return !sessionStorage;
  } catch {
    return true;
  }
}

function parse(text: string): SlotContent | undefined {
  try {
    const { id, draft, reported } = JSON.parse(text);
    return {
      id: typeof id === "string" ? id : undefined,
      draft: { text: String(draft.text), files: draft.files.map(String) },
      reported: isRecord(reported) ? { run: String(reported.run), after: Number(reported.after) } : undefined,
    };
  } catch {
    return undefined;
  }
}

function takenHere(): Set<string> {
  const known = Reflect.get(window, TAKEN);
  if (known instanceof Set) return known;
  const created = new Set<string>();
  Reflect.set(window, TAKEN, created);
  return created;
}

/** Whether an element of this tab has the slot: in this page, or in a frame of it. */
function isTaken(name: string, frame: Window = window.top ?? window): boolean {
  try {
    if (Reflect.get(frame, TAKEN)?.has(name)) return true;
  } catch {
    // Of another origin: it has another storage, and may contain frames of this one.
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
