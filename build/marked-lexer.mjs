/**
 * Of marked, the widget needs nothing but the lexer, and that for GitHub's Markdown only. This cuts the rest out of its
 * bundle (5 kB on the wire), and fails when marked has a new form. A test compares the tokens with the whole package's.
 */

import { readFile } from "node:fs/promises";
import { transform } from "esbuild";
import { Lexer, Tokenizer } from "marked";

/** What the widget never sets. As constants, they let esbuild drop the code behind them. */
const fixedOptions = {
  breaks: false,
  extensions: null,
  gfm: true,
  hooks: null,
  pedantic: false,
  silent: false,
};

/** How a rule says that HTML begins: before the names of elements, and after them. Each of its alternatives begins with "<". */
const HTML_BEGINS = [
  String.raw`(?:<\/?(?:address|`,
  String.raw`|ul)(?:[ \t]+|\n|\/?>)|<(?:(?:script|pre|style|textarea)(?:[\s>]|$)|!--)|<\?|<![A-Za-z]|<!\[CDATA\[)`,
];

/** Replaces the bundle's own `Lexer` and `Tokenizer` when esbuild loads it. */
export const markedLexerOnly = {
  name: "marked-lexer-only",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]marked\.esm\.js$/ }, async ({ path }) => ({
      contents: await lexerOnly(await readFile(path, "utf8")),
    }));
  },
};

/** The source of a module with `Lexer` and `Tokenizer`, from that of marked's bundle. */
export async function lexerOnly(source) {
  let code = withoutDefaultInstance(source);
  for (const [name, value] of Object.entries(fixedOptions)) {
    code = replaced(code, new RegExp(`\\bthis\\.options\\.${name}\\b`, "g"), String(value));
  }
  // The defaults of what is constant now, and the question whether the browser knows the rules' syntax: ours all do.
  code = replaced(code, /\{async:[^}]*,walkTokens:null\}/g, "{}");
  code = replaced(code, /\(\(\w+=""\)=>\{try\{.*?\}catch\{return!1\}\}\)\(\)/, "true");
  code = replaced(code, /static lex\(.*?\}static lexInline\(.*?\}/, "");
  // We lex blocks, and the texts in them one by one.
  code = replaced(code, /\blex\(\w\)\{[\s\S]*?return this\.inlineQueue=\[\],this\.tokens\}/, "");
  // Which of a tokenizer's methods are its own: ours bounds those that use the mask, and leaves paragraphs alone.
  code = replaced(code, /this\.tokenizer\.paragraph===\w+\.prototype\.paragraph/, "true");
  code = replaced(code, /this\.tokenizer\.(?:emStrong|del)!==\w+\.prototype\.\w+/g, "true");
  // Whoever catches it shows the text as it is, and nobody reads why.
  code = replaced(code, /"Infinite loop on byte: "\+/, "");
  code = withJoinedSteps(withFinishedRules(code));
  const shaken = await transform(code, { format: "esm", minifySyntax: true, treeShaking: true });
  return withShortNames(withoutOptions(shaken.code));
}

/** What is constant now was chosen by options: none but the tokenizer is left of them, and the rules are chosen twice. */
function withoutOptions(source) {
  const code = replaced(
    source,
    /this\.options = (\w)[^;]*?this\.tokenizer = this\.options\.tokenizer, this\.tokenizer\.options = this\.options/,
    "this.tokenizer = $1.tokenizer",
  );
  return replaced(
    code,
    /let (\w) = (\{[^}]*\});\s*\1\.block = [^;]*, this\.tokenizer\.rules = \1;/,
    "this.tokenizer.rules = $2;",
  );
}

/** The bundle ends by building a whole `Marked`, which keeps its parser and its HTML renderer alive. */
function withoutDefaultInstance(source) {
  const [, kept = "", exported = ""] =
    /^([\s\S]*;)var \w+=new \w+;function [\s\S]*export\{([^}]*)\};/.exec(source) ?? [];
  const names = exported.split(",").filter((name) => /as (?:Lexer|Tokenizer)$/.test(name));
  if (names.length !== 2) throw hasChanged("its end");
  return `${kept}export{${names}};`;
}

/** marked puts its rules together from parts, for four dialects: here they are, finished, for the one that we use. */
function withFinishedRules(source) {
  const { block, inline } = Lexer.rules;
  const start = source.lastIndexOf(",", source.indexOf(`=${block.gfm.newline}`));
  const last = /,(\w+)=\{normal:\w+,gfm:\w+,pedantic:\w+\},(\w+)=\{normal:\w+,gfm:\w+,breaks:\w+,pedantic:\w+\};/.exec(
    source,
  );
  // One of the lexer's other expressions is made of the names of elements.
  const tags = /,\w+="address\|[^"]*"/.exec(source)?.[0];
  if (start === -1 || !last || last.index < start || !tags) throw hasChanged("its rules");
  const [whole, blockName, inlineName] = last;
  const finished = `${tags},${blockName}={gfm:${literal(block.gfm)}},inlineRules=${literal(inline.gfm)},${inlineName}={gfm:inlineRules};`;
  const code = source.slice(0, start) + finished + source.slice(last.index + whole.length);
  return withConstantRules(replaced(code, new RegExp(`\\b(${blockName}|${inlineName})\\.normal\\b`, "g"), "$1.gfm"));
}

/** The lexer asks for one kind of token after another, and mostly does the same with what it gets. */
function withJoinedSteps(source) {
  const step =
    /if\((\w)=([^{}]+)\)(\{(\w)=\4\.substring\(\1\.raw\.length\),\w\.push\(\1\);continue\})if\(\1=(this\.tokenizer\.\w+\([\w,]+\))\)\3/g;
  let code = replaced(source, step, "if($1=$2||$5)$3");
  for (let before = ""; before !== code; ) {
    before = code;
    code = code.replace(step, "if($1=$2||$5)$3");
  }
  return code;
}

/** All but those of blocks, of which the widget replaces one, are read from where they are. */
function withConstantRules(source) {
  const [, other] = /\{other:(\w+),block:/.exec(source) ?? [];
  if (!other) throw hasChanged("its other rules");
  const code = replaced(source, /\bthis\.rules\.other\./g, `${other}.`);
  return replaced(code, /\bthis(?:\.tokenizer)?\.rules\.inline\b/g, "inlineRules");
}

function literal(rules) {
  const entries = Object.entries(rules).map(([name, rule]) => {
    if (!(rule instanceof RegExp)) throw hasChanged(`its rule ${name}`);
    return `${name}:${quickToCompile(name, String(rule))}`;
  });
  return `{${entries}}`;
}

/**
 * Before the names of some sixty elements it says that "<" comes first. Without that V8 goes through all of them for each place
 * in the rule from which they can be reached, and takes 17 ms to compile the rules at their first use, where it takes 8.
 */
function quickToCompile(name, rule) {
  const [before, after] = HTML_BEGINS;
  const [first, ...rest] = rule.split(before);
  const hasNames = ["blockquote", "lheading", "paragraph", "table"].includes(name);
  if (rest.length > 0 !== hasNames || rest.some((part) => !/^[a-z1-6|[\]-]+$/.test(part.split(after, 1)[0]))) {
    throw hasChanged(`how its rule ${name} finds HTML`);
  }
  return [first, ...rest].join(`(?=<)${before}`);
}

/** Drops the expressions that nothing uses any more, and shortens the names that only the lexer itself sees. */
async function withShortNames(source) {
  const { block, inline, other } = new Lexer({ gfm: true }).tokenizer.rules;
  let used = source;
  for (const [name, expression] of Object.entries(other)) {
    const mentions = source.match(new RegExp(`\\b${name}\\b`, "g")) ?? [];
    if (mentions.length === 1) used = used.replace(`${name}: ${expression},`, "");
  }
  // Some rules are named like the method that applies them, or like a field of a token.
  const names = Object.keys({ ...block, ...inline, ...other });
  const own = names.filter((name) => !(name in Tokenizer.prototype));
  return (await transform(used, { mangleProps: new RegExp(`^(?:${own.join("|")})$`) })).code;
}

function replaced(source, pattern, replacement) {
  const result = source.replace(pattern, replacement);
  if (result === source) throw hasChanged(String(pattern));
  return result;
}

function hasChanged(what) {
  return new Error(`marked's bundle has a new form (${what}): adapt build/marked-lexer.mjs`);
}
