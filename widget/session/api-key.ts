/** The key of one server: the site's own, or typed by the user and stored in this browser; and when to ask for it. */

import type { ErrorEvent } from "../../server/protocol/events.ts";
import { forget, recall, remember } from "../storage/storage.ts";

/** Why the user is asked for a key. */
export type KeyPrompt = "required" | "refused" | "forbidden";

export class ApiKey {
  /** Whether this page is in a frame of a site that no setting names: no typed key is stored or reused there. */
  declare static isFramed: boolean | undefined;
  /** Set while the user has to enter a key before the chat can continue. */
  prompt: KeyPrompt | undefined;
  readonly #storageName: string;
  #siteKey: string | undefined;
  #typed: string | undefined;
  /** Whether it was typed in this page load, and is stored as soon as the server accepts it. */
  #isNew = false;

  constructor(server: URL) {
    // With its path: several servers behind one proxy have keys of their own.
    this.#storageName = `agent-chat-key:${server.href}`;
    if (!ApiKey.isFramed) this.#typed = recall(this.#storageName);
  }

  /** The key to send; the site's own takes precedence. */
  get value(): string | undefined {
    return this.#siteKey ?? this.#typed;
  }

  /** Whether the site has a key of its own. It is never stored, and visitors are not asked for another. */
  get isOfSite(): boolean {
    return this.#siteKey !== undefined;
  }

  /** Whether there is a typed key to forget. */
  get isTyped(): boolean {
    return this.#siteKey === undefined && this.#typed !== undefined;
  }

  /** An empty string, or the `null` of a removed attribute: the site has none. */
  setSiteKey(key: string | null | undefined): void {
    this.#siteKey = key || undefined;
  }

  /** Uses a key that the user has typed, for this page load. */
  type(key: string): void {
    this.#typed = key;
    this.#isNew = !ApiKey.isFramed;
  }

  /** To be called when the server has accepted the key: stores a typed one for later visits. */
  accepted(): void {
    if (this.isOfSite) return;
    if (this.#isNew && this.#typed) remember(this.#storageName, this.#typed);
    this.#isNew = false;
  }

  /** Whether an error means that the user has to enter a key, or another one. A refused key is forgotten. */
  isAskedForBy({ code }: ErrorEvent): boolean {
    // Visitors of a site with its own key have none to enter.
    if (this.isOfSite) return false;
    if (code === "forbidden" && this.#typed) this.prompt = "forbidden";
    else if (code === "unauthorized") this.prompt = this.#typed ? "refused" : "required";
    else return false;
    this.forget();
    return true;
  }

  forget(): void {
    this.#typed = undefined;
    if (!ApiKey.isFramed) forget(this.#storageName);
  }
}
