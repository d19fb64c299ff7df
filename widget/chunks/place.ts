/**
 * Where an element keeps its conversation in the tab's storage. The first one of a server has the same place on all pages of a
 * site. Further ones, in the same page or in frames, must have others: each its own, by its `id` and its frame, or by its turn.
 */

import type { forget, recall, remember } from "../storage.ts";

/** What the script has of the browser's storage. */
export interface Storage {
  readonly forget: typeof forget;
  readonly recall: typeof recall;
  readonly remember: typeof remember;
}

/** On the window of each page and frame that has an element: the places that are taken or kept free for their owners there. */
const TAKEN = Symbol.for("agent-chat-places");

const taken = new Set<string>();

export class Place {
  readonly name: string;
  /** The name of the place that is this element's and nobody else's; another one than the first place's. */
  readonly #own: string;
  readonly #storage: Storage;

  /** `first` is the name of the first place of a server; the one that is taken begins with it. */
  constructor(area: Storage, first: string, id: string) {
    this.#storage = area;
    let own = `${first}${framePath(window)}#${id}`;
    while (isTaken(own)) own += "+";
    this.#own = own;
    // Who has once come second has his own place, whoever is the first this time: scripts of frames come in any order.
    const hasOwn = area.recall(own, "sessionStorage") !== undefined;
    this.name = hasOwn || isTaken(first) ? own : first;
    Reflect.set(window, TAKEN, taken.add(own).add(this.name));
    if (!this.read()) this.clear();
  }

  read(): string | undefined {
    return this.#storage.recall(this.name, "sessionStorage") || undefined;
  }

  /** Whether there was room for it. */
  write(text: string): boolean {
    return this.#storage.remember(this.name, text, "sessionStorage");
  }

  /** Who came second goes on having a place of his own, an empty one. */
  clear(): void {
    if (this.name !== this.#own) this.erase();
    else this.write("");
  }

  erase(): void {
    this.#storage.forget(this.name, "sessionStorage");
  }

  /** Lets another element have it. */
  leave(): void {
    taken.delete(this.name);
    taken.delete(this.#own);
  }
}

function isTaken(name: string, frame: Window = window.top ?? window): boolean {
  try {
    if (Reflect.get(frame, TAKEN)?.has(name)) return true;
  } catch {
    // Of another origin: it has another storage, and may hold frames of this one.
  }
  for (let index = 0; index < frame.length; index += 1) {
    if (isTaken(name, frame[index])) return true;
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
