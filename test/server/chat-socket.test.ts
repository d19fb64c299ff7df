import assert from "node:assert/strict";
import { test } from "node:test";
import { gate } from "../support/deadline.ts";
import { attachment } from "../support/files.ts";
import { call, hang, hangQuietly, say, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { deaf } from "../support/test-tools.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

test("a plain message continues from the last answer of its connection, and of no other", async (t) => {
  const turns = [[say("One")], [say("Two")], [say("Three")]];
  const server = await startServer(t, { turns });
  const [first, second] = [await connect(t, server.socketUrl), await connect(t, server.socketUrl)];
  await first.run({ message: "a" });
  await first.run({ message: "b" });
  await second.run({ message: "c" });
  const [, continued, apart] = server.model.asked;
  assert.deepEqual(continued?.messages, [user("a"), assistant("One"), user("b")]);
  assert.deepEqual(apart?.messages, [user("c")]);
});

test("state wins over previous_response_id, and that over what is remembered", async (t) => {
  const turns = [[say("1")], [say("2")], [say("3")], [say("4")]];
  const server = await startServer(t, { turns, stateKind: "previous_response_id" });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "a" });
  await client.run({ message: "b", previous_response_id: "resp_20" });
  const state = { previous_response_id: "resp_30" };
  await client.run({ message: "c", previous_response_id: "resp_20", state });
  await client.run({ message: "d", previous_response_id: null, state: null });
  const ids = server.model.asked.map(({ previousId }) => previousId);
  assert.deepEqual(ids, [undefined, "resp_20", "resp_30", "resp_31"]);
});

test("an empty state starts anew", async (t) => {
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]] });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "a" });
  await client.run({ message: "b", state: {} });
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

const FRAMES: [name: string, frame: string | Buffer, code: string][] = [
  ["is no JSON", "{", "invalid_json"],
  ["is empty", "", "invalid_json"],
  ["is null", "null", "invalid_request"],
  ["is an array", "[]", "invalid_request"],
  ["is binary", Buffer.from('{"message":"Hi"}'), "invalid_request"],
  ["has no message", "{}", "invalid_request"],
  ["has a message that is no string", '{"message":["Hi"]}', "invalid_request"],
  ["has an empty message", '{"message":" "}', "invalid_request"],
  ["has an unknown type", '{"type":"reset"}', "invalid_request"],
  ["has a type of another type", '{"type":["clear"]}', "invalid_request"],
  ["has a previous_response_id that is no string", '{"message":"Hi","previous_response_id":5}', "invalid_request"],
  ["has a state that is no object", '{"message":"Hi","state":"x"}', "invalid_request"],
  ["is nested without end", `{"message":"Hi","x":${"[".repeat(99)}${"]".repeat(99)}}`, "invalid_request"],
];

for (const [name, frame, code] of FRAMES) {
  test(`a frame that ${name} is ${code}, and the socket stays open`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")]] });
    const client = await connect(t, server.socketUrl);
    client.socket.send(frame);
    const event = await client.next();
    assert.ok(event.type === "error");
    assert.deepEqual([event.code, event.retryable], [code, false]);
    assert.equal((await client.run({ message: "Hi" })).at(-1)?.data, "Fine");
  });
}

test("a refused message leaves the conversation as it was", async (t) => {
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]] });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "a" });
  await client.run({ message: "b", attachments: [attachment("image/png", { data: "?" })] });
  await client.run({ message: "c" });
  assert.deepEqual(server.model.asked[1]?.messages, [user("a"), assistant("One"), user("c")]);
});

test("a second message during a run is run_in_progress, and the run goes on", async (t) => {
  const held = gate();
  const server = await startServer(t, { turns: [[say("A"), wait(held.opened), say("B")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await client.until("token");
  client.send({ message: "Hello?" });
  const refusal = await client.next();
  assert.ok(refusal.type === "error");
  assert.deepEqual([refusal.code, refusal.retryable], ["run_in_progress", true]);
  held.open();
  assert.equal((await client.until("done")).at(-1)?.data, "AB");
});

test("connections do not wait for each other", async (t) => {
  const held = gate();
  const turns = [[wait(held.opened), say("Late")], [say("Soon")]];
  const server = await startServer(t, { turns });
  const [first, second] = [await connect(t, server.socketUrl), await connect(t, server.socketUrl)];
  const asked = server.model.nextAsked();
  first.send({ message: "Hi" });
  await asked;
  assert.equal((await second.run({ message: "Hi" })).at(-1)?.data, "Soon");
  held.open();
  assert.equal((await first.until("done")).at(-1)?.data, "Late");
});

test("clear forgets the conversation and answers cleared", async (t) => {
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]] });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "a" });
  client.send({ type: "clear" });
  assert.deepEqual(await client.next(), { type: "cleared", data: "" });
  await client.run({ message: "b" });
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

test("clear during a run aborts it without a terminal event, and the next message is taken at once", async (t) => {
  const server = await startServer(t, { turns: [[say("Half"), hang], [say("Two")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "clear" });
  client.send({ message: "b" });
  const events = await client.until("done", "error");
  assert.deepEqual(
    events.map(({ type }) => type),
    ["cleared", "token", "done"],
  );
  await server.model.asked[0]?.aborted;
  assert.deepEqual(server.model.asked[1]?.messages, [user("b")]);
});

test("clear while a model ignores its abort lets nothing of the old run through", async (t) => {
  const held = gate();
  const server = await startServer(t, {
    turns: [[say("Old"), wait(held.opened), say("Old still")], [say("New")]],
    deaf: true,
  });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "clear" });
  await client.until("cleared");
  held.open();
  const events = await client.run({ message: "b" });
  assert.deepEqual(
    events.map(({ data }) => data),
    ["New", "New"],
  );
});

test("stop ends the run with done and stopped, what was said so far, and a state that goes on", async (t) => {
  const server = await startServer(t, { turns: [[say("Half an "), hang], [say("Next")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "a" });
  await client.until("token");
  client.send({ type: "stop" });
  assert.deepEqual(await client.next(), {
    type: "done",
    data: "Half an ",
    state: { conversation_history: [user("a"), assistant("Half an ")] },
    finish_reason: "stopped",
    id: 2,
  });
  await server.model.asked[0]?.aborted;
  assert.equal((await client.run({ message: "b" })).at(-1)?.data, "Next");
});

test("stop before the first token ends the run, also with a model that then ends without a word", async (t) => {
  const server = await startServer(t, { turns: [[hangQuietly], [say("Next")]] });
  const client = await connect(t, server.socketUrl);
  const asked = server.model.nextAsked();
  client.send({ message: "a" });
  await asked;
  client.send({ type: "stop" });
  const event = await client.next();
  assert.ok(event.type === "done");
  assert.deepEqual([event.data, event.finish_reason], ["", "stopped"]);
  assert.equal((await client.run({ message: "b" })).at(-1)?.data, "Next");
});

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  test(`stop during a tool aborts it and leaves no dangling call (${stateKind})`, async (t) => {
    const aborted = gate();
    const server = await startServer(t, {
      turns: [[say("Wait."), call("c1", "forever")], [say("Next")]],
      agent: { tools: [deaf("forever", aborted.open)] },
      stateKind,
    });
    const client = await connect(t, server.socketUrl);
    client.send({ message: "a" });
    await client.until("tool_call");
    client.send({ type: "stop" });
    const events = await client.until("done");
    const [result, last] = events.slice(-2);
    await aborted.opened;
    assert.ok(result?.type === "tool_result" && last?.type === "done");
    assert.deepEqual([result.data.id, result.data.status], ["c1", "failed"]);
    assert.deepEqual([last.data, last.finish_reason], ["Wait.", "stopped"]);
    if (stateKind === "previous_response_id") assert.deepEqual(last.state, {});
    const next = await connect(t, server.socketUrl);
    assert.equal((await next.run({ message: "b", state: last.state })).at(-1)?.data, "Next");
  });
}

test("stop with nothing running is ignored", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ type: "stop" });
  const events = await client.run({ message: "Hi" });
  assert.deepEqual(
    events.map(({ type }) => type),
    ["token", "done"],
  );
});
