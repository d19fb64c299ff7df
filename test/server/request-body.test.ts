/** How request bodies arrive: their size, their chunks, and what is checked before they are read. */

import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { Upload, withBody } from "../../server/http/body.ts";
import { createContext } from "../../server/http/request.ts";
import { MemoryBudget } from "../../server/limits/memory-budget.ts";
import { fieldOf, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import {
  CHAT_HEAD,
  chatRequest,
  connectRaw,
  connectRawSocket,
  type RawConnection,
  startWithRaw,
  upgrade,
} from "../support/raw-connection.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { connect, startWithClient } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const CHAT = { message: "Hi", stream: false };
const BODY = JSON.stringify(CHAT);
const LIMIT = { PARLEY_MAX_BODY_BYTES: "1000" };
const KEY = { PARLEY_API_KEY: "key-of-a-test" };

test("Expect: 100-continue is answered when the body is wanted", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")]] });
  await raw.write(...CHAT_HEAD, `content-length: ${BODY.length}`, "expect: 100-continue", "", "");
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
    const { raw } = await startWithRaw(t, { turns: [], env: { ...env } });
    await raw.write(...CHAT_HEAD, ...headers, "expect: 100-continue", "", "");
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

test("a chunked body is counted while it arrives; one that is refused is read to its end, and the connection goes on", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")]], env: { PARLEY_MAX_BODY_BYTES: "65536" } });
  const chunk = `8000\r\n${" ".repeat(32_768)}\r\n`;
  await raw.write(...CHAT_HEAD, "transfer-encoding: chunked", "", `${chunk}${chunk}1\r\n \r\n`);
  const answer = await raw.answer();
  assert.equal(answer.status, 413);
  assert.equal(JSON.parse(answer.body).error.code, "request_too_large");
  raw.socket.write(`${chunk.repeat(80)}0\r\n\r\n`);
  await raw.write(...chatRequest(CHAT));
  assert.equal((await raw.answer()).status, 200);
});

test("the 413 reaches a client that sends its whole body before it reads", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [], env: LIMIT });
  const megabyte = " ".repeat(1024 * 1024);
  await raw.write(...CHAT_HEAD, `content-length: ${8 * megabyte.length}`, "", "");
  for (let sent = 0; sent < 8; sent++) await raw.write(megabyte);
  assert.equal((await raw.answer()).status, 413);
});

test("requests on one connection are answered in order, also after a refused one", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("One")], [say("Two")]], env: LIMIT });
  const good = chatRequest(CHAT).join("\r\n");
  const bad = [...CHAT_HEAD, "content-length: 1001", "", " ".repeat(1001)].join("\r\n");
  await raw.write(good + bad + good);
  const answers = [await raw.answer(), await raw.answer(), await raw.answer()];
  assert.deepEqual(fieldOf(answers, "status"), [200, 413, 200]);
  assert.match(answers[0]?.body ?? "", /One/);
  assert.match(answers[2]?.body ?? "", /Two/);
});

test("a client that leaves in the middle of its body starts no run", async (t) => {
  const { server, raw } = await startWithRaw(t, { turns: [[say("Fine")]] });
  await raw.write(...CHAT_HEAD, "content-length: 31", "", '{"message":');
  raw.socket.destroy();
  await raw.closed;
  assert.equal((await post(server, BODY)).status, 200);
  assert.equal(server.model.asked.length, 1);
  assert.doesNotMatch(server.log.join("\n"), /aborted|ECONNRESET/, "no fault of the server");
});

const MIB = 1024 * 1024;

/** A client that keeps sending a refused body, and asked to close the connection after the response. */
async function refusedWhileItSends(t: TestContext, lingerMs: number) {
  const { raw } = await startWithRaw(t, { turns: [], env: LIMIT, lingerMs });
  const errors: unknown[] = [];
  raw.socket.on("error", (error) => errors.push(error));
  const length = `content-length: ${4 * MIB}`;
  await raw.write(...CHAT_HEAD, "connection: close", length, "", "x".repeat(MIB));
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

function later<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

test("a body in chunks whose last bytes make it large waits for its slot, and frees it", async () => {
  const req = new IncomingMessage(new Socket());
  req.headers = { "content-type": "application/json" };
  for (const size of [...Array<number>(16).fill(MIB / 16), 100]) req.push(Buffer.alloc(size));
  req.push(null);
  const context = createContext(req, new ServerResponse(req));
  const memory = new MemoryBudget(2 * MIB).openMessage();
  const [asked, slot] = [later<void>(), later<() => void>()];
  const admitUpload = () => {
    asked.resolve();
    return slot.promise;
  };
  const rules = { maxBytes: 2 * MIB, limits: { admitUpload }, address: "192.0.2.1", memory };
  let isRead = false;
  const size = withBody(context, rules, async (body) => {
    isRead = true;
    return body.length;
  });
  await asked.promise;
  for (let tick = 0; tick < 5; tick++) await nextTick();
  assert.equal(isRead, false);
  let freed = 0;
  slot.resolve(() => void freed++);
  assert.equal(await size, MIB + 100);
  assert.equal(freed, 1);
});

test("a message that breaks off while it waits for its slot frees that when it comes", async () => {
  const slot = later<() => void>();
  const upload = new Upload({ limits: { admitUpload: () => slot.promise } }, "192.0.2.1");
  void upload.begin();
  upload.end();
  let freed = 0;
  slot.resolve(() => void freed++);
  await nextTick();
  assert.equal(freed, 1);
});

// Large messages that arrive too slowly, while others wait for their slots.

/** Size of the messages here in bytes, far above the threshold of large ones. */
const SIZE = 3 * MIB;

/** Size of the first part of a message, which is enough to occupy a slot. */
const BEGUN = 2 * MIB;

/** Each starts a message of spaces and sends its first part. */
const BEGIN: readonly ((raw: RawConnection) => Promise<void>)[] = [
  (raw) => raw.write(...CHAT_HEAD, `content-length: ${SIZE}`, "", " ".repeat(BEGUN)),
  (raw) => raw.write(...CHAT_HEAD, "transfer-encoding: chunked", "", `${SIZE.toString(16)}\r\n${" ".repeat(BEGUN)}`),
  beginFrame,
];

/** Two thirds of a text frame. */
async function beginFrame(raw: RawConnection): Promise<void> {
  await raw.write(...upgrade());
  await raw.answer();
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0]);
  raw.socket.write(Buffer.concat([head, Buffer.alloc(BEGUN, 0x20)]));
}

/** Waits until the server has read all that was sent before. */
async function hasRead({ url }: TestServer): Promise<void> {
  for (let round = 0; round < 5; round++) await (await fetch(`${url}/health`)).text();
}

test("a large message that is not there in time loses its slot, and the one that waits for it is served, whatever brings it", async (t) => {
  const env = { PARLEY_MAX_LARGE_BODIES: "1", PARLEY_HEADER_SECONDS: "2", PARLEY_BODY_SECONDS: "2" };
  // In parallel, because each takes that long.
  const served = BEGIN.map(async (begin) => {
    const server = await startServer(t, { turns: [[say("Fine")]], env });
    const slow = await connectRaw(t, server);
    await begin(slow);
    await hasRead(server);
    await slow.until("request_timeout");
    const body = JSON.stringify({ message: "Hi", stream: false, unknown: "x".repeat(BEGUN) });
    assert.equal((await post(server, body)).status, 200);
    slow.socket.destroy();
  });
  await Promise.all(served);
});

test("control frames are no payload: a socket that only pings is no upload", async (t) => {
  t.after(() => t.mock.restoreAll());
  const server = await startServer(t, { turns: [], env: { PARLEY_MAX_LARGE_BODIES: "1" } });
  const clock = stopClock(t);
  const pinging = await connectRawSocket(t, server);
  const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 120, 0, 0, 0, 0]), Buffer.alloc(120, 0x20)]);
  // Together larger than the threshold of large messages.
  const pings = Buffer.concat(Array<Buffer>(500).fill(ping));
  for (let sent = 0; sent < 20; sent++) {
    pinging.socket.write(pings);
    await hasRead(server);
  }
  clock.tick(150_000);
  await hasRead(server);
  assert.ok(!pinging.rest.includes("request_timeout"));
  const text = Buffer.from(JSON.stringify({ type: "clear" }));
  pinging.socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
  await pinging.until("cleared");
});

// Messages over 1 MiB: read one at a time and parsed in a thread, without blocking other runs.

const PDF = attachment("application/pdf", { bytes: 2 * MIB });
const ONE_AT_A_TIME = { PARLEY_MAX_LARGE_BODIES: "1" };

const LARGE_HEAD = [...CHAT_HEAD, `content-length: ${3 * MIB}`, "expect: 100-continue", "", ""];

/** Begins a large message and does not end it: it occupies the only slot once the server has read this part. */
const HOLD: Record<"body" | "frame", (raw: RawConnection) => Promise<void>> = {
  async body(raw) {
    await raw.write(...LARGE_HEAD);
    // The server asks for the body: the message has its slot.
    assert.equal((await raw.answer()).status, 100);
  },
  frame: beginFrame,
};

const chat = (stream: boolean) => ({ message: "Look", stream, attachments: [PDF] });

for (const holder of ["body", "frame"] as const) {
  test(`while a ${holder} has the only turn, other large messages wait and small ones do not`, async (t) => {
    const { server, raw } = await startWithRaw(t, {
      turns: [[say("Small")], [say("Small")], [say("Large")], [say("Large")]],
      env: ONE_AT_A_TIME,
    });
    await HOLD[holder](raw);
    if (holder === "frame") await turnTaken(t, server);
    const waiting = [
      send.json(t, server, { message: "Look", attachments: [PDF] }),
      send.socket(t, server, { message: "Look", attachments: [PDF] }),
    ];
    for (const transport of ["json", "socket"] as const) {
      assert.equal((await send[transport](t, server, { message: "Hi" })).last.data, "Small");
    }
    assert.equal(server.model.asked.length, 2, "the large ones still wait");
    raw.socket.destroy();
    for (const { last } of await within(Promise.all(waiting), "the turns of the others")) {
      assert.equal(last.data, "Large");
    }
  });
}

/** Waits until the slot is occupied: then a request with "Expect: 100-continue" gets no "100 Continue". */
async function turnTaken(t: Cleanup, server: TestServer): Promise<void> {
  for (;;) {
    const probe = await connectRaw(t, server);
    await probe.write(...LARGE_HEAD);
    for (let round = 0; round < 5; round++) await (await fetch(`${server.url}/health`)).text();
    probe.socket.destroy();
    await probe.closed;
    if (probe.rest === "") return;
  }
}

test("a client that leaves while it waits gives its place up, and a body in chunks waits as well", async (t) => {
  const server = await startServer(t, { turns: [[say("Large")]], env: ONE_AT_A_TIME });
  const holder = await connectRaw(t, server);
  await HOLD.body(holder);
  const leaver = await connectRaw(t, server);
  await leaver.write(...CHAT_HEAD, "transfer-encoding: chunked", "", `180000\r\n${" ".repeat(0x180000)}`, "");
  leaver.socket.destroy();
  const waiting = post(server, chat(false));
  holder.socket.destroy();
  assert.equal((await within(waiting, "the answer")).status, 200);
});

test("a large message that does not arrive in time is request_timeout, and the socket closes with 4408", async (t) => {
  const env = { PARLEY_BODY_SECONDS: "0.2", PARLEY_HEADER_SECONDS: "0.1" };
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")]], env });
  await HOLD.frame(raw);
  const event = await raw.until("}");
  assert.match(event, /"code":"request_timeout"/);
  assert.ok((await raw.until("request_timeout")).includes("\x11\x38"));
  await within(raw.closed, "the cut: this peer does not answer the close frame");
});

test("messages on one socket are obeyed in their order, a large one before the small one behind it", async (t) => {
  const { client } = await startWithClient(t, { turns: [[say("Half"), hang]] });
  client.send({ message: "Look", attachments: [PDF] });
  client.send({ type: "stop" });
  const last = (await client.until("done", "error")).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

const REFUSED: [name: string, body: string, status: number, code: string][] = [
  ["no JSON", `{"message":"${"a".repeat(MIB)}`, 400, "invalid_json"],
  ["nesting without end", `{"x":${"[".repeat(MIB)}${"]".repeat(MIB)}}`, 400, "invalid_request"],
  ["63 MiB of empty arrays", `{"x":[${"[],".repeat(21 * MIB)}[]]}`, 413, "request_too_large"],
  ["300,000 keys", manyKeys(300_000), 400, "invalid_request"],
  ["a text that is too long", `{"message":"${"a".repeat(2 * MIB)}","stream":true}`, 413, "request_too_large"],
  ["a history that is too long", history(30_000), 413, "request_too_large"],
];

test("what is wrong with a large message is said in the same words, on both transports", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  for (const [name, body, status, code] of REFUSED) {
    const answer = await post(server, body);
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code], [status, code], name);
    const client = await connect(t, server.socketUrl);
    client.socket.send(body);
    const event = await client.next();
    assert.ok(event.type === "error");
    assert.equal(event.code, code, name);
  }
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
  assert.equal(server.model.asked.length, 1);
});

test("a thread that breaks is not blamed on the message, and the log says what was wrong", async (t) => {
  const folder = temporaryProject(t, { "broken.mjs": 'throw new Error("no such part");' });
  const server = await startServer(t, {
    turns: [[say("Fine")], [say("Fine")], [say("Fine")]],
    parseWorker: join(folder, "broken.mjs"),
  });
  for (const transport of TRANSPORTS) {
    const { last } = await send[transport](t, server, { message: "Hi", attachments: [PDF] });
    assert.ok(last.type === "error");
    assert.equal(last.code, "internal", transport);
    const next = await send[transport](t, server, { message: "Hi" });
    assert.equal(next.last.type, "done", transport);
  }
  assert.equal(server.log.filter((line) => line.includes("no such part")).length, 3);
});

function manyKeys(count: number): string {
  const keys = Array.from({ length: count }, (_, n) => `"${n}":${n}`);
  return `{${keys.join(",")},"stream":true}`;
}

function history(count: number): string {
  const messages = Array.from({ length: count }, () => ({ role: "user", content: "Hello again" }));
  return JSON.stringify({ message: "Hi", stream: true, state: { conversation_history: messages } });
}
