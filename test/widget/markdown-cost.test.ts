/** What hostile Markdown costs: twice the text costs at most about twice the time, whatever rule it is for. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { trimIncompleteTail } from "../../widget/markdown/heal.ts";
import { inlinePieces } from "../../widget/markdown/inline-pieces.ts";
import { lexBlocks, lexInline, noLinks } from "../../widget/markdown/lexer.ts";
import { it, test } from "../support/rows.ts";

const LENGTH = 100_000;

/** What is repeated, by the rule that it has the most work with. */
const UNITS: Readonly<Record<string, readonly string[]>> = {
  formulas: [
    "$a ",
    "x $$a ",
    "$5,",
    "$5 ",
    "$a\\$ ",
    "$\\\\a ",
    "$$\\$",
    "$1a",
    "\\(a ",
    "\\(\\a",
    "\\[a ",
    "\\[a_1 ",
    "\\[*",
    "$a\n",
    "\\(a\n",
  ],
  "formulas on lines": ["$$\na\n", "\n$$a", "\n\\[a", "$$\n\n", "$$a\n"],
  footnotes: ["[^a ", "[^", "[^1] ", "[^1]: a\n", "[^1]: a\n\n", "[^1]: a\n    b\n"],
  "names of HTML": [
    "<br ",
    "<br>",
    "<",
    "<sub>",
    "<sub>a</sup>",
    "<kbd>&a",
    "<details>\n",
    "<details><summary>",
    "<details>\n<summary>a\n",
    "</details>",
  ],
  emphasis: ["*a ", "**a ", "a*", "_a ", "__a_ ", "~~a ", "~a ", "**。a", "*_a", "**a*", "*a\n"],
  runs: [
    "*",
    "_",
    "~",
    "`",
    "$",
    "-",
    "#",
    "=",
    ">",
    "[",
    "]",
    "!",
    "\\",
    "|-",
    "1",
    " ",
    "\t",
    "\n",
    "\u0301",
    "\u{1f600}",
  ],
  code: ["`a ", "``a` ", "`a\n", "```\n", "~~~\n", "    a\n"],
  links: ["[a](", "[a](b ", "![a](", "[a]", "[[a](b)", "[a]: b\n", "[a]:\n", "[a\n", "[a\n]("],
  addresses: ["http://a", "www.a", "a@b", "a.", "<http:", "<a@"],
  references: ["&a", "&#1"],
  escapes: ["\\a", "a\\\n", "a  \n", "\\\n"],
  quotes: ["> ", "> a\n", "> a\nb\n", "> [!NOTE]\n"],
  lists: ["- ", "1. ", "- a\n", "1. a\n", "- a\n  ", "- [ ] a\n", "- a\n\n"],
  tables: ["| a ", "| a |\n", "|a|\n|-|\n", "a | "],
  headings: ["# a\n", "a\n=\n", "a\n", "---\n", "a\n# h\n", "a\n***\n", "a\n# h\n$$b\n", "a\n> b\n\n", "a\n\n"],
  HTML: ["<a ", "<div>\n", "<!--", "<?", "<!A", "<![CDATA["],
};

/** Milliseconds of the processor that it costs to read such a text: what else runs here counts for nothing. */
function cost(unit: string, length: number): number {
  const text = unit.repeat(length / unit.length);
  const { user } = process.cpuUsage();
  const { tokens, inline } = lexBlocks(text);
  trimIncompleteTail(text, tokens);
  for (const source of inline.values()) {
    for (const piece of inlinePieces(source).flat()) lexInline(piece, noLinks());
  }
  return process.cpuUsage({ user, system: 0 }).user / 1000;
}

/** Less says nothing: it is what the garbage collector costs. */
const FLOOR_MS = 150;

for (const [rule, units] of Object.entries(UNITS)) {
  (rule === "formulas" ? test : it)(
    `100 kB of ${rule} that never end, or end at once, cost twice what 50 kB cost`,
    () => {
      for (const unit of units) {
        cost(unit, 2_000);
        const whole = cost(unit, LENGTH);
        if (whole < FLOOR_MS) continue;
        const half = cost(unit, LENGTH / 2);
        assert.ok(whole < 3 * Math.max(half, FLOOR_MS), `${JSON.stringify(unit)}: ${half} ms, then ${whole} ms`);
      }
    },
  );
}
