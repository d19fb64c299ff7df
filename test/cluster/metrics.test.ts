/** `GET /metrics` of several workers: whichever answers, it tells of all. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { startWorkers, textOf } from "../support/workers.ts";

test("each worker answers with the figures of all", async (t) => {
  const { lines } = await startWorkers(t);
  for (const line of lines) await textOf(await line.chat({ message: "Hello", stream: false }));
  for (const line of lines) {
    const text = await textOf(await line.ask("/metrics"));
    assert.match(text, /^parley_runs_total\{transport="json",end="stop"\} 2$/m);
    assert.match(text, /^parley_run_duration_seconds_bucket\{le="\+Inf"\} 2$/m);
    assert.match(text, /^parley_info\{model="[^"]+"\} 1$/m);
    assert.equal(text.match(/^# TYPE parley_runs_total /gm)?.length, 1);
  }
});
