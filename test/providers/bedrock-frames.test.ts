/** The frames of Bedrock's stream: cut, broken, or no frames at all. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreamParser } from "../../server/providers/bedrock/event-stream.ts";
import { bedrock, EVENT_STREAM, encodeFrame, type Frame, fixtureFrames, frameOf, stream } from "../support/bedrock.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

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

test("an answer whose frames are cut at any byte reads the same", () => {
  const all = Buffer.concat(fixtureFrames("text").map(encodeFrame));
  const whole = [...new EventStreamParser().push(all)];
  assert.ok(whole.length > 3);
  for (let cut = 0; cut <= all.length; cut++) {
    const parser = new EventStreamParser();
    assert.deepEqual([...parser.push(all.subarray(0, cut)), ...parser.push(all.subarray(cut))], whole);
  }
});

const broken = Buffer.from(encodeFrame(HALF));
broken[broken.length - 6] = 0;
for (const [what, garbage] of [
  ["a frame whose checksum is wrong", broken],
  ["a page of HTML", Buffer.from("<html><body>Bad gateway</body></html>")],
  ["an event that is not JSON", frameOf({ ":message-type": "event", ":event-type": "metadata" }, "{")],
] as const) {
  test(`${what} is not believed, and what came before it in the same packet is said`, async () => {
    const body = [Buffer.concat([bytes, garbage])];
    await using upstream = await startUpstream({ headers: EVENT_STREAM, body });
    const turn = await ask(open(await bedrock(upstream)));
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, "provider_error");
    assert.match(failureOf(turn).detail ?? "", /could not be read/);
  });
}

for (const length of [0, 15, 16 * 1024 * 1024 + 1, 2 ** 32 - 1]) {
  test(`a frame that announces ${length} bytes is not waited for, and no memory is taken for it`, async () => {
    const announced = Buffer.alloc(4);
    announced.writeUInt32BE(length);
    // In two pieces: a length may be cut anywhere.
    const body = [bytes, announced.subarray(0, 1), announced.subarray(1)];
    await using upstream = await startUpstream({ headers: EVENT_STREAM, body, end: "stall" });
    const before = process.memoryUsage().arrayBuffers;
    const turn = await ask(open(await bedrock(upstream)));
    assert.match(failureOf(turn).detail ?? "", /could not be read/);
    assert.equal(said(turn), "Half", "what came before it was said");
    assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 1024 * 1024);
    assert.equal(await upstream.calls[0]?.closed, "aborted");
  });
}

test("headers that are longer than their frame, or than its headers, are no frame", () => {
  const tooLong = Buffer.from(encodeFrame(START));
  tooLong.writeUInt32BE(tooLong.length, 4);
  const cutHeader = frameOf({}, "{}", Buffer.from([9, 58]));
  for (const frame of [tooLong, cutHeader]) {
    assert.throws(() => [...new EventStreamParser().push(frame)], { name: "UpstreamGarbage" });
  }
});

test("headers of every type are read over, and an error without an exception is one, too", () => {
  const name = Buffer.from([1, 120]);
  const values = [[0], [1], [2, 7], [3, 0, 1], [4, 0, 0, 0, 1], [5, ...Array(8).fill(1)], [6, 0, 2, 1, 1]];
  const others = [...values, [8, ...Array(8).fill(1)], [9, ...Array(16).fill(1)]];
  const before = Buffer.concat(others.flatMap((value) => [name, Buffer.from(value)]));
  const frames = [
    frameOf({ ":message-type": "event", ":event-type": "metadata" }, "{}", before),
    frameOf({ ":message-type": "error", ":error-code": "throttled", ":error-message": "slow" }, ""),
    frameOf({ ":message-type": "exception", ":exception-type": "throttlingException" }, "no JSON"),
  ];
  assert.deepEqual(
    [...new EventStreamParser().push(Buffer.concat(frames))],
    [
      { event: "metadata", data: "{}" },
      { event: "error", data: '{"type":"throttled","message":"slow"}' },
      { event: "error", data: '{"type":"throttlingException","message":"no JSON"}' },
    ],
  );
});
