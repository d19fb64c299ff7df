/** `stream: true`: the answer's head, its silence, its reader and its end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeFrame } from "../../server/protocol/sse.ts";
import { post, readEventStream } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { endlessTurn, settled } from "../support/endless-turn.ts";
import { connectRaw, type RawConnection } from "../support/raw-connection.ts";
import { hang, say, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const CHAT = { message: "Hi", stream: true };

test("the head is flushed before the first token, with all that a proxy needs to know", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[wait(held.opened), say("Late")]] });
  const headers = { "accept-encoding": "gzip, br" };
  const answer = await post(server, CHAT, { headers });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(answer.headers.get("cache-control"), "no-cache, no-transform");
  assert.equal(answer.headers.get("x-accel-buffering"), "no");
  assert.equal(answer.headers.get("content-encoding"), null);
  assert.ok(answer.headers.get("x-request-id"));
  held.open();
  assert.equal(readEventStream(await answer.text()).at(-1)?.data, "Late");
});

test("each token leaves at once, not with the next", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const answer = await post(server, CHAT);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const first = await within(Promise.resolve(reader?.read()), "the first token");
  assert.equal(first?.value, 'id: 1\nevent: token\ndata: {"type":"token","data":"A","id":1}\n\n');
  held.open();
  await reader?.cancel();
});

test("a frame is an id, an event and one data line and a blank line, whatever the text holds", () => {
  const data = "a\r\nb\n\nevent: error\ndata: x";
  assert.match(encodeFrame({ type: "token", data, id: 7 }), /^id: 7\nevent: token\ndata: [^\r\n]+\n\n$/);
});

test("there is no [DONE] line: the last frame is the done event", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const text = await (await post(server, CHAT)).text();
  assert.match(text, /id: 2\nevent: done\ndata: \{"type":"done"[^\n]*\}\n\n$/);
  assert.doesNotMatch(text, /\[DONE\]/);
});

test("a silence of PARLEY_KEEP_ALIVE_SECONDS is broken by a comment that clients ignore", async (t) => {
  const held = gate();
  const server = await startServer(t, {
    turns: [[wait(held.opened), say("Late")]],
    env: { PARLEY_KEEP_ALIVE_SECONDS: "0.02" },
  });
  const answer = await post(server, CHAT);
  let text = "";
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.split(": keep-alive\n\n").length > 2) held.open();
  }
  assert.ok(text.startsWith(": keep-alive\n\n: keep-alive\n\n"));
  assert.deepEqual(
    readEventStream(text).map(({ type }) => type),
    ["token", "done"],
  );
});

for (const stream of [true, false]) {
  test(`a client that leaves aborts the model request within a second (stream: ${stream})`, async (t) => {
    const server = await startServer(t, { turns: [[say("Half"), hang]] });
    const asked = server.model.nextAsked();
    const leaving = new AbortController();
    const answer = post(server, { message: "Hi", stream }, { signal: leaving.signal });
    const left = assert.rejects(answer.then((got) => got.text()));
    const { aborted } = await asked;
    leaving.abort();
    await left;
    await within(aborted, "the abort");
  });
}

test("a client that leaves before the first token aborts the model request, too", async (t) => {
  const server = await startServer(t, { turns: [[hang]] });
  const raw = await connectRaw(t, server);
  const asked = server.model.nextAsked();
  const body = JSON.stringify(CHAT);
  await raw.write(...post11(body));
  const { aborted } = await asked;
  raw.socket.destroy();
  await within(aborted, "the abort");
});

test("a client that does not read holds the model back, and its leaving ends the run", async (t) => {
  const { turn, taken } = endlessTurn();
  const server = await startServer(t, { turns: [turn] });
  const raw = await connectRaw(t, server);
  raw.socket.pause();
  await raw.write(...post11(JSON.stringify(CHAT)));
  const stalledAt = await settled(taken, server);
  assert.ok(stalledAt > 0 && stalledAt < 1000, `${stalledAt} pieces of 64 KiB`);
  raw.socket.destroy();
  await within(server.close(), "the end of the run");
  assert.ok(taken() < stalledAt + 100, `${taken()} pieces in the end`);
});

test("HTTP/1.0 gets the stream without chunks, up to the end of the connection", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const raw = await connectRaw(t, server);
  const [, ...lines] = post11(JSON.stringify(CHAT));
  await raw.write("POST /api/chat HTTP/1.0", ...lines);
  assert.equal((await raw.answer()).status, 200);
  const text = await raw.until('"finish_reason":"stop","id":2}\n\n');
  assert.deepEqual(
    readEventStream(text).map(({ type }) => type),
    ["token", "done"],
  );
  await raw.closed;
});

test("two streams on one connection come one after the other, each whole, whatever their text holds", async (t) => {
  const held = gate();
  const server = await startServer(t, {
    turns: [
      [say("Grüße "), wait(held.opened), say("\u{1F642}"), say(" plain")],
      [say("second"), say(" é\u2028")],
    ],
  });
  const raw = await connectRaw(t, server);
  const asked = server.model.nextAsked();
  const second = server.model.nextAsked();
  const request = post11(JSON.stringify(CHAT)).join("\r\n");
  await raw.write(request + request);
  await within(asked, "the first request");
  // Both run; the second one's first events wait behind the first answer.
  await within(second, "the second request");
  held.open();
  for (const said of ["Grüße \u{1F642} plain", "second é\u2028"]) {
    const { headers } = await raw.answer();
    assert.equal(headers.get("transfer-encoding"), "chunked");
    const events = readEventStream(await dechunked(raw));
    assert.equal(events.at(-1)?.type, "done");
    assert.equal(events.at(-1)?.data, said);
    const tokens = events.filter(({ type }) => type === "token");
    assert.equal(tokens.map(({ data }) => data).join(""), said);
  }
});

/** A body in chunks, as RFC 9112, 7.1 has them. */
async function dechunked(raw: RawConnection): Promise<string> {
  let body = "";
  for (;;) {
    const size = Number.parseInt(await raw.until("\r\n"), 16);
    body += await raw.bytes(size);
    assert.equal(await raw.bytes(2), "\r\n");
    if (size === 0) return Buffer.from(body, "latin1").toString();
  }
}

function post11(body: string): string[] {
  return [
    "POST /api/chat HTTP/1.1",
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ];
}
