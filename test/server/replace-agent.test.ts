/** Replacing the agent of a running server: started runs finish with the old agent, later messages get the new one. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import { ConfigError } from "../../server/errors.ts";
import { post } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { call, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";

/** An agent whose only tool returns `output()`. */
function agent(name: string, output: () => unknown, more: Partial<AgentDefinition> = {}): AgentDefinition {
  const look = { name: "look", description: "d", parameters: { type: "object" as const }, execute: output };
  return { name, model: "demo", tools: [look], ...more };
}

test("an answer that runs keeps its agent, and the next message gets the new one with its instructions and tools", async (t) => {
  const called = gate();
  const found = gate();
  const old = agent("Old", async () => {
    called.open();
    await found.opened;
    return "old";
  });
  const { server, url, socketUrl, model } = await startServer(t, {
    agent: old,
    turns: [[call("1", "look")], [call("2", "look")], [say("Second")], [say("First")]],
  });
  const client = await connect(t, socketUrl);
  client.send({ message: "Look" });
  await called.opened;
  await server.replaceAgent({ agent: checkAgent(agent("New", () => "new", { instructions: "Be new." })) });

  const second = await (await post({ url }, { message: "Look", stream: false })).json();
  assert.deepEqual([second.tool_calls[0].output, second.response], ["new", "Second"]);
  found.open();
  const events = await client.until("done");
  assert.ok(events.some((event) => event.type === "tool_result" && event.data.output === "old"));
  const instructions = model.asked.map(({ start }) => start.setup.instructions);
  assert.deepEqual(instructions, ["", "Be new.", "Be new.", ""]);
});

test("the page, /api/info and the metrics show the new agent", async (t) => {
  const { server, url } = await startServer(t, { agent: { name: "Old" } });
  assert.match(await (await fetch(url)).text(), /<title>Old</);
  const next = { name: "New <1>", model: "demo", chat: { welcome: "Hello!" } };
  await server.replaceAgent({ agent: checkAgent({ ...agent("", () => "found"), ...next }) });
  const page = await (await fetch(url)).text();
  assert.match(page, /<title>New &lt;1&gt;</);
  assert.match(page, /"welcome":"Hello!"/);
  const info = await (await fetch(`${url}/api/info`)).json();
  assert.deepEqual([info.name, info.welcome], ["New <1>", "Hello!"]);
  await post({ url }, { message: "please look", stream: false });
  assert.match(await (await fetch(`${url}/metrics`)).text(), /parley_tool_duration_seconds_count\{tool="look"/);
});

test("an agent whose model cannot be served changes nothing", async (t) => {
  const { server, url } = await startServer(t, { agent: { name: "Old" } });
  const broken = checkAgent({ name: "New", model: "compatible/some" });
  await assert.rejects(server.replaceAgent({ agent: broken }), (error) => error instanceof ConfigError);
  assert.equal((await (await fetch(`${url}/api/info`)).json()).name, "Old");
});

test("a conversation goes on with the new agent, if its states are of the same kind", async (t) => {
  const { server, url } = await startServer(t, { turns: [[say("One")], [say("Two")]] });
  const { state } = await (await post({ url }, { message: "First", stream: false })).json();
  await server.replaceAgent({ agent: checkAgent({ name: "New", model: "demo" }) });
  const next = await (await post({ url }, { message: "Second", state, stream: false })).json();
  assert.equal(next.state.conversation_history.length, 4);
});

test("what a module has opened is closed after its agent's last run, on a reload and on a drain", async (t) => {
  const called = gate();
  const found = gate();
  const closed: string[] = [];
  const old = agent("Old", async () => {
    called.open();
    await found.opened;
    return `closed: ${closed.join()}`;
  });
  const { server, socketUrl, close } = await startServer(t, {
    agent: old,
    turns: [[call("1", "look")], [say("Done")]],
  });
  await server.replaceAgent({ agent: checkAgent({ name: "First", model: "demo" }), close: () => closed.push("first") });
  assert.equal(closed.length, 0);
  await server.replaceAgent({ agent: checkAgent(old), close: () => closed.push("second") });
  await turns();
  assert.deepEqual(closed, ["first"]);

  const client = await connect(t, socketUrl);
  client.send({ message: "Look" });
  await called.opened;
  await server.replaceAgent({ agent: checkAgent({ name: "Third", model: "demo" }), close: () => closed.push("third") });
  found.open();
  const events = await client.until("done");
  assert.ok(events.some((event) => event.type === "tool_result" && event.data.output === "closed: first"));
  await turns();
  assert.deepEqual(closed, ["first", "second"]);
  await close();
  assert.deepEqual(closed, ["first", "second", "third"]);
});
