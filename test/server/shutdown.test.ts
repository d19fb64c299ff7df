/** Draining: running answers finish, new ones are refused, and no connection stays open. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ModuleLife, type ServedAgent } from "../../server/agent/served-agent.ts";
import { readSettings } from "../../server/config/settings.ts";
import { MemoryBudget } from "../../server/limits/memory-budget.ts";
import type { MessageLimits } from "../../server/limits/message-limits.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { RunRegistry } from "../../server/runs/run-registry.ts";
import { createMemoryRunStore } from "../../server/runs/run-store.ts";
import { post, readEventStream, send } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { chatRequest, startWithRaw, upgrade } from "../support/raw-connection.ts";
import { call, hang, say, wait } from "../support/scripted-provider.ts";
import { connect, startWithClient } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { deaf } from "../support/test-tools.ts";

const PATIENT = { PARLEY_DRAIN_SECONDS: "60" };

test("while it drains, runs finish, /health/ready says 503, /health 200, and new runs are refused", async (t) => {
  const held = gate();
  const turns = [
    [say("A"), wait(held.opened), say("B")],
    [wait(held.opened), say("C")],
  ];
  const server = await startServer(t, { turns, env: PATIENT });
  const stream = await post(server, { message: "Hi", stream: true });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await server.model.nextAsked();
  const idle = await connect(t, server.socketUrl);

  const closed = server.close();
  const ready = await fetch(`${server.url}/health/ready`);
  assert.equal(ready.status, 503);
  assert.ok(Number(ready.headers.get("retry-after")) > 0);
  assert.equal(JSON.parse(await ready.text()).error.code, "shutting_down");
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
  for (const streamed of [true, false]) {
    const refused = await post(server, { message: "Hi", stream: streamed });
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.equal(JSON.parse(await refused.text()).error.code, "shutting_down");
  }
  const [refusal] = await idle.run({ message: "Hi" });
  assert.equal(refusal?.type === "error" && refusal.code, "shutting_down");

  held.open();
  assert.equal(readEventStream(await stream.text()).at(-1)?.data, "AB");
  assert.equal((await client.until("done")).at(-1)?.data, "C");
  await within(closed, "the end of the server");
  for (const { closed: end } of [client, idle]) assert.equal((await end).code, 1001);
  await assert.rejects(fetch(`${server.url}/health`));
});

test("what still runs after PARLEY_DRAIN_SECONDS gets one error shutting_down on each transport", async (t) => {
  const turns = [
    [say("A"), hang],
    [say("A"), hang],
    [say("A"), hang],
  ];
  const { server, client } = await startWithClient(t, { turns, env: { PARLEY_DRAIN_SECONDS: "0.05" } });
  client.send({ message: "Hi" });
  await client.until("token");
  const stream = await post(server, { message: "Hi", stream: true });
  const json = send.json(t, server, { message: "Hi" });
  await server.model.nextAsked();
  const closed = server.close();

  const last = readEventStream(await stream.text()).at(-1);
  assert.ok(last?.type === "error");
  assert.deepEqual([last.code, last.retryable], ["shutting_down", true]);
  assert.deepEqual(await client.next(), { ...last, id: 2 });
  assert.equal((await client.closed).code, 1001);
  const answer = await json;
  assert.equal(answer.status, 503);
  assert.equal(answer.last.type === "error" && answer.last.code, "shutting_down");
  assert.ok(Number(answer.headers.get("retry-after")) > 0, "503 comes with Retry-After");
  await within(closed, "the end of the server");
});

test("tools hear of the end, and one that does not listen does not hold it up", async (t) => {
  const aborted = gate();
  const { server, client } = await startWithClient(t, {
    turns: [[call("c1", "deaf")]],
    agent: { tools: [deaf("deaf", aborted.open)] },
  });
  client.send({ message: "Hi" });
  await client.until("tool_call");
  await within(server.close(), "the end of the server");
  await aborted.opened;
});

test("a long answer is sent whole before its connection is closed", async (t) => {
  const held = gate();
  const long = "x".repeat(8 * 1024 * 1024);
  const { server, raw } = await startWithRaw(t, { turns: [[wait(held.opened), say(long)]], env: PATIENT });
  const asked = server.model.nextAsked();
  await raw.write(...chatRequest({ message: "Hi", stream: false }));
  await asked;
  raw.socket.pause();
  const closed = server.close();
  held.open();
  // A round trip, while the response waits for its reader.
  await fetch(`${server.url}/health`).catch(() => {});
  raw.socket.resume();
  const answer = await raw.answer();
  assert.equal(answer.body.length, Number(answer.headers.get("content-length")));
  await within(closed, "the end of the server");
});

test("an idle server closes at once, with its idle connections", async (t) => {
  const { server, raw } = await startWithRaw(t, { turns: [], env: PATIENT });
  await raw.write("GET /health HTTP/1.1", "host: x", "", "");
  await raw.answer();
  const client = await connect(t, server.socketUrl);
  await within(server.close(), "the end of the server");
  assert.equal((await client.closed).code, 1001);
  await raw.closed;
});

test("a socket that does not answer the close frame is cut after two seconds", async (t) => {
  const { server, raw } = await startWithRaw(t, { turns: [] });
  await raw.write(...upgrade());
  assert.equal((await raw.answer()).headers.get("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  await within(server.close(), "the end of the server");
  await raw.closed;
});

test("an address that is taken is an error of listen", async (t) => {
  const { port } = await startServer(t, { turns: [] });
  await assert.rejects(startServer({ after() {} }, { turns: [], port }), { code: "EADDRINUSE" });
});

test("a message whose name is still being claimed when the server stops is waited for", async () => {
  const claimed = gate();
  const refused = new ApiError("overloaded", "Full.");
  const store = createMemoryRunStore();
  const runs = new RunRegistry({
    settings: readSettings({}),
    // Asynchronous, like Redis over the network.
    store: { ...store, claim: (...claim) => claimed.opened.then(() => store.claim(...claim)) },
    limits: { admitRun: () => Promise.reject(refused) } as unknown as MessageLimits,
    observeRun: () => assert.fail("the run was refused"),
    fail: assert.fail,
    onQueue: () => {},
  });
  const starting = runs.start(
    { keyKind: "none", keyId: "", address: "" },
    {
      served: { life: new ModuleLife(undefined), refuseUnready: () => {} } as ServedAgent,
      request: { message: "Hi", attachments: [], state: {} },
      name: undefined,
      digest: "",
      metadata: {},
      transport: "sse",
      isStreamed: true,
      requestId: "",
      trace: {},
      memory: new MemoryBudget(1).openMessage(),
    },
  );
  let isDrained = false;
  const draining = runs.drain(10_000).then(() => {
    isDrained = true;
  });
  await setImmediate();
  assert.equal(isDrained, false);
  claimed.open();
  const { run, reader } = await starting;
  await assert.rejects(run.started, refused);
  reader.close();
  await draining;
});
