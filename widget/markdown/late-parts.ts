import { loadChunk } from "../lazy-chunk.ts";
import { strings } from "../strings.ts";
import { copyFrom } from "./markdown-actions.ts";

/** A box that grows gets its colours when nothing has come for so long, in milliseconds. */
const pause = 300;

const boxes = ".code, .table";

/** Gives drawn boxes what comes later: tools for code and tables, the colours of code. Without them they are whole. */
export class LateParts {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched: Element | undefined;

  /** For a node that is final, or rests. To be called while drawing: later `strings` may be the table of another element. */
  add(node: Node | undefined, rests = true, words = strings): void {
    if (!(node instanceof HTMLElement)) return;
    if (node.matches(boxes) || node.querySelector(boxes)) void addParts(node, rests, words);
  }

  /** For a node that may go on: tools at once, so that nothing jumps later, and colours when it has not gone on for a while. */
  watch(node: Node | undefined): void {
    clearTimeout(this.#timer);
    const words = strings;
    this.#timer = setTimeout(() => this.add(node, true, words), pause);
    if (node === this.#watched || !(node instanceof HTMLElement) || !node.matches(boxes)) return;
    this.#watched = node;
    this.add(node, false);
  }
}

async function addParts(node: HTMLElement, rests: boolean, words: typeof strings): Promise<void> {
  const again = () => node.isConnected && addParts(node, rests, words);
  const chunk = await loadChunk("tools", again);
  if (!node.isConnected) return;
  const copy = (button: HTMLButtonElement, text: string) => copyFrom(button, text, words);
  chunk?.addTools(node, rests, words, copy, loadChunk);
}
