import { grammarOf } from "./code-language.ts";

interface Highlighter {
  highlight(code: HTMLElement, grammar: string): void;
}

/** Brings the chunk with the grammars, or nothing; then `again` is called when it is time to ask once more. */
export type LoadHighlighter = (name: "highlight", again: () => unknown) => Promise<Highlighter | undefined>;

/** Has the code in a node coloured, if we know its language. */
export async function colourCode(node: HTMLElement, load: LoadHighlighter): Promise<void> {
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar !== undefined) await colour(code, grammar, load);
  }
}

async function colour(code: HTMLElement, grammar: string, load: LoadHighlighter): Promise<void> {
  const chunk = await load("highlight", () => code.isConnected && colour(code, grammar, load));
  if (code.isConnected) chunk?.highlight(code, grammar);
}
