/** What is remembered of runs that were cancelled before their message came, and for how long. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryRunStore } from "../../server/runs/run-store.ts";

const MINUTE = 60_000;

test("a cancelled run is remembered for ten minutes from the last time", async () => {
  let now = 0;
  const store = createMemoryRunStore(() => now);
  await store.cancelEarly("a");
  now = 9 * MINUTE;
  await store.cancelEarly("a");
  assert.ok(await store.isCancelledEarly("a"));
  now = 18 * MINUTE;
  assert.ok(await store.isCancelledEarly("a"));
  now = 19 * MINUTE;
  assert.equal(await store.isCancelledEarly("a"), false);
  assert.equal(await store.isCancelledEarly("b"), false);
});

test("of too many runs the oldest are forgotten", async () => {
  const store = createMemoryRunStore(() => 0);
  for (let n = 0; n < 10_001; n++) await store.cancelEarly(String(n));
  assert.equal(await store.isCancelledEarly("0"), false);
  assert.ok(await store.isCancelledEarly("1"));
  await store.cancelEarly("1");
  await store.cancelEarly("another");
  assert.equal(await store.isCancelledEarly("2"), false);
  assert.ok(await store.isCancelledEarly("1"));
});
