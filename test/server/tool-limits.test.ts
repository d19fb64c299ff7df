/** Tools of odd names, of endless output, and called for ever. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../support/chat-transports.ts";
import { call, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { answersTo, define, echo } from "../support/test-tools.ts";

const ODD_NAMES = ["__proto__", "constructor", "hasOwnProperty", "toString"];

test("tools by the names of what every object has are called like any other", async (t) => {
  const turn = ODD_NAMES.map((name, index) => call(`c${index}`, name, '{"__proto__":{"a":1}}'));
  const tools = ODD_NAMES.map((name) => define(name, (args: object) => [name, Object.keys(args)]));
  const server = await startServer(t, { turns: [turn, [say("Done")]], agent: { tools } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const told = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  assert.deepEqual(told.map(({ tool }) => tool).sort(), [...ODD_NAMES].sort());
  assert.deepEqual(
    answersTo(server.model),
    ODD_NAMES.map((name) => JSON.stringify([name, ["__proto__"]])),
  );
  assert.equal(Object.keys(Object.prototype).length, 0);
});

test("50 MB that a tool returns, as text or as an object, are cut and not kept", async (t) => {
  const tools = [
    define("text", () => "x".repeat(50_000_000)),
    define("object", () => Array(5_000_000).fill("xxxxxxx")),
  ];
  const turns = [[call("c1", "text"), call("c2", "object")], [say("Done")]];
  const server = await startServer(t, { turns, agent: { tools } });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  const sizes = events.flatMap((event) => (event.type === "tool_result" ? [event.data.output.length] : []));
  assert.equal(sizes.length, 2);
  for (const size of sizes) assert.ok(size > 100_000 && size < 100_100, `${size}`);
  assert.equal(last.data, "Done");
  assert.ok(JSON.stringify(last).length < 250_000);
});

test("a model that makes the same call for ever is ended at the turn limit, with every call answered", async (t) => {
  const turns = Array.from({ length: 5 }, (_, turn) => [call(`c${turn}`, "echo", { text: "again" })]);
  const server = await startServer(t, { turns, agent: { tools: [echo], maxTurns: 4 } });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "max_turns");
  assert.equal(server.model.asked.length, 4);
  assert.equal(events.filter(({ type }) => type === "tool_result").length, 3);
  const { conversation_history: history = [] } = last.state as { conversation_history?: object[] };
  const roles = history.map((message) => ("role" in message ? message.role : ""));
  assert.equal(roles.filter((role) => role === "tool").length, 4);
});
