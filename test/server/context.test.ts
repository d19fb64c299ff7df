/** What an agent's own code gets to know of each message: `ctx`. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import type { RunContext } from "../../server/agent/run-context.ts";
import { onEveryTransport, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { call, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { answersTo, define } from "../support/test-tools.ts";

for (const how of TRANSPORTS) {
  test(`instructions, tools and execute get the same ctx of a message over ${how}`, async (t) => {
    const seen: RunContext[] = [];
    const look = define("look", (_args, ctx) => void seen.push(ctx));
    const server = await startServer(t, {
      agent: {
        instructions: async (ctx) => {
          seen.push(ctx);
          return `Plan: ${ctx.metadata.plan}.`;
        },
        tools: (ctx) => {
          seen.push(ctx);
          return [look];
        },
      },
      turns: [[call("c1", "look")], [say("Done")]],
    });
    const message = { message: "Hi", metadata: { plan: "pro", "page.url": "/a" } };
    const { last } = await send[how](t, server, message);
    const [first, second, ofTool] = seen;
    assert.ok(first && last.type === "done");
    assert.equal(first, second);
    const { signal, run, ...rest } = first;
    assert.deepEqual(rest, {
      user: undefined,
      metadata: { plan: "pro", "page.url": "/a" },
      conversation: last.state.conversation,
      keyKind: "none",
    });
    assert.equal(run.transport, how === "socket" ? "ws" : how);
    assert.match(run.id, /^[\w-]{36}$/);
    assert.ok(run.requestId);
    assert.ok(signal instanceof AbortSignal);
    assert.deepEqual({ ...ofTool, signal }, { ...first, callId: "c1" });
    const { setup } = server.model.asked[0]?.start ?? assert.fail();
    assert.deepEqual([setup.instructions, setup.tools.map(({ name }) => name)], ["Plan: pro.", ["look"]]);
  });
}

test("each message gets the tools that its metadata call for, and a model cannot call another's", async (t) => {
  const tools = (ctx: RunContext) => [define(String(ctx.metadata.tool), () => "yes")];
  const server = await startServer(t, {
    agent: { tools },
    turns: [[call("c1", "one")], [say("A")], [call("c2", "one")], [say("B")]],
  });
  for (const [tool, answer] of [
    ["one", "yes"],
    ["two", 'There is no tool named "one".'],
  ]) {
    await post(server, { message: "Hi", stream: false, metadata: { tool } });
    assert.deepEqual(answersTo(server.model), [answer]);
  }
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /tool_duration_seconds_count\{tool="one",status="completed"\} 1/);
});

const BROKEN: [name: string, agent: object][] = [
  ["instructions that throw", { instructions: () => assert.fail("secret at /srv") }],
  ["instructions that are no text", { instructions: async () => ({ secret: 1 }) }],
  ["tools that throw", { tools: () => assert.fail("secret at /srv") }],
  ["tools that are no list", { tools: () => ({ secret: 1 }) }],
  ["a tool that is none", { tools: async () => [{ name: "secret" }] }],
];

for (const [name, agent] of BROKEN) {
  test(`${name} end the run as a bug does: the log says why, and no client does`, async (t) => {
    const { json, sse } = await onEveryTransport(t, () => ({ agent, turns: [] }), { message: "Hi" });
    assert.ok(sse.last.type === "error");
    assert.deepEqual([json.status, sse.last.code], [500, "internal"]);
    assert.doesNotMatch(JSON.stringify(sse.events), /secret/);
    const server = await startServer(t, { agent, turns: [] });
    await post(server, { message: "Hi", stream: false });
    assert.match(server.log.join(""), /"failure"|failure:/);
  });
}

test("a run that is stopped while instructions are made ends at once, and the conversation goes on", async (t) => {
  const called = gate();
  const instructions = (ctx: RunContext) => {
    if (ctx.metadata.hang === undefined) return "Be brief.";
    called.open();
    return new Promise<string>(() => {});
  };
  const server = await startServer(t, { agent: { instructions }, turns: [[say("Fine")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi", metadata: { hang: "yes" } });
  await called.opened;
  client.send({ type: "stop" });
  const [stopped] = await client.until("done");
  assert.equal(stopped?.type === "done" && stopped.finish_reason, "stopped");
  assert.equal((await client.run({ message: "On?" })).at(-1)?.data, "Fine");
});

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, "x"]));

const METADATA: [name: string, metadata: unknown, param: string | undefined][] = [
  ["16 strings", names(16), undefined],
  ["17 strings", names(17), "/metadata"],
  ["null", null, undefined],
  ["a list", ["a"], "/metadata"],
  ["a text", "a", "/metadata"],
  ["a number inside", { a: 1 }, "/metadata/a"],
  ["512 characters", { a: "x".repeat(512) }, undefined],
  ["513 characters", { a: "x".repeat(513) }, "/metadata/a"],
  ["a name of 64 characters", { ["x".repeat(64)]: "a" }, undefined],
  ["a name of 65 characters", { ["x".repeat(65)]: "a" }, "/metadata"],
  ["a name with a space", { "a b": "a" }, "/metadata"],
  ["an empty name", { "": "a" }, "/metadata"],
  ["a name that every object has", JSON.parse('{"__proto__": "a", "constructor": "b"}'), undefined],
];

for (const [name, metadata, param] of METADATA) {
  test(`metadata with ${name} is ${param === undefined ? "taken as it is" : `refused at ${param}`}`, async (t) => {
    const seen: object[] = [];
    const agent = { instructions: (ctx: RunContext) => String(seen.push(ctx.metadata)) };
    const server = await startServer(t, { agent, turns: [[say("A")], [say("B")]] });
    const answer = await post(server, { message: "Hi", stream: false, metadata });
    const { last } = await send.socket(t, server, { message: "Hi", metadata });
    if (param === undefined) {
      const entries = Object.entries(metadata ?? {});
      assert.deepEqual(seen.map(Object.entries), [entries, entries]);
      return;
    }
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code, error.param], [400, "invalid_request", param]);
    assert.equal(last.type === "error" && last.code, "invalid_request");
    assert.deepEqual(seen, []);
  });
}

test("a message that is sent again under its name with other metadata is answered once", async (t) => {
  const server = await startServer(t, { turns: [[say("Once")]] });
  const run = "a-name-of-the-test-0";
  for (const page of ["/a", "/b"]) {
    const message = { message: "Hi", run, stream: true, metadata: { page } };
    assert.match(await (await post(server, message)).text(), /Once/);
  }
  assert.equal(server.model.asked.length, 1);
});

test("a project that registers its user's type has it wherever its code gets the user, and no other", async () => {
  const args = ["node_modules/typescript/bin/tsc", "-p", "test/fixtures/register"];
  await promisify(execFile)(process.execPath, args);
});
