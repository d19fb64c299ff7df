import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Lexer, type Tokenizer } from "marked";
import { lexerOnly } from "../../build/marked-lexer.mjs";

const bundle = readFileSync(fileURLToPath(import.meta.resolve("marked")), "utf8");
const cut = await lexerOnly(bundle);
const built: { Lexer: typeof Lexer; Tokenizer: typeof Tokenizer } = await import(
  `data:text/javascript,${encodeURIComponent(cut)}`
);

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

function examples(file: string): { markdown: string }[] {
  return JSON.parse(read(`test/fixtures/markdown/${file}`)).examples;
}

test("the lexer that is built into the widget answers as the whole package does", () => {
  const sources = [
    ...examples("commonmark-0.31.2.json").map(({ markdown }) => markdown),
    ...examples("gfm-0.29-extensions.json").map(({ markdown }) => markdown),
    ...["README.md", "docs/api.md", "docs/widget.md"].map(read),
  ];
  assert.ok(sources.length > 680);
  for (const source of sources) {
    const lexer = new built.Lexer({ tokenizer: new built.Tokenizer() });
    lexer.blockTokens(source.replace(/\r\n?/g, "\n"), lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      lexer.state.inRawBlock = false;
      lexer.inlineTokens(src, tokens);
    }
    assert.deepEqual(lexer.tokens, new Lexer({ gfm: true }).lex(source), source);
  }
});

test("its rules are those of the package, but for what has them compiled in less time", () => {
  const { blockquote, lheading, paragraph, table } = built.Lexer.rules.block.gfm;
  for (const rule of [blockquote, lheading, paragraph, table]) {
    assert.match(String(rule), /\(\?=<\)\(\?:</);
  }
  for (const kind of ["block", "inline"] as const) {
    assert.deepEqual(
      Object.values(built.Lexer.rules[kind].gfm).map((rule) => String(rule).replaceAll("(?=<)(?:<", "(?:<")),
      Object.values(Lexer.rules[kind].gfm).map(String),
    );
  }
});

test("a bundle of a new form stops the build instead of being cut in the wrong place", async () => {
  for (const changed of [
    bundle.replaceAll("this.options.pedantic", "this.settings.pedantic"),
    bundle.replace(/export\{[^}]*\}/, "export{}"),
    bundle.replace("pedantic:nt", "other:nt"),
    bundle.replace('"address|', '"ADDRESS|'),
  ]) {
    assert.notEqual(changed, bundle);
    await assert.rejects(lexerOnly(changed), /marked's bundle has a new form/);
  }
});
