/** Cost of hostile Markdown: doubling a text at most about doubles the time, for each rule. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { trimIncompleteTail } from "../../widget/markdown/heal.ts";
import { inlinePieces } from "../../widget/markdown/inline-pieces.ts";
import { collectLinks, lexBlocks, lexInline, noLinks, settledBlocks } from "../../widget/markdown/lexer.ts";
import { it, test } from "../support/rows.ts";

const LENGTH = 100_000;

type Unit = string | ((length: number) => string);

/** Repeated parts, by the rule that they burden most; functions also add parts that occur once. */
const UNITS: Readonly<Record<string, readonly Unit[]>> = {
  "formulas between dollars": ["$a ", "x $$a ", "$5,", "$5 ", "$a\\$ ", "$\\\\a ", "$$\\$", "$1a", "$a\n"],
  "formulas between brackets": ["\\(a ", "\\(\\a", "\\[a ", "\\[a_1 ", "\\[*", "\\(a\n"],
  "formulas of several kinds": ["$a 5$ $$ b ", "\\(a \\[b "],
  "formulas on lines": ["\n$$a_1", "a\n\\[\n", "$$\na\n", "\n$$a", "\n\\[a", "$$\n\n", "$$a\n"],
  "marks of footnotes": ["[^a ", "[^", "[^1] ", "[^1]"],
  footnotes: ["[^1]: a\n", "[^1]: a\n\n", "[^1]: a\n    b\n", (length) => `[^1]: a\n${"    b\n\n".repeat(length / 7)}`],
  "names of HTML": ["<br ", "<br>", "<", "<sub>", "<sub>a</sup>", "<kbd>&a", "<u>", "<u>a<sub>b</u>c</sub>"],
  details: ["<details>\n", "<details><summary>", "<details>\n<summary>a\n", "</details>"],
  "details that end": ["<details>\n<summary>a\n</details>\n"],
  emphasis: ["*a ", "**a ", "a*", "_a ", "__a_ ", "~~a ", "~a ", "**。a", "*_a", "**a*", "*a\n"],
  "emphasis in words": ["a**b", "a_", "\u00a0*a", "漢**「*a~~。"],
  "runs of marks": ["*", "_", "~", "`", "$", "-", "#", "=", ">", "[", "]", "!", "![", "\\", "|-", "&"],
  "runs of other characters": ["1", " ", "\t", "\n", "\u0301", "\u{1f600}"],
  code: ["`a", "`a ", "``a` ", "`a\n", "```\n", "```\na\n", "~~~\n", "    a\n"],
  destinations: ["[a](", "[a](b", "[a](b ", "![a](", "[a\n]("],
  "labels of links": ["[a]", "[\\]", "[[a](b)", "[a\n", (length) => `[${"a\n".repeat(length / 2)}`],
  "links in links": [(length) => "[".repeat(length / 2) + "](a)".repeat(length / 8)],
  "definitions of links": ["[a]: b\n", '[a]: b "', "[a]:\n"],
  addresses: ["http://a", "www.a", "a@b", "a@b.", "a.", "<http:", "<a@"],
  references: ["&a", "&#1"],
  escapes: ["\\a", "a\\\n", "a  \n", "\\\n"],
  quotes: ["> ", "> - ", "> a\n", "> a\nb\n", "> - a\nb\n", "> [!NOTE]\n"],
  lists: ["- ", "1. ", "- a\n", "1. a\n", "- a\n  ", "- [ ] a\n", "- a\n\n", "*\n\n\n"],
  "lists that follow each other": ["- a\n+ b\n* c\n1. d\n2) e\n"],
  "lazy items": [(length) => `- ${"a\n".repeat(length / 2)}`, (length) => `- ${"a\n  b\n".repeat(length / 6)}`],
  tables: ["| a ", "| a |\n", "|a|\n|-|\n", "a | "],
  headings: ["# a\n", "a\n=\n", "a\n- b\n", "a\n", "---\n", "a\n# h\n", "a\n***\n"],
  "headings among others": ["a\n# h\n$$b\n", "a\n> b\n\n", "a\n\n"],
  HTML: ["<a ", "<a b='", "a <!--", "a <?", "<div>\n", "<!--", "<?", "<!A", "<![CDATA["],
  "what may still become another block": [
    (length) => `=${" ".repeat(length)}x`,
    (length) => `|${" ".repeat(length)}x`,
    (length) => `|a|\n${" ".repeat(length)}x`,
    (length) => `[a]: b\n${" ".repeat(length)}x`,
    (length) => `${"<details><summary>".repeat(length / 18)}</summary>x`,
  ],
  images: ["![a]", "![a][b] ", (length) => `![a](data:image/png;base64,${"A".repeat(length)}`],
  "references to definitions": ["[a][b]", (length) => `[x]: /\n\n${"[x][".repeat(length / 4)}`],
  "tables with many columns": [
    (length) => `|${"a|".repeat(length / 6)}\n|${"-|".repeat(length / 6)}\n|${"b|".repeat(length / 6)}`,
  ],
  "lists and quotes inside each other": [
    (length) => Array.from({ length: Math.sqrt(length) }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n"),
    (length) => Array.from({ length: Math.sqrt(length) }, (_, depth) => `${">".repeat(depth)} a`).join("\n"),
  ],
};

/** Processor time of parsing such a text in milliseconds, independent of other processes. */
function cost(unit: Unit, length: number): number {
  const text = typeof unit === "string" ? unit.repeat(length / unit.length) : unit(length);
  const { user } = process.cpuUsage();
  const { tokens, inline } = lexBlocks(text);
  settledBlocks(text, tokens);
  trimIncompleteTail(text, tokens);
  const links = noLinks();
  collectLinks(tokens, links);
  for (const source of inline.values()) {
    for (const piece of inlinePieces(source).flat()) lexInline(piece, links);
  }
  return process.cpuUsage({ user, system: 0 }).user / 1000;
}

/** Shorter times are not compared, because garbage collection takes as long. */
const FLOOR_MS = 150;

for (const [rule, units] of Object.entries(UNITS)) {
  (rule.startsWith("formulas between") ? test : it)(
    `100 kB of ${rule} that never end, or end at once, cost twice what 50 kB cost`,
    () => {
      for (const unit of units) {
        cost(unit, 2_000);
        const whole = cost(unit, LENGTH);
        if (whole < FLOOR_MS) continue;
        const half = cost(unit, LENGTH / 2);
        assert.ok(
          whole < 3 * Math.max(half, FLOOR_MS),
          `${JSON.stringify(String(unit))}: ${half} ms, then ${whole} ms`,
        );
      }
    },
  );
}

it("50 kB of lines that each look like the second of a table hang no page, though they cost more than their length", () => {
  for (const unit of ["a\n-|-\n", "a|b|c\n-|-\n"]) assert.ok(cost(unit, LENGTH / 2) < 10_000, JSON.stringify(unit));
});
