/** Large messages that trickle in: their turn is for others, who wait for it. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { connectRaw, type RawConnection, upgrade } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const MEBIBYTE = 1024 * 1024;
const RATE = 16_384;

/** Bytes of the messages here, far above what is large. */
const SIZE = 3 * MEBIBYTE;

/** Some of the message, before any time passes: with it each has its turn. */
const BEGUN = 2 * MEBIBYTE;

const CHUNK_HEAD = `${SIZE.toString(16)}\r\n`;
const HEAD = ["POST /api/chat HTTP/1.1", "host: x", "content-type: application/json"];

/** Starts a message of blanks, and sends the beginning of it. */
const BEGIN: Record<string, (raw: RawConnection) => Promise<void>> = {
  async "body of a known length"(raw) {
    await raw.write(...HEAD, `content-length: ${SIZE}`, "", " ".repeat(BEGUN));
  },
  async "body in chunks"(raw) {
    await raw.write(...HEAD, "transfer-encoding: chunked", "", `${CHUNK_HEAD}${" ".repeat(BEGUN)}`);
  },
  async "socket message"(raw) {
    await raw.write(...upgrade());
    await raw.answer();
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0]);
    raw.socket.write(Buffer.concat([head, Buffer.alloc(BEGUN, 0x20)]));
  },
};

/** Time that stands still, but for these steps. What the network brought before a step is read before it. */
async function seconds(t: TestContext, server: TestServer, count: number): Promise<void> {
  for (let round = 0; round < 5; round++) await (await fetch(`${server.url}/health`)).text();
  t.mock.timers.tick(count * 1000);
}

async function startSlow(t: TestContext, env: Record<string, string> = {}) {
  // Before the server closes, which takes time where a peer does not answer.
  t.after(() => t.mock.timers.reset());
  const turns = [[say("Fine")], [say("Fine")]];
  const server = await startServer(t, { turns, env: { PARLEY_MAX_LARGE_BODIES: "1", ...env } });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  return server;
}

const LARGE = JSON.stringify({ message: "Hi", stream: false, unknown: "x".repeat(BEGUN) });

/**
 * Has what takes seconds come ten times as soon, until the function that is returned is called. With a clock that the
 * test stops and moves, one in some hundred runs waited for a timer that never came.
 */
function hasten(t: TestContext): () => void {
  const real = globalThis.setTimeout;
  const restore = () => {
    globalThis.setTimeout = real;
  };
  t.after(restore);
  const sooner = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    real(callback, ms >= 5_000 ? ms / 10 : ms, ...args);
  globalThis.setTimeout = sooner as typeof setTimeout;
  return restore;
}

for (const [kind, begin] of Object.entries(BEGIN)) {
  test(`a ${kind} that brings few bytes per second loses its turn after 10 seconds, and who waited for it is served`, async (t) => {
    const env = { PARLEY_MAX_LARGE_BODIES: "1" };
    const server = await startServer(t, { turns: [[say("Fine")]], env });
    const slowDown = hasten(t);
    const slow = await connectRaw(t, server);
    await begin(slow);
    for (let round = 0; round < 5; round++) await (await fetch(`${server.url}/health`)).text();
    const waiting = post(server, LARGE);
    // What came before counts in the first ten seconds, and these few are all in the next.
    while (slow.rest === "") {
      await slow.write(" ");
      await (await fetch(`${server.url}/health`)).text();
    }
    slowDown();
    assert.equal((await waiting).status, 200);
    const said = (await slow.until("16384 bytes per second")) + slow.rest;
    assert.match(said, /request_timeout/);
    slow.socket.destroy();
  });

  test(`a ${kind} that keeps the pace is never refused for it`, async (t) => {
    const server = await startSlow(t, { PARLEY_BODY_SECONDS: "1000" });
    const slow = await connectRaw(t, server);
    await begin(slow);
    for (let sent = 0; sent < 4; sent++) {
      await slow.write(" ".repeat(10 * RATE));
      await seconds(t, server, 5);
    }
    assert.equal(slow.rest, "");
    slow.socket.write(" ".repeat(SIZE - BEGUN - 40 * RATE));
    if (kind === "body in chunks") slow.socket.write("\r\n0\r\n\r\n");
    // Blanks are no JSON, and only a whole message is told so.
    await slow.until("invalid_json");
    slow.socket.destroy();
  });
}

test("with PARLEY_MIN_UPLOAD_RATE=0 any pace will do", async (t) => {
  const server = await startSlow(t, { PARLEY_MIN_UPLOAD_RATE: "0" });
  const slow = await connectRaw(t, server);
  await BEGIN["body of a known length"]?.(slow);
  await seconds(t, server, 60);
  await seconds(t, server, 0);
  assert.equal(slow.rest, "");
});
