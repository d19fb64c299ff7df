import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lexer } from "marked";
import type { MarkdownStream } from "../../widget/markdown/stream.ts";
import { newStream } from "../support/markdown.ts";

/** Characters per frame: more than in practice, which does not affect the sums below. */
const frame = 512;

const LENGTH = 24_000;

const filled = (part: string, length = LENGTH) => part.repeat(Math.ceil(length / part.length));
const prose = "Some **strong** words, `code`, and [a link](https://example.org/page) in a sentence. ";
const list = "- An item with *emphasis*\n- another one\n";
const code = "```ts\nconst value = compute(42); // a line\n```\n";
const table = "| a | b |\n|---|--:|\n| 1 | *x* |\n";

/** Each is a single block, except for the first. */
const answers: Readonly<Record<string, string>> = {
  "a mixture": filled(`## Title\n\n${prose}\n\n${list}\n${code}\n${prose}\n\n${table}\n`),
  "a list": filled(list),
  "a numbered list": filled("1. An item with *emphasis*\n"),
  "a nested list": `- top\n${filled("  - middle\n    - inner with `code`\n    - another\n")}`,
  "an item with paragraphs, code and tables": `1. top\n\n${filled(`${prose}\n\n${code}\n${table}\n`).replace(
    /^(?=.)/gm,
    "   ",
  )}`,
  "an item with one paragraph": `- ${filled(prose)}`,
  "a paragraph": filled(prose),
  "a paragraph of many lines": filled(`${prose.trim()}\n`),
  "a quote": filled(`> ${prose}\n>\n`),
  "a quoted list": filled("> - An item with *emphasis*\n>   - inner\n"),
  "a quoted item": `> - top\n${filled(`>\n>   ${prose}\n`)}`,
  "a code block": `\`\`\`ts\n${filled("const value = compute(42); // a line\n")}`,
  "a table": `| name | value |\n|:--|--:|\n${filled("| one | *first* and `code` |\n")}`,
};

interface Work {
  /** Characters that were lexed into blocks and into inline tokens, both including nested ones. */
  split: number;
  read: number;
  /** Created elements. */
  drawn: number;
  /** Nodes that were added to the document, removed or changed. */
  touched: number;
}

const work: Work = { split: 0, read: 0, drawn: 0, touched: 0 };

// Not mocks of the test runner, because those record every call.
for (const [name, kind] of [
  ["blockTokens", "split"],
  ["inlineTokens", "read"],
] as const) {
  const original = Lexer.prototype[name];
  Object.assign(Lexer.prototype, {
    [name](this: Lexer, source: string, ...others: []) {
      work[kind] += source.length;
      return original.call(this, source, ...others);
    },
  });
}
const createElement = document.createElement.bind(document);
document.createElement = (name: string) => {
  work.drawn += 1;
  return createElement(name);
};

/** The work while `text` grows from one length to another. */
function workBetween(stream: MarkdownStream, root: Node, text: string, from: number, to: number): Work {
  const observer = new MutationObserver(() => {});
  stream.update(text.slice(0, from), true);
  observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  Object.assign(work, { split: 0, read: 0, drawn: 0, touched: 0 });
  for (let end = from + frame; end <= to; end += frame) stream.update(text.slice(0, end), true);
  for (const { addedNodes, removedNodes } of observer.takeRecords()) {
    work.touched += Math.max(addedNodes.length + removedNodes.length, 1);
  }
  observer.disconnect();
  return { ...work };
}

for (const [name, text] of Object.entries(answers)) {
  test(`${name} takes no more work at its end than at its start`, () => {
    const root = document.createElement("div");
    const stream = newStream(root);
    // Twice the maximum length that is lexed at once.
    const span = 8192;
    const first = workBetween(stream, root, text, 2000, 2000 + span);
    const last = workBetween(stream, root, text, LENGTH - span, LENGTH);
    for (const kind of ["split", "read", "drawn", "touched"] as const) {
      // A single block is lexed again with each piece. Real answers have no such large blocks: 24 kB take up to 10 ms.
      if (kind === "split" && name !== "a mixture") continue;
      assert.ok(last[kind] <= 1.5 * first[kind], `${kind}: ${first[kind]}, then ${last[kind]}`);
    }
  });
}
