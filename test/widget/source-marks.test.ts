/** Source marks: their places in Markdown, during and after streaming, and in copies. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyEvent, emptyAnswer, reopenAnswer } from "../../widget/conversations/messages.ts";
import { en } from "../../widget/i18n/strings.ts";
import { type Mark, SourceMarks } from "../../widget/markdown/source-marks.ts";
import type { RunEvent } from "../../widget/transport/transport.ts";
import { footnoted, sourcesOf } from "../../widget/ui/sources.ts";
import { canonical, newStream, streamed } from "../support/markdown.ts";

const markAt = (at: number, number = 1, index = 0): Mark => ({
  at,
  number,
  label: `Source ${number}`,
  id: `0-${index}`,
});

/** An element with text streamed in pieces of `step`; each mark arrives as soon as the text before it is there. */
function markedText(text: string, marks: readonly Mark[], step = text.length): HTMLElement {
  const root = document.createElement("div");
  const stream = newStream(root);
  const drawing = new SourceMarks();
  for (let end = Math.min(step, text.length); ; end = Math.min(end + step, text.length)) {
    const isEnd = end === text.length;
    const known = marks.filter(({ at }) => at <= end);
    stream.update(text.slice(0, end), !isEnd);
    drawing.draw(root, text.slice(0, end), isEnd, known, en, []);
    if (isEnd) return root;
  }
}

/** The text, with `⟦1⟧` for each mark. */
function seen(root: HTMLElement): string {
  const copy = root.cloneNode(true) as HTMLElement;
  for (const mark of copy.querySelectorAll(".source-mark")) mark.textContent = `⟦${mark.textContent}⟧`;
  for (const own of copy.querySelectorAll(".code-header")) own.remove();
  return copy.textContent.trim();
}

const without = (root: HTMLElement): string => {
  for (const mark of root.querySelectorAll(".source-at, .source-marks")) mark.remove();
  root.normalize();
  return canonical(root);
};

const PLACES: [source: string, shown: string][] = [
  ["One.| Two.", "One.⟦1⟧ Two."],
  ["One. |Two.", "One.⟦1⟧ Two."],
  ["a **bo|ld** b", "a bo⟦1⟧ld b"],
  ["a **bold.|** b", "a bold.⟦1⟧ b"],
  ["a **bold.**| b", "a bold.⟦1⟧ b"],
  ["a *|*bold** b", "a bold⟦1⟧ b"],
  ["a [li|nk](https://a.example/b) c", "a link⟦1⟧ c"],
  ["a [link](https://a.ex|ample/b) c", "a link⟦1⟧ c"],
  ["see https://a.example/b| c", "see https://a.example/b⟦1⟧ c"],
  ["a `co|de` b", "a code⟦1⟧ b"],
  ["a &a|mp; b", "a &⟦1⟧ b"],
  ["a 👩‍|🚀 b", "a 👩‍🚀⟦1⟧ b"],
  ["東京は|遠い。", "東京は⟦1⟧遠い。"],
  ["```js\nlet |a\n```\n\nb", "let a⟦1⟧b"],
  ["# He|ad\n\nb", "He⟦1⟧adb"],
  ["- a|\n- b", "a⟦1⟧b"],
  ["- [x] a|\n- b", "a⟦1⟧b"],
  ["> a\n> b| c", "a\nb⟦1⟧ c"],
  ["| a | b |\n|---|---|\n| c| | d |", "abc⟦1⟧d"],
  ["a\r\nb| c", "a\nb⟦1⟧ c"],
  ["<sub>a|</sub> b", "a⟦1⟧ b"],
  ["a $x|^2$ b", "a $x^2$⟦1⟧ b"],
  ["a|a\n-\na", "a⟦1⟧aa"],
];

test("a mark stands behind its words, and never inside of code, a link, a character or a mark of Markdown", () => {
  for (const [source, shown] of PLACES) {
    const text = source.replace("|", (bar, at: number) => (source.includes("---") && at < 5 ? bar : ""));
    const at = source.includes("---") ? source.indexOf("c") + 1 : source.indexOf("|");
    const whole = source.includes("---") ? source.replace("c| |", "c |") : text;
    assert.equal(seen(markedText(whole, [markAt(at)])), shown, source);
    for (const step of [1, 2, 5])
      assert.equal(seen(markedText(whole, [markAt(at)], step)), shown, `${source} by ${step}`);
  }
});

test("a mark whose text is drawn later than it came is drawn with that text", () => {
  const root = document.createElement("div");
  const stream = newStream(root);
  const drawing = new SourceMarks();
  for (const text of ["One", "One. Two."]) {
    stream.update(text, true);
    drawing.draw(root, text, false, [markAt(2), markAt(9, 2, 1)], en, []);
  }
  assert.equal(seen(root), "On⟦1⟧e. Two.⟦2⟧");
});

const PIECES = [
  ..."ab c.\n*_`[]()|#>-~<$&!\\1",
  ..."**|\n\n|```\n|- |1. |> |[a](https://b.example)| | a | b |\n|---|---|\n|👩‍🚀|東京。|&amp;|https://c.example |$x^2$".split(
    "|",
  ),
  "| a | b |\n|---|---|\n| c | d |\n",
  "Words that say something. ",
];

test("whatever the text, its places and its pieces: the end equals the whole, and without the marks it is the text", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((parts) => parts.join("")),
      fc.array(fc.nat(120), { maxLength: 4 }),
      fc.integer({ min: 1, max: 20 }),
      (text, places, step) => {
        const marks = places
          .filter((at) => at > 0 && at <= text.length)
          .map((at, index) => markAt(at, index + 1, index));
        const whole = markedText(text, marks);
        assert.equal(canonical(markedText(text, marks, step)), canonical(whole));
        const { length } = whole.querySelectorAll(":is(code, a, .katex) .source-mark");
        assert.equal(length, 0);
        assert.equal(without(whole), canonical(streamed(text)));
      },
    ),
    { numRuns: 300 },
  );
});

const token = (data: string): RunEvent => ({ type: "token", data });
const source = (id: number, at?: number, url = `https://a.example/${id}`): RunEvent => ({
  type: "source",
  data: { id, title: `Page ${id}`, url, ...(at === undefined ? {} : { at }) },
});
const called = { id: "c", tool: "t", arguments: "{}", status: "running" } as const;
const ended = { ...called, output: "", status: "completed", duration_ms: 1 } as const;
const fold = (events: readonly RunEvent[], from = emptyAnswer("m1")) =>
  events.reduce((message, event) => applyEvent(message, event, 1), from);

test("places count from the last event of a tool, and go with text that is taken back", () => {
  const answer = fold([
    source(9),
    token("Look: "),
    { type: "tool_call", data: called },
    token("a b"),
    { type: "tool_result", data: ended },
    token(" c d"),
    source(1, 2),
    source(2, 4),
    token("x"),
    source(1, 5),
    { type: "thinking", data: "Hm." },
    token("wrong"),
    source(3, 10),
    { type: "thinking", data: "wrong" },
    token("right"),
    source(4, 10),
  ]);
  assert.deepEqual(footnoted(answer), [
    "Look:",
    "a b c[^2] d[^3]x[^2]",
    "right[^4]",
    "[^1]: Page 9, https://a.example/9\n[^2]: Page 1, https://a.example/1\n[^3]: Page 2, https://a.example/2\n[^4]: Page 4, https://a.example/4",
  ]);
});

test("an answer that goes on counts anew, and the places stand in the joined text", () => {
  const cut = fold([
    token("```js\nlet a"),
    source(1, 11),
    { type: "done", data: "", state: {}, finish_reason: "length" },
  ]);
  const open = reopenAnswer(cut, { continue: true }, 2);
  const answer = fold([token("```js\n = 1;\n```\nEnd."), source(1, 20, "https://b.example/"), source(1, 12)], open);
  assert.deepEqual(footnoted(answer), [
    "```js\nlet a = 1;\n```\n\n[^1]\n\nEnd.[^2]",
    "[^1]: Page 1, https://a.example/1\n[^2]: Page 1, https://b.example/",
  ]);
});

test("what names neither a page of http nor a file is no source, and the model's own notes keep their labels", () => {
  const damaged = [
    { title: 1, url: "https://a.example" },
    { title: "x", url: "javascript:alert(1)" },
    {},
    { title: "y", file: "y.pdf", at: "2" },
  ];
  const answer = fold([token("a[^1]\n\n[^1]: b"), ...damaged.map((data) => ({ type: "source", data }) as never)]);
  assert.deepEqual(sourcesOf(answer.blocks).sources, [{ number: 1, title: "y", file: "y.pdf" }]);
  assert.equal(footnoted(answer).at(-1), "[^source-1]: y, y.pdf");
});
