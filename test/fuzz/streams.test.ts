/** What arrives in pieces means the same however it is cut. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { SseDecoder } from "../../server/protocol/sse.ts";
import { MarkdownStream } from "../../widget/markdown/markdown-stream.ts";

/** The text in pieces that end at these places. */
function pieces(text: string, cuts: readonly number[]): string[] {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end));
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });
const line = fc.oneof(
  fc.constantFrom("", "", "data", "data:", "data: a", "data:{}", "event: x", "event", ": comment", "id: 1", "retry: 5"),
  fc.string({ unit: "grapheme" }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
);
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r"))))
  .map(([hasMark, lines]) => `${hasMark ? "\uFEFF" : ""}${lines.flat().join("")}`);

test("an event stream means the same in any pieces, and what an independent reader reads", () => {
  const read = (parts: readonly string[]) => {
    const decoder = new SseDecoder();
    return parts.flatMap((part) => decoder.feed(part));
  };
  fc.assert(
    fc.property(stream, cuts, (text, places) => {
      const whole = read([text]);
      assert.deepEqual(read(pieces(text, places)), whole);
      const others: { event: string; data: string }[] = [];
      const parser = createParser({
        onEvent: ({ event = "message", data }) => others.push({ event: event || "message", data }),
      });
      // The mark of the byte order is what a decoder of UTF-8 takes off before that reader. And a carriage return
      // at the very end may be the first half of a line's end: that waits for the next piece.
      parser.feed(`${text.replace(/^\uFEFF/, "")}\n`);
      assert.deepEqual(read([`${text}\n`]), others);
    }),
    { numRuns: 500 },
  );
});

const mark = fc.constantFrom(
  "# ",
  "- ",
  "1. ",
  "> ",
  "```js\n",
  "```\n",
  "|a|b|\n|-|-|\n",
  "|1|2|\n",
  "**",
  "*",
  "_",
  "~~",
  "`",
  "[a](https://a.example)",
  "[a][b]\n",
  "\n[b]: https://b.example\n",
  "![i](https://i.example/x.png)",
  "<b>",
  "&amp;",
  "\\",
  "\n",
  "\n\n",
  "    ",
  "---\n",
  "<!-- ",
  "$",
);
const markdown = fc
  .array(fc.oneof(mark, mark, fc.constantFrom("word ", "other ", "é👋 "), fc.string({ maxLength: 3 })), {
    maxLength: 25,
  })
  .map((parts) => parts.join(""));

/** A DOM as text in which the order of attributes does not matter. */
function canonical(node: Node): string {
  if (node instanceof Text) return JSON.stringify(node.data);
  if (!(node instanceof Element)) return "";
  const attributes = [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
  return `<${node.localName} ${attributes}>${[...node.childNodes].map(canonical).join("")}</>`;
}

test("Markdown that comes in any pieces ends as if it was drawn at once, without a script or a handler", () => {
  const draw = (parts: readonly string[]) => {
    const root = document.createElement("div");
    const drawn = new MarkdownStream(root);
    let text = "";
    for (const part of parts) {
      text += part;
      drawn.update(text, true);
    }
    drawn.update(text, false);
    return root;
  };
  fc.assert(
    fc.property(markdown, cuts, (text, places) => {
      const whole = draw([text]);
      assert.equal(canonical(draw(pieces(text, places))), canonical(whole));
      for (const element of whole.querySelectorAll("*")) {
        assert.doesNotMatch(element.localName, /^(?:script|iframe|style|object)$/);
        for (const { name, value } of element.attributes) {
          assert.doesNotMatch(name, /^on/);
          assert.doesNotMatch(value, /^\s*javascript:/i);
        }
      }
    }),
    { numRuns: 150 },
  );
});
