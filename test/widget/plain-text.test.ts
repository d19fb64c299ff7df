/** Texts for decisions contain nothing invisible. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TemplateResult } from "lit";
import { en } from "../../widget/i18n/strings.ts";
import { beginningOf, type Folded, folded } from "../../widget/ui/folded-text.ts";
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

test("what is folded says what it stands for, in the beginning of a text and in all of it, and is no text itself", () => {
  const parts = ["ls", " ", "\n", "[4 empty lines]", "[41 spaces]", "[a × 100]", "rm", ".", "\n".repeat(5)];
  const runs = [" ".repeat(41), "\n".repeat(9), "a".repeat(100), "ab".repeat(100), "\u200b".repeat(120)];
  const unfolded = ({ values: [words] }: TemplateResult): string => {
    const [, count = "", kind] = /^\[(\d+) (empty lines|spaces)\]$/.exec(String(words)) ?? [];
    if (kind) return (kind === "spaces" ? " " : "\n").repeat(Number(count));
    const [, unit = "", times] = /^\[(.+) × (\d+)\]$/.exec(String(words)) ?? [];
    return readBack(unit).repeat(Number(times));
  };
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts, ...runs), { maxLength: 30 }), (chosen) => {
      const text = chosen.join("");
      const all = folded(text, en);
      let read = "";
      let afterLines = false;
      for (const piece of all) {
        const own = typeof piece === "string" ? readBack(piece) : unfolded(piece);
        // The line with the fold ends after it.
        read += afterLines ? own.slice(1) : own;
        afterLines = typeof piece !== "string" && own.startsWith("\n");
      }
      // A line of blanks counts as empty.
      const [shown, given] = [read, text].map((it) => it.replace(/(?<=^|\n)[^\S\n]+(?=\n)/g, ""));
      assert.equal(shown, given);
      const [beginning, isCut] = beginningOf(text, 60, en);
      const drawn = (pieces: Folded) => pieces.map((it) => (typeof it === "string" ? it : `${it.values[0]}`)).join("");
      if (isCut) assert.ok(drawn(all).startsWith(drawn(beginning).slice(0, -1)) && drawn(beginning).length <= 61);
      else assert.deepEqual(beginning, all);
    }),
    { numRuns: 1000 },
  );
  for (const blank of ["\r", "\f", "\u00a0", "\u2028", "\u2800", "\u3000", "\t"]) {
    assert.equal(folded(`a${blank.repeat(5000)}b`, en).length, 3, JSON.stringify(blank));
    if (blank !== "\u2800") assert.equal(folded(`a\n${`${blank}\r\n`.repeat(250)}b`, en).length, 4);
  }
});
