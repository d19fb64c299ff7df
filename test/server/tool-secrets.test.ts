/** What a tool throws is for the model and the log: no client may read it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolError } from "../../server/parley-agent.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { call, fail, hang, say, type Turn } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { answersTo, define, echo, throwing } from "../support/test-tools.ts";

const SECRET = "postgres://shop:hunter2@db.internal/orders";

/** Throws what a database's driver would. */
const leaky = define("leaky", () => {
  throw new Error(`cannot connect to ${SECRET}`, { cause: new Error("hunter2 was refused") });
});

const ENDS: [how: string, next: Turn][] = [
  ["is answered", [say("Sorry")]],
  ["fails", [fail(new ApiError("provider_overloaded", "Too busy."))]],
  ["is at its turn limit", [call("c2", "leaky")]],
];
for (const [how, next] of ENDS) {
  test(`what a tool throws is in no byte that a client gets when the run ${how}`, async (t) => {
    const agent = { tools: [leaky], maxTurns: 2 };
    const state = { conversation_history: [{ role: "user", content: "Hello" }] };
    const setup = () => ({ turns: [[call("c1", "leaky")], next], agent });
    const { json, sse, socket } = await onEveryTransport(t, setup, { message: "Hi", state });
    assert.ok(sse.last.state !== undefined);
    assert.doesNotMatch(JSON.stringify([json, sse, socket]), /postgres|hunter2/);
  });
}

test("what a tool throws is in no byte that a client gets when the run is stopped", async (t) => {
  const turns = [[call("c1", "leaky")], [say("Half"), hang]];
  const server = await startServer(t, { turns, agent: { tools: [leaky] } });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  const events = await client.until("token");
  events.push(...(await client.run({ type: "stop" })));
  const last = events.at(-1);
  assert.equal(last?.type === "done" && last.finish_reason, "stopped");
  assert.match(JSON.stringify(last), /The tool failed\./);
  assert.doesNotMatch(JSON.stringify(events), /postgres|hunter2/);
});

test("the model is told what a tool threw within the run, and in later runs only that it failed", async (t) => {
  const turns = [[call("c1", "leaky")], [call("c2", "echo", { text: "a" })], [say("No")], [say("B")]];
  const server = await startServer(t, { turns, agent: { tools: [leaky, echo] } });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.deepEqual(answersTo(server.model), [`cannot connect to ${SECRET}`, "a"]);
  await send.json(t, server, { message: "And now?", state: last.state });
  assert.deepEqual(answersTo(server.model), ["The tool failed.", "a"]);
});

test("a failed result is marked in the state, and a good one that begins with Error: is not", async (t) => {
  const good = define("good", () => "Error: 0 lines in the log");
  const turns = [[call("c1", "good"), call("c2", "leaky")], [say("No")], [say("Still no")]];
  const env = { PARLEY_STATE_SECRET: "a secret of states" };
  const server = await startServer(t, { turns, agent: { tools: [good, leaky] }, env });
  const { last } = await send.json(t, server, { message: "Hi" });
  const results = [
    { role: "tool", tool_call_id: "c1", content: "Error: 0 lines in the log" },
    { role: "tool", tool_call_id: "c2", content: "The tool failed.", is_error: true },
  ];
  const state = last.state as { conversation_history: object[] };
  assert.deepEqual(state.conversation_history.slice(2, 4), results);
  const next = await send.json(t, server, { message: "And now?", state });
  assert.equal(next.status, 200);
  assert.deepEqual(server.model.asked.at(-1)?.messages.slice(2, 4), results);
});

for (const format of ["json", "pretty"]) {
  test(`the log (${format}) warns of what a tool threw, with its name, stack and causes`, async (t) => {
    const broken = define("broken", () => {
      const errors = [new Error("first part"), new Error("second part")];
      throw new Error(`cannot connect\nto ${SECRET}`, { cause: new AggregateError(errors, "all") });
    });
    const turns = [[call("c1", "broken")], [say("Sorry")]];
    const env = { PARLEY_LOG: format, PARLEY_STATE_SECRET: "s3cret-of-states" };
    const server = await startServer(t, { turns, agent: { tools: [broken] }, env });
    await send.json(t, server, { message: "Hi" });
    await server.close();
    const found = server.log.filter((line) => line.includes("cannot connect"));
    assert.equal(found.length, 1);
    const [line = ""] = found;
    const told = format === "json" ? JSON.parse(line) : { error: line, level: "warn" };
    assert.equal(told.level, "warn");
    if (format === "json") assert.doesNotMatch(line.trimEnd(), /\n/);
    for (const part of ['"broken"', SECRET, "tool-secrets.test", "all", "first part", "second part"]) {
      assert.ok(told.error.includes(part), `${part} in ${told.error}`);
    }
  });
}

test("the log holds a bounded part of what a tool threw, and no half of a secret", async (t) => {
  const secret = "s3cret-of-states";
  const text = `${secret}-`.repeat(1_000_000);
  const broken = define("broken", throwing(new Error(text, { cause: new Error(text) })));
  const env = { PARLEY_LOG: "json", PARLEY_STATE_SECRET: secret };
  const turns = [[call("c1", "broken")], [say("Sorry")]];
  const server = await startServer(t, { turns, agent: { tools: [broken] }, env });
  await send.json(t, server, { message: "Hi" });
  const [line = ""] = server.log.filter((one) => one.includes("broken"));
  assert.ok(line.length < 20_000, `${line.length} characters`);
  assert.doesNotMatch(line, /s3/);
});

test("a ToolError is a tool's regular answer, and is logged only for its cause", async (t) => {
  const plain = define("plain", throwing(new ToolError("No such part.")));
  const caused = define("caused", () => {
    throw new ToolError("The shop is closed.", { cause: new Error("ECONNREFUSED") });
  });
  const turns = [[call("c1", "plain"), call("c2", "caused")], [say("Sorry")]];
  const server = await startServer(t, { turns, agent: { tools: [plain, caused] } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.doesNotMatch(JSON.stringify(events), /ECONNREFUSED/);
  const log = server.log.join("\n");
  assert.match(log, /caused\\?" failed.*The shop is closed.*ECONNREFUSED/s);
  assert.doesNotMatch(log, /plain|No such part/);
});
