/** The memory that all messages may take together, from their first bytes until they are answered. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post, send } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

const MEBIBYTE = 1024 * 1024;
const ROOM = {
  PARLEY_MAX_BODY_BYTES: `${2 * MEBIBYTE}`,
  PARLEY_MAX_REQUEST_BYTES_TOTAL: `${2 * MEBIBYTE}`,
};

/** In base64 two thirds of the room: there is no place for two. */
const PDF = attachment("application/pdf", { bytes: MEBIBYTE });
const LARGE = { message: "Look", attachments: [PDF] };
const HEAD = ["POST /api/chat HTTP/1.1", "host: x", "content-type: application/json"];

test("while large messages that are being answered fill the memory, others are 503 at once and small ones are served", async (t) => {
  const end = gate();
  t.after(() => end.open());
  const server = await startServer(t, {
    turns: [[wait(end.opened), say("Large")], [say("Small")], [say("Small")], [say("Large")]],
    env: ROOM,
  });
  const asked = server.model.nextAsked();
  const first = send.sse(t, server, LARGE);
  await within(asked, "the first large message");

  const raw = await connectRaw(t, server);
  await raw.write(...HEAD, "content-length: 1400000", "expect: 100-continue", "", "");
  const refused = await raw.answer();
  assert.equal(refused.status, 503, "before a byte of the body is asked for");
  assert.equal(JSON.parse(refused.body).error.code, "overloaded");
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  const chunked = await connectRaw(t, server);
  await chunked.write(...HEAD, "transfer-encoding: chunked", "", `180000\r\n${" ".repeat(0x180000)}`);
  assert.equal((await chunked.answer()).status, 503);
  const client = await connect(t, server.socketUrl);
  client.send(LARGE);
  const event = await client.next();
  assert.equal(event.type === "error" && event.code, "overloaded");
  assert.equal((await within(client.closed, "the close")).code, 4503);

  for (const transport of ["json", "socket"] as const) {
    assert.equal((await send[transport](t, server, { message: "Hi" })).last.data, "Small");
  }
  end.open();
  assert.equal((await first).last.data, "Large");
  assert.equal((await send.json(t, server, LARGE)).last.data, "Large", "there is room again");
});

/** One row: what becomes of a large message before it is answered. Whatever it is, its room is free again. */
const FATES: [name: string, meet: (t: Cleanup, server: TestServer) => Promise<unknown>][] = [
  ["no JSON", (_t, server) => post(server, "[".repeat(1_400_000))],
  [
    "a body that is cut off",
    async (t, server) => {
      const raw = await connectRaw(t, server);
      await raw.write(...HEAD, "content-length: 1400000", "", "x".repeat(1_000_000));
      raw.socket.destroy();
    },
  ],
  [
    "a body longer than allowed",
    async (t, server) => {
      const raw = await connectRaw(t, server);
      const chunk = `180000\r\n${" ".repeat(0x180000)}\r\n`;
      await raw.write(...HEAD, "transfer-encoding: chunked", "", `${chunk}${chunk}0\r\n\r\n`);
      assert.equal((await raw.answer()).status, 413);
    },
  ],
  [
    "a frame that is cut off",
    async (t, server) => {
      const client = await connect(t, server.socketUrl);
      client.socket.send("x".repeat(1_000_000), { fin: false }, () => client.socket.terminate());
      await client.closed;
    },
  ],
  [
    "a run id that belongs to another message",
    async (_t, server) => {
      const run = "a-name-that-is-taken";
      await post(server, { message: "Hi", stream: true, run });
      assert.equal((await post(server, { ...LARGE, stream: true, run })).status, 400);
    },
  ],
  [
    "a client that leaves a running answer",
    async (t, server) => {
      const asked = server.model.nextAsked();
      const client = await connect(t, server.socketUrl);
      client.send(LARGE);
      const { aborted } = await asked;
      client.socket.terminate();
      await aborted;
    },
  ],
];

for (const [name, meet] of FATES) {
  test(`the room of a large message is free again after ${name}`, async (t) => {
    const end = gate();
    t.after(() => end.open());
    const held = name.includes("running");
    const server = await startServer(t, {
      turns: [held ? [wait(end.opened)] : [say("Fine")], [say("Fine")], [say("Fine")]],
      env: ROOM,
    });
    await within(meet(t, server), name);
    end.open();
    await freed(server);
  });
}

/** The server notices a lost line in its own time, so it is asked until it has room. */
async function freed(server: TestServer): Promise<void> {
  for (let asked = 0; asked < 500; asked++) {
    const { status } = await post(server, { ...LARGE, stream: false });
    if (status === 200) return;
    assert.equal(status, 503);
  }
  assert.fail("the room was never free again");
}
