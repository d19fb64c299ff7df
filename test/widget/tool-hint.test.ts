/** The summary of a call's arguments in its collapsed row. */

import "../support/dom.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { hintOf } from "../../widget/ui/steps.ts";

const CASES: readonly (readonly [what: string, args: string, hint: string])[] = [
  ["words and numbers, however deep", '{"q":"tea","page":2,"in":{"tags":["a","b"]}}', "tea, 2, a, b"],
  ["nothing of what says nothing without its name", '{"deep":true,"until":null,"with":{}}', ""],
  ["nothing without arguments", "", ""],
  ["one line", '{"code":"let a;\\n\\n  let b;"}', "let a; let b;"],
  ["what is not JSON as it is", '{"q":"te', '{"q":"te'],
  ["the beginning of what is long", JSON.stringify("x".repeat(100)), `${"x".repeat(80)}…`],
  ["no half of a character", JSON.stringify(`${"x".repeat(79)}😀`), `${"x".repeat(79)}…`],
  ["the beginning of what is too long to be read", `["${"x".repeat(30_000)}"]`, `["${"x".repeat(78)}…`],
];

for (const [what, args, hint] of CASES) {
  test(`a call is told from others of its tool by ${what}`, () => {
    assert.equal(hintOf(args).join(", "), hint);
  });
}
