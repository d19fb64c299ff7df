/** Streamed Markdown ends as if rendered at once, and looks well in between. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { canonical, newStream, streamed, streamedInPieces } from "../support/markdown.ts";

function sourcesOf(file: string): string[] {
  const text = readFileSync(new URL(`../fixtures/markdown/${file}`, import.meta.url), "utf8");
  return (JSON.parse(text) as { examples: { markdown: string }[] }).examples.map((example) => example.markdown);
}

/** Nested quotes and lists. */
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

const sources = [...sourcesOf("commonmark-0.31.2.json"), ...sourcesOf("gfm-0.29-extensions.json"), ...nested];

const inSteps = (text: string, step?: number, slow?: number) => canonical(streamed(text, step, slow));

/** A stream, its element, and a function that streams `text` and returns the HTML. */
function streaming() {
  const root = document.createElement("div");
  const stream = newStream(root);
  return {
    root,
    show(text: string): string {
      stream.update(text, true);
      return root.textContent ?? "";
    },
    finish: (text: string) => stream.update(text, false),
  };
}

/** The thorough tests use the other examples, and twice as many random texts. */
const MANY = process.env.TRIES === "many";

for (const length of [1, 7]) {
  const tried = sources.filter((_, index) => MANY !== (index % 3 === (length === 1 ? 0 : 1)));
  test(`each of ${tried.length} texts fed ${length} characters at a time ends as if rendered at once`, () => {
    const differing = tried.filter((text) => inSteps(text, length) !== inSteps(text));
    assert.deepEqual(differing, []);
  });
}

const mark = fc.constantFrom(
  ..."*_`~[]()|>#-+\\\n\n\n\n\t \"':$".split(""),
  ...["- ", "1. ", "  ", "    ", "```", "~~~js\n", "|-|:-:|\n", "| a | b |\n", "\n\n", "\r\n"],
  ...["a", "b c", "[foo]", "[foo]: /url", "'ti\ntle'", "===", "---", "<div>", "<!--", "-->", "é👋"],
  ...["![i](http://h/x)", "- [x] t", "https://e.example", "&amp;", "\n- b\n", "\n\n  c\n"],
  ...["**", "~~", "「", "。", "漢字"],
  ...["[^1]", "[^1]: ", "\n[^b]: b", "    c\n"],
  ...["> [!NOTE]\n", "> [!TIP] a\n", "> b\n"],
  ...["<u>", "</u>", "<sub>", "<br>", "\n<details>\n", "<summary>", "</summary>\n", "\n</details>\n"],
  ...["\n$$\n", "$$ x^2 ", "\n\\[ x^2", "\\]", "\\(", "\\)", "$a", "5$"],
);
const cuts = fc.array(fc.nat(), { maxLength: 12 });

const tries = (few: number) => ({ numRuns: MANY ? 2 * few : few });

/** Splits a text at these positions. */
function piecesOf(text: string, places: readonly number[]): string[] {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end));
}

test("any mixture of marks ends as if rendered at once, however it is cut, without a script or a handler", () => {
  const text = fc.array(fc.oneof(mark, mark, fc.string({ maxLength: 3 })), { maxLength: 25 });
  fc.assert(
    fc.property(text, cuts, (parts, places) => {
      const source = parts.join("");
      const whole = streamed(source);
      assert.equal(canonical(streamedInPieces(piecesOf(source, places))), canonical(whole));
      assert.equal(inSteps(source, 1 + ((places[0] ?? 0) % 5)), canonical(whole));
      for (const element of whole.querySelectorAll("*")) {
        assert.doesNotMatch(element.localName, /^(?:script|iframe|style|object)$/);
        for (const { name, value } of element.attributes) {
          assert.doesNotMatch(name, /^on/);
          assert.doesNotMatch(value, /^\s*javascript:/i);
        }
      }
    }),
    tries(100),
  );
});

const prose = (length: number) =>
  "Some **strong** words, `code`, and [a link](/x) in a sentence. ".repeat(length / 64).trim();

const long: readonly string[] = [
  `${"3. item with *text*\n\n   and a second paragraph\n".repeat(40)}\nend`,
  `${"- item\n  - nested\n".repeat(60)}\n- last, and loose\n`,
  `| a | b |\n|:--|--:|\n${"| *x* | [y](/z) |\n".repeat(80)}\nend`,
  `\`\`\`ts\n${"const value = 42; // line\n\n".repeat(400)}\`\`\`\nend`,
  "Some **bold** and `code` text. ".repeat(400),
  `${"> A *quoted* paragraph\nwith a lazy line.\n>\n> - and\n>   a list\n>\n> ```\n> code\n> ```\n".repeat(60)}\nend`,
  `${">> [deep] quote\n>\n".repeat(60)}> [deep]: /x\n>\n> end\n\n[deep]`,
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
    assert.equal(inSteps(text, MANY ? 503 : 1_009, 40), inSteps(text), text.slice(-80));
  }
});

const margin = fc.constantFrom("", "", "  ", "   ", "    ", "> ", ">", "  > ", ">   ", "\t");
const start = fc.constantFrom(
  ...["", "", "- ", "1. ", "2) ", "-   ", "-     ", "- - ", "> - ", "- > ", "-", "- [x] ", "# "],
  ...[
    "$$",
    "\\[",
    "\\]\n",
    "$$ x^2 $$",
    "[a]: /u",
    "[^1]: n",
    "<details>",
    "<details><summary>s</summary>",
    "</details>",
    "---",
    "===",
    "|a|b|\n|-|-|\n|1|2|",
    "|-|-|",
    "```\n",
    "~~~",
    "<div>",
    "- # ",
    "#",
  ],
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
      const size = text.length > 400 ? step * 97 : step;
      assert.equal(inSteps(text, size, 20), inSteps(text));
    }),
    tries(15),
  );
});

test("settled blocks keep their nodes and are not written to again", async () => {
  const { root, show, finish } = streaming();
  show("# Title\n\nFirst paragraph.\n\n- one\n- two\n\nSecond");
  const settled = [...root.children].slice(0, 3);
  const changes: MutationRecord[] = [];
  const observer = new MutationObserver((records) => changes.push(...records));
  for (const node of settled) {
    observer.observe(node, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
  }
  show("# Title\n\nFirst paragraph.\n\n- one\n- two\n\nSecond paragraph, **bold**");
  finish("# Title\n\nFirst paragraph.\n\n- one\n- two\n\nSecond paragraph, **bold** and done.");
  await Promise.resolve();
  assert.deepEqual([...root.children].slice(0, 3), settled);
  assert.deepEqual([...changes, ...observer.takeRecords()], []);
});

test("the growing paragraph keeps its text node, so that a selection in it survives", () => {
  const { root, show, finish } = streaming();
  show("Some te");
  const text = root.querySelector("p")?.firstChild;
  show("Some text that **gro");
  finish("Some text that **grows** on.");
  assert.equal(root.querySelector("p")?.firstChild, text);
  assert.equal(root.querySelector("strong")?.textContent, "grows");
});

test("finished items, rows and code lines keep their nodes while their block goes on", () => {
  for (const [text, more, selector] of [
    ["- one\n- two\n- three", "\n\n- four, loose now", "li"],
    ["|a|\n|-|\n|1|\n|2|\n|3|", "\n|4|", "tr"],
    [`\`\`\`\n${"line of code\n".repeat(800)}`, "more\n", ".code-chunk"],
  ] as const) {
    const { root, show, finish } = streaming();
    show(text);
    const first = [...root.querySelectorAll(selector)].slice(0, 2);
    show(text + more);
    finish(`${text}${more}\n\nend`);
    assert.deepEqual([...root.querySelectorAll(selector)].slice(0, 2), first);
  }
});

test("a definition at the end turns references in settled text into links", () => {
  const { root, show } = streaming();
  show("See [the docs].\n\n- and [the docs] here\n- item\n\nNext paragraph\n\n");
  assert.equal(root.querySelectorAll("a").length, 0);
  const paragraph = root.querySelector("p");
  show("See [the docs].\n\n- and [the docs] here\n- item\n\nNext paragraph\n\n[The Docs]: /x\n\nend\n");
  assert.equal(root.querySelectorAll('a[href="/x"]').length, 2);
  assert.equal(root.querySelector("p"), paragraph);
});

test("a definition also reaches the head of a table and the first item of a list that went on", () => {
  for (const text of [
    "| [a] |\n|---|\n| 1 |\n| 2 |\n| 3 |\n| [a] |\n\n[a]: /x\n",
    "- [a]\n- 2\n- 3\n- [a]\n\n[a]: /x\n",
    "- [a]\n- 2\n- > [a]: /x\n- 3\n- [a]\n",
  ]) {
    const { root, show, finish } = streaming();
    for (let end = 1; end <= text.length; end += 1) show(text.slice(0, end));
    finish(text);
    assert.equal(root.querySelectorAll('a[href="/x"]').length, 2, text);
  }
});

test("unfinished marks are not shown while streaming", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["some **bold", "some bold"],
    ["some **bold*", "some bold"],
    ["some `code", "some code"],
    ["some<", "some"],
    ["some<br /", "some"],
    ["a\n\n[docs]: https://exa", "a"],
    ["a\n\n[docs", "a"],
    ["a\n\n[docs]: is no", "a[docs]: is no"],
    ["a [![b](https://x.example/b.png)", "a "],
    ["a [b](/c_(d)", "a b"],
    ["a &am", "a"],
    ["a\n\n<details><summary>b</summary>\n\n- c\n\n</details", "abc"],
    ["H<su", "H"],
    ["```html\n<details", "html<details"],
    ["H<sub>2</su", "H2"],
    ["**H<sub>2*", "H2"],
    ["a\n\n<det", "a"],
    ["a\n\n<details>", "a"],
    ["a\n\n<details>\n<summary>More **of", "a"],
    ["<details><summary>More</summary>\n\nand **so", "Moreand so"],
    ["<details><summary>More</summary>\n\nso\n</detai", "Moreso"],
    ["text\n\n| a | b |\n|--|--|\n| c<br", "textabc"],
    ["a [label](https://exa", "a label"],
    ["a [label", "a label"],
    ["an ![image](https://exa", "an "],
    ["~~gone", "gone"],
    ["text\n\n- ", "text"],
    ["text\n\n##", "text"],
    ["text\n\n```j", "text"],
    ["text\n--", "text"],
    ["text\n\n| a | b |", "text"],
    ["text\n\n| a | b |\n|--", "text"],
    ["text\n\n| a | b |\n|--|--", "text"],
    ["text\n\n| a | b |\n|--|--|\n| **c", "textabc"],
  ];
  for (const [text, shown] of cases) assert.equal(streaming().show(text).trimEnd(), shown.trimEnd());
});

test("no mark is shown at any cut of emphasis beside CJK text and its punctuation", () => {
  const text = "これは**「重要」**な点、~~「値段」~~旧と*強調。*の**(a)**字。";
  for (let end = 1; end <= text.length; end += 1) {
    assert.equal(streaming().show(text.slice(0, end)), text.slice(0, end).replace(/[*~]/g, ""));
  }
});

test("marks that are meant literally are shown as they are", () => {
  for (const text of ["2 * 3 and 5*3", "snake_case_name", "~5 minutes", "a < b > c", "say \\*hi\\* now"]) {
    assert.equal(streaming().show(text), text.replaceAll("\\", ""));
  }
});

test("unfinished marks are shown once nothing more comes", () => {
  const { root, finish, show } = streaming();
  show("some **bold");
  finish("some **bold");
  assert.equal(root.textContent, "some **bold");
});

test("a text that does not go on from the last one is rendered anew", () => {
  const { root, show, finish } = streaming();
  show("# One\n\ntext\n\n- a\n- b");
  show("Two\n\nother");
  assert.deepEqual(
    [...root.children].map((node) => node.textContent),
    ["Two", "other"],
  );
  finish("Three");
  finish("Three and more");
  assert.equal(root.textContent, "Three and more");
});

test("a character and a line break that are cut in two come out whole", () => {
  const { root, show, finish } = streaming();
  assert.equal(show("a \ud83d"), "a");
  show("a \ud83d\ude00\r");
  finish("a \ud83d\ude00\r\nb");
  assert.equal(root.querySelectorAll("p").length, 1);
  assert.equal(root.textContent, "a \ud83d\ude00\nb");
});
