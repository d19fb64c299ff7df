import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { UpstreamTimeout } from "../../server/providers/failures/failures.ts";
import { UpstreamLine } from "../../server/providers/upstream/line.ts";

test("a line whose deadline has passed already is late at once, without a warning", async (t) => {
  const waits: (number | undefined)[] = [];
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, "setTimeout", (late: () => void, ms?: number) => {
    waits.push(ms);
    return setTimeout(late, ms);
  });
  const times = { firstChunk: 1_000, idle: 1_000 };
  const { signal } = new AbortController();
  const line = new UpstreamLine(times, performance.now() - 5, signal);
  const never = async (cut: AbortSignal) => {
    if (!cut.aborted) await once(cut, "abort");
    return new Promise<never>(() => {});
  };
  await assert.rejects(line.open(never), UpstreamTimeout);
  line.close();
  assert.deepEqual(waits, [0]);
});
