/** How a stream's messages are told, packet by packet. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { ProviderEvent, Tell } from "../../server/providers/provider.ts";
import { gate, within } from "../support/deadline.ts";
import { turns } from "../support/turns.ts";
import { chatProvider, open } from "../support/upstream-conversation.ts";

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/** An event in an HTTP chunk of its own, as most servers send them. */
function chunk(content: string, finish: string | null = null): string {
  const event = { choices: [{ index: 0, delta: { content }, finish_reason: finish }] };
  const data = `data: ${JSON.stringify(event)}\n\n`;
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

/** The last event and the end of the answer. */
const LAST = `${chunk("", "stop")}0\r\n\r\n`;

/** Asks a model whose packets the test writes. */
async function ask(t: TestContext, tell: Tell<ProviderEvent>) {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const connected = once(server, "connection") as Promise<[Socket]>;
  const abort = new AbortController();
  const url = `http://127.0.0.1:${address.port}/v1`;
  const asked = within(open(chatProvider({ url })).ask(abort.signal, tell), "the end of the request");
  // Each test looks at how it ends in its own time.
  asked.catch(() => {});
  const [socket] = await within(connected, "the request");
  t.after(() => {
    socket.destroy();
    server.close();
  });
  await once(socket, "data");
  return { asked, abort, socket };
}

const textsOf = (events: readonly ProviderEvent[]) =>
  events.flatMap((event) => (event.type === "text" ? [event.delta] : []));

test("what comes in one packet is told at once, also where each event is an HTTP chunk of its own", async (t) => {
  const begun = gate();
  const told: string[][] = [];
  const { asked, socket } = await ask(t, (events) => {
    told.push(textsOf(events));
    begun.open();
    return undefined;
  });
  socket.write(HEAD + chunk("first"));
  await within(begun.opened, "the first event");
  const words = Array.from({ length: 20 }, (_, index) => `word ${index}`);
  socket.write(words.map((word) => chunk(word)).join("") + LAST);
  await asked;
  assert.deepEqual(told.slice(0, 2), [["first"], words]);
});

test("nothing is told until who is told has room, and then all that came meanwhile", async (t) => {
  const room = gate();
  const begun = gate();
  const told: string[][] = [];
  const { asked, socket } = await ask(t, (events) => {
    told.push(textsOf(events));
    begun.open();
    return told.length === 1 ? room.opened : undefined;
  });
  socket.write(HEAD + chunk("a"));
  await within(begun.opened, "the first event");
  socket.write(chunk("b"));
  socket.write(chunk("c") + LAST);
  await turns();
  assert.deepEqual(told, [["a"]]);
  room.open();
  await asked;
  assert.deepEqual(told.slice(0, 2), [["a"], ["b", "c"]]);
});

test("who was told and fails later ends the request with that", async (t) => {
  const broken = new Error("no room");
  const { asked, socket } = await ask(t, () => Promise.reject(broken));
  const closed = once(socket, "close");
  socket.write(HEAD + chunk("a") + chunk("b"));
  await assert.rejects(asked, broken);
  await within(closed, "the end of the connection");
});

for (const [when, room] of [
  ["while it is told", undefined],
  ["while there is no room", new Promise<void>(() => {})],
] as const) {
  test(`an abort ${when} closes the connection, and nothing more is told`, async (t) => {
    const begun = gate();
    let told = 0;
    const { asked, abort, socket } = await ask(t, () => {
      told++;
      begun.open();
      if (room === undefined) abort.abort(new Error("left"));
      return room;
    });
    const closed = once(socket, "close");
    socket.write(HEAD + chunk("a"));
    await within(begun.opened, "the first event");
    abort.abort(new Error("left"));
    socket.write(chunk("b"));
    await within(closed, "the end of the connection");
    if (room === undefined) await assert.rejects(asked, /left/);
    assert.equal(told, 1);
  });
}
