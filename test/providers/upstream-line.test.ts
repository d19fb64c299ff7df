import assert from "node:assert/strict";
import { once } from "node:events";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { type TestContext, test } from "node:test";
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

/** A line whose answer has begun with these bytes, which came with its head. */
function lineWith(t: TestContext, ...pieces: (Buffer | null)[]) {
  const answer = new IncomingMessage(new Socket());
  for (const piece of pieces) answer.push(piece);
  const times = { firstChunk: 60_000, idle: 60_000 };
  const line = new UpstreamLine(times, performance.now() + 60_000, new AbortController().signal);
  t.after(() => line.close());
  line.take(answer);
  return { line, answer };
}

test("what came with the head of an answer is there at once and in one piece, and the rest follows", async (t) => {
  const [one, other] = [Buffer.alloc(50_000, "a"), Buffer.alloc(50_000, "b")];
  const { line, answer } = lineWith(t, one, other);
  assert.equal(line.hasNews, true);
  // So much that the upstream is held back until it is read.
  assert.equal(answer.isPaused(), true);
  assert.deepEqual(line.next(), Buffer.concat([one, other]));
  assert.equal(answer.isPaused(), false);
  answer.push(Buffer.from("c"));
  answer.push(null);
  assert.deepEqual(await line.read(), Buffer.from("c"));
  assert.equal(await line.read(), undefined);
});

test("an answer without a body has ended, whether or not its end came with its head", async (t) => {
  assert.equal(await lineWith(t, null).line.read(), undefined);
  const { line, answer } = lineWith(t);
  answer.push(null);
  assert.equal(await line.read(), undefined);
});

test("an answer that breaks off behind what came with its head fails once that is read", async (t) => {
  const { line, answer } = lineWith(t, Buffer.from("a"));
  answer.on("error", () => {});
  answer.destroy(new Error("reset"));
  assert.deepEqual(await line.read(), Buffer.from("a"));
  await assert.rejects(line.read());
});
