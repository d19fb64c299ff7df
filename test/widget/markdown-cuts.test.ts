/** A block of which the beginning is settled while it goes on ends as if it had been rendered at once. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as chunk from "../../widget/chunks/cut.ts";
import { longBlocks } from "../../widget/markdown/long-blocks.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";

// In a browser it is loaded for a long block.
longBlocks.chunk = chunk;

/** A DOM as text in which the order of attributes does not matter, but the cut between text nodes does. */
function canonical(node: Node): string {
  if (node instanceof Text) return JSON.stringify(node.data);
  if (!(node instanceof Element)) return "";
  const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
  return `<${node.localName} ${attributes}>${[...node.childNodes].map(canonical).join("")}</>`;
}

/** Renders a text that comes in steps, but for the characters of its end, which come one by one. */
function render(text: string, step = text.length, slow = 0): string {
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  for (let end = step; end < text.length; end += end < text.length - slow ? step : 1) {
    stream.update(text.slice(0, end), true);
  }
  stream.update(text, false);
  return canonical(root);
}

const prose = (length: number) =>
  "Some **strong** words, `code`, and [a link](/x) in a sentence. ".repeat(length / 64).trim();

const nested: readonly string[] = [
  "- a\n\n  b\n\n  c\n\nd",
  "- a\n  - b\n  - c\n\n    d\n\n    e\n  - f\n- g",
  "1. a\n\n   ```js\n   b\n\n   c\n   ```\n   d\n2. e",
  "> a\n>\n> - b\n>   - c\n>\n>     d\n>\n> e\nlazy\n\nf",
  "- > a\n  >\n  > b\n  >\n  > c\n\n  d\n- e",
  "- - a\n  - b\n    c\n\n    d\n- e",
  "-\n  a\n\n  b\n\n  c",
  "-     a\n\n  b\n\n  c",
  "-   a\n\n    b\n\n  c\n\nd",
  "1. a\n    - b\n    - c\n\n        d\n\n        e\n",
  "- [ ] a\n\n  b\n\n  c\n- [x] d",
  "- a\n\n  - - -\n\n  b\n\n  [ ] c\n\n  d",
  "- a\n\n  | b |\n  |---|\n  | c |\n  | d |\n\n  e",
  "- # a\n  b\n\n  c\n- d",
  "- a\nlazy\n\n  b\nlazy\n\n  c",
  "- a\n  - b\n\n  text\n  [c]: /x\n\n  [c]",
  "- [a]\n\n  [a]: /x\n\n  b\n\n  [a]",
  "- a\n\tb\n\n\tc\n\n\td",
  "- i\n  >-\nr",
];

test("quotes and lists inside each other end as if rendered at once, at every cut", () => {
  for (const text of nested) {
    for (const step of [1, 2, 5]) assert.equal(render(text, step), render(text), text);
  }
});

const long: readonly string[] = [
  `${prose(5000)}\n===`,
  `${prose(5000)}\n- a\n- b`,
  `${prose(5000)}\n\`\`\`\na`,
  `${prose(4000)}\n|a|b|\n|-|-|\n|c|d|`,
  `${"word ".repeat(900)}\n|a ${"word ".repeat(900)}|b|\n|-|-|\n|c|d|`,
  `${prose(5000)}  \nhard break\n${prose(5000)}`,
  `${prose(5000)} [a] ${prose(5000)}\n\n[a]: /y`,
  `- ${prose(9000)}\n\n  b\n- c`,
  `- [ ] ${prose(9000)}\n- c`,
  `> ${prose(5000)}\nlazy ${prose(5000)}\n> c\n\nd`,
  `- > ${prose(9000)}\n  > c\n\n  d`,
  `a\n    - ${"word ".repeat(900)}\n  ===>`,
  `[a ${prose(9000)}`,
  `<a ${prose(9000)}`,
  `# ${prose(9000)}`,
  `a ${"**b ".repeat(600)}`,
  `${"x".repeat(9000)} ${"y".repeat(9000)}`,
  `a${"\u0301".repeat(5000)} b`,
  `a \0 b ${prose(5000)} \0 c`,
  `\`\`\`\n${"code\n".repeat(830)}\`\`\`\n`,
];

test("long text ends as if rendered at once, whatever comes behind it", () => {
  for (const text of long) {
    assert.equal(render(text, 503, 40), render(text), text.slice(-80));
  }
});

test("no mark is torn where long text is cut, if there is a better place", () => {
  const text = `${"plain words ".repeat(334)} **strong words that go on and on** and more. `.repeat(3);
  const root = document.createElement("div");
  new MarkdownStream(root).update(text, false);
  assert.equal(root.querySelectorAll("strong").length, 3);
  assert.doesNotMatch(root.textContent ?? "", /\*/);
});

const margin = fc.constantFrom("", "", "  ", "   ", "    ", "> ", ">", "  > ", ">   ", "\t");
const start = fc.constantFrom(
  ...["", "", "- ", "1. ", "2) ", "-   ", "-     ", "- - ", "> - ", "- > ", "-", "- [x] ", "# "],
  ...["[a]: /u", "---", "===", "|a|b|\n|-|-|\n|1|2|", "|-|-|", "```\n", "~~~", "<div>", "- # ", "#"],
);
const words = fc.constantFrom(
  ...["", "word", "two words", "**bold**", "*open ", "`code`", "`half", "[a]", "[a](/b)", "a|b"],
  ...["<b>", "[x] ", "&amp;", "  ", "\\", prose(700), prose(4100)],
);
const end = fc.constantFrom("", "\n", "\n", "\n", "\n\n", " \n", "  \n", "\n>\n");
const line = fc.tuple(margin, start, words, words, end).map((parts) => parts.join(""));

test("any lines end as if rendered at once, however they are cut", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.constantFrom(1, 3, 16), (lines, step) => {
      const text = lines.join("");
      const size = text.length > 400 ? step * 31 : step;
      assert.equal(render(text, size, 20), render(text));
    }),
    { numRuns: 60 },
  );
});
