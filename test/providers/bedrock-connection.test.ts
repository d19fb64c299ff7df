import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { bedrock, EVENT_STREAM, encodeFrame, type Frame, fixtureFrames, refuse, stream } from "../support/bedrock.ts";
import { gate, within } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, failureOf, INSTANT_CLOCK, leave, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const START: Frame = { messageStart: { role: "assistant" } };
const HALF: Frame = { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Half" } } };
const bytes = Buffer.concat([encodeFrame(START), encodeFrame(HALF)]);
const CUTS: Record<string, UpstreamReply> = {
  "before messageStop": stream("cut-before-message-stop"),
  "in the middle of a frame": { headers: EVENT_STREAM, body: [bytes, bytes.subarray(0, 20)] },
  "by a reset connection": { headers: EVENT_STREAM, body: [bytes], end: "cut" },
};
for (const [where, reply] of Object.entries(CUTS)) {
  test(`a stream cut ${where} is truncated, and the history stays as it was`, async () => {
    await using upstream = await startUpstream(reply);
    const conversation = open(await bedrock(upstream));
    const turn = await ask(conversation);
    assert.match(said(turn), /^Half/);
    assert.equal(failureOf(turn).code, "provider_truncated");
    assert.deepEqual(conversation.state(), {});
  });
}

test("a frame whose checksum is wrong is not believed", async () => {
  const broken = Buffer.from(bytes);
  broken[broken.length - 6] = 0;
  await using upstream = await startUpstream({ headers: EVENT_STREAM, body: [broken] });
  const failure = failureOf(await ask(open(await bedrock(upstream))));
  assert.match(failure.message, /could not be read/);
});

for (const length of [0, 15, 16 * 1024 * 1024 + 1, 2 ** 32 - 1]) {
  test(`a frame that announces ${length} bytes is not waited for, and no memory is taken for it`, async () => {
    const announced = Buffer.alloc(4);
    announced.writeUInt32BE(length);
    // In two pieces: a length may be cut anywhere.
    const body = [bytes, announced.subarray(0, 1), announced.subarray(1)];
    await using upstream = await startUpstream({ headers: EVENT_STREAM, body, end: "stall" });
    const before = process.memoryUsage().arrayBuffers;
    const turn = await ask(open(await bedrock(upstream)));
    assert.match(failureOf(turn).message, /could not be read/);
    assert.equal(said(turn), "Half", "what came before it was said");
    assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024);
  });
}

for (const [what, reply, sentence] of [
  ["a page of HTML", { headers: { "content-type": "text/html" }, body: ["<html>"] }, /base URL/],
  ["JSON with status 200", jsonReply(200, { output: {} }), /base URL/],
  ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:9" } }, /redirect/],
] as const) {
  test(`${what} is no answer, and is not followed or retried`, async () => {
    await using upstream = await startUpstream(reply);
    const failure = failureOf(await ask(open(await bedrock(upstream))));
    assert.match(failure.message, sentence);
    assert.equal(failure.retryable, false);
    assert.equal(upstream.calls.length, 1);
  });
}

for (const [what, times, reply, sentence] of [
  ["no head", { firstChunk: 80, idle: 20_000 }, { headless: true }, /did not answer/],
  ["no first byte", { firstChunk: 80, idle: 20_000 }, { headers: EVENT_STREAM }, /did not answer/],
  [
    "silence in the middle",
    { firstChunk: 20_000, idle: 80 },
    { headers: EVENT_STREAM, body: [bytes] },
    /stopped sending/,
  ],
] as const) {
  test(`${what} has its limit, and the connection is closed`, async (t) => {
    const clock = stopClock(t);
    const late = gate();
    const body = [...("body" in reply ? reply.body : []), late.open];
    await using upstream = await startUpstream({ ...reply, body, end: "stall" });
    const conversation = open(await bedrock(upstream, { times }));
    const asked = upstream.nextCall();
    const asking = ask(conversation);
    await within(late.opened, "the answer so far");
    clock.tick(80);
    const failure = failureOf(await within(asking, "the time-out"));
    assert.equal(failure.code, "provider_timeout");
    assert.match(failure.message, sentence);
    assert.equal(await (await asked).closed, "aborted");
  });
}

test("the limit on silence counts bytes: a frame may take longer than it", async (t) => {
  const clock = stopClock(t);
  await using upstream = await startUpstream();
  const provider = await bedrock(upstream, { times: { firstChunk: 20_000, idle: 600 } });
  const frame = encodeFrame(HALF);
  const pieces = [0, 1, 2].flatMap((part) => [
    () => clock.tick(400),
    frame.subarray(part * 20, part === 2 ? undefined : part * 20 + 20),
  ]);
  const rest = fixtureFrames("text").slice(1).map(encodeFrame);
  upstream.reply({ headers: EVENT_STREAM, body: [encodeFrame(START), ...pieces, ...rest] });
  assert.equal(said(await ask(open(provider))), "HalfHello 👋");
});

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

for (const [when, reply] of [
  ["before the head of the answer", { headless: true, end: "stall" }],
  ["between head and first byte", { headers: EVENT_STREAM, end: "stall" }],
  ["in the middle of the stream", { headers: EVENT_STREAM, body: [bytes], end: "stall" }],
] as const) {
  test(`an abort ${when} closes the connection, also after garbage collections`, async () => {
    await using upstream = await startUpstream(reply);
    const abort = new AbortController();
    const turn = ask(open(await bedrock(upstream)), abort.signal);
    const call = await upstream.nextCall();
    for (let round = 0; round < 5; round++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
    }
    abort.abort();
    const { error } = await within(turn, "the end of the turn");
    assert.equal(error, abort.signal.reason);
    assert.equal(await within(call.closed, "the end of the connection"), "aborted");
  });
}

test("an abort's reason is not written on, and an aborted signal sends nothing", async () => {
  await using upstream = await startUpstream({ headers: EVENT_STREAM, end: "stall" });
  const provider = await bedrock(upstream);
  const abort = new AbortController();
  const turn = ask(open(provider), abort.signal);
  await upstream.nextCall();
  const reason = Object.freeze(new Error("stopped"));
  abort.abort(reason);
  assert.equal((await turn).error, reason);
  assert.equal((await ask(open(provider), abort.signal)).error, reason);
  assert.equal(upstream.calls.length, 1);
});

test("an abort while waiting for the next try ends the wait, and there is no next try", async () => {
  const abort = new AbortController();
  await using upstream = await startUpstream(refuse(503, "ServiceUnavailableException", "busy"));
  const clock = {
    ...INSTANT_CLOCK,
    wait: async (_ms: number, signal: AbortSignal) => {
      abort.abort();
      signal.throwIfAborted();
    },
  };
  await ask(open(await bedrock(upstream, { clock })), abort.signal);
  assert.equal(upstream.calls.length, 1);
});

test("who is told and throws closes the connection; a finished answer keeps it for the next", async () => {
  await using upstream = await startUpstream(stream("text"), {
    headers: EVENT_STREAM,
    body: [bytes],
    end: "stall",
  });
  const provider = await bedrock(upstream);
  await ask(open(provider));
  assert.equal(await upstream.calls[0]?.closed, "complete");
  await leave(open(provider));
  assert.equal(await upstream.calls[1]?.closed, "aborted");
});
