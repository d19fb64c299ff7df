/** All error responses over plain HTTP: status, code, `param`, headers. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { type ChatMessage, post, send } from "../support/chat-transports.ts";
import { DEADLINE_MS } from "../support/deadline.ts";
import { startWithRaw } from "../support/raw-connection.ts";
import { call, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, OPEN_PATHS, startServer } from "../support/start-server.ts";

async function refusal(answer: Response): Promise<{ code: ErrorCode; param?: string }> {
  assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8");
  const body = JSON.parse(await answer.text());
  assert.deepEqual(Object.keys(body), ["error"]);
  assert.match(body.error.message, /^[A-Z`"a-z].*\.$/, "the message is a sentence");
  assert.equal(typeof body.error.retryable, "boolean");
  return body.error;
}

/** One server for all requests that are refused. */
const server = await startServer({ after } as Cleanup, { turns: [], env: { PARLEY_RATE_PER_SOCKET: "0" } });

const BODIES: [name: string, body: unknown, code: ErrorCode, param?: string][] = [
  ["no JSON", "{", "invalid_json"],
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
  ["nesting that no recursion survives", `{"x":${"[".repeat(200_000)}${"]".repeat(200_000)}}`, "invalid_request", ""],
  ["a message that it inherits", '{"stream":false,"__proto__":{"message":"Hi"}}', "invalid_request", "/message"],
];

for (const [name, body, code, param] of BODIES) {
  test(`a body with ${name} is 400 ${code}${param ? ` and names ${param}` : ""}`, async () => {
    const answer = await post(server, body);
    assert.equal(answer.status, 400);
    const error = await refusal(answer);
    assert.equal(error.code, code);
    assert.equal(error.param, param);
  });
}

test("unknown fields are ignored, null stands for an absent optional field", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const answer = await post(
    server,
    '{"message":"Hi","stream":false,"state":null,"attachments":null,"model":"x","__proto__":{"stream":true}}',
  );
  assert.equal(answer.status, 200);
  assert.equal(JSON.parse(await answer.text()).response, "Fine");
});

test("a lone surrogate in the message does not reach the model", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  await post(server, '{"message":"a\\ud800b","stream":false}');
  assert.equal(server.model.asked[0]?.start.message, "a\ufffdb");
});

const NOT_JSON: Record<string, string>[] = [
  ...["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""].map((type) => ({
    "content-type": type,
  })),
  // The body would be read as UTF-8.
  ...["utf-16", '"UTF-16LE"', "iso-8859-1"].map((name) => ({ "content-type": `application/json; charset=${name}` })),
  { "content-encoding": "gzip" },
];

test("a body of another type, charset or content coding is 415 unsupported_media_type", async () => {
  for (const headers of NOT_JSON) {
    const answer = await post(server, chat(), { headers });
    assert.deepEqual(
      [answer.status, (await refusal(answer)).code],
      [415, "unsupported_media_type"],
      JSON.stringify(headers),
    );
  }
});

test("application/json may come in any case and with a charset", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const headers = { "content-type": "Application/JSON ; charset=UTF-8" };
  assert.equal((await post(server, chat(), { headers })).status, 200);
});

const METHODS: [path: string, refused: string[], allow: string][] = [
  ["/", ["POST", "PUT", "DELETE", "PATCH"], "GET, HEAD, OPTIONS"],
  ["/api/info", ["POST"], "GET, HEAD, OPTIONS"],
  ["/health", ["POST"], "GET, HEAD, OPTIONS"],
  ["/health/ready", ["POST"], "GET, HEAD, OPTIONS"],
  ["/widget.js", ["POST"], "GET, HEAD, OPTIONS"],
  ["/api/chat", ["GET", "HEAD", "PUT", "DELETE"], "POST, OPTIONS"],
  ["/ws/chat", ["POST"], "GET, HEAD, OPTIONS"],
  ["/api/chat/runs/x/cancel", ["GET"], "POST, OPTIONS"],
];

for (const [path, methods, allow] of METHODS) {
  test(`${methods.join(", ")} on ${path} is 405 with Allow: ${allow}`, async () => {
    for (const method of methods) {
      const answer = await fetch(server.url + path, { method });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get("allow"), allow);
      if (method !== "HEAD") assert.equal((await refusal(answer)).code, "method_not_allowed");
    }
  });
}

test("CONNECT is 405 with Allow, too", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [] });
  await raw.write("CONNECT example.com:443 HTTP/1.1", "host: example.com:443", "", "");
  const { status, headers } = await raw.answer();
  assert.deepEqual([status, headers.get("allow")], [405, "GET, HEAD, POST, OPTIONS"]);
});

test("HEAD of an open path has the headers of GET and no body", async () => {
  const of = ({ headers }: Response) =>
    [...headers].filter(([name]) => !/^(?:date|x-request-id|connection|keep-alive)$/.test(name));
  for (const path of OPEN_PATHS) {
    const [get, head] = await Promise.all([fetch(server.url + path), fetch(server.url + path, { method: "HEAD" })]);
    assert.equal(head.status, 200);
    assert.deepEqual(of(head), of(get), path);
    assert.notEqual(await get.text(), "");
    assert.equal(await head.text(), "");
  }
});

test("a plain request to the socket's address is told to speak WebSocket", async () => {
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

// Bodies and text frames that our client would never write: REST and WebSocket return the same code.
// test/fuzz/messages.test.ts covers invalid JSON.

const text = (json: string) => Buffer.from(json);
const rest = '"message":"","stream":true}';

/** "closes": a text frame cannot contain these bytes (RFC 6455, 5.6), so the socket is closed with 1007. */
const HOSTILE: [name: string, bytes: Buffer, code: ErrorCode, socket?: "closes"][] = [
  ["nothing", text(""), "invalid_json"],
  ["a byte order mark before what is no message", text(`\uFEFF{${rest}`), "invalid_request"],
  ["UTF-16", Buffer.from(`\uFEFF{${rest}`, "utf16le"), "invalid_json", "closes"],
  ["bytes that are not UTF-8", Buffer.from(`{"x":"\xff",${rest}`, "latin1"), "invalid_json", "closes"],
  [
    "gzip that does not say so",
    Buffer.from("1f8b0800000000000003ab060043bfa6a302000000", "hex"),
    "invalid_json",
    "closes",
  ],
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

test(`${HOSTILE.length} hostile texts have their code over REST`, async (t) => {
  for (const [name, body, code] of HOSTILE) {
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

test(`${HOSTILE.length} hostile texts have their code on the socket, which stays open`, async (t) => {
  const client = await connect(t, server.socketUrl);
  for (const [name, body, code, socket] of HOSTILE) {
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

// Maximum sizes of the parts of a message: each limit by its setting, over REST and WebSocket.

const LIMITS = {
  PARLEY_MAX_MESSAGE_CHARS: "10",
  PARLEY_MAX_HISTORY_ITEMS: "4",
  PARLEY_MAX_HISTORY_BYTES: "200",
  PARLEY_MAX_JSON_DEPTH: "8",
};

const user = (content: unknown) => ({ role: "user", content });
const texts = (count: number) => Array.from({ length: count }, () => ({ type: "text", text: "a" }));
const past = (...history: unknown[]) => ({ conversation_history: history });
const answered = (extra: object) => [user("Hi"), { role: "assistant", content: "Yes", ...extra }];

/** A value just within each limit, and one just beyond. */
const BOUNDS: [name: string, within: ChatMessage, beyond: ChatMessage, param: string][] = [
  ["the text", { message: "a".repeat(10) }, { message: "a".repeat(11) }, "/message"],
  [
    "the number of messages",
    { message: "Hi", state: past(user("1"), user("2"), user("3"), user("4")) },
    { message: "Hi", state: past(user("1"), user("2"), user("3"), user("4"), user("5")) },
    "/state/conversation_history",
  ],
  [
    "the number of parts in a message",
    { message: "Hi", state: past(user(texts(3))) },
    { message: "Hi", state: past(user(texts(4))) },
    "/state/conversation_history",
  ],
  [
    "the bytes of the history",
    { message: "Hi", state: past(user("a".repeat(180))) },
    // Characters of two bytes each: counted as characters, they would be within the limit.
    { message: "Hi", state: past(user("é".repeat(100))) },
    "/state/conversation_history",
  ],
  [
    "the values of a history",
    { message: "Hi", state: past(...answered({ extra: Array(300).fill(1) })) },
    { message: "Hi", state: past(...answered({ extra: Array(500).fill(1) })) },
    "/state/conversation_history",
  ],
];

for (const [name, within, beyond, param] of BOUNDS) {
  test(`${name} may reach its limit, and beyond it is 413 request_too_large`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]], env: LIMITS });
    for (const transport of ["json", "socket"] as const) {
      const { last } = await send[transport](t, server, within);
      assert.equal(last.data, "Fine", JSON.stringify(last));
    }
    const answer = await post(server, { ...beyond, stream: true });
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code], [413, "request_too_large"]);
    assert.equal(error.param, param);
    const { last } = await send.socket(t, server, beyond);
    assert.ok(last.type === "error");
    assert.deepEqual([last.code, last.data], ["request_too_large", error.message]);
    assert.equal(server.model.asked.length, 2);
  });
}

test("the nesting may reach its limit, and beyond it is 400", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]], env: LIMITS });
  // The body itself is the first level.
  const answer = await post(server, { message: "Hi", stream: false, x: nested(7) });
  assert.equal(answer.status, 200);
  const refused = await post(server, { message: "Hi", stream: false, x: nested(8) });
  const { error } = JSON.parse(await refused.text());
  assert.deepEqual([refused.status, error.code], [400, "invalid_request"]);
  assert.match(error.message, /8 levels/);
});

test("calls beyond those of one turn are not carried out, and the model is told", async (t) => {
  let carriedOut = 0;
  const counter = {
    name: "count",
    description: "Counts",
    parameters: { type: "object" },
    execute: () => `${++carriedOut}`,
  };
  const server = await startServer(t, {
    turns: [["a", "b", "c"].map((id) => call(id, "count", "{}")), [say("Done")]],
    agent: { tools: [counter] },
    env: { PARLEY_MAX_TOOL_CALLS: "2", PARLEY_MAX_TOOL_OUTPUT_CHARS: "40" },
  });
  const { events } = await send.sse(t, server, { message: "Go" });
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  const statusOf = new Map(results.map(({ id, status }) => [id, status]));
  assert.deepEqual(
    ["a", "b", "c"].map((id) => statusOf.get(id)),
    ["completed", "completed", "failed"],
  );
  assert.equal(carriedOut, 2);
  const told = server.model.asked[1]?.messages.at(-1);
  assert.equal(told?.content, "Not carried out: one turn may make 2 too\n[cut: 40 more characters]");
});

test("a message may hold 500,000 values, and one more is 413", async (t) => {
  const server = await startServer(t, { turns: [[say("Counted")]] });
  const ask = async (values: number) => {
    // Subtracts the object, its two commas, and the array; the rest are values and the commas between them.
    const filler = Array(values - 3)
      .fill("1")
      .join();
    const answer = await post(server, `{"message":"Hi","stream":false,"more":[${filler}]}`);
    return [answer.status, JSON.parse(await answer.text()).error?.code];
  };
  assert.deepEqual(await ask(500_000), [200, undefined]);
  assert.deepEqual(await ask(500_001), [413, "request_too_large"]);
});
