/** Bodies and text frames that no client of ours would write: each gets the same code over REST and on the socket. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { DEADLINE_MS } from "../support/deadline.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const text = (json: string) => Buffer.from(json);
const rest = '"message":"","stream":true}';

/** "closes": a text frame cannot hold these bytes (RFC 6455, 5.6), so the socket is closed with 1007. */
const CASES: [name: string, bytes: Buffer, code: ErrorCode, socket?: "closes"][] = [
  ["nothing", text(""), "invalid_json"],
  ["white space", text(" \n\t "), "invalid_json"],
  ["a byte order mark before what is no message", text(`\uFEFF{${rest}`), "invalid_request"],
  ["UTF-16", Buffer.from(`\uFEFF{${rest}`, "utf16le"), "invalid_json", "closes"],
  ["UTF-16 without a mark", Buffer.from(`{${rest}`, "utf16le"), "invalid_json"],
  ["bytes that are not UTF-8", Buffer.from(`{"x":"\xff",${rest}`, "latin1"), "invalid_json", "closes"],
  ["an overlong NUL", Buffer.from(`{"x":"\xc0\x80",${rest}`, "latin1"), "invalid_json", "closes"],
  ["a surrogate in UTF-8", Buffer.from(`{"x":"\xed\xa0\x80",${rest}`, "latin1"), "invalid_json", "closes"],
  [
    "gzip that does not say so",
    Buffer.from("1f8b0800000000000003ab060043bfa6a302000000", "hex"),
    "invalid_json",
    "closes",
  ],
  ["a NUL in a string", Buffer.from(`{"x":"\0",${rest}`, "latin1"), "invalid_json"],
  ["a trailing comma", text('{"message":"Hi","stream":true,}'), "invalid_json"],
  ["two values", text(`{${rest}{${rest}`), "invalid_json"],
  ["single quotes", text("{'message':'Hi'}"), "invalid_json"],
  ["a comment", text(`{/* */${rest}`), "invalid_json"],
  ["NaN", text('{"message":NaN}'), "invalid_json"],
  ["a number that is too large", text('{"message":1e999,"stream":true}'), "invalid_request"],
  ["a number of 100,000 digits", text(`{"message":${"9".repeat(100_000)},"stream":true}`), "invalid_request"],
  ["the last of two keys that are alike", text('{"message":"Hi","message":5,"stream":true}'), "invalid_request"],
  ["a key of 200 kB", text(`{"${"k".repeat(200_000)}":1,${rest}`), "invalid_request"],
  ["__proto__ with a message", text('{"__proto__":{"message":"Hi","stream":true}}'), "invalid_request"],
  ["constructor and prototype", text(`{"constructor":{"prototype":{"message":"Hi"}},${rest}`), "invalid_request"],
  ["toString in place of the message", text('{"toString":"Hi","stream":true}'), "invalid_request"],
  [
    "20,000 keys that look like numbers",
    text(`{${Array.from({ length: 20_000 }, (_, n) => `"${n * 65_537}":1`).join(",")},${rest}`),
    "invalid_request",
  ],
  ["100,000 levels in a string's guise", text(`{"x":${"[".repeat(100_000)}"]`), "invalid_request"],
  ["levels of objects", text(`${'{"x":'.repeat(1000)}1${"}".repeat(1000)}`), "invalid_request"],
  [
    "an attachment with __proto__",
    text('{"message":"Hi","stream":true,"attachments":[{"__proto__":{"type":"image"}}]}'),
    "invalid_request",
  ],
  [
    "a state with __proto__",
    text('{"message":"Hi","stream":true,"state":{"__proto__":{"conversation_history":[]},"x":1}}'),
    "invalid_state",
  ],
];

let server: TestServer;
const cleanups: (() => Promise<void>)[] = [];
before(async () => {
  const t = { after: (done?: unknown) => void cleanups.push(done as () => Promise<void>) };
  server = await startServer(t, { turns: [], env: { PARLEY_RATE_PER_SOCKET: "0" } });
});
after(async () => {
  for (const done of cleanups) await done();
});

test(`${CASES.length} hostile texts have their code over REST`, async (t) => {
  for (const [name, body, code] of CASES) {
    await t.test(`${name}: ${code}`, async () => {
      const answer = await fetch(`${server.url}/api/chat`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: new Uint8Array(body),
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
      const { error } = JSON.parse(await answer.text());
      assert.deepEqual([answer.status, error.code], [400, code]);
    });
  }
});

test(`${CASES.length} hostile texts have their code on the socket, which stays open`, async (t) => {
  const client = await connect(t, server.socketUrl);
  for (const [name, body, code, socket] of CASES) {
    if (socket === "closes") {
      await t.test(`${name}: 1007`, async (t) => {
        const other = await connect(t, server.socketUrl);
        other.socket.send(body, { binary: false });
        assert.equal((await other.closed).code, 1007);
      });
      continue;
    }
    await t.test(`${name}: ${code}`, async () => {
      client.socket.send(body, { binary: false });
      const event = await client.next();
      assert.equal(event.type === "error" && event.code, code);
    });
  }
  client.send({ type: "clear" });
  assert.equal((await client.next()).type, "cleared");
});

test("none of them reached the model, and the log holds no stack", () => {
  assert.equal(server.model.asked.length, 0);
  assert.doesNotMatch(server.log.join("\n"), / {4}at |internal|Error:/);
});
