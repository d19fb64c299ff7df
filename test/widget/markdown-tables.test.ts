/** The rows of a table stand in bodies of 32, so that a browser can leave alone all but the last. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import * as chunk from "../../widget/chunks/cut.ts";
import { longBlocks } from "../../widget/markdown/long-blocks.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";
import { streamed } from "../support/streamed-markdown.ts";

const HEAD = "| a | b |\n|---|--:|\n";
const rows = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => `| **row** | ${from + index} |\n`).join("");

const bodiesOf = (root: Element) => [...root.querySelectorAll("tbody")].map(({ children }) => children.length);

/** Each with and without the chunk that settles rows while the table grows. */
for (const cut of [chunk, undefined]) {
  const how = cut ? "row by row" : "whole";

  test(`a table that is drawn ${how} has its rows in bodies of 32, however it came`, () => {
    longBlocks.chunk = cut;
    for (const [count, bodies] of [
      [0, []],
      [32, [32]],
      [33, [32, 1]],
      [70, [32, 32, 6]],
    ] as const) {
      const text = `${HEAD}${rows(count)}`;
      for (const step of [7, 300, text.length]) {
        const root = streamed(text, step);
        assert.deepEqual(bodiesOf(root), bodies, `${count} rows, ${step} at a time`);
        assert.deepEqual(
          [...root.querySelectorAll("td:last-child")].map(({ textContent }) => textContent),
          Array.from({ length: count }, (_, index) => String(index + 1)),
        );
      }
    }
  });

  test(`a table that is drawn ${how} in a quote, in an item or between others ends as if rendered at once`, () => {
    longBlocks.chunk = cut;
    const table = `${HEAD}${rows(40)}`;
    for (const text of [
      table.replace(/^/gm, "> "),
      `- item\n\n${table.replace(/^(?=.)/gm, "  ")}\n- next`,
      `${table}\ntext\n\n${table}\n# The end`,
      `${table}[a]: /x\n\n[a]`,
      `| [a] | b |\n|---|--:|\n${rows(20)}| [a] | x |\n${rows(20)}\n[a]: /x`,
    ]) {
      const whole = streamed(text, text.length);
      for (const step of [13, 64]) assert.equal(streamed(text, step).innerHTML, whole.innerHTML);
    }
  });

  test(`a table that is drawn ${how} lets go of rows that turn out to be none, and of their body`, () => {
    longBlocks.chunk = cut;
    for (const count of [31, 32, 40]) {
      const root = document.createElement("div");
      const stream = new MarkdownStream(root);
      const table = `${HEAD}${rows(count)}`;
      stream.update(table, true);
      stream.update(`${table}1`, true);
      stream.update(`${table}1. item`, true);
      stream.update(`${table}1. item\n`, false);
      assert.equal(root.innerHTML, streamed(`${table}1. item\n`, 1000).innerHTML);
      assert.equal(root.querySelectorAll("tbody tr").length, count);
    }
  });
}

test("a row in a body is not touched again when it is final", () => {
  longBlocks.chunk = chunk;
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  let text = `${HEAD}${rows(100)}`;
  for (let end = 40; end < text.length; end += 40) stream.update(text.slice(0, end), true);
  stream.update(text, true);
  const settled = [...root.querySelectorAll("tr")].slice(0, 95);
  const observer = new MutationObserver(() => {});
  for (const row of settled) {
    observer.observe(row, { subtree: true, childList: true, characterData: true });
  }
  for (let number = 101; number < 200; number += 1) {
    text += rows(1, number);
    stream.update(text, true);
  }
  stream.update(`${text}\nThe end.`, false);
  // The head is compared with each frame, and is the same.
  assert.deepEqual(observer.takeRecords(), []);
  assert.deepEqual([...root.querySelectorAll("tr")].slice(0, 95), settled);
});
