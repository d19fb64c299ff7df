/** The open endpoints, and what every answer carries. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { CHAT_HEAD, chatRequest, connectRaw, startWithRaw } from "../support/raw-connection.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const read = async (url: string) => JSON.parse(await (await fetch(url)).text());

test("/health is {status: ok} and /health/ready is 200 while the server serves", async (t) => {
  const server = await startServer(t, { turns: [] });
  assert.deepEqual(await read(`${server.url}/health`), { status: "ok" });
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
});

test("/api/info says who the agent is and what the chat page needs", async (t) => {
  const agent = {
    name: "Acme Support",
    agent: "Concierge",
    chat: { welcome: "Hi!", suggestions: ["What can you do?"], disclaimer: "Answers may be wrong." },
  };
  const server = await startServer(t, { turns: [], agent });
  assert.deepEqual(await read(`${server.url}/api/info`), {
    name: "Acme Support",
    agent: "Concierge",
    auth_required: false,
    welcome: "Hi!",
    suggestions: ["What can you do?"],
    disclaimer: "Answers may be wrong.",
    continue: true,
    attachments: {
      media_types: ["image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"],
      max_bytes: 20_971_520,
      max_count: 10,
    },
    max_body_bytes: 67_108_864,
  });
});

test("/api/info says how large a message may be, as PARLEY_MAX_BODY_BYTES sets it", async (t) => {
  const server = await startServer(t, { turns: [], env: { PARLEY_MAX_BODY_BYTES: "1000000" } });
  assert.equal((await read(`${server.url}/api/info`)).max_body_bytes, 1_000_000);
});

test("/api/info of the smallest agent: its name stands for both, and there is no welcome", async (t) => {
  const server = await startServer(t, { turns: [], agent: { name: "Solo" } });
  const { name, agent, welcome, suggestions } = await read(`${server.url}/api/info`);
  assert.deepEqual([name, agent, welcome, suggestions], ["Solo", "Solo", undefined, []]);
});

test("instructions, model and tools are in no open answer", async (t) => {
  const agent = { instructions: "the secret sauce" };
  const server = await startServer(t, { turns: [], agent });
  for (const path of ["/", "/api/info", "/health", "/health/ready"]) {
    const text = await (await fetch(server.url + path)).text();
    assert.doesNotMatch(text, /secret sauce|scripted/, path);
  }
});

test("a message to an address where nothing is learns where the chat is", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (const path of ["/v1/chat/completions", "/chat"]) {
    const answer = await fetch(server.url + path, { method: "POST", body: "{}" });
    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /There is nothing at this address\. The chat is POST \/api\/chat\./);
  }
  assert.doesNotMatch(await (await fetch(`${server.url}/favicon.ico`)).text(), /POST/);
});

const PATHS = ["/", "/api/info", "/health", "/health/ready", "/widget.js", "/nowhere", "/ws/chat"];

test("every answer has nosniff, no-referrer, and a request id of its own", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]] });
  const answers = [
    ...(await Promise.all(PATHS.map((path) => fetch(server.url + path)))),
    await post(server, { message: "Hi", stream: false }),
    await post(server, { message: "Hi", stream: true }),
    await post(server, {}),
  ];
  const ids = answers.map(({ headers }) => {
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    return headers.get("x-request-id") ?? "";
  });
  assert.equal(new Set(ids).size, answers.length);
  for (const id of ids) assert.match(id, /^[\w-]{8,}$/);
});

for (const [name, given, kept] of [
  ["a plain one", "abc-123", "abc-123"],
  ["one of 128 characters", "x".repeat(128), "x".repeat(128)],
  ["a longer one, up to 128 characters", "y".repeat(500), "y".repeat(128)],
] as const) {
  test(`an incoming x-request-id is kept: ${name}`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")]] });
    const headers = { "x-request-id": given };
    for (const answer of [
      await post(server, { message: "Hi", stream: false }, { headers }),
      await post(server, {}, { headers }),
      await fetch(`${server.url}/health`, { headers }),
    ]) {
      assert.equal(answer.headers.get("x-request-id"), kept);
    }
  });
}

test("an x-request-id that could write into a log is replaced", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (const id of ["two words", "", "caf\xe9", "\x1b[31m"]) {
    const raw = await connectRaw(t, server);
    await raw.write("GET /health HTTP/1.1", "host: x", `x-request-id: ${id}`, "", "");
    const answer = await raw.answer();
    assert.notEqual(answer.headers.get("x-request-id") ?? id, id);
  }
});

test("an offer to change to HTTP/2 is ignored, as clients of several languages make it", async (t) => {
  const { raw } = await startWithRaw(t, { turns: [[say("Fine")], [say("Fine")]] });
  const offer = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk"];
  for (let round = 0; round < 2; round++) {
    await raw.write("GET /health HTTP/1.1", "host: x", ...offer, "", "");
    assert.equal((await raw.answer()).status, 200);
    await raw.write(...chatRequest({ message: "Hi", stream: false }, ...offer));
    const answer = await raw.answer();
    assert.equal(answer.status, 200);
    assert.match(answer.body, /Fine/);
  }
});

test("a request that does not arrive in time is 408 request_timeout", async (t) => {
  const env = { PARLEY_BODY_SECONDS: "0.02", PARLEY_HEADER_SECONDS: "0.02" };
  const { raw } = await startWithRaw(t, { turns: [], env });
  await raw.write(...CHAT_HEAD, "content-length: 5", "", "ab");
  const answer = await raw.answer();
  assert.deepEqual([answer.status, JSON.parse(answer.body).error.code], [408, "request_timeout"]);
  assert.ok(answer.headers.get("x-request-id"));
  await raw.closed;
});
