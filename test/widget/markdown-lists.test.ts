/** The items of a long list stand in groups of 32 behind the first 32, so that a browser can leave alone all but the last. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import * as chunk from "../../widget/chunks/cut.ts";
import { longBlocks } from "../../widget/markdown/long-blocks.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";
import { streamed } from "../support/streamed-markdown.ts";

const items = (count: number, marker = "-") =>
  Array.from({ length: count }, (_, index) => `${marker} *item* ${index + 1}\n`).join("");

/** Each with and without the chunk that settles items while the list grows. */
for (const cut of [chunk, undefined]) {
  const how = cut ? "item by item" : "whole";

  test(`a list that is drawn ${how} has its items in groups of 32 behind the first 32, however it came`, () => {
    longBlocks.chunk = cut;
    for (const [count, groups] of [
      [32, []],
      [33, [1]],
      [64, [32]],
      [100, [32, 32, 4]],
    ] as const) {
      for (const marker of ["-", "7."]) {
        const text = items(count, marker);
        for (const step of [7, 300, text.length]) {
          const list = streamed(text, step).querySelector("ul, ol");
          assert.deepEqual(
            [...(list?.querySelectorAll(":scope > div") ?? [])].map((group) => group.children.length),
            groups,
            `${count} items, ${step} at a time`,
          );
          assert.equal(list?.children.length, Math.min(count, 32) + groups.length);
          assert.deepEqual(
            [...(list?.querySelectorAll("li") ?? [])].map(({ textContent }) => textContent),
            Array.from({ length: count }, (_, index) => `item ${index + 1}`),
          );
        }
      }
    }
  });

  test(`a long list that is drawn ${how} in a quote, an item or loose ends as if rendered at once`, () => {
    longBlocks.chunk = cut;
    for (const text of [
      items(70).replace(/^/gm, "> "),
      `- item\n\n${items(70).replace(/^/gm, "  ")}\n- next`,
      `${items(70)}\n${items(10)}`,
      `${items(40)}text\n\n${items(40, "1.")}\n# The end`,
      `${items(40)}- [a]\n${items(40)}\n[a]: /x`,
      items(70, "- [x]"),
    ]) {
      const whole = streamed(text, text.length);
      for (const step of [13, 64]) assert.equal(streamed(text, step).innerHTML, whole.innerHTML);
    }
  });
}

test("an item in a group is not touched again when it is final", () => {
  longBlocks.chunk = chunk;
  const text = items(200);
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  const begun = text.indexOf("*item* 120");
  stream.update(text.slice(0, begun), true);
  const settled = [...root.querySelectorAll("li")].slice(0, 115);
  for (let end = begun; end < text.length; end += 5) stream.update(text.slice(0, end), true);
  stream.update(text, false);
  assert.deepEqual([...root.querySelectorAll("li")].slice(0, 115), settled);
});

test("a long list tells what its groups are none of, and a short one is left as it is", () => {
  const list = (count: number) => streamed(items(count), 50).querySelector("ul");
  assert.equal(list(33)?.getAttribute("role"), "list");
  assert.equal(list(33)?.lastElementChild?.getAttribute("role"), "none");
  assert.equal(list(32)?.hasAttribute("role"), false);
});

test("a short list takes the place of a long one, and a long one that of a short one", () => {
  for (const [first, second] of [
    [100, 10],
    [10, 100],
    [100, 40],
  ] as const) {
    const root = document.createElement("div");
    const stream = new MarkdownStream(root);
    stream.update(items(first), true);
    const text = `- other\n${items(second)}`;
    stream.update(text, false);
    const withoutRoles = (html: string) => html.replaceAll(/ role="list"/g, "");
    assert.equal(withoutRoles(root.innerHTML), withoutRoles(streamed(text, text.length).innerHTML));
  }
});
