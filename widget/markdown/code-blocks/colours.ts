/** Which code can be coloured. Only then the highlighter with its grammars is loaded. */

import { lazy } from "../../loading/lazy.ts";

const highlighter = lazy(() => import("./highlight.ts"));

/** The grammars that there are, each with the other names that authors write after a fence. */
const LANGUAGES =
  "bash:sh,shell,zsh,console c:h,cpp,c++,cc,hpp css:scss,less diff:patch docker:dockerfile go:golang html:htm,vue,svelte " +
  "ini:conf,properties java js:javascript,jsx,mjs,cjs json:jsonc,json5,jsonl lua py:python,python3 rs:rust " +
  "sql:mysql,postgresql,sqlite toml ts:typescript,tsx,mts,cts xml:svg yaml:yml";

const grammars = new Map(
  LANGUAGES.split(" ").flatMap((entry) => {
    const names = entry.split(/[:,]/);
    return names.map((name) => [name, names[0]] as const);
  }),
);

/** The grammar of an element with code, by its class; undefined for unknown languages: none is guessed. */
export function grammarOf(code: Element): string | undefined {
  return grammars.get(code.className.replace("language-", ""));
}

/** Colours the code in a node. */
export async function colourCode(node: Element): Promise<void> {
  for (const code of node.querySelectorAll<HTMLElement>("pre > code[class]")) {
    const grammar = grammarOf(code);
    if (grammar === undefined) continue;
    const module = await highlighter.loadEventually();
    if (code.isConnected) module?.highlight(code, grammar);
  }
}
