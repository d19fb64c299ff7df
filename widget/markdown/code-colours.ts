import { loadChunk } from "../lazy-chunk.ts";
import { grammarOf } from "./code-language.ts";

/** A block that grows is coloured when nothing has come for so long, in milliseconds. */
const pause = 300;

/** Has the code inside rendered Markdown coloured, as far as it is done. Until then, and if that fails, it is plain. */
export class CodeColours {
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Colours what is in a node now, because it is final. */
  colour(node: Node | undefined): void {
    if (!(node instanceof Element)) return;
    for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
      const grammar = grammarOf(code);
      if (grammar !== undefined) void this.#colour(code, grammar);
    }
  }

  /** Colours a node that may go on when it has not for a while. */
  colourInPause(node: Node | undefined): void {
    clearTimeout(this.#timer);
    if (node !== undefined) this.#timer = setTimeout(() => this.colour(node), pause);
  }

  async #colour(code: HTMLElement, grammar: string): Promise<void> {
    const chunk = await loadChunk("highlight");
    if (code.isConnected) chunk?.highlight(code, grammar);
  }
}
