/** What is remembered of runs that were cancelled before they were known, and for how long. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { EarlyCancels } from "../../server/runs/early-cancels.ts";

const MINUTE = 60_000;

test("a cancelled place is remembered for ten minutes from the last time", () => {
  let now = 0;
  const early = new EarlyCancels(() => now);
  early.add("a");
  now = 9 * MINUTE;
  early.add("a");
  assert.ok(early.has("a"));
  now = 18 * MINUTE;
  assert.ok(early.has("a"));
  now = 19 * MINUTE;
  assert.equal(early.has("a"), false);
  assert.equal(early.has("b"), false);
});

test("of too many places the oldest are forgotten", () => {
  const early = new EarlyCancels(() => 0);
  for (let n = 0; n < 10_001; n++) early.add(String(n));
  assert.equal(early.has("0"), false);
  assert.ok(early.has("1"));
  early.add("1");
  early.add("another");
  assert.equal(early.has("2"), false);
  assert.ok(early.has("1"));
});
