import assert from "node:assert/strict";
import { test } from "node:test";
import { stopClock } from "../support/stopped-clock.ts";

test("a time-out from before the clock was stopped is cleared all the same", async (t) => {
  const called: string[] = [];
  const cleared = setTimeout(() => called.push("cleared"), 1);
  const last = new Promise<void>((resolve) => setTimeout(resolve, 2));
  stopClock(t);
  clearTimeout(cleared);
  await last;
  assert.deepEqual(called, []);
});
