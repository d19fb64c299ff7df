/** `POST /mcp`: the agent as an MCP tool, called by the official client of both protocol generations. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, Progress } from "@modelcontextprotocol/client";
import type { RunInput } from "../../server/agent/run-function.ts";
import { Unauthorized } from "../../server/auth/authenticate.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { MemoryStateStore, STATE_MS } from "../../server/runs/state-store.ts";
import { DEADLINE_MS, gate } from "../support/deadline.ts";
import { ask, connectMcp, ERAS, KEY, MCP_ENV } from "../support/mcp-client.ts";
import { startTwo, testWithRedis } from "../support/redis-server.ts";
import { call, fail, hang, say, think, wait } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { define, echo } from "../support/test-tools.ts";

const start = (t: Cleanup, { env, ...options }: ServerOptions): Promise<TestServer> =>
  startServer(t, { ...options, env: { ...MCP_ENV, ...env } });

/** Posts a raw request, with the headers that every client sends. */
function post(server: TestServer, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${server.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
}

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};
const MODERN = { "mcp-protocol-version": "2026-07-28" };

for (const [era, mode] of Object.entries(ERAS)) {
  test(`${era}: the agent is one tool, which answers, and goes on with a conversation`, async (t) => {
    const agent = { agent: "Ada", chat: { suggestions: ["Where is order 7?"] } };
    const server = await start(t, { agent, turns: [[say("Rex it is.")], [say("Rex.")]] });
    const client = await connectMcp(t, server, { mode });
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name, title }) => [name, title]),
      [["ask", "Ada"]],
    );
    assert.match(tools[0]?.description ?? "", /"Ada".*For example: "Where is order 7\?"/);
    const first = await ask(client, "My dog is Rex.");
    assert.deepEqual([first.text, first.answer, first.isError], ["Rex it is.", "Rex it is.", false]);
    const second = await ask(client, "Who is my dog?", first.conversation);
    assert.deepEqual([second.text, second.conversation], ["Rex.", first.conversation]);
    assert.deepEqual(server.model.asked.at(-1)?.messages, [
      { role: "user", content: "My dog is Rex." },
      { role: "assistant", content: "Rex it is." },
      { role: "user", content: "Who is my dog?" },
    ]);
    const { name, title } = client.getServerVersion() ?? {};
    assert.deepEqual([name, title], ["Acme Support", "Ada"]);
  });

  test(`${era}: what the agent does is progress, and without a wish for it only the answer comes`, async (t) => {
    const work = define("work", (_args, ctx) => {
      ctx.progress("Half done");
      return "done";
    });
    const turns = () => [[think("Hm."), call("a", "work"), call("b", "echo", { text: "x" })], [say("Ready.")]];
    const server = await start(t, { agent: { tools: [work, echo] }, turns: [...turns(), ...turns()] });
    const client = await connectMcp(t, server, { mode });
    const heard: Progress[] = [];
    const { text } = await ask(client, "Work.", undefined, { onprogress: (progress) => heard.push(progress) });
    assert.equal(text, "Ready.");
    const messages = heard.map(({ message }) => message).filter((message) => message !== undefined);
    assert.deepEqual(messages, ["work", "echo", "Half done"]);
    const counts = heard.map(({ progress }) => progress);
    assert.deepEqual(
      counts,
      counts.map((_, index) => index + 1),
    );
    assert.equal((await ask(client, "Work.")).text, "Ready.");
    assert.equal(heard.length, counts.length);
  });

  test(`${era}: a client that cancels ends the model's request`, async (t) => {
    const server = await start(t, { turns: [[say("Well"), hang]] });
    const client = await connectMcp(t, server, { mode });
    const leaving = new AbortController();
    const asked = server.model.nextAsked();
    const answer = ask(client, "Hi", undefined, { signal: leaving.signal });
    const { aborted } = await asked;
    leaving.abort();
    await assert.rejects(answer);
    await aborted;
  });

  test(`${era}: what waits for approval is said in words, and the next message declines it`, async (t) => {
    const pay = define("pay", () => assert.fail("it was not approved"), {
      needsApproval: true,
      approvalText: () => "Pay 5 euros?",
    });
    const server = await start(t, { agent: { tools: [pay] }, turns: [[call("a", "pay")], [say("As you wish.")]] });
    const client = await connectMcp(t, server, { mode });
    const { text, conversation } = await ask(client, "Pay.");
    assert.match(text, /^Pay 5 euros\?\n\nIt was not done: a person has to approve it/);
    assert.equal((await ask(client, "Leave it.", conversation)).text, "As you wish.");
    const [result] = server.model.asked.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
    assert.match(String(result?.content), /declined|not carried out|did not/i);
  });

  test(`${era}: a run that fails is an error of the tool, and after tools have run the conversation goes on`, async (t) => {
    const broken = fail(new ApiError("provider_error", "The model broke."));
    const server = await start(t, {
      agent: { tools: [echo] },
      turns: [[broken], [call("a", "echo", { text: "x" })], [broken], [say("It was x.")]],
    });
    const client = await connectMcp(t, server, { mode });
    const first = await ask(client, "Hi");
    assert.deepEqual([first.isError, first.text, first.conversation], [true, "The model broke.", undefined]);
    const second = await ask(client, "Echo.");
    assert.equal(second.isError, true);
    assert.ok(second.conversation);
    assert.equal((await ask(client, "What was it?", second.conversation)).text, "It was x.");
    assert.equal(server.model.asked.at(-1)?.messages.length, 4);
  });

  test(`${era}: fifty ask at once, and each gets the answer to its own message`, async (t) => {
    const run = ({ message }: RunInput) => `You said ${message}.`;
    const env = { PARLEY_MAX_RUNS_PER_ADDRESS: "100" };
    const server = await start(t, { agent: { model: undefined, run } as never, env });
    const client = await connectMcp(t, server, { mode });
    const numbers = Array.from({ length: 50 }, (_, index) => index);
    const answers = await Promise.all(numbers.map((number) => ask(client, `number ${number}`)));
    assert.deepEqual(
      answers.map(({ text }) => text),
      numbers.map((number) => `You said number ${number}.`),
    );
    assert.equal(new Set(answers.map(({ conversation }) => conversation)).size, 50);
  });

  test(`${era}: a conversation belongs to the key and the user, and any other begins anew`, async (t) => {
    const authenticate = ({ token }: { token: string | undefined }) => {
      if (token === "bad") throw new Unauthorized("Please sign in.");
      return token === undefined ? undefined : { id: token };
    };
    const other = `${KEY}-2`;
    const server = await start(t, {
      env: { PARLEY_API_KEY: `${KEY},${other}` },
      authenticate,
      turns: [[say("Hello.")], [say("Still here.")]],
    });
    const connect = (headers: Record<string, string>) => connectMcp(t, server, { mode, headers });
    const ada = await connect({ "x-user-token": "ada" });
    const { conversation = "" } = await ask(ada, "Hi");
    for (const headers of [
      {},
      { "x-user-token": "eve" },
      { "x-user-token": "ada", authorization: `Bearer ${other}` },
    ] as Record<string, string>[]) {
      const { isError, text } = await ask(await connect(headers), "Hi", conversation);
      assert.deepEqual([isError, /Start a new one/.test(text)], [true, true]);
    }
    assert.equal((await ask(ada, "Hi", "made-up")).isError, true);
    assert.equal((await ask(ada, "Hi", conversation)).text, "Still here.");
    await assert.rejects(async () => ask(await connect({ "x-user-token": "bad" }), "Hi"), /Please sign in/);
  });

  test(`${era}: arguments that do not fit are errors that a model can read`, async (t) => {
    const server = await start(t, { turns: [], env: { PARLEY_MAX_MESSAGE_CHARS: "10" } });
    const client = await connectMcp(t, server, { mode });
    for (const [message, says] of [
      ["", /not empty/],
      [" ", /not empty/],
      [5, /must be a text/],
      ["x".repeat(11), /longer than the 10/],
    ] as const) {
      const { isError, text } = await ask(client, message);
      assert.equal(isError, true);
      assert.match(text, says);
    }
    const { isError, text } = await ask(client, "Hi", 5);
    assert.deepEqual([isError, /^conversation must be the text/.test(text)], [true, true]);
    await assert.rejects(client.callTool({ name: "tell", arguments: {} }), /Unknown tool: tell/);
  });

  test(`${era}: the door stands below the path of the server`, async (t) => {
    const server = await start(t, { turns: [[say("Here.")]], env: { PARLEY_BASE_PATH: "/support" } });
    const client = await connectMcp(t, server, { mode, path: "/support/mcp" });
    assert.equal((await ask(client, "Hi")).text, "Here.");
  });

  testWithRedis(`${era}: with Redis each process goes on with what another one has kept`, async (t, redis) => {
    const turns = [[say("One.")], [say("Two.")]];
    const [first, second] = await startTwo(t, redis, { env: MCP_ENV, turns });
    const answer = await ask(await connectMcp(t, first, { mode }), "A");
    const there = await connectMcp(t, second, { mode });
    assert.equal((await ask(there, "B", answer.conversation)).conversation, answer.conversation);
    assert.equal(second.model.asked.at(-1)?.messages.length, 3);
    const back = await connectMcp(t, first, { mode });
    await ask(back, "C", answer.conversation);
    assert.equal(first.model.asked.at(-1)?.messages.length, 5);
    // Keys in Redis reveal neither the API key nor the conversation.
    assert.doesNotMatch(await redis.command("KEYS", "*"), new RegExp(`${KEY}|${answer.conversation}`));
    await redis.kill();
    await assert.rejects(ask(back, "D", answer.conversation), /not possible at the moment/);
  });
}

/** Sends two messages of one conversation at the same time, to two processes or twice to one. */
async function askAtOnce(t: Cleanup, servers: readonly [TestServer, TestServer], opened: () => void) {
  const clients = await Promise.all(servers.map((server) => connectMcp(t, server, { mode: ERAS[2026] })));
  const [one, other] = clients as [Client, Client];
  const { conversation } = await ask(one, "A");
  const asked = servers[0].model.nextAsked();
  const slow = ask(one, "B", conversation);
  await asked;
  const fast = await ask(other, "C", conversation);
  opened();
  const late = await slow;
  assert.deepEqual([fast.text, fast.conversation, late.text], ["Fast", conversation, "Slow"]);
  assert.notEqual(late.conversation, conversation);
  assert.equal((await ask(other, "D", late.conversation)).text, "Later");
  const said = servers[1].model.asked.at(-1)?.messages.map(({ content }) => content);
  assert.deepEqual(said, ["A", "Begun", "B", "Slow", "D"]);
}

test("of two messages at once in one conversation, the later answer begins a conversation of its own", async (t) => {
  const { opened, open } = gate();
  const turns = [[say("Begun")], [wait(opened), say("Slow")], [say("Fast")], [say("Later")]];
  const server = await start(t, { turns });
  await askAtOnce(t, [server, server], open);
});

testWithRedis("so it does where two processes are asked at once", async (t, redis) => {
  const { opened, open } = gate();
  const env = { ...MCP_ENV, PARLEY_REDIS_URL: redis.url };
  const one = await startServer(t, { env, turns: [[say("Begun")], [wait(opened), say("Slow")]] });
  const other = await startServer(t, { env, turns: [[say("Fast")], [say("Later")]] });
  await askAtOnce(t, [one, other], open);
});

testWithRedis("a client of 2025 that cancels is heard by whichever process gets the notification", async (t, redis) => {
  const [owner, other] = await startTwo(t, redis, { env: MCP_ENV, turns: [[say("Well"), hang]] });
  const session = { "mcp-session-id": "a-session" };
  const asked = owner.model.nextAsked();
  const params = { name: "ask", arguments: { message: "Hi" } };
  const answer = post(owner, { jsonrpc: "2.0", id: 7, method: "tools/call", params }, session);
  const { aborted } = await asked;
  const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } };
  assert.equal((await post(other, cancelled, session)).status, 202);
  await aborted;
  assert.match(await (await answer).text(), /"text":"Well"/);
});

test("a client that knows both eras finds the newer one", async (t) => {
  const server = await start(t, { turns: [[say("Hello.")]] });
  const client = await connectMcp(t, server, { mode: "auto" });
  assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  assert.equal((await ask(client, "Hi")).text, "Hello.");
});

test("a client that takes no stream gets the answer in one body", async (t) => {
  const server = await start(t, { turns: [[say("Hello.")]] });
  const params = { name: "ask", arguments: { message: "Hi" } };
  const body = { jsonrpc: "2.0", id: "a", method: "tools/call", params };
  const response = await post(server, body, { accept: "application/json" });
  assert.equal(response.headers.get("content-type"), "application/json; charset=utf-8");
  const { id, result } = await response.json();
  const { structuredContent, isError } = result;
  assert.deepEqual([id, structuredContent.answer, isError], ["a", "Hello.", false]);
  // A model that only gets the texts also needs to know how to continue the conversation.
  assert.deepEqual(result.content, [
    { type: "text", text: "Hello." },
    { type: "text", text: `conversation: ${structuredContent.conversation}` },
  ]);
});

test("a message that is large is read in the thread for those", async (t) => {
  const server = await start(t, { turns: [[say("Long.")]] });
  const client = await connectMcp(t, server);
  const message = "ä".repeat(400_000);
  assert.equal((await ask(client, message)).text, "Long.");
  assert.equal(server.model.asked[0]?.messages[0]?.content, message);
});

test("as long as a quiet answer lasts, comments keep its connection open", async (t) => {
  const kept = gate();
  const server = await start(t, {
    turns: [[say("a"), wait(kept.opened), say("b")]],
    env: { PARLEY_KEEP_ALIVE_SECONDS: "0.02" },
  });
  const params = { name: "ask", arguments: { message: "Hi" } };
  const response = await post(server, { jsonrpc: "2.0", id: 1, method: "tools/call", params });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes(": keep-alive")) kept.open();
  }
  assert.match(text, /^(?:: keep-alive\n\n)+event: message\ndata: [^\n]*"text":"ab"[^\n]*\n\n$/);
});

/** Requests that are refused, with status and error code. */
const REFUSED: [what: string, body: unknown, headers: Record<string, string>, status: number, code: number][] = [
  ["no JSON", "{", {}, 400, -32700],
  ["no JSON-RPC", { method: "ping", id: 1 }, {}, 400, -32600],
  ["several messages", [{ jsonrpc: "2.0", id: 1, method: "ping" }], {}, 400, -32600],
  ["an id that is none", { jsonrpc: "2.0", id: {}, method: "ping" }, {}, 400, -32600],
  ["an id that is too long to be repeated", { ...request("ping"), id: "x".repeat(1001) }, {}, 400, -32600],
  ["a key that is none", request("ping"), { authorization: "Bearer wrong" }, 401, 401],
  ["another media type", request("ping"), { "content-type": "text/plain" }, 415, 415],
  ["another origin", request("ping"), { origin: "https://evil.example" }, 403, 403],
  ["an unknown method", request("resources/list"), {}, 200, -32601],
  ["an older version that is none", request("ping"), { "mcp-protocol-version": "2024-01-01" }, 400, -32022],
  ["an unknown method of 2026", modern("ping"), { ...MODERN, "mcp-method": "ping" }, 404, -32601],
  ["a version without its body's", request("tools/list"), MODERN, 400, -32602],
  ["a body without its header", modern("tools/list"), { "mcp-method": "tools/list" }, 400, -32020],
  ["another method in the header", modern("tools/list"), { ...MODERN, "mcp-method": "tools/call" }, 400, -32020],
  ["no method in the header", modern("tools/list"), MODERN, 400, -32020],
  ["another version in the header", modern("tools/list"), { "mcp-protocol-version": "2025-11-25" }, 400, -32020],
  [
    "another name in the header",
    modern("tools/call", { name: "ask" }),
    { ...MODERN, "mcp-method": "tools/call", "mcp-name": "tell" },
    400,
    -32020,
  ],
  [
    "a version that is not known",
    modern("tools/list", {}, { "io.modelcontextprotocol/protocolVersion": "2099-01-01" }),
    { "mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list" },
    400,
    -32022,
  ],
  [
    "no capabilities",
    modern("tools/list", {}, { "io.modelcontextprotocol/clientCapabilities": undefined }),
    { ...MODERN, "mcp-method": "tools/list" },
    400,
    -32602,
  ],
];

function request(method: string, params: object = {}) {
  return { jsonrpc: "2.0", id: 1, method, params };
}

function modern(method: string, params: object = {}, meta: object = {}) {
  return request(method, { ...params, _meta: { ...META, ...meta } });
}

for (const [what, body, headers, status, code] of REFUSED) {
  test(`${what} is refused with ${status} and ${code}`, async (t) => {
    const server = await start(t, { turns: [], env: { PARLEY_ALLOWED_ORIGINS: "https://a.example" } });
    const response = await post(server, body, headers);
    const { jsonrpc, error } = await response.json();
    assert.deepEqual([response.status, jsonrpc, error.code], [status, "2.0", code]);
  });
}

test("a name in base64 is the name", async (t) => {
  const server = await start(t, { turns: [[say("Hello.")]] });
  const name = `=?base64?${Buffer.from("ask").toString("base64")}?=`;
  const headers = { ...MODERN, "mcp-method": "tools/call", "mcp-name": name, accept: "application/json" };
  const response = await post(server, modern("tools/call", { name: "ask", arguments: { message: "Hi" } }), headers);
  const { result } = await response.json();
  assert.equal(result.resultType, "complete");
  assert.equal(result._meta["io.modelcontextprotocol/serverInfo"].name, "Acme Support");
});

test("only questions count as messages, and beyond the rate they are 429 with Retry-After", async (t) => {
  const server = await start(t, { turns: [[say("One.")]], env: { PARLEY_RATE_PER_KEY: "1" } });
  const client = await connectMcp(t, server);
  for (let round = 0; round < 5; round++) await client.listTools();
  assert.equal((await ask(client, "Hi")).text, "One.");
  const response = await post(server, request("tools/call", { name: "ask", arguments: { message: "Hi" } }));
  assert.equal(response.status, 429);
  assert.ok(Number(response.headers.get("retry-after")) > 0);
  assert.deepEqual((await response.json()).error.data, { code: "rate_limited", retryable: true });
});

test("a body that is too large is refused before it is read", async (t) => {
  const server = await start(t, { turns: [], env: { PARLEY_MAX_BODY_BYTES: "1000" } });
  const response = await post(server, request("tools/call", { name: "ask", arguments: { message: "x".repeat(2000) } }));
  assert.deepEqual([response.status, (await response.json()).error.code], [413, 413]);
});

test("a notification is taken, other methods of HTTP are not", async (t) => {
  const server = await start(t, { turns: [] });
  const response = await post(server, { jsonrpc: "2.0", method: "notifications/initialized" });
  assert.deepEqual([response.status, await response.text()], [202, ""]);
  for (const method of ["GET", "DELETE"]) {
    const other = await fetch(`${server.url}/mcp`, { method, headers: { authorization: `Bearer ${KEY}` } });
    assert.deepEqual([other.status, other.headers.get("allow")], [405, "POST, OPTIONS"]);
    assert.equal((await other.json()).jsonrpc, "2.0");
  }
});

test("the door is shut until PARLEY_MCP is on, and does not open without PARLEY_API_KEY", async (t) => {
  const server = await startServer(t, { turns: [] });
  const response = await post(server, request("ping"));
  assert.equal(response.status, 404);
  assert.match((await response.json()).error.message, /PARLEY_MCP/);
  const open = startServer(t, { turns: [], env: { PARLEY_MCP: "on", PARLEY_CHAT_KEY: KEY } });
  await assert.rejects(open, /PARLEY_MCP is on, which needs PARLEY_API_KEY/);
});

test("a key of the chat page or of a site does not open the door", async (t) => {
  const chat = `${KEY}-chat`;
  const server = await start(t, { turns: [], env: { PARLEY_CHAT_KEY: chat } });
  const response = await post(server, request("ping"), { authorization: `Bearer ${chat}` });
  assert.deepEqual([response.status, (await response.json()).error.data.code], [403, "forbidden"]);
});

test("states are kept for an hour after their last use, a thousand of them, and the oldest go", async () => {
  let now = 0;
  const store = new MemoryStateStore(() => now, { states: 3, bytes: 100 });
  for (const key of ["a", "b", "c"]) await store.save(key, key);
  now = STATE_MS - 1;
  const kept = (...keys: string[]) => Promise.all(keys.map(async (key) => (await store.load(key))?.json));
  assert.deepEqual(await kept("a"), ["a"]);
  await store.save("d", "d");
  assert.deepEqual(await kept("a", "b", "c", "d"), ["a", undefined, "c", "d"]);
  now += STATE_MS - 1;
  assert.deepEqual(await kept("c"), ["c"]);
  now += 1;
  assert.deepEqual(await kept("a", "c", "d"), [undefined, "c", undefined]);
  await store.save("e", "x".repeat(100));
  assert.deepEqual(await kept("c", "e"), [undefined, "x".repeat(100)]);
  // An entry that is too large does not evict others.
  await store.save("f", "x".repeat(101));
  assert.deepEqual(await kept("e", "f"), ["x".repeat(100), undefined]);
});

test("a state that no client asks for goes after its hour, too", async (t) => {
  const clock = stopClock(t);
  let now = 0;
  const store = new MemoryStateStore(() => now);
  await store.save("a", "a");
  now = STATE_MS / 2;
  await store.save("b", "b");
  assert.equal(store.size, 2);
  now = STATE_MS;
  clock.tick(STATE_MS / 2);
  assert.equal(store.size, 1);
  now += STATE_MS / 2;
  clock.tick(STATE_MS / 2);
  assert.equal(store.size, 0);
});
