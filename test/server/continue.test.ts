/** Runs that continue without a message: after a failure that followed tool calls, and after a truncated answer. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentDefinition } from "../../server/agent/define.ts";
import { readSettings } from "../../server/config/settings.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import type { ErrorEvent } from "../../server/protocol/events.ts";
import { onEveryTransport, post, send, stateOf } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { call, fail, hang, type Step, say, type Turn } from "../support/scripted-provider.ts";
import { startWithClient } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { deaf, define, echo } from "../support/test-tools.ts";

const KINDS = ["conversation_history", "previous_response_id"] as const;
const down: Step[] = [fail(new ApiError("provider_overloaded", "Too busy."))];
const sentBy = (server: TestServer) => server.model.asked.at(-1)?.sent ?? [];
const rolesOf = (messages: readonly { role: string }[]) => messages.map(({ role }) => role);

/** A tool that counts its calls. */
function counter() {
  const runs: unknown[] = [];
  return { runs, count: define("count", (_args, { callId }) => runs.push(callId)) };
}

for (const stateKind of KINDS) {
  const isStored = stateKind === "previous_response_id";
  const title = (text: string) => `${text} (${stateKind})`;

  test(title("after a failure the model is asked again, and no tool runs twice"), async (t) => {
    const { runs, count } = counter();
    const turns = [[say("Hello.")], [call("c1", "count")], down, down, [call("c2", "count")], down, [say("Three.")]];
    const server = await startServer(t, { turns, agent: { tools: [count] }, stateKind });
    const first = await send.json(t, server, { message: "Hi" });
    let { last } = await send.sse(t, server, { message: "Count", state: first.last.state });
    for (let tries = 0; tries < 2; tries++) {
      assert.ok(last.type === "error");
      assert.deepEqual([last.code, last.continue, last.retryable], ["provider_overloaded", true, false]);
      ({ last } = await send.sse(t, server, { continue: true, state: last.state }));
    }
    assert.ok(last.type === "error" && last.continue);
    ({ last } = await send.sse(t, server, { continue: true, state: last.state }));
    assert.equal(last.data, "Three.");
    assert.deepEqual(runs, ["c1", "c2"]);
    if (isStored) {
      assert.deepEqual(rolesOf(sentBy(server)), ["tool"]);
      assert.deepEqual(stateOf(last), { previous_response_id: "resp_4" });
    } else {
      const expected = ["user", "assistant", "user", "assistant", "tool", "assistant", "tool", "assistant"];
      assert.deepEqual(rolesOf(last.state?.conversation_history ?? []), expected);
    }
  });

  test(title("a message closes what is open, and what was done stays known"), async (t) => {
    const { runs, count } = counter();
    const server = await startServer(t, {
      turns: [[call("c1", "count")], down, down, [say("One.")]],
      agent: { tools: [count] },
      stateKind,
    });
    const failed = await send.json(t, server, { message: "Count" });
    const again = await send.json(t, server, { message: "Well?", state: failed.last.state });
    assert.ok(again.last.type === "error");
    assert.deepEqual([again.last.continue, again.last.retryable], [undefined, true]);
    const { last } = await send.json(t, server, { message: "Well?", state: again.last.state ?? failed.last.state });
    assert.equal(last.data, "One.");
    assert.deepEqual(rolesOf(sentBy(server)), isStored ? ["tool", "user"] : ["user", "assistant", "tool", "user"]);
    assert.equal(runs.length, 1);
  });

  test(title("who sends the state of before goes on from before"), async (t) => {
    const turns = [[say("Hello.")], [call("c1", "echo", { text: "a" })], down, [say("On.")]];
    const server = await startServer(t, { turns, agent: { tools: [echo] }, stateKind });
    const first = await send.json(t, server, { message: "Hi" });
    const failed = await send.json(t, server, { message: "Echo", state: first.last.state });
    const { open: _open, ...before } = failed.last.state ?? assert.fail();
    await send.json(t, server, { message: "Again", state: before });
    assert.deepEqual(rolesOf(sentBy(server)), isStored ? ["user"] : ["user", "assistant", "user"]);
  });

  test(title("a tool that was cut by a timeout of the run counts as not finished, and is not run again"), async (t) => {
    const aborted = gate();
    const turns = [[call("c1", "forever"), call("c2", "echo", { text: "b" })], [say("Sorry.")]];
    const agent = { tools: [deaf("forever", aborted.open), echo] };
    const server = await startServer(t, { turns, agent, stateKind, env: { PARLEY_RUN_SECONDS: "0.2" } });
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.ok(last.type === "error" && last.code === "provider_timeout" && last.continue);
    await aborted.opened;
    assert.equal((await send.json(t, server, { continue: true, state: last.state })).last.data, "Sorry.");
    const told = sentBy(server).flatMap((message) => (message.role === "tool" ? [message.content] : []));
    assert.deepEqual(told, ["Stopped before it finished.", "b"]);
  });

  test(title("a model that ignores the abort leaves the exchange open, too"), async (t) => {
    const turns: Turn[] = [[call("c1", "echo", { text: "a" })], [hang], [say("On.")]];
    const env = { PARLEY_RUN_SECONDS: "0.2" };
    const server = await startServer(t, { turns, agent: { tools: [echo] }, stateKind, deaf: true, env });
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.ok(last.type === "error" && last.continue);
    assert.deepEqual(rolesOf(last.state?.open?.messages ?? []).at(-1), "tool");
  });

  test(title("after a stop behind tools the model goes on, and knows what was done and said"), async (t) => {
    const turns = [[call("c1", "echo", { text: "a" })], [say("Half"), hang], [say(" and half.")]];
    const { server, client } = await startWithClient(t, { turns, agent: { tools: [echo] }, stateKind });
    client.send({ message: "Hi" });
    await client.until("token");
    const last = (await client.run({ type: "stop" })).at(-1);
    assert.ok(last?.type === "done" && last.finish_reason === "stopped");
    const next = (await client.run({ continue: true })).at(-1);
    assert.ok(next?.type === "done");
    assert.equal(next.data, " and half.");
    const sent = sentBy(server);
    assert.deepEqual(rolesOf(sent).slice(-3), ["tool", "assistant", "user"]);
    const history = next.state.conversation_history ?? [];
    if (!isStored) assert.deepEqual(history.at(-1), { role: "assistant", content: "Half and half." });
    assert.doesNotMatch(JSON.stringify(next.state), /Go on exactly/);
  });

  test(title("an onAnswer that fails after tools leaves none of the answer, and the exchange open"), async (t) => {
    let fails = true;
    const onAnswer: AgentDefinition["onAnswer"] = () => {
      if (fails) throw new Error("down");
    };
    const turns = [[say("Secret."), call("c1", "echo", { text: "a" })], [say("Secret.")], [say("Fine.")]];
    const server = await startServer(t, { turns, agent: { tools: [echo], onAnswer }, stateKind });
    const failed = await send.json(t, server, { message: "Hi" });
    assert.ok(failed.last.type === "error" && failed.last.continue);
    assert.doesNotMatch(JSON.stringify(failed), /Secret/);
    fails = false;
    const { last } = await send.json(t, server, { continue: true, state: failed.last.state });
    assert.equal(last.data, "Fine.");
    if (isStored) assert.equal(server.model.asked.at(-1)?.previousId, "resp_1");
  });

  test(title("with a secret it goes on after a restart, without one the state is refused"), async (t) => {
    for (const [env, status] of [
      [{ PARLEY_STATE_SECRET: "a secret of many characters" }, 200],
      [{}, 400],
    ] as const) {
      const options = { agent: { tools: [echo] }, stateKind, env };
      const before = await startServer(t, { turns: [[call("c1", "echo", { text: "a" })], down], ...options });
      const { last } = await send.json(t, before, { message: "Hi" });
      await before.close();
      const after = await startServer(t, { turns: [[say("On.")]], ...options });
      const answer = await post(after, { continue: true, state: last.state, stream: false });
      assert.equal(answer.status, status);
    }
  });
}

test("a failure before any tool has run is as ever", async (t) => {
  const { json, sse } = await onEveryTransport(t, () => ({ turns: [down] }), { message: "Hi" });
  assert.ok(sse.last.type === "error" && json.last.type === "error");
  assert.deepEqual([sse.last.continue, sse.last.retryable, json.last.state], [undefined, true, undefined]);
});

test("the socket remembers what is open", async (t) => {
  const turns = [[call("c1", "echo", { text: "a" })], down, [say("On.")]];
  const { client } = await startWithClient(t, { turns, agent: { tools: [echo] } });
  const failed = (await client.run({ message: "Hi" })).at(-1) as ErrorEvent;
  assert.equal(failed.continue, true);
  assert.equal((await client.run({ continue: true })).at(-1)?.data, "On.");
});

test("a large open exchange is read in a thread as well, and bounded as a history is", async (t) => {
  const big = define("big", () => "x".repeat(90_000));
  const calls = ["a", "b", "c", "d"].map((id) => call(id, "big"));
  const turns = [calls, down, [say("On.")]];
  const server = await startServer(t, { turns, agent: { tools: [big] } });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal((await send.json(t, server, { continue: true, state: last.state })).last.data, "On.");
  server.server.reload(readSettings({ PARLEY_MAX_HISTORY_BYTES: "300000" }));
  const answer = await post(server, { continue: true, state: last.state, stream: false });
  assert.deepEqual([answer.status, (await answer.json()).error.code], [413, "request_too_large"]);
});

for (const [name, state] of [
  ["no state", undefined],
  ["an empty state", {}],
] as const) {
  test(`continue with ${name} is 400: there is nothing to go on from`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, { continue: true, state, stream: false });
    assert.deepEqual([answer.status, (await answer.json()).error.param], [400, "/continue"]);
  });
}

test("an agent with run never takes continue", async (t) => {
  const run = function* () {
    yield "Hi";
  };
  const agent = { run, model: undefined as never };
  const server = await startServer(t, { agent });
  const { last } = await send.json(t, server, { message: "Hi" });
  const answer = await post(server, { continue: true, state: last.state, stream: false });
  assert.deepEqual([answer.status, (await answer.json()).error.param], [400, "/continue"]);
});
