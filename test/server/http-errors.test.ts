/** Every refusal of plain HTTP: its status, its code, the field that it names, its headers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { post } from "../support/chat-transports.ts";
import { OPEN_PATHS } from "../support/open-paths.ts";
import { connectRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

async function refusal(answer: Response): Promise<{ code: ErrorCode; param?: string }> {
  assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8");
  const body = JSON.parse(await answer.text());
  assert.deepEqual(Object.keys(body), ["error"]);
  assert.match(body.error.message, /^[A-Z`"a-z].*\.$/, "the message is a sentence");
  assert.equal(typeof body.error.retryable, "boolean");
  return body.error;
}

const BODIES: [name: string, body: unknown, code: ErrorCode, param?: string][] = [
  ["no JSON", "{", "invalid_json"],
  ["an empty body", "", "invalid_json"],
  ["null", null, "invalid_request", ""],
  ["an array", [], "invalid_request", ""],
  ["a string", '"Hi"', "invalid_request", ""],
  ["no message", { stream: false }, "invalid_request", "/message"],
  ["a message of null", { message: null, stream: false }, "invalid_request", "/message"],
  ["a message that is a number", { message: 5, stream: false }, "invalid_request", "/message"],
  ["an empty message", { message: "", stream: false }, "invalid_request", "/message"],
  ["a blank message", { message: " \n", stream: false }, "invalid_request", "/message"],
  ["no stream", { message: "Hi" }, "invalid_request", "/stream"],
  ["stream as a string", { message: "Hi", stream: "true" }, "invalid_request", "/stream"],
  ["stream of null", { message: "Hi", stream: null }, "invalid_request", "/stream"],
  ["a state that is a string", chat({ state: "x" }), "invalid_request", "/state"],
  ["a state that is an array", chat({ state: [] }), "invalid_request", "/state"],
  ["attachments that are an object", chat({ attachments: {} }), "invalid_request", "/attachments"],
  ["an attachment of null", chat({ attachments: [null] }), "invalid_request", "/attachments/0"],
  ["nesting without end", chat({ x: nested(100) }), "invalid_request", ""],
];

for (const [name, body, code, param] of BODIES) {
  test(`a body with ${name} is 400 ${code}${param ? ` and names ${param}` : ""}`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, body);
    assert.equal(answer.status, 400);
    const error = await refusal(answer);
    assert.equal(error.code, code);
    assert.equal(error.param, param);
    assert.equal(server.model.asked.length, 0);
  });
}

test("nesting that JSON.parse can read but recursion could not is refused, not a crash", async (t) => {
  const server = await startServer(t, { turns: [] });
  const deep = `{"message":"Hi","stream":false,"x":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
  assert.equal((await post(server, deep)).status, 400);
});

test("bytes that are not UTF-8 are 400 invalid_json", async (t) => {
  const server = await startServer(t, { turns: [] });
  const answer = await fetch(`${server.url}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: Buffer.from('{"message":"\xff","stream":false}', "latin1"),
  });
  assert.deepEqual([answer.status, (await refusal(answer)).code], [400, "invalid_json"]);
});

test("unknown fields are ignored, null stands for an absent optional field", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const answer = await post(
    server,
    '{"message":"Hi","stream":false,"state":null,"attachments":null,"model":"x","__proto__":{"stream":true}}',
  );
  assert.equal(answer.status, 200);
  assert.equal(JSON.parse(await answer.text()).response, "Fine");
});

test("fields that a body would inherit are not taken for its own", async (t) => {
  const server = await startServer(t, { turns: [] });
  const answer = await post(server, '{"stream":false,"__proto__":{"message":"Hi"}}');
  assert.equal((await refusal(answer)).param, "/message");
});

test("a lone surrogate in the message does not reach the model", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  await post(server, '{"message":"a\\ud800b","stream":false}');
  assert.equal(server.model.asked[0]?.start.message, "a\ufffdb");
});

for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""]) {
  test(`content-type "${type}" is 415 unsupported_media_type`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, chat(), { headers: { "content-type": type } });
    assert.deepEqual([answer.status, (await refusal(answer)).code], [415, "unsupported_media_type"]);
  });
}

test("application/json may come in any case and with a charset", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const headers = { "content-type": "Application/JSON ; charset=UTF-8" };
  assert.equal((await post(server, chat(), { headers })).status, 200);
});

for (const charset of ["utf-16", '"UTF-16LE"', "iso-8859-1"]) {
  test(`a body in ${charset} is 415: it would be read as UTF-8`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, chat(), { headers: { "content-type": `application/json; charset=${charset}` } });
    assert.deepEqual([answer.status, (await refusal(answer)).code], [415, "unsupported_media_type"]);
  });
}

test("a body with a content coding is 415", async (t) => {
  const server = await startServer(t, { turns: [] });
  const answer = await post(server, chat(), { headers: { "content-encoding": "gzip" } });
  assert.deepEqual([answer.status, (await refusal(answer)).code], [415, "unsupported_media_type"]);
});

const NOWHERE = [
  "/nowhere",
  "/api/chat/",
  "/API/info",
  "//",
  "/widget.js/..",
  "/./health",
  "/%2e%2e/package.json",
  "/../package.json",
  "/health%00",
];

for (const path of NOWHERE) {
  test(`GET ${path} is 404 not_found: paths are neither decoded nor joined`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const raw = await connectRaw(t, server);
    await raw.write(`GET ${path} HTTP/1.1`, "host: 127.0.0.1", "", "");
    const { status, body } = await raw.answer();
    assert.deepEqual([status, JSON.parse(body).error.code], [404, "not_found"]);
  });
}

const METHODS: [path: string, refused: string[], allow: string][] = [
  ["/", ["POST", "PUT", "DELETE", "PATCH"], "GET, HEAD, OPTIONS"],
  ["/api/info", ["POST"], "GET, HEAD, OPTIONS"],
  ["/health", ["POST"], "GET, HEAD, OPTIONS"],
  ["/health/ready", ["POST"], "GET, HEAD, OPTIONS"],
  ["/widget.js", ["POST"], "GET, HEAD, OPTIONS"],
  ["/api/chat", ["GET", "HEAD", "PUT", "DELETE"], "POST, OPTIONS"],
  ["/ws/chat", ["POST"], "GET, HEAD, OPTIONS"],
];

for (const [path, methods, allow] of METHODS) {
  test(`${methods.join(", ")} on ${path} is 405 with Allow: ${allow}`, async (t) => {
    const server = await startServer(t, { turns: [] });
    for (const method of methods) {
      const answer = await fetch(server.url + path, { method });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get("allow"), allow);
      if (method !== "HEAD") assert.equal((await refusal(answer)).code, "method_not_allowed");
    }
  });
}

test("CONNECT is 405 with Allow, too", async (t) => {
  const server = await startServer(t, { turns: [] });
  const raw = await connectRaw(t, server);
  await raw.write("CONNECT example.com:443 HTTP/1.1", "host: example.com:443", "", "");
  const { status, headers } = await raw.answer();
  assert.deepEqual([status, headers.get("allow")], [405, "GET, HEAD, POST, OPTIONS"]);
});

for (const path of OPEN_PATHS) {
  test(`HEAD ${path} has the headers of GET and no body`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const [get, head] = await Promise.all([fetch(server.url + path), fetch(server.url + path, { method: "HEAD" })]);
    const of = ({ headers }: Response) =>
      [...headers].filter(([name]) => !/^(?:date|x-request-id|connection|keep-alive)$/.test(name));
    assert.equal(head.status, 200);
    assert.deepEqual(of(head), of(get));
    assert.notEqual(await get.text(), "");
    assert.equal(await head.text(), "");
  });
}

test("a plain request to the socket's address is told to speak WebSocket", async (t) => {
  const server = await startServer(t, { turns: [] });
  const answer = await fetch(`${server.url}/ws/chat`);
  assert.deepEqual([answer.status, (await refusal(answer)).code], [400, "invalid_request"]);
  assert.equal(answer.headers.get("upgrade"), "websocket");
});

function chat(more: object = {}) {
  return { message: "Hi", stream: false, ...more };
}

function nested(depth: number): unknown {
  let value: unknown = "end";
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}
