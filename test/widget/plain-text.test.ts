/** What is shown where a person decides has nothing in it that cannot be seen. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { plain, readBack, writtenOut } from "../../widget/ui/plain-text.ts";

const HIDDEN = /(?![\n\t])\p{Cc}|[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2028\u2029\ufff9-\ufffc]/u;

test("every character that shows nothing is written out, and can be read back", () => {
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const character = String.fromCodePoint(code);
    if (!HIDDEN.test(character)) continue;
    for (const text of [`a${character}b`, `1${character}${character}`, `\u{1f600}${character}${character}!`]) {
      const shown = writtenOut(text);
      assert.equal(readBack(shown), text, shown);
      assert.doesNotMatch(shown.replace(/(?<=\u{1f600})[\ufe0e\ufe0f]/u, ""), HIDDEN, shown);
    }
  }
});

test("emoji and the words of scripts that need joiners stay as they are, and nothing else is read back", () => {
  for (const text of [
    "👩\u200d💻",
    "❤\ufe0f\u200d🔥",
    "👍🏽",
    "1\ufe0f\u20e3",
    "می\u200cخواهم",
    "क्\u200dष",
    "a\n\tb",
    "C:\\u0041",
    "\\u200",
  ]) {
    assert.equal(plain(text), text);
    assert.equal(readBack(text), text);
  }
});

test("no character has more than four marks", () => {
  assert.equal(
    plain(`a${"\u0301".repeat(9)}`),
    `a${["\u0301".repeat(4), "\u0301".repeat(4), "\u0301"].join("\u25cc")}`,
  );
});
