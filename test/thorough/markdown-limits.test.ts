import assert from "node:assert/strict";
import { test } from "node:test";
import { inlinePieces } from "../../widget/markdown/inline-pieces.ts";
import { collectLinks, lexBlocks, lexInline, noLinks } from "../../widget/markdown/lexer.ts";

const length = 50_000;
const filled = (part: string) => part.repeat(Math.ceil(length / part.length));

/** Texts on which a lexer without ceilings takes seconds, or runs out of stack. */
const hostile: Readonly<Record<string, string>> = {
  stars: filled("*"),
  "opening stars": filled("**a "),
  "stars in words": filled("a**b"),
  "underscores in words": filled("a_"),
  "emphasis after no-break spaces": filled("\u00a0*a"),
  tildes: filled("~~a "),
  "marks beside CJK punctuation": filled("漢**「*a~~。"),
  brackets: filled("["),
  "image brackets": filled("!["),
  "unclosed destinations": filled("[a](b"),
  "nested links": "[".repeat(length / 2) + "](a)".repeat(length / 8),
  "escaped brackets": filled("[\\]"),
  backticks: filled("`a"),
  "unclosed comments": filled("a <!--"),
  "unclosed instructions": filled("a <?"),
  "unclosed attributes": filled("<a b='"),
  addresses: filled("a@b."),
  ampersands: filled("&"),
  "line breaks in HTML": filled("<br>"),
  "unclosed line breaks in HTML": filled("<br "),
  "dollar signs": filled("$"),
  "prices and formulas": filled("$a 5$ $$ b "),
  "unclosed formulas": filled("\\(a \\[b "),
  "lines that look like formulas": filled("\n$$a_1"),
  "lines that begin formulas": filled("a\n\\[\n"),
  footnotes: filled("[^1]: a\n"),
  "marks of footnotes": filled("[^1]"),
  "unclosed marks of footnotes": filled("[^"),
  "lines of a footnote": `[^1]: a\n${filled("    b\n\n")}`,
  "unclosed tags": filled("<u>"),
  "tags around tags": filled("<u>a<sub>b</u>c</sub>"),
  "unclosed details": filled("<details>\n"),
  "details and their ends": filled("<details>\n<summary>a\n</details>\n"),
  quotes: filled(">"),
  "quotes and lists": filled("> - "),
  "lazy quotes": filled("> a\nb\n"),
  "lazy lists in quotes": filled("> - a\nb\n"),
  "nested lists": filled("- "),
  "lists that follow each other": filled("- a\n+ b\n* c\n1. d\n2) e\n"),
  "empty lists": filled("*\n\n\n"),
  "a lazy list item": `- ${filled("a\n")}`,
  "a half lazy list item": `- ${filled("a\n  b\n")}`,
  "lines that look like tables": filled("a\n-|-\n"),
  "lines that look like wider tables": filled("a|b|c\n-|-\n"),
  "titles of definitions": filled('[a]: b "'),
  "labels of definitions": `[${filled("a\n")}`,
  underlines: filled("a\n=\n"),
  headings: filled("# a\n"),
  "lines that are nearly underlined": filled("a\n- b\n"),
  fences: filled("```\na\n"),
  "combining marks": `a${filled("\u0301")}`,
};

/** Milliseconds of CPU, twenty times what the longest takes here. It tells a hang from work, no more than that. */
const hang = 10_000;

function cpuTime(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

for (const [name, text] of Object.entries(hostile)) {
  test(`50 kB of ${name} are lexed without hanging the page`, () => {
    const spent = cpuTime(() => {
      const { tokens, inline } = lexBlocks(text);
      const links = noLinks();
      collectLinks(tokens, links);
      for (const source of inline.values()) {
        for (const piece of inlinePieces(source).flat()) lexInline(piece, links);
      }
    });
    assert.ok(spent < hang, `${Math.round(spent)} ms`);
  });
}
