import "../support/dom.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";

function sourcesOf(file: string): string[] {
  const text = readFileSync(new URL(`../fixtures/markdown/${file}`, import.meta.url), "utf8");
  return (JSON.parse(text) as { examples: { markdown: string }[] }).examples.map((example) => example.markdown);
}

const sources = [...sourcesOf("commonmark-0.31.2.json"), ...sourcesOf("gfm-0.29-extensions.json")];

/** A DOM as text in which the order of attributes does not matter, but the cut between text nodes does. */
function canonical(node: Node): string {
  if (node instanceof Text) return JSON.stringify(node.data);
  if (!(node instanceof Element)) return "";
  const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
  return `<${node.localName} ${attributes}>${[...node.childNodes].map(canonical).join("")}</>`;
}

function renderOnce(text: string): string {
  const root = document.createElement("div");
  new MarkdownStream(root).update(text, false);
  return canonical(root);
}

function renderInPieces(text: string, length: number): string {
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  for (let end = length; end < text.length; end += length) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  return canonical(root);
}

/** A stream, its element, and what it shows once `text` has come in. */
function streaming() {
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  return {
    root,
    show(text: string): string {
      stream.update(text, true);
      return root.textContent ?? "";
    },
    finish: (text: string) => stream.update(text, false),
  };
}

for (const length of [1, 4, 7]) {
  test(`each of the 680 examples fed ${length} characters at a time ends as if rendered at once`, () => {
    const differing = sources.filter((text) => renderInPieces(text, length) !== renderOnce(text));
    assert.deepEqual(differing, []);
  });
}

test("all examples in one message end as if rendered at once, definitions and all", () => {
  const text = sources.join("\n");
  assert.equal(renderInPieces(text, 61), renderOnce(text));
});

test("random mixtures of marks end as if rendered at once, however they are cut", () => {
  const marks = [
    ..."*_`~[]()|>#-+\\\n\n\n\n\t \"':".split(""),
    ...["- ", "1. ", "  ", "    ", "```", "~~~js\n", "|-|:-:|\n", "| a | b |\n", "\n\n", "\r\n"],
    ...["a", "b c", "[foo]", "[foo]: /url", "'ti\ntle'", "===", "---", "<div>", "<!--", "-->", "😀"],
    ...["![i](http://h/x)", "- [x] t", "https://e.example", "&amp;", "\n- b\n", "\n\n  c\n"],
  ];
  let seed = 20261121;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let round = 0; round < 400; round += 1) {
    const text = Array.from({ length: 24 }, () => marks[random(marks.length)]).join("");
    assert.equal(renderInPieces(text, 1 + random(5)), renderOnce(text), JSON.stringify(text));
  }
});

test("long lists, tables, code and paragraphs end as if rendered at once", () => {
  const long = [
    `${"3. item with *text*\n\n   and a second paragraph\n".repeat(40)}\nend`,
    `${"- item\n  - nested\n".repeat(60)}\n- last, and loose\n`,
    `| a | b |\n|:--|--:|\n${"| *x* | [y](/z) |\n".repeat(80)}\nend`,
    `\`\`\`ts\n${"const value = 42; // line\n\n".repeat(400)}\`\`\`\nend`,
    "Some **bold** and `code` text. ".repeat(400),
    `${"> A *quoted* paragraph\nwith a lazy line.\n>\n> - and\n>   a list\n>\n> ```\n> code\n> ```\n".repeat(60)}\nend`,
    `${">> [deep] quote\n>\n".repeat(60)}> [deep]: /x\n>\n> end\n\n[deep]`,
  ];
  for (const text of long) assert.equal(renderInPieces(text, 53), renderOnce(text));
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
