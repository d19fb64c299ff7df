/** Pipelining: a request that comes before the answer to the one before it is over (RFC 9112, 9.3.2). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { within } from "../support/deadline.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

/** Beyond the deadline of a test: a run that is not let go holds the server up so long. */
const PATIENT = { PARLEY_DRAIN_SECONDS: "30" };

const requestsIn = ({ log }: TestServer) =>
  log.map((record) => JSON.parse(record)).filter(({ msg }) => msg === "request");

const ask = (stream: boolean): string[] => {
  const body = JSON.stringify({ message: "Hi", stream });
  return [
    "POST /api/chat HTTP/1.1",
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${body.length}`,
    "",
    body,
  ];
};

for (const stream of [true, false]) {
  const kind = stream ? "stream" : "JSON";
  test(`a ${kind} answer that waits behind another one is let go when its client leaves`, async (t) => {
    const turns = [
      [say("A"), hang],
      [say("B"), hang],
    ];
    const server = await startServer(t, { turns, env: PATIENT });
    const raw = await connectRaw(t, server);
    const first = server.model.nextAsked();
    await raw.write(...ask(true));
    await first;
    const second = server.model.nextAsked();
    await raw.write(...ask(stream));
    await second;
    raw.socket.destroy();
    await within(server.close(), "the end of the server");
    const [sent, unsent, ...others] = requestsIn(server);
    for (const { route, status } of [sent, unsent]) assert.deepEqual([route, status], ["/api/chat", 200]);
    assert.ok(sent.bytes > 0);
    assert.equal(unsent.bytes, 0, "nothing of it was sent");
    assert.deepEqual(others, []);
  });
}

test("an answer whose turn came is logged once, with the bytes that were its own", async (t) => {
  const server = await startServer(t, { turns: [[say("A"), hang]], env: PATIENT });
  const raw = await connectRaw(t, server);
  await raw.write("GET /widget.js HTTP/1.1", "host: 127.0.0.1", "", ask(true).join("\r\n"));
  const { body } = await raw.answer();
  await raw.until('"data":"A"');
  raw.socket.destroy();
  await within(server.close(), "the end of the server");
  const [first, second, ...others] = requestsIn(server).map(({ bytes }) => bytes);
  assert.ok(first !== undefined && first > body.length, `${first} bytes of the first`);
  assert.ok(second !== undefined && second > 0 && second < 2_000, `${second} of the second`);
  assert.deepEqual(others, []);
});
