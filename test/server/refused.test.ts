/** Refusals on connections that have no answer of their own to write to. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate } from "../support/deadline.ts";
import { connectRaw, upgrade } from "../support/raw-connection.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

test("a socket without a key is cut when it sends more than a greeting", async (t) => {
  const server = await startServer(t, { env: { PARLEY_API_KEY: "k-123456" } });
  const raw = await connectRaw(t, server);
  await raw.write(...upgrade());
  await raw.until("unauthorized");
  // A text frame of 60 MiB is announced; its first bytes follow.
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x03, 0xc0, 0, 0, 0, 0, 0, 0]);
  raw.socket.write(Buffer.concat([head, Buffer.alloc(64 * 1024)]));
  await raw.closed;
});

test("what is no HTTP behind a running stream cuts the line, and no error is written into the stream", async (t) => {
  const end = gate();
  t.after(() => end.open());
  const server = await startServer(t, { turns: [[say("Hel"), wait(end.opened), say("lo")]] });
  const raw = await connectRaw(t, server);
  const body = '{"message":"Hi","stream":true}';
  const type = "content-type: application/json";
  await raw.write("POST /api/chat HTTP/1.1", "host: x", type, `content-length: ${body.length}`, "", body);
  await raw.until('"data":"Hel"');
  await raw.write("GARBAGE", "", "");
  await raw.closed;
  assert.doesNotMatch(raw.rest, /HTTP\/1\.1/);
});

test("a whole address as the request's target is answered like its path", async (t) => {
  const server = await startServer(t, { turns: [] });
  const raw = await connectRaw(t, server);
  await raw.write("GET http://x/health?a=1 HTTP/1.1", "host: x", "", "");
  assert.equal((await raw.answer()).status, 200);
});

test("a refusal before there is a request carries the headers of every answer", async (t) => {
  const server = await startServer(t, { turns: [] });
  const raw = await connectRaw(t, server);
  await raw.write("GARBAGE", "", "");
  const { status, headers } = await raw.answer();
  assert.equal(status, 400);
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("referrer-policy"), "no-referrer");
});

test("a body that breaks after its request was refused gets no second answer", async (t) => {
  const server = await startServer(t, { env: { PARLEY_API_KEY: "k-123456" } });
  const raw = await connectRaw(t, server);
  await raw.write("POST /api/chat HTTP/1.1", "host: x", "transfer-encoding: chunked", "", "2", "{}");
  assert.equal((await raw.answer()).status, 401);
  await raw.write("", "zz", "", "");
  await raw.closed;
  assert.equal(raw.rest, "");
});
