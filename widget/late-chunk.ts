/** A chunk that a part of the screen is made with: asked for when it is needed, and drawn when it is there. */

import type { ReactiveControllerHost } from "lit";
import { type Chunks, loadChunk } from "./lazy-chunk.ts";

export interface LateHost extends ReactiveControllerHost {
  readonly renderRoot: HTMLElement | DocumentFragment;
}

export class LateChunk<Name extends keyof Chunks> {
  readonly #host: LateHost;
  readonly #name: Name;
  #chunk: Chunks[Name] | undefined;
  #loading: Promise<Chunks[Name] | undefined> | undefined;
  #failed = false;

  constructor(host: LateHost, name: Name) {
    this.#host = host;
    this.#name = name;
  }

  /** The chunk, if it has come. */
  get chunk(): Chunks[Name] | undefined {
    return this.#chunk;
  }

  /** Whether the last try to load it has failed. It is asked for again by and by, and at once by `load`. */
  get failed(): boolean {
    return this.#failed;
  }

  /** The chunk, if it has come; else it is asked for, once. */
  get(): Chunks[Name] | undefined {
    if (!this.#failed) void this.load(false);
    return this.#chunk;
  }

  /** Asks at once where a person has pressed a button. */
  load(inHurry = true): Promise<Chunks[Name] | undefined> {
    this.#loading ??= this.#load(inHurry);
    return this.#loading;
  }

  async #load(inHurry: boolean): Promise<Chunks[Name] | undefined> {
    const chunk = await loadChunk(this.#name, this.#again, inHurry);
    this.#chunk = chunk;
    this.#failed = !chunk;
    this.#loading = chunk && this.#loading;
    const { renderRoot } = this.#host;
    if (chunk && "styles" in chunk && renderRoot instanceof ShadowRoot) {
      const { styleSheet } = chunk.styles;
      if (styleSheet) renderRoot.adoptedStyleSheets.push(styleSheet);
    }
    this.#host.requestUpdate();
    return chunk;
  }

  /** An element that is no longer in the page asks when it is there again. */
  readonly #again = () => {
    this.#failed = !this.#chunk && this.#host.renderRoot.isConnected;
    if (this.#failed) void this.load();
  };
}
