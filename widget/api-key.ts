/** The key of one server: given by the site, or typed by the person and kept in this browser; and when to ask for it. */

import type { ErrorEvent } from "../server/protocol/events.ts";
import { forget, recall, remember } from "./storage.ts";
import { strings } from "./strings.ts";

/** Why the person is asked for a key. */
export type KeyPrompt = "required" | "refused" | "forbidden";

export class ApiKey {
  /** Set while the person has to enter a key before the chat can go on. */
  prompt: KeyPrompt | undefined;
  readonly #storageName: string;
  #given: string | undefined;
  #typed: string | undefined;

  constructor(server: URL) {
    // With its path: several servers behind one proxy have keys of their own.
    this.#storageName = `agent-chat-key:${server.href}`;
    this.#typed = recall(this.#storageName);
  }

  /** The key to send; a given one wins. */
  get value(): string | undefined {
    return this.#given ?? this.#typed;
  }

  /** Whether the site brought the key. Such a key is never stored and visitors are not asked for another. */
  get isGiven(): boolean {
    return this.#given !== undefined;
  }

  /** Whether there is a typed key to forget. */
  get isTyped(): boolean {
    return this.#given === undefined && this.#typed !== undefined;
  }

  /** Nothing, an empty text or, of an attribute that was taken away, `null`: the site brings none. */
  give(key: string | null | undefined): void {
    this.#given = key || undefined;
  }

  /** Takes a key that the person typed, for this page. */
  type(key: string): void {
    this.#typed = key;
  }

  /** Stores the typed key for later visits; done once the server has taken it. */
  keep(): void {
    if (!this.#given && this.#typed !== undefined) remember(this.#storageName, this.#typed);
  }

  /** Whether an error means that the person has to enter a key, or another one. The refused one is forgotten. */
  isAskedForBy({ code }: ErrorEvent): boolean {
    // Visitors of a site that brought its own key have none to enter.
    if (this.isGiven) return false;
    const typed = this.value !== undefined;
    if (code === "forbidden" && typed) this.prompt = "forbidden";
    else if (code === "unauthorized") this.prompt = typed ? "refused" : "required";
    else return false;
    this.forget();
    return true;
  }

  /** An error as the person reads it: what is wrong with a site's key is the site's affair. */
  inOurWords(error: ErrorEvent): ErrorEvent {
    const siteKeyRefused = error.code === "unauthorized" && this.isGiven;
    return siteKeyRefused ? { ...error, data: strings.siteKeyRefused } : error;
  }

  forget(): void {
    this.#typed = undefined;
    forget(this.#storageName);
  }
}
