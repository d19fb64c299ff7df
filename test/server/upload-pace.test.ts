/** Large messages that come too slowly: others wait for their slots. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Upload } from "../../server/http/upload.ts";
import type { ApiError } from "../../server/protocol/errors.ts";
import { post } from "../support/chat-transports.ts";
import { connectRaw, type RawConnection, upgrade } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";

const MEBIBYTE = 1024 * 1024;
const RATE = 16_384;

/** Bytes of the messages here, far above what is large. */
const SIZE = 3 * MEBIBYTE;

/** The beginning of a message, which is enough for its slot. */
const BEGUN = 2 * MEBIBYTE;

const HEAD = ["POST /api/chat HTTP/1.1", "host: x", "content-type: application/json"];

/** Starts a message of blanks, and sends the beginning of it. */
const BEGIN: Record<string, (raw: RawConnection) => Promise<void>> = {
  async "body of a known length"(raw) {
    await raw.write(...HEAD, `content-length: ${SIZE}`, "", " ".repeat(BEGUN));
  },
  async "body in chunks"(raw) {
    await raw.write(...HEAD, "transfer-encoding: chunked", "", `${SIZE.toString(16)}\r\n${" ".repeat(BEGUN)}`);
  },
  async "socket message"(raw) {
    await raw.write(...upgrade());
    await raw.answer();
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0]);
    raw.socket.write(Buffer.concat([head, Buffer.alloc(BEGUN, 0x20)]));
  },
};

/** A server whose clock the test moves. No limit but the pace can be met. */
async function startSlow(t: TestContext, env: Record<string, string> = {}) {
  // Before the server closes, which takes time where a client does not answer.
  t.after(() => t.mock.restoreAll());
  const patience = { PARLEY_BODY_SECONDS: "1000000", PARLEY_SEND_SECONDS: "1000000", PARLEY_RUN_SECONDS: "1000000" };
  const server = await startServer(t, {
    turns: [[say("Fine")]],
    env: { PARLEY_MAX_LARGE_BODIES: "1", ...patience, ...env },
  });
  return { server, clock: stopClock(t) };
}

/** The server has read what was sent before. */
async function hasRead({ url }: TestServer): Promise<void> {
  for (let round = 0; round < 5; round++) await (await fetch(`${url}/health`)).text();
}

for (const [kind, begin] of Object.entries(BEGIN)) {
  test(`a ${kind} that brings few bytes per second loses its slot, and the message that waits for it is served`, async (t) => {
    const { server, clock } = await startSlow(t);
    const slow = await connectRaw(t, server);
    await begin(slow);
    await hasRead(server);
    const waiting = post(server, JSON.stringify({ message: "Hi", stream: false, unknown: "x".repeat(BEGUN) }));
    // What was read before the slot was there, or in the first ten seconds, is enough for those.
    for (;;) {
      await slow.write(" ");
      await hasRead(server);
      if (slow.rest !== "") break;
      clock.tick(10_000);
    }
    assert.equal((await waiting).status, 200);
    const said = (await slow.until(`${RATE} bytes per second`)) + slow.rest;
    assert.match(said, /request_timeout/);
    slow.socket.destroy();
  });

  test(`a ${kind} that keeps the pace is never refused for it`, async (t) => {
    const { server, clock } = await startSlow(t);
    const slow = await connectRaw(t, server);
    await begin(slow);
    for (let sent = 0; sent < 4; sent++) {
      await slow.write(" ".repeat(10 * RATE));
      await hasRead(server);
      clock.tick(5_000);
    }
    assert.equal(slow.rest, "");
    slow.socket.write(" ".repeat(SIZE - BEGUN - 40 * RATE));
    if (kind === "body in chunks") slow.socket.write("\r\n0\r\n\r\n");
    // Blanks are no JSON, and only a whole message is answered so.
    await slow.until("invalid_json");
    slow.socket.destroy();
  });
}

/** A message that has its slot. */
async function beginUpload(minRate: number) {
  const refusals: ApiError[] = [];
  let freed = 0;
  const limits = { admitUpload: async () => () => void freed++ };
  const upload = new Upload({ limits, minRate }, "192.0.2.1", (error) => refusals.push(error));
  await upload.begin();
  return { upload, refusals, freed: () => freed };
}

test("the pace is the average of ten seconds: silence in between does not matter", async (t) => {
  const clock = stopClock(t);
  const { upload, refusals, freed } = await beginUpload(100);
  for (let window = 0; window < 3; window++) {
    clock.tick(9_999);
    upload.count(1000);
    clock.tick(1);
  }
  assert.deepEqual(refusals, []);
  upload.count(999);
  clock.tick(10_000);
  assert.deepEqual(
    refusals.map(({ code }) => code),
    ["request_timeout"],
  );
  assert.equal(freed(), 0);
  upload.end();
  assert.equal(freed(), 1);
});

test("a message that has arrived may take its time, and with PARLEY_MIN_UPLOAD_RATE=0 every one may", async (t) => {
  const clock = stopClock(t);
  const { upload, refusals } = await beginUpload(100);
  upload.arrived();
  clock.tick(60_000);
  assert.deepEqual(refusals, []);
  const patient = await beginUpload(0);
  clock.tick(60_000);
  assert.deepEqual(patient.refusals, []);
});

test("control frames are no payload: they do not keep up the pace, and a socket that only pings is no upload", async (t) => {
  const { server, clock } = await startSlow(t);
  const pinging = await connectRaw(t, server);
  await pinging.write(...upgrade());
  await pinging.answer();
  const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 120, 0, 0, 0, 0]), Buffer.alloc(120, 0x20)]);
  // Together more than what is large.
  const pings = Buffer.concat(Array<Buffer>(500).fill(ping));
  for (let sent = 0; sent < 20; sent++) {
    pinging.socket.write(pings);
    await hasRead(server);
  }
  clock.tick(20_000);
  await hasRead(server);
  clock.tick(20_000);
  assert.ok(!pinging.rest.includes("request_timeout"));
  const text = Buffer.from(JSON.stringify({ type: "clear" }));
  pinging.socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
  await pinging.until("cleared");

  const slow = await connectRaw(t, server);
  const head = Buffer.from([0x01, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
  await slow.write(...upgrade());
  await slow.answer();
  slow.socket.write(Buffer.concat([head, Buffer.alloc(BEGUN, 0x20)]));
  await hasRead(server);
  for (let window = 0; window < 100 && !slow.rest.includes("request_timeout"); window++) {
    for (let sent = 0; sent < 4; sent++) slow.socket.write(pings);
    await hasRead(server);
    clock.tick(10_000);
  }
  assert.match(slow.rest, /request_timeout/);
  slow.socket.destroy();
});
