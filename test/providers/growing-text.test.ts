import assert from "node:assert/strict";
import { test } from "node:test";
import { GrowingText } from "../../server/providers/growing-text.ts";

test("a text is that of its pieces, however long they are", () => {
  for (const sizes of [[], [0], [63, 1, 1], [64], [5000, 0, 3], Array<number>(3000).fill(5)]) {
    const text = new GrowingText();
    const pieces = sizes.map((size, at) => String.fromCodePoint(0x1f600 + (at % 50)).repeat(size));
    for (const piece of pieces) text.add(piece);
    assert.equal(text.text, pieces.join(""));
    assert.equal(text.length, text.text.length);
  }
});
