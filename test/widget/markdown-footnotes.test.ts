/** Footnotes: marks, which may precede their notes, and the list of notes at the end of the answer. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { newStream } from "../support/markdown.ts";

/** Waits for the code that renders the list of notes, which loads with the first note. */
const drawn = () => new Promise((resolve) => setTimeout(resolve));

async function streaming() {
  const root = document.createElement("div");
  document.body.replaceChildren(root);
  const stream = newStream(root);
  stream.update("a[^1] b\n\n[^1]: c", true);
  while (!root.querySelector(".footnotes")) await drawn();
  return { root, stream };
}

/** Removes the names, which differ for each answer. */
const plain = (root: Element) => root.innerHTML.replace(/note-\d+-/g, "note-");

async function atOnce(text: string): Promise<Element> {
  const { root, stream } = await streaming();
  stream.update(text, false);
  await drawn();
  return root;
}

const TEXT =
  "It is so.[^b] And *so*,[^1] again.[^b]\n\n[^1]: First *note*.\n[^b]: Second one,\ngoes on.\n\n    - with a list\n\n    and `code`.\n\nThe end.";

test("marks are numbers in the order of the text, which lead to the notes below, and these lead back to each of them", async () => {
  const root = await atOnce(TEXT);
  const marks = [...root.querySelectorAll("p .footnote a")];
  assert.deepEqual(
    marks.map((mark) => mark.textContent),
    ["1", "2", "1"],
  );
  const notes = [...root.querySelectorAll(".footnotes > ol > li")];
  assert.deepEqual(
    notes.map((note) => note.textContent),
    ["Second one,\ngoes on.with a listand code.", "First note."],
  );
  assert.equal(root.lastElementChild?.className, "footnotes");
  const linked = (link: Element | undefined) => root.querySelector(`[id="${link?.getAttribute("href")?.slice(1)}"]`);
  assert.deepEqual(marks.map(linked), [notes[0], notes[1], notes[0]]);
  const back = [...root.querySelectorAll(".back")];
  assert.deepEqual(back.map(linked), [marks[0], marks[2], marks[1]]);
  // As on GitHub: the second link of a note has a number, shown by the style sheet.
  const numbers = back.map((link) => [
    link.getAttribute("aria-label")?.replace(/.* /, ""),
    link.getAttribute("data-nth"),
  ]);
  assert.deepEqual(numbers, [
    ["1", ""],
    ["1-2", "2"],
    ["2", ""],
  ]);
});

test("a press on a number goes to the note and leaves the page's address alone", async () => {
  const root = await atOnce(TEXT);
  const mark = root.querySelector<HTMLElement>(".footnote a");
  const press = new MouseEvent("click", { bubbles: true, cancelable: true, composed: true });
  mark?.dispatchEvent(press);
  assert.equal(press.defaultPrevented, true);
  assert.equal(document.activeElement, root.querySelector(".footnotes li"));
  root.querySelector<HTMLElement>(".back")?.click();
  assert.equal(document.activeElement, mark);
});

test("footnotes that stream in end as if they had come at once, and a mark is a number before its note comes", async () => {
  const { root, stream } = await streaming();
  const shown: string[] = [];
  for (let end = 1; end < TEXT.length; end += 1) {
    stream.update(TEXT.slice(0, end), true);
    shown.push(root.textContent ?? "");
  }
  stream.update(TEXT, false);
  assert.equal(plain(root), plain(await atOnce(TEXT)));
  assert.deepEqual(
    shown.filter((text) => text.includes("[") || text.includes("]")),
    [],
  );
  assert.ok(shown.includes("It is so.1 And so,2 again.1"));
});

test("a mark without a note stays as it is written, and a note without a mark is shown all the same", async () => {
  const root = await atOnce("A class [^a-z] and one[^9].\n\n- see[^2]\n\n[^2]: Two.\n[^3]: Three.");
  assert.equal(root.querySelector("p")?.textContent, "A class [^a-z] and one[^9].");
  assert.equal(root.querySelector("li")?.textContent, "see1");
  assert.deepEqual(
    [...root.querySelectorAll(".footnotes li")].map((note) => note.textContent),
    ["Two.", "Three."],
  );
  assert.equal((await atOnce("Code `[^1]` is code.\n\n[^1]: a")).querySelector("p a"), null);
});

test("a number in a link is none", async () => {
  const root = await atOnce("a[^1] [b [^1]](/x)\n\n[^1]: c");
  assert.equal(root.querySelector('a[href="/x"]')?.textContent, "b [^1]");
});

test("the names of two answers' notes differ", async () => {
  const one = (await atOnce(TEXT)).querySelector(".footnotes li")?.id;
  assert.notEqual((await atOnce(TEXT)).querySelector(".footnotes li")?.id, one);
});
