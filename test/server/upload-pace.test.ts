/** Large messages that trickle in: their turn is for others, who wait for it. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
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

for (const [kind, begin] of Object.entries(BEGIN)) {
  test(`a ${kind} that brings a byte per second loses its turn after 10 seconds, and who waited for it is served`, async (t) => {
    const server = await startSlow(t, { PARLEY_BODY_SECONDS: "1000" });
    const slow = await connectRaw(t, server);
    await begin(slow);
    await seconds(t, server, 0);
    let isWaiting = true;
    const waiting = within(post(server, LARGE), "the answer of the other", 60_000).finally(() => {
      isWaiting = false;
    });
    // What came before counts in the first ten seconds, and those begin when the server gives it the turn, which a busy
    // machine may do late. Not a step further than that: the other one's reading has its time, too.
    for (let second = 0; second < 120 && slow.rest === ""; second += 5) {
      await slow.write("     ");
      await seconds(t, server, 5);
      await seconds(t, server, 0);
    }
    // Its client and the server wait for moments as well, however long the machine takes for them.
    while (isWaiting) await seconds(t, server, 0.01);
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
