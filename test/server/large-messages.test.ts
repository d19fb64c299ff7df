/** Messages over 1 MiB: read in turns and in a thread of their own, without holding up what runs. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { connectRaw, type RawConnection, upgrade } from "../support/raw-connection.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const MEBIBYTE = 1024 * 1024;
const PDF = attachment("application/pdf", { bytes: 2 * MEBIBYTE });
const ONE_AT_A_TIME = { PARLEY_MAX_LARGE_BODIES: "1" };

const LARGE_HEAD = [
  "POST /api/chat HTTP/1.1",
  "host: x",
  "content-type: application/json",
  `content-length: ${3 * MEBIBYTE}`,
  "expect: 100-continue",
  "",
  "",
];

/** Begins a large message and does not end it: it has the only turn once the server has read this much. */
const BEGIN: Record<"body" | "frame", (raw: RawConnection) => Promise<void>> = {
  async body(raw) {
    await raw.write(...LARGE_HEAD);
    // It is asked for its body: its turn has come.
    assert.equal((await raw.answer()).status, 100);
  },
  async frame(raw) {
    await raw.write(...upgrade());
    await raw.answer();
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0]);
    // In a message of three such parts.
    raw.socket.write(Buffer.concat([head, Buffer.alloc(2 * MEBIBYTE, 0x20)]));
  },
};

const chat = (stream: boolean) => ({ message: "Look", stream, attachments: [PDF] });

for (const holder of ["body", "frame"] as const) {
  test(`while a ${holder} has the only turn, other large messages wait and small ones do not`, async (t) => {
    const server = await startServer(t, {
      turns: [[say("Small")], [say("Small")], [say("Large")], [say("Large")]],
      env: ONE_AT_A_TIME,
    });
    const raw = await connectRaw(t, server);
    await BEGIN[holder](raw);
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

/** A body that says "Expect: 100-continue" is asked for when its turn comes: none is asked for any more. */
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
  await BEGIN.body(holder);
  const leaver = await connectRaw(t, server);
  await leaver.write(
    "POST /api/chat HTTP/1.1",
    "host: x",
    "content-type: application/json",
    "transfer-encoding: chunked",
    "",
    `180000\r\n${" ".repeat(0x180000)}`,
    "",
  );
  leaver.socket.destroy();
  const waiting = post(server, chat(false));
  holder.socket.destroy();
  assert.equal((await within(waiting, "the answer")).status, 200);
});

test("a large message that does not arrive in time is request_timeout, and the socket closes with 4408", async (t) => {
  const env = { PARLEY_BODY_SECONDS: "0.2", PARLEY_HEADER_SECONDS: "0.1" };
  const server = await startServer(t, { turns: [[say("Fine")]], env });
  const raw = await connectRaw(t, server);
  await BEGIN.frame(raw);
  const event = await raw.until("}");
  assert.match(event, /"code":"request_timeout"/);
  assert.ok((await raw.until("request_timeout")).includes("\x11\x38"));
  await within(raw.closed, "the cut: this peer does not answer the close frame");
});

test("messages on one socket are obeyed in their order, a large one before the small one behind it", async (t) => {
  const server = await startServer(t, { turns: [[say("Half"), hang]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Look", attachments: [PDF] });
  client.send({ type: "stop" });
  const last = (await client.until("done", "error")).at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
});

const REFUSED: [name: string, body: string, status: number, code: string][] = [
  ["no JSON", `{"message":"${"a".repeat(MEBIBYTE)}`, 400, "invalid_json"],
  ["nesting without end", `{"x":${"[".repeat(MEBIBYTE)}${"]".repeat(MEBIBYTE)}}`, 400, "invalid_request"],
  ["63 MiB of empty arrays", `{"x":[${"[],".repeat(21 * MEBIBYTE)}[]]}`, 413, "request_too_large"],
  ["300,000 keys", manyKeys(300_000), 400, "invalid_request"],
  ["a text that is too long", `{"message":"${"a".repeat(2 * MEBIBYTE)}","stream":true}`, 413, "request_too_large"],
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
