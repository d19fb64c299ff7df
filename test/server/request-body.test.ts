/** How bodies arrive: their size, their pieces, and who is asked before they are read. */

import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { type BodyRules, withBody } from "../../server/http/body.ts";
import { createContext } from "../../server/http/request.ts";
import { MemoryBudget } from "../../server/limits/memory-budget.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { post } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const HEAD = ["POST /api/chat HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"];
const BODY = '{"message":"Hi","stream":false}';
const LIMIT = { PARLEY_MAX_BODY_BYTES: "1000" };
const KEY = { PARLEY_API_KEY: "key-of-a-test" };

test("Expect: 100-continue is answered when the body is wanted", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const raw = await connectRaw(t, server);
  await raw.write(...HEAD, `content-length: ${BODY.length}`, "expect: 100-continue", "", "");
  assert.equal((await raw.answer()).status, 100);
  await raw.write(BODY);
  assert.equal((await raw.answer()).status, 200);
});

const NOT_WANTED: [name: string, env: object, headers: string[], status: number, code: string][] = [
  ["no key", KEY, ["content-length: 31"], 401, "unauthorized"],
  ["a length over the limit", LIMIT, ["content-length: 1001"], 413, "request_too_large"],
  ["an origin that may not", {}, ["origin: https://evil.example", "content-length: 31"], 403, "forbidden"],
  ["a content coding", {}, ["content-encoding: gzip", "content-length: 31"], 415, "unsupported_media_type"],
  ["a transfer coding that is not chunked", {}, ["transfer-encoding: gzip, chunked"], 415, "unsupported_media_type"],
];

for (const [name, env, headers, status, code] of NOT_WANTED) {
  test(`Expect: 100-continue with ${name} is ${status} without the body being sent`, async (t) => {
    const server = await startServer(t, { turns: [], env: { ...env } });
    const raw = await connectRaw(t, server);
    await raw.write(...HEAD, ...headers, "expect: 100-continue", "", "");
    const answer = await raw.answer();
    assert.equal(answer.status, status);
    assert.equal(JSON.parse(answer.body).error.code, code);
  });
}

test("a body of exactly the limit is read, one byte more is 413 request_too_large", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]], env: LIMIT });
  const padded = (length: number) => BODY + " ".repeat(length - BODY.length);
  assert.equal((await post(server, padded(1000))).status, 200);
  const answer = await post(server, padded(1001));
  assert.equal(answer.status, 413);
  assert.equal(JSON.parse(await answer.text()).error.code, "request_too_large");
});

test("a chunked body is counted while it arrives", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]], env: LIMIT });
  const raw = await connectRaw(t, server);
  const chunk = `1f4\r\n${" ".repeat(500)}\r\n`;
  await raw.write(...HEAD, "transfer-encoding: chunked", "", `${chunk}${chunk}1\r\n \r\n`);
  const answer = await raw.answer();
  assert.equal(answer.status, 413);
  assert.equal(JSON.parse(answer.body).error.code, "request_too_large");
  // The refused body's rest is thrown away, and the connection serves on.
  await raw.write("0", "", ...HEAD, `content-length: ${BODY.length}`, "", BODY);
  assert.equal((await raw.answer()).status, 200);
});

test("the 413 reaches a client that sends its whole body before it reads", async (t) => {
  const server = await startServer(t, { turns: [], env: LIMIT });
  const raw = await connectRaw(t, server);
  const megabyte = " ".repeat(1024 * 1024);
  await raw.write(...HEAD, `content-length: ${8 * megabyte.length}`, "", "");
  for (let sent = 0; sent < 8; sent++) await raw.write(megabyte);
  assert.equal((await raw.answer()).status, 413);
});

test("requests on one connection are answered in order, also after a refused one", async (t) => {
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]], env: LIMIT });
  const raw = await connectRaw(t, server);
  const good = [...HEAD, `content-length: ${BODY.length}`, "", BODY].join("\r\n");
  const bad = [...HEAD, "content-length: 1001", "", " ".repeat(1001)].join("\r\n");
  await raw.write(good + bad + good);
  const answers = [await raw.answer(), await raw.answer(), await raw.answer()];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 413, 200],
  );
  assert.match(answers[0]?.body ?? "", /One/);
  assert.match(answers[2]?.body ?? "", /Two/);
});

test("a client that leaves in the middle of its body starts no run", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const raw = await connectRaw(t, server);
  await raw.write(...HEAD, "content-length: 31", "", '{"message":');
  raw.socket.destroy();
  await raw.closed;
  assert.equal((await post(server, BODY)).status, 200);
  assert.equal(server.model.asked.length, 1);
  assert.doesNotMatch(server.log.join("\n"), /aborted|ECONNRESET/, "no fault of the server");
});

const BROKEN: [name: string, lines: string[], status: number][] = [
  ["no HTTP at all", ["Hello there", "", ""], 400],
  ["no Host", ["GET /health HTTP/1.1", "", ""], 400],
  ["a length that is no number", [...HEAD, "content-length: many", "", ""], 400],
  ["two ways to say the length", [...HEAD, "content-length: 3", "transfer-encoding: chunked", "", ""], 400],
  ["a protocol that we do not speak", ["GET /health HTTP/3.7", "host: x", "", ""], 400],
  ["headers beyond 16 KiB", [...HEAD, `x-long: ${"x".repeat(17_000)}`, "", ""], 431],
];

for (const [name, lines, status] of BROKEN) {
  test(`a request with ${name} is ${status} in the same JSON, and the server goes on`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const raw = await connectRaw(t, server);
    await raw.write(...lines);
    const answer = await raw.answer();
    assert.equal(answer.status, status);
    assert.ok(answer.headers.get("x-request-id"));
    assert.equal(JSON.parse(answer.body).error.code, "invalid_request");
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
  });
}

const MIB = 1024 * 1024;

/** A client that goes on sending what is refused already, and wants its connection closed with the answer. */
async function refusedWhileItSends(t: TestContext, lingerMs: number) {
  const server = await startServer(t, { turns: [], env: LIMIT, lingerMs });
  const raw = await connectRaw(t, server);
  const errors: unknown[] = [];
  raw.socket.on("error", (error) => errors.push(error));
  const length = `content-length: ${4 * MIB}`;
  await raw.write(...HEAD, "connection: close", length, "", "x".repeat(MIB));
  assert.equal((await raw.answer()).status, 413);
  return { raw, errors };
}

test("a client that is refused while it sends is not reset, so that it can read why", async (t) => {
  const { raw, errors } = await refusedWhileItSends(t, 60_000);
  await raw.write("x".repeat(3 * MIB));
  await within(raw.closed, "the end of the connection");
  assert.deepEqual(errors, []);
});

test("a client that is refused and never sends the rest is disconnected after a while", async (t) => {
  const { raw } = await refusedWhileItSends(t, 50);
  await within(raw.closed, "the end of the connection");
});

/** A body of these chunks, all of which are there; and the bytes that `withBody` reads of it. */
function read(chunks: readonly number[], admitUpload: BodyRules["limits"]["admitUpload"], { isWhole = true } = {}) {
  const req = new IncomingMessage(new Socket());
  req.headers = { "content-type": "application/json" };
  for (const size of chunks) req.push(Buffer.alloc(size));
  if (isWhole) req.push(null);
  const context = createContext(req, new ServerResponse(req));
  const memory = new MemoryBudget(2 * MIB).openMessage();
  const rules = { maxBytes: 2 * MIB, limits: { admitUpload }, minRate: 0, address: "192.0.2.1", memory };
  return { req, size: withBody(context, rules, async (body) => body.length) };
}

function later<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

test("a body in chunks whose last bytes make it large waits for its slot, and frees it", async () => {
  const slot = later<() => void>();
  let freed = 0;
  const { req, size } = read([...Array<number>(16).fill(MIB / 16), 100], () => slot.promise);
  let isRead = false;
  void size.then(() => {
    isRead = true;
  });
  while (!req.readableEnded) await nextTick();
  await nextTick();
  assert.equal(isRead, false);
  slot.resolve(() => void freed++);
  assert.equal(await size, MIB + 100);
  assert.equal(freed, 1);
});

test("a body that breaks off while it waits for its slot frees that when it comes", async () => {
  const slot = later<() => void>();
  const { req, size } = read([MIB + 1], () => slot.promise, { isWhole: false });
  while (!req.isPaused()) await nextTick();
  req.destroy();
  await assert.rejects(size, ApiError);
  let freed = 0;
  slot.resolve(() => void freed++);
  await nextTick();
  assert.equal(freed, 1);
});
