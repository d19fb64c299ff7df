import type { Strings } from "../i18n/strings.ts";
import { lazy } from "../loading/lazy.ts";
import { copyFrom, copyText } from "./clipboard.ts";

/** Code that grows gets its colours when nothing has been added for so long, in milliseconds. */
const PAUSE = 300;

const BOXES = ".code, .table";

const codeBlocks = lazy(() => import("./code-blocks/code-blocks.ts"), "addTools");

/**
 * Gives the drawn boxes of an answer their tools, and code its colours. Without them they are whole, and can be copied.
 */
export class BoxTools {
  readonly #strings: Strings;
  readonly #signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched: Element | undefined;

  constructor(root: HTMLElement, strings: Strings, signal: AbortSignal) {
    this.#strings = strings;
    this.#signal = signal;
    root.addEventListener("click", ({ target }) => this.#copy(target as Element), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** For a node that does not change any more. */
  settle(node: Element): void {
    void this.#add(node, true);
  }

  /** For the last node, which may grow: tools at once, so that nothing jumps later, and colours when it rests. */
  watch(node: Element | undefined): void {
    clearTimeout(this.#timer);
    if (!node || !hasBox(node)) return;
    this.#timer = setTimeout(() => this.#add(node, true), PAUSE);
    if (node === this.#watched || !node.matches(BOXES)) return;
    this.#watched = node;
    void this.#add(node, false);
  }

  async #add(node: Element, isSettled: boolean): Promise<void> {
    if (!hasBox(node)) return;
    const module = await codeBlocks.loadEventually(this.#signal);
    if (node.isConnected && !this.#signal.aborted) module?.addTools(node, isSettled, this.#strings);
  }

  #copy(target: Element): void {
    const button = target.closest<HTMLButtonElement>("button.copy");
    const code = button?.closest(".code")?.querySelector("code");
    if (button && code) void copyFrom(button, copyText(code.textContent, button), this.#strings);
  }
}

function hasBox(node: Element): boolean {
  return node.matches(BOXES) || node.querySelector(BOXES) !== null;
}
