import { loadChunk } from "../lazy-chunk.ts";
import { strings } from "../strings.ts";
import { grammarOf } from "./code-language.ts";
import { copyFrom } from "./markdown-actions.ts";

/** A block that grows gets what comes late when nothing has come for so long, in milliseconds. */
const pause = 300;

/** Gives drawn blocks what comes later: the colours of code, and tools for code and tables. Without them they are whole. */
export class LateParts {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched: Element | undefined;

  /** For a node that is final. */
  add(node: Node | undefined): void {
    if (!(node instanceof HTMLElement)) return;
    const codes = node.querySelectorAll<HTMLElement>("pre > code[class]");
    for (const code of codes) {
      const grammar = grammarOf(code);
      if (grammar !== undefined) void colour(code, grammar);
    }
    if (node.matches(boxes) || node.querySelector(boxes)) void addTools(node);
  }

  /** For a node that may go on: as soon as it is a box, so that it does not jump later, and when it has not gone on for a while. */
  watch(node: Node | undefined): void {
    clearTimeout(this.#timer);
    if (node === undefined) return;
    this.#timer = setTimeout(() => this.add(node), pause);
    if (node === this.#watched || !(node instanceof HTMLElement) || !node.matches(boxes)) return;
    this.#watched = node;
    void addTools(node);
  }
}

const boxes = ".code, .table";

async function colour(code: HTMLElement, grammar: string): Promise<void> {
  const chunk = await loadChunk("highlight");
  if (code.isConnected) chunk?.highlight(code, grammar);
}

async function addTools(node: HTMLElement): Promise<void> {
  const chunk = await loadChunk("tools");
  if (node.isConnected) chunk?.addTools(node, strings, copyFrom);
}
