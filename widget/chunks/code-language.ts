/** The grammars that the chunk `highlight` has, each with the other names that authors write after a fence. */
const languages =
  "bash:sh,shell,zsh,console c:h,cpp,c++,cc,hpp css:scss,less diff:patch docker:dockerfile go:golang html:htm,vue,svelte " +
  "ini:conf,properties java js:javascript,jsx,mjs,cjs json:jsonc,json5,jsonl lua py:python,python3 rs:rust " +
  "sql:mysql,postgresql,sqlite toml ts:typescript,tsx,mts,cts xml:svg yaml:yml";

const grammars = new Map(
  languages.split(" ").flatMap((entry) => {
    const names = entry.split(/[:,]/);
    return names.map((name) => [name, names[0]] as const);
  }),
);

/** The grammar of an element with code, by its class; undefined for languages that we do not know: none is guessed. */
export function grammarOf(code: Element): string | undefined {
  return grammars.get(code.className.replace("language-", ""));
}
