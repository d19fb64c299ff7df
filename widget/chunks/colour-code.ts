import { grammarOf } from "./code-language.ts";

interface Highlighter {
  highlight(code: HTMLElement, grammar: string): void;
}

/** Brings the chunk with the grammars, or nothing. */
export type LoadHighlighter = (name: "highlight") => Promise<Highlighter | undefined>;

/** Has the code in a node coloured, if we know its language. */
export async function colourCode(node: HTMLElement, load: LoadHighlighter): Promise<void> {
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar === undefined) continue;
    const chunk = await load("highlight");
    if (code.isConnected) chunk?.highlight(code, grammar);
  }
}
