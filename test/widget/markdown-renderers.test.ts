/** A page's renderers of blocks, by the language of a fence or by delimiters. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { en } from "../../widget/i18n/strings.ts";
import { MarkdownText } from "../../widget/markdown/markdown-text.ts";
import type { BlockRenderers, RenderedBlock } from "../../widget/markdown/renderers.ts";
import { newStream } from "../support/markdown.ts";

/** Renders `a,b` as a table. */
const csv = (text: string) => {
  const table = document.createElement("table");
  for (const line of text.split("\n")) {
    const row = table.insertRow();
    for (const cell of line.split(",")) row.insertCell().textContent = cell;
  }
  return table;
};

function streaming(renderers: BlockRenderers) {
  const root = document.createElement("div");
  document.body.replaceChildren(root);
  const stream = newStream(root, renderers);
  return { root, stream };
}

/** Resolves when all renderers that do not pause have rendered. */
const drawn = () => new Promise(setImmediate);

test("a fence with a renderer is drawn by it once it has ended, and not before", async () => {
  const blocks: RenderedBlock[] = [];
  const texts: string[] = [];
  const { root, stream } = streaming({
    csv: (text, block) => {
      texts.push(text);
      blocks.push(block);
      return csv(text);
    },
  });
  const text = "Sales:\n\n```CSV title=Sales\na,b\n1,2\n```\n\nThat is all.\n\n- one\n\n  ```csv\n  c\n  ```\n";
  for (let end = 1; end <= text.indexOf("1,2"); end += 1) stream.update(text.slice(0, end), true);
  await drawn();
  assert.equal(root.querySelector("pre")?.textContent, "a,b");
  assert.deepEqual(texts, []);
  for (let end = text.indexOf("1,2"); end < text.length; end += 1) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  await drawn();
  assert.deepEqual(texts, ["a,b\n1,2", "c"], "each is drawn once");
  assert.equal(root.querySelector("pre"), null);
  assert.deepEqual(
    [...root.querySelectorAll("td")].map((cell) => cell.textContent),
    ["a", "b", "1", "2", "c"],
  );
  assert.equal(root.querySelector("li td")?.textContent, "c");
  assert.deepEqual([blocks[0]?.info, blocks[0]?.theme, blocks[0]?.signal.aborted], ["CSV title=Sales", "light", false]);
  stream.close();
  assert.equal(blocks[0]?.signal.aborted, true);
});

test("a renderer may take its time, and the block is shown as it is written until then", async () => {
  let finish = (_node: Node) => {};
  const { root, stream } = streaming({
    chart: () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  });
  stream.update("```chart\nx\n```\n", false);
  await drawn();
  assert.equal(root.querySelector("code")?.textContent, "x");
  finish(document.createElement("canvas"));
  await drawn();
  assert.equal(root.querySelector("code"), null);
  assert.ok(root.querySelector("canvas"));
});

test("text between delimiters is no Markdown, and drawn by its renderer", async () => {
  const formula = (text: string) => Object.assign(document.createElement("var"), { textContent: text });
  const { root, stream } = streaming({ $$: formula, "\\[ \\]": formula });
  const text = "The sum\n$$\na_1 + *b* * c\n- d\n$$\nand\n\n\\[ x_1 \\]\n\n$$ 5 each\n\n*end* costs $$";
  for (let end = 1; end < text.length; end += 1) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  await drawn();
  assert.deepEqual(
    [...root.querySelectorAll("var")].map((node) => node.textContent),
    ["a_1 + *b* * c\n- d", "x_1"],
  );
  assert.deepEqual(
    [...root.querySelectorAll("p")].map((node) => node.textContent),
    ["The sum", "and", "$$ 5 each", "end costs $$"],
  );
});

test("a renderer that fails leaves the block as it is written, and a warning", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { root, stream } = streaming({
    bad: () => {
      throw new Error("no");
    },
    worse: () => Promise.reject(new Error("no")),
  });
  stream.update("```bad\nx\n```\n\n```worse\ny\n```\n\n```constructor\nz\n```", false);
  await drawn();
  assert.deepEqual(
    [...root.querySelectorAll("pre")].map((node) => node.textContent),
    ["x", "y", "z"],
  );
  assert.equal(warn.mock.callCount(), 2);
});

test("a drawn block stays when a definition behind it changes the list around it", async () => {
  const { root, stream } = streaming({ csv });
  const text = "- see [a]\n\n  ```csv\n  1,2\n  ```\n\nText.\n\nText.\n\n[a]: /x\n\nEnd.\n";
  for (let end = 1; end < text.indexOf("[a]: "); end += 1) stream.update(text.slice(0, end), true);
  await drawn();
  const table = root.querySelector("table");
  assert.ok(table);
  for (let end = text.indexOf("[a]: "); end < text.length; end += 1) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  await drawn();
  assert.equal(root.querySelector("a")?.getAttribute("href"), "/x");
  assert.equal(root.querySelector("table"), table);
});

test("a renderer has to stop when its element leaves the page, not when that is moved, and begins again when it is back", async () => {
  const signals: AbortSignal[] = [];
  const chart = (_text: string, { signal }: RenderedBlock) => {
    signals.push(signal);
    return document.createElement("canvas");
  };
  const element = new MarkdownText();
  document.body.replaceChildren(element);
  const context = { strings: en, renderers: { chart }, theme: "light", headingLevel: 0 };
  Object.assign(element, { context, text: "```chart\nx\n```" });
  // After a slow rendering, the next one waits as long as that took.
  const redrawn = async () => {
    await element.updateComplete;
    await drawn();
  };
  await redrawn();
  document.body.append(document.createElement("div"), element);
  await redrawn();
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false],
  );
  element.remove();
  await redrawn();
  assert.equal(signals[0]?.aborted, true);
  document.body.append(element);
  await redrawn();
  assert.deepEqual([signals.length, element.querySelectorAll("canvas").length], [2, 1]);
});

test("a definition of a link that comes later leaves what renderers have drawn", async () => {
  const texts: string[] = [];
  const render = (text: string) => {
    texts.push(text);
    return document.createElement("canvas");
  };
  const { root, stream } = streaming({ mermaid: render, $$: render });
  const text =
    "See [1].\n\n```mermaid\nA[Step 1]\n```\n\n- one\n\n  ```mermaid\n  B[Step 1]\n  ```\n\n$$\nc[1]\n$$\n\nSo.\n\n[1]: https://example.org\n\nEnd.\n";
  for (let end = 1; end <= text.length; end += 1) {
    stream.update(text.slice(0, end), true);
    await drawn();
  }
  stream.update(text, false);
  await drawn();
  assert.equal(root.querySelector("a")?.getAttribute("href"), "https://example.org/");
  assert.deepEqual([root.querySelectorAll("canvas").length, root.querySelectorAll("pre, .source").length], [3, 0]);
  assert.deepEqual(texts, ["A[Step 1]", "B[Step 1]", "c[1]"]);
});
