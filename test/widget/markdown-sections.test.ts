import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { newStream, streamed } from "../support/markdown.ts";

/** Numbered paragraphs. */
const paragraphs = (count: number) =>
  Array.from({ length: count }, (_, index) => `Paragraph ${index + 1}.`).join("\n\n");

test("a long answer stands in sections of 32 blocks behind the first 32, however it came", () => {
  for (const [count, sections] of [
    [32, []],
    [33, [1]],
    [64, [32]],
    [100, [32, 32, 4]],
  ] as const) {
    const text = paragraphs(count);
    for (const step of [1, 7, 100, text.length]) {
      const root = streamed(text, step);
      const children = [...root.children];
      const found = children.filter(({ classList }) => classList.contains("section"));
      assert.deepEqual(
        found.map((section) => section.children.length),
        sections,
        `${count} blocks, ${step} at a time`,
      );
      assert.equal(children.length, Math.min(count, 32) + sections.length);
      assert.deepEqual(
        [...root.querySelectorAll("p")].map(({ textContent }) => textContent),
        text.split("\n\n"),
      );
    }
  }
});

test("a block in a section is not touched again when it is final", () => {
  const text = paragraphs(120);
  const root = document.createElement("div");
  const stream = newStream(root);
  stream.update(text.slice(0, text.indexOf("Paragraph 60")), true);
  const settled = [...root.querySelectorAll("p")].slice(0, 55);
  for (let end = text.indexOf("Paragraph 60"); end < text.length; end += 5) {
    stream.update(text.slice(0, end), true);
  }
  stream.update(text, false);
  assert.deepEqual([...root.querySelectorAll("p")].slice(0, 55), settled);
});

test("another text takes the place of one with sections whole, a short one and a long one", () => {
  for (const count of [2, 40, 90]) {
    const root = document.createElement("div");
    const stream = newStream(root);
    stream.update(paragraphs(100), true);
    const text = `# Anew\n\n${paragraphs(count)}`;
    stream.update(text, false);
    assert.equal(root.innerHTML, streamed(text, text.length).innerHTML);
  }
});

test("a definition that comes late changes what refers to it in an earlier section", () => {
  const text = `See [this].\n\n${paragraphs(40)}\n\nAnd [this].\n\n${paragraphs(40)}\n\n[this]: https://example.org/`;
  const root = streamed(text, 9);
  assert.equal(root.querySelectorAll("a").length, 2);
  assert.equal(root.innerHTML, streamed(text, text.length).innerHTML);
});
