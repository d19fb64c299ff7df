/**
 * Requests that no client would send, written byte by byte. The response is a JSON error or the connection closes; the
 * next request succeeds, the model gets no request, and the log contains no stack.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createConnection } from "node:net";
import { after, test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { gate, within } from "../support/deadline.ts";
import {
  CHAT_HEAD,
  chatRequest,
  connectRaw,
  type RawAnswer,
  startWithRaw,
  upgrade,
} from "../support/raw-connection.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";

const POST = CHAT_HEAD;
const CHUNKED = [...POST, "transfer-encoding: chunked", ""];
const GET = ["GET /health HTTP/1.1", "host: 127.0.0.1"];
const BODY = '{"message":5,"stream":true}';
const CL = `content-length: ${BODY.length}`;
const many = (count: number, line: (n: number) => string) => Array.from({ length: count }, (_, n) => line(n));

type Case = [name: string, lines: string[], expected: number, code?: ErrorCode | undefined];

const CASES: Case[] = [
  // Chunks
  ["a chunk size that is no number", [...CHUNKED, "zz", BODY, "0", "", ""], 400],
  ["a chunk size below zero", [...CHUNKED, "-1", BODY, "0", "", ""], 400],
  ["a chunk size beyond 64 bits", [...CHUNKED, "fffffffffffffffff", BODY, ""], 400],
  ["a chunk size with 0x", [...CHUNKED, "0x1b", BODY, "0", "", ""], 400],
  ["a chunk size with a space before it", [...CHUNKED, " 1b", BODY, "0", "", ""], 400],
  ["a chunk that is longer than it says", [...CHUNKED, "2", BODY, "0", "", ""], 400],
  ["a chunk that ends with a bare line feed", [...CHUNKED, `1b\n${BODY}\n0\n\n`], 400],
  ["a chunk extension of 20 kB", [...CHUNKED, `1b;x=${"y".repeat(20_000)}`, BODY, ""], 400],
  ["a trailer that is no header", [...CHUNKED, "1b", BODY, "0", "no colon", "", ""], 400],
  ["an empty chunk size", [...CHUNKED, "", BODY, "0", "", ""], 400],
  // Lengths
  ["a length and chunks", [...POST, CL, "transfer-encoding: chunked", "", BODY], 400],
  ["chunks and a length", [...POST, "transfer-encoding: chunked", CL, "", BODY], 400],
  ["two lengths that differ", [...POST, "content-length: 3", CL, "", BODY], 400],
  ["a length with a sign", [...POST, "content-length: +27", "", BODY], 400],
  ["a length below zero", [...POST, "content-length: -1", "", BODY], 400],
  ["a length in hexadecimal", [...POST, "content-length: 0x1b", "", BODY], 400],
  ["a list of lengths", [...POST, "content-length: 27, 27", "", BODY], 400],
  ["an empty length", [...POST, "content-length: ", "", BODY], 400],
  ["a length beyond 64 bits", [...POST, `content-length: ${"9".repeat(30)}`, "", ""], 400],
  ["a length beyond all memory", [...POST, "content-length: 9007199254740991", "", ""], 413],
  ["neither length nor body", [...POST, "", ""], 400, "invalid_json"],
  // Transfer-Encoding in disguise
  ["chunked not as the last coding", [...POST, "transfer-encoding: chunked, gzip", "", ""], 400],
  ["an unknown coding", [...POST, "transfer-encoding: xchunked", "", ""], 400],
  ["a coding with a space before its colon", [...POST, "transfer-encoding : chunked", "", ""], 400],
  ["a coding on a folded line", [...POST, "transfer-encoding:", " chunked", "", "zz", ""], 400],
  ["a coding behind a vertical tab", [...POST, "transfer-encoding: \x0bchunked", "", ""], 400],
  ["two codings that differ", [...CHUNKED.slice(0, -1), "transfer-encoding: x", "", ""], 400],
  ["identity as the coding", [...POST, "transfer-encoding: identity", "", ""], 400],
  // Headers
  ["headers of 17 kB", [...GET, `x-long: ${"x".repeat(17_000)}`, "", ""], 431],
  ["headers of 17 kB in small ones", [...GET, ...many(2500, (n) => `x-${n}: y`), "", ""], 431],
  ["a header's name with a space", [...GET, "x y: z", "", ""], 400],
  ["a header without a colon", [...GET, "nothing", "", ""], 400],
  ["a header without a name", [...GET, ": x", "", ""], 400],
  ["a NUL in a header", [...GET, "x-a: b\0c", "", ""], 400],
  ["a bare carriage return in a header", [...GET, "x-a: b\rc: d", "", ""], 400],
  ["bare line feeds", ["GET /health HTTP/1.1\nhost: x\nx y: z\n\n"], 400],
  ["no Host", ["GET /health HTTP/1.1", "", ""], 400],
  ["two Hosts", [...GET, "host: evil.example", "", ""], 400],
  ["a folded header first", ["GET /health HTTP/1.1", " host: x", "", ""], 400],
  // Expectations
  ["an unknown expectation", [...POST, CL, "expect: 200-ok", "", BODY], 400],
  [
    "a length over all limits that waits",
    [...POST, "content-length: 99999999999", "expect: 100-continue", "", ""],
    413,
  ],
  // Request lines
  ["no HTTP at all", ["Hello there", "", ""], 400],
  ["HTTP/0.9", ["GET /", "", ""], 400],
  ["HTTP/2.0", ["GET /health HTTP/2.0", "host: x", "", ""], 400],
  ["the preface of HTTP/2", ["PRI * HTTP/2.0", "", "SM", "", ""], 400],
  ["HTTP/1.2", ["GET /health HTTP/1.2", "host: x", "", ""], 400],
  ["a TLS greeting", ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"], 400],
  ["a method in small letters", ["get /health HTTP/1.1", "host: x", "", ""], 400],
  ["a method that nobody knows", ["BREW /health HTTP/1.1", "host: x", "", ""], 400],
  ["CONNECT", ["CONNECT example.com:443 HTTP/1.1", "host: example.com:443", "", ""], 405],
  ["TRACE", ["TRACE /health HTTP/1.1", "host: x", "", ""], 405],
  ["a space in the target", ["GET /health /x HTTP/1.1", "host: x", "", ""], 400],
  ["a control character in the target", ["GET /\x01 HTTP/1.1", "host: x", "", ""], 400],
  ["a target of 17 kB", [`GET /${"x".repeat(17_000)} HTTP/1.1`, "host: x", "", ""], 431],
  ["bytes above ASCII in the target", ["GET /\xff\xfe HTTP/1.1", "host: x", "", ""], 400],
  ["a target with a user's name", ["GET x:y@z HTTP/1.1", "host: x", "", ""], 400],
  // Well-formed targets that do not exist
  ...[
    "*",
    "/nowhere",
    "//",
    "//health",
    "/health/",
    "/API/info",
    "/api/chat/",
    "/api/chat/runs",
    "/api/chat/runs/",
    "/api/chat/runs/x",
    "/api/chat/runs/x/",
    "/api/chat/runs/x/events",
    "/api/chat/runs/%2e%2e",
    `/api/chat/runs/${"x".repeat(8000)}`,
    "/api/chat/runs/__proto__",
    "/widget.js/..",
    "/./health",
    "/../package.json",
    "/%68ealth",
    "/%2e%2e/health",
    "/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/..%c0%af..%c0%afetc/passwd",
    "/health%00",
    "/health;x=1",
    "/widget.js%00.html",
    "/\\..\\..\\etc\\passwd",
    "/__proto__",
    "/constructor",
    "/toString",
    "http:///etc/passwd",
    "http://x//health",
    "file:///etc/passwd",
    "https://x/nowhere",
    "/api/chat/runs/../../health",
    "/health#/api/info",
  ].map(
    (target): Case => [
      `the target ${JSON.stringify(target.slice(0, 40))}`,
      [`GET ${target} HTTP/1.1`, "host: x", "", ""],
      404,
      target.startsWith("/api/chat/runs/") && /runs\/[^/]+$/.test(target) ? "run_not_found" : undefined,
    ],
  ),
  // Upgrades
  ...(
    [
      ["no key", ["sec-websocket-version: 13"], 400],
      ["a key that is too short", ["sec-websocket-version: 13", "sec-websocket-key: AAAA"], 400],
      ["a key that is no base64", ["sec-websocket-version: 13", "sec-websocket-key: ?"], 400],
      ["version 7", ["sec-websocket-version: 7", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="], 400],
      ["no version", ["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="], 400],
      ["a header __proto__", ["__proto__: x", "sec-websocket-version: 13"], 400],
      [
        "a protocol of spaces",
        [
          "sec-websocket-version: 13",
          "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
          `sec-websocket-protocol: a${" ".repeat(5000)}b`,
        ],
        400,
      ],
      [
        "a protocol twice",
        ["sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-protocol: a, a"],
        400,
      ],
      ["900 headers", [...many(900, (n) => `x-${n}: y`), "sec-websocket-version: 13"], 400],
    ] as [string, string[], number][]
  ).map(([name, lines, status]): [string, string[], number] => [
    `an upgrade with ${name}`,
    ["GET /ws/chat HTTP/1.1", "host: x", "connection: upgrade", "upgrade: websocket", ...lines, "", ""],
    status,
  ]),
  ...["/", "/ws", "/ws/chat/", "/api/chat"].map((path): Case => [`an upgrade at ${path}`, upgrade(path), 404]),
  [
    "an upgrade by POST",
    [
      ...POST.map((line) => line.replace("/api/chat", "/ws/chat")),
      "connection: upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      "",
      "",
    ],
    400,
  ],
];

const server = await startServer({ after } as Cleanup, { turns: [] });

const CODES = new Map<number, string>([
  [404, "not_found"],
  [405, "method_not_allowed"],
  [413, "request_too_large"],
]);

function checkRefusal({ status, headers, body }: RawAnswer, expected: number, code?: string): void {
  assert.equal(status, expected);
  assert.equal(headers.get("content-type"), "application/json; charset=utf-8");
  assert.ok(headers.get("x-request-id"));
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("referrer-policy"), "no-referrer");
  const { error, ...more } = JSON.parse(body);
  assert.deepEqual(more, {});
  assert.equal(error.code, code ?? CODES.get(status) ?? "invalid_request");
  assert.match(error.message, /^[A-Za-z].*\.$/s);
  assert.doesNotMatch(body, /node_modules|\.ts:|\n {4}at |\/work|\/tmp|\/home/);
}

test(`${CASES.length} hostile requests are refused one by one, and the server goes on`, async (t) => {
  for (const [name, lines, expected, code] of CASES) {
    await t.test(`${name}: ${expected}`, async (t) => {
      const raw = await connectRaw(t, server);
      await raw.write(...lines);
      checkRefusal(await raw.answer(), expected, code);
      raw.socket.destroy();
      assert.equal((await fetch(`${server.url}/health`)).status, 200);
    });
  }
  assert.equal(server.model.asked.length, 0);
  assert.doesNotMatch(server.log.join("\n"), /\n? {4}at |internal|Error:/);
});

for (const [what, bytes] of [
  ["no HTTP", "Hello there\r\n\r\n"],
  ["a request to a proxy", "CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n"],
  ["a faulty upgrade", "GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"],
] as const) {
  test(`a peer that is refused for ${what} and does not hang up keeps no connection from others`, async (t) => {
    const server = await startServer(t, { turns: [], env: { PARLEY_MAX_CONNECTIONS: "1" } });
    const peer = createConnection({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    t.after(() => peer.destroy());
    peer.on("error", () => {}).resume();
    peer.write(bytes);
    await within(once(peer, "end"), "the refusal");
    await within(served(server), "the connection's end");
  });
}

/** Retries, because the server closes other connections while the only allowed one is in use. */
async function served({ url }: TestServer): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/health`, { headers: { connection: "close" } }).catch(() => undefined);
    if (answer?.status === 200) return;
    await new Promise(setImmediate);
  }
}

// Errors on connections on which no response of their own can be written.

test("a socket without a key is cut when it sends more than a greeting", async (t) => {
  const { raw } = await startWithRaw(t, { env: { PARLEY_API_KEY: "k-123456" } });
  await raw.write(...upgrade());
  await raw.until("unauthorized");
  // The header of a text frame of 60 MiB, and its first bytes.
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x03, 0xc0, 0, 0, 0, 0, 0, 0]);
  raw.socket.write(Buffer.concat([head, Buffer.alloc(64 * 1024)]));
  await raw.closed;
});

const OFFER = [...GET, "connection: upgrade", "upgrade: h2c", "", ""];

/** Newer versions of Node let the server decline an upgrade, whose request is then handled like any other. */
const DECLINES_OFFERS = "shouldUpgradeCallback" in createServer();

for (const [what, lines] of [
  ["what is no HTTP", ["GARBAGE", "", ""]],
  ["a request for a WebSocket", upgrade()],
  ["an offer of another protocol", OFFER],
  ["CONNECT", ["CONNECT a:1 HTTP/1.1", "host: a:1", "", ""]],
] as const) {
  test(`${what} behind a running stream cuts the line or waits, and nothing is written into the stream`, async (t) => {
    const end = gate();
    t.after(() => end.open());
    const { raw } = await startWithRaw(t, { turns: [[say("Hel"), wait(end.opened), say("lo")]] });
    await raw.write(...chatRequest({ message: "Hi", stream: true }));
    await raw.until('"data":"Hel"');
    await raw.write(...lines);
    if (lines === OFFER && DECLINES_OFFERS) {
      end.open();
      assert.doesNotMatch(await raw.until("event: done"), /HTTP\/1\.1/);
      await raw.until("HTTP/1.1 200 OK");
      return;
    }
    await raw.closed;
    assert.doesNotMatch(raw.rest, /HTTP\/1\.1/);
  });
}

test("offers of another protocol that do not wait for their answers end no server", async (t) => {
  const { server, raw } = await startWithRaw(t, { turns: [] });
  await raw.write(...OFFER.slice(0, -1), ...OFFER);
  await raw.write(...GET, "", "");
  // If Node declines an upgrade, it discards what followed it in the same packet.
  if (DECLINES_OFFERS) assert.equal((await raw.answer()).status, 200);
  else await raw.closed;
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
});

for (const hosts of [["host: a", "host: b"], []]) {
  test(`a request for a WebSocket with ${hosts.length} hosts is 400`, async (t) => {
    const raw = await connectRaw(t, await startServer(t, { turns: [] }));
    await raw.write(...upgrade().flatMap((line) => (line.startsWith("host") ? hosts : line)));
    assert.equal((await raw.answer()).status, 400);
  });
}

test("a whole address as the request's target is answered like its path", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [] });
  await raw.write("GET http://x/health?a=1 HTTP/1.1", "host: x", "", "");
  assert.equal((await raw.answer()).status, 200);
});

test("a body that breaks after its request was refused gets no second answer", async (t) => {
  const { raw } = await startWithRaw(t, { env: { PARLEY_API_KEY: "k-123456" } });
  await raw.write("POST /api/chat HTTP/1.1", "host: x", "transfer-encoding: chunked", "", "2", "{}");
  assert.equal((await raw.answer()).status, 401);
  await raw.write("", "zz", "", "");
  await raw.closed;
  assert.equal(raw.rest, "");
});
