import { grammarOf } from "./code-language.ts";

interface Highlighter {
  highlight(code: HTMLElement, grammar: string): void;
}

/** Has the code in a node coloured, if we know its language. `load` brings the chunk with the grammars, or nothing. */
export async function colourCode(
  node: HTMLElement,
  load: () => Promise<Highlighter | undefined>,
): Promise<void> {
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar === undefined) continue;
    const chunk = await load();
    if (code.isConnected) chunk?.highlight(code, grammar);
  }
}
