import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createChatCompletions } from "../../server/providers/chat/create.ts";
import { within } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { turns } from "../support/turns.ts";
import { ask, chatProvider, INSTANT_CLOCK, leave, open, said } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream } from "../support/upstream-server.ts";

const chunk = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const answer = () => ({ body: [eventStream(chunk("ok", "stop"), "[DONE]")] });

test("who is told and throws closes the connection", async () => {
  await using upstream = await startUpstream({ body: [eventStream(chunk("Half"))], end: "stall" });
  await leave(open(chatProvider(upstream)));
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

for (const [when, reply] of [
  ["before the head of the answer", { headless: true, end: "stall" }],
  ["between head and first byte", { end: "stall" }],
  ["in the middle of the stream", { body: [eventStream(chunk("Half"))], end: "stall" }],
] as const) {
  test(`an abort ${when} closes the connection, also after garbage collections`, async () => {
    await using upstream = await startUpstream(reply);
    const abort = new AbortController();
    const turn = ask(open(chatProvider(upstream)), abort.signal);
    const call = await upstream.nextCall();
    for (let round = 0; round < 5; round++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
    }
    abort.abort();
    await within(turn, "the end of the turn");
    assert.equal(await within(call.closed, "the end of the connection"), "aborted");
  });
}

test("an aborted signal sends nothing", async () => {
  await using upstream = await startUpstream(answer());
  await ask(open(chatProvider(upstream)), AbortSignal.abort());
  assert.equal(upstream.calls.length, 0);
});

test("an abort while waiting for the next try ends the wait, and there is no next try", async () => {
  const abort = new AbortController();
  await using upstream = await startUpstream({ status: 503 }, answer());
  const waits: number[] = [];
  const provider = createChatCompletions({
    id: "x",
    label: "X",
    model: "m",
    baseUrl: upstream.url,
    apiKey: undefined,
    times: { firstChunk: 20_000, idle: 20_000 },
    settings: {},
    clock: {
      ...INSTANT_CLOCK,
      wait: async (ms, signal) => {
        waits.push(ms);
        abort.abort();
        signal.throwIfAborted();
      },
    },
  });
  await ask(open(provider), abort.signal);
  assert.deepEqual(waits, [250]);
  assert.equal(upstream.calls.length, 1);
});

test("after the last event a stream may end by itself, so that its connection can be used again", async (t) => {
  // It is given a moment to end, which must not be over before this test has it end.
  stopClock(t);
  let end = () => {};
  const answered = new Promise<void>((resolve) => {
    end = resolve;
  });
  await using upstream = await startUpstream({ body: [...answer().body, answered] });
  assert.equal(said(await ask(open(chatProvider(upstream)))), "ok");
  // Enough turns of the event loop for the upstream to see a connection that was dropped instead.
  await turns();
  end();
  assert.equal(await upstream.calls[0]?.closed, "complete");
});

test("a stream that does not end after its last event is closed", async () => {
  await using upstream = await startUpstream({ ...answer(), end: "stall" });
  assert.equal(said(await ask(open(chatProvider(upstream)))), "ok");
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});
