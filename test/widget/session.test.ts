/** A conversation with a server: messages with their states, reports, and interrupted runs. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { answerText } from "../../widget/conversations/messages.ts";
import { gate, within } from "../support/deadline.ts";
import { openedSockets } from "./browser-stubs.ts";
import { keptAt, lastAnswer, openClient, text, textsOf } from "./chat-client.ts";
import { done, type ScriptedServer, startScriptedServer, token } from "./scripted-server.ts";

const failure = (code: ErrorCode): StreamEvent => ({ type: "error", data: "It did not work.", code, retryable: true });

const call = (id: string): StreamEvent => ({
  type: "tool_call",
  data: { id, tool: "look", arguments: "{}", status: "running" },
});

const result = (id: string, more: object = {}): StreamEvent => ({
  type: "tool_result",
  data: { id, tool: "look", output: "seen", status: "completed", duration_ms: 1, ...more },
});

/** Cuts the connection. Resolves when the client has noticed. */
async function cut(server: ScriptedServer): Promise<void> {
  const closed = once(openedSockets.at(-1) ?? assert.fail(), "close");
  await Promise.all([server.cutSockets(), closed]);
}

/** Answers the next message; resolves with its body. */
async function answer(server: ScriptedServer, ...events: StreamEvent[]) {
  const turn = await server.turn();
  turn.send(...events);
  return turn.body;
}

const state = (id: string) => ({ previous_response_id: id });

test("a message is sent with the state of the last answer, and reset forgets it", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const states: unknown[] = [];
  for (const id of ["resp_1", "resp_2"]) {
    const { ended } = await client.session.send(text("Hi"));
    states.push((await answer(server, done("ok", state(id)))).state);
    await ended;
  }
  await client.library.reset();
  await client.session.send(text("Again"));
  states.push((await answer(server, done("ok"))).state);
  assert.deepEqual(states, [{}, state("resp_1"), {}]);
});

test("an empty message is not sent, and neither is a second one while an answer comes", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  assert.equal((await client.session.send(text("  "))).outcome, "empty");
  const { outcome, ended } = await client.session.send(text("Hi"));
  const second = await client.session.send(text("Too early"));
  assert.deepEqual([outcome, second.outcome], ["accepted", "busy"]);
  await second.ended;
  await answer(server, done("ok"));
  await ended;
  assert.deepEqual(textsOf(client.session.messages), ["Hi", "ok"]);
});

test("a changed message is sent with the state that it was sent with first, and an answer is repeated with that of its message", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const { session } = client;
  for (const id of ["1", "2"]) {
    const { ended } = await session.send(text(`Message ${id}`));
    await answer(server, done(`Answer ${id}`, state(id)));
    await ended;
  }
  const again = await session.retry();
  assert.deepEqual((await answer(server, done("Answer 2, again", state("2b")))).state, state("1"));
  await again.ended;
  assert.deepEqual(textsOf(session.messages), ["Message 1", "Answer 1", "Message 2", "Answer 2, again"]);
  const [first] = session.messages;
  assert.ok(first?.role === "user" && session.canEdit(first));
  const { ended } = await session.send(text("Message 1, changed"), { replaces: first.id });
  assert.deepEqual((await answer(server, done("Answer"))).state, {});
  await ended;
  assert.deepEqual(textsOf(session.messages), ["Message 1, changed", "Answer"]);
  // A missing message cannot be replaced, and nothing is sent.
  assert.equal((await session.send(text("Message 9, changed"), { replaces: "m99" })).outcome, "refused");
  assert.deepEqual(textsOf(session.messages), ["Message 1, changed", "Answer"]);
});

test("what the page adds comes behind the answer that is running, also where another tab shows it, and into no other conversation", async (t) => {
  const server = await startScriptedServer(t);
  const { client, until } = await openClient(t, { ...server, persist: true });
  const { session } = client;
  const isShown = () => client.session === session;
  const { ended } = await session.send(text("Hi"));
  const added = ["One", "Two"].map((note) => session.addOfPage({ text: note }));
  await answer(server, done("ok", state("1")));
  await ended;
  assert.equal(new Set(await Promise.all(added)).size, 2);
  assert.deepEqual(textsOf(session.messages), ["Hi", "ok", "One", "Two"]);
  client.library.save();
  const other = await openClient(t, { ...server, persist: true });
  await other.until((it) => it.session.messages.length === 4);
  const next = await session.send(text("Next"));
  const shared = session.addOfPage({ text: "Three" });
  await other.until((it) => it.session.messages.length === 6);
  const [, rated] = other.client.session.messages;
  assert.ok(rated?.role === "assistant");
  other.client.session.rate({ ...rated, feedback: { rating: "up" } });
  await until(() => session.messages.some((it) => it.role === "assistant" && it.feedback));
  await answer(server, done("on", state("1")));
  await next.ended;
  await shared;
  assert.deepEqual(textsOf(session.messages).slice(4), ["Next", "on", "Three"]);
  await other.until((it) => it.session.messages.length === 7);
  assert.deepEqual(textsOf(other.client.session.messages), textsOf(session.messages));
  // A page's message does not block queued messages, either.
  await session.send(text("Well?"));
  session.queue(text("And?"));
  const between = session.addOfPage({ text: "Between" });
  await answer(server, done("well", state("1")));
  assert.equal((await answer(server, done("and", state("1")))).message, "And?");
  await Promise.all([between, session.ended]);
  await session.send(text("More"));
  const late = session.addOfPage({ text: "Late" }, isShown);
  assert.deepEqual((await server.turn()).body.state, state("1"));
  await client.library.reset();
  assert.deepEqual([await late, client.session.messages], [undefined, []]);
});

test("a history is cut to where the changed message was sent", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const history = [1, 2, 3, 4].map((index) => ({ role: "user", content: String(index) }));
  for (const length of [2, 4]) {
    const { ended } = await client.session.send(text("Hi"));
    await answer(server, done("ok", { conversation_history: history.slice(0, length), signature: `s${length}` }));
    await ended;
  }
  await client.session.retry();
  const body = await answer(server, done("ok"));
  assert.deepEqual(body.state, { conversation_history: history.slice(0, 2), signature: "s2" });
});

test("a state that the server no longer has is left out by a retry afresh, and by no other", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const first = await client.session.send(text("Hi"));
  await answer(server, done("ok", state("1")));
  await first.ended;
  const second = await client.session.send(text("More"));
  await answer(server, failure("conversation_expired"));
  await second.ended;
  assert.equal(lastAnswer(client)?.failure?.code, "conversation_expired");
  const third = await client.session.retry();
  assert.deepEqual((await answer(server, failure("conversation_expired"))).state, state("1"));
  await third.ended;
  await client.session.retry({ afresh: true });
  assert.deepEqual((await answer(server, done("ok"))).state, {});
});

test("an answer whose run the server has forgotten keeps its text, and its code names the lost connection", async (t) => {
  const server = await startScriptedServer(t);
  const { client, until } = await openClient(t, server);
  const { ended } = await client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(token("Half"));
  await until((it) => textsOf(it.session.messages).at(-1) === "Half");
  turn.forget();
  turn.cut();
  await ended;
  const { failure: lost, status } = lastAnswer(client) ?? {};
  assert.deepEqual([status, lost?.code, lost?.retryable, lost?.detail], ["failed", "run_not_found", true, undefined]);
  assert.equal(lost?.reference, String(turn.body.run).slice(0, 8));
});

test("an answer that cannot be read fails with a code of ours", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const { ended } = await client.session.send(text("Hi"));
  await answer(server, { type: "token", data: 7 } as unknown as StreamEvent);
  await ended;
  assert.equal(lastAnswer(client)?.failure?.code, "unreadable");
});

test("a message to a server that is down is queued, can be taken back, and is sent once when the server is back", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { isDown: () => isDown });
  const { client, until, reports } = await openClient(t, server);
  isDown = true;
  const first = await client.session.send(text("First"));
  await until(({ session }) => session.isQueued);
  assert.equal(client.reconnect.state !== "online", true);
  assert.deepEqual(client.session.withdraw(), text("First"));
  await first.ended;
  assert.equal(client.session.messages.length, 0);
  const second = await client.session.send(text("Second"));
  await until(({ session, reconnect }) => session.isQueued && reconnect.state === "waiting");
  isDown = false;
  client.networkChanged();
  const turn = await server.turn();
  assert.equal(turn.body.message, "Second");
  turn.send(done("ok"));
  await second.ended;
  assert.equal(client.reconnect.state, "online");
  assert.deepEqual(reports, ["m4 done"]);
});

test("a chat that is removed while it connects sends its message when it is back, once", async (t) => {
  const asked = gate();
  const opened = gate();
  const upgrade = () => {
    asked.open();
    return opened.opened;
  };
  const server = await startScriptedServer(t, { upgrade });
  const { client } = await openClient(t, server);
  const { ended } = await client.session.send(text("Later"));
  await asked.opened;
  client.close();
  const socket = openedSockets.at(-1) ?? assert.fail();
  opened.open();
  await once(socket, "close");
  assert.equal(server.dialled.length, 1);
  client.open(false);
  const turn = await server.turn();
  assert.equal(turn.body.message, "Later");
  turn.send(done("ok"));
  await ended;
  assert.deepEqual([server.dialled.length, textsOf(client.session.messages)], [2, ["Later", "ok"]]);
});

for (const socket of [true, false]) {
  test(`a chat that is removed in mid-answer goes on with it when it is back, over ${socket ? "a socket" : "HTTP"}`, async (t) => {
    const server = await startScriptedServer(t, { socket });
    const { client, until, reports } = await openClient(t, server);
    const { ended } = await client.session.send(text("Hi"));
    const turn = await server.turn();
    turn.send(token("Half "));
    await until((it) => lastAnswer(it)?.blocks.length === 1);
    client.close();
    await turn.gone;
    turn.send(token("of it"));
    client.open(false);
    assert.equal(await server.control(), "resume", "no stop before");
    turn.send(done("Half of it"));
    await ended;
    assert.deepEqual(reports, ["m2 Half ", "m2 of it", "m2 done"]);
    assert.equal(lastAnswer(client)?.finishReason, "stop");
  });
}

test("a chat that is removed follows what another tab has begun only once it is back", async (t) => {
  const setTimer = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (run: () => void, ms = 0, ...more: unknown[]) =>
    setTimer(run, ms === 5_000 ? 0 : ms, ...more),
  );
  const server = await startScriptedServer(t);
  const { client, until } = await openClient(t, { ...server, persist: true });
  const first = await client.session.send(text("Hi"));
  await answer(server, done("ok"));
  await first.ended;
  client.library.save();
  await client.library.stored;
  const other = await openClient(t, { ...server, persist: true });
  await other.until((it) => it.session.messages.length === 2);
  await client.session.send(text("More"));
  await other.until((it) => it.session.messages.length === 4);
  other.client.close();
  (await server.turn()).send(token("Half"));
  await until((it) => lastAnswer(it)?.blocks.length === 1);
  assert.equal(server.dialled.length, 1);
  other.client.open(true);
  assert.equal(await server.control(), "resume");
});

for (const end of ["stop", "reset"] as const) {
  test(`${end} ends a run although the chat was removed`, async (t) => {
    const server = await startScriptedServer(t);
    const { client, until } = await openClient(t, server);
    const { ended } = await client.session.send(text("Hi"));
    const turn = await server.turn();
    turn.send(token("Half"));
    await until((it) => lastAnswer(it)?.blocks.length === 1);
    client.close();
    await turn.gone;
    if (end === "stop") client.session.stop();
    else void client.library.reset();
    assert.equal(await server.control(), "cancel");
    await ended;
  });
}

test("a conversation that was closed is forgotten with the next message, whose answer comes to its end", async (t) => {
  const server = await startScriptedServer(t);
  const { client, until } = await openClient(t, { ...server, persist: true });
  const first = await client.session.send(text("Hi"));
  await answer(server, done("ok"));
  await first.ended;
  client.library.close();
  assert.equal((await keptAt(server.url)).length, 1);
  const { ended } = await client.session.send(text("More"));
  const turn = await server.turn();
  turn.send(token("Half "));
  await until((it) => lastAnswer(it)?.blocks.length === 1);
  const forgotten = async () => {
    while ((await keptAt(server.url)).length > 1);
  };
  await within(forgotten(), "the end of what was closed", 5_000);
  turn.send(token("of it"), done("Half of it"));
  await ended;
  await client.library.stored;
  assert.deepEqual(
    (await keptAt(server.url)).map(({ tree }) => textsOf(tree)),
    [["More", "Half of it"]],
  );
});

test("each piece of text, each new status of a tool and the end of an answer is reported once", async (t) => {
  const server = await startScriptedServer(t);
  const { client, reports, until } = await openClient(t, server);
  const first = await client.session.send(text("Hi"));
  await answer(server, token("a"), call("1"), call("2"), result("1"), token("b"), failure("internal"));
  await first.ended;
  assert.deepEqual(reports.splice(0), [
    "m2 a",
    "m2 1 running",
    "m2 2 running",
    "m2 1 completed",
    "m2 b",
    "m2 2 stopped",
    "m2 failed",
  ]);
  const second = await client.session.send(text("Hi"));
  const turn = await server.turn();
  turn.send(call("3"));
  await until((it) => lastAnswer(it)?.blocks.length === 1);
  client.session.stop();
  assert.equal(client.session.status, "stopping");
  await server.control();
  turn.send(result("3", { status: "failed" }), {
    type: "done",
    data: "",
    state: {},
    finish_reason: "stopped",
  });
  await second.ended;
  assert.deepEqual(reports, ["m4 3 running", "m4 3 stopped", "m4 done"]);
  assert.equal(lastAnswer(client)?.finishReason, "stopped");
});

const approval = (id: string): StreamEvent =>
  ({
    type: "tool_approval",
    data: { id, tool: "pay", arguments: "{}", text: `Pay ${id}?`, expires_at: "2099-01-01T00:00:00Z" },
  }) as unknown as StreamEvent;

const asked = (data: string, after = {}): StreamEvent =>
  ({ ...done(data, after), finish_reason: "approval_required" }) as unknown as StreamEvent;

test("tool calls that need approval wait for decisions, with which the same answer goes on", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const { session } = client;
  const first = await session.send(text("Pay both"));
  await answer(server, approval("1"), approval("2"), asked("Pay 1?\nPay 2?", state("open")));
  await first.ended;
  const statuses = () => lastAnswer(client)?.blocks.map((block) => block.type === "tool" && block.status);
  assert.deepEqual(statuses(), ["waiting", "waiting"]);
  const [call] = lastAnswer(client)?.blocks ?? [];
  assert.equal(call?.type === "tool" && call.approval?.text, "Pay 1?");
  for (const wrong of [[], [{ id: "1", approved: true }], [1, 1].map(() => ({ id: "1", approved: true }))]) {
    assert.equal((await session.decide(wrong)).outcome, "empty");
  }
  const approvals = [
    { id: "1", approved: true },
    { id: "2", approved: false, reason: "too much" },
  ];
  const { outcome, ended } = await session.decide(approvals);
  assert.equal(outcome, "accepted");
  assert.deepEqual(statuses(), ["running", "failed"]);
  const body = await answer(server, result("1"), result("2", { status: "failed" }), token("Paid."), done("Paid."));
  assert.deepEqual([body.approvals, body.message, body.state], [approvals, "", state("open")]);
  await ended;
  assert.deepEqual(statuses(), ["completed", "failed", false]);
  assert.equal(session.messages.length, 2);
});

for (const end of ["the server ends it", "its connection is lost"]) {
  test(`what an answer asks for before and after the person has stopped it waits for no decision, where ${end}`, async (t) => {
    const server = await startScriptedServer(t);
    const { client, until } = await openClient(t, server);
    const { session } = client;
    const { ended } = await session.send(text("Pay both"));
    const turn = await server.turn();
    turn.send(approval("1"));
    await until((it) => lastAnswer(it)?.blocks.length === 1);
    session.stop();
    assert.equal(await server.control(), "stop");
    // The event was already under way.
    turn.send(approval("2"));
    if (end === "the server ends it") turn.send(asked("", state("open")));
    else {
      await until((it) => lastAnswer(it)?.blocks.length === 2);
      turn.cut();
    }
    await ended;
    const statuses = lastAnswer(client)?.blocks.map((block) => block.type === "tool" && block.status);
    assert.deepEqual([statuses, session.waitingCalls], [["stopped", "stopped"], []]);
  });
}

test("a message in place of a decision ends the waiting of the calls", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const first = await client.session.send(text("Pay"));
  await answer(server, approval("1"), asked(""));
  await first.ended;
  await client.session.send(text("Never mind"));
  const [, paid] = client.session.messages;
  assert.ok(paid?.role === "assistant");
  assert.deepEqual(
    paid.blocks.map((block) => block.type === "tool" && block.status),
    ["stopped"],
  );
});

const refusals = [
  { code: "overloaded", statuses: ["stopped", "stopped"], again: true },
  { code: "approval_used", statuses: ["stopped", "stopped"], again: false },
  { code: "approval_expired", statuses: ["waiting", "waiting"], again: false },
  { code: "invalid_request", statuses: ["waiting", "waiting"], again: false },
] as const;

for (const { code, statuses, again } of refusals) {
  test(`decisions that the server refuses with ${code} are ${again ? "sent again, with the same state" : "not sent again"}`, async (t) => {
    const server = await startScriptedServer(t);
    const { client } = await openClient(t, server);
    const { session } = client;
    const sent = await session.send(text("Pay both"));
    await answer(server, approval("1"), approval("2"), asked("", state("open")));
    await sent.ended;
    const approvals = ["1", "2"].map((id) => ({ id, approved: true }));
    const { ended } = await session.decide(approvals);
    const older = code === "invalid_request" ? {} : { state: state("older") };
    await answer(server, { ...failure(code), retryable: again, ...older } as StreamEvent);
    await ended;
    const calls = () => lastAnswer(client)?.blocks.filter((block) => block.type === "tool") ?? [];
    assert.deepEqual(
      calls().map(({ status }) => status),
      statuses,
    );
    const [first] = calls();
    assert.equal(first?.decision !== undefined, again, "nobody knows what was decided");
    if (code === "approval_expired") assert.ok(Date.parse(first?.approval?.expires_at ?? "") <= Date.now());
    if (code === "invalid_request") {
      await session.decide(approvals);
      const { body } = await server.turn();
      assert.deepEqual([body.approvals, body.state], [approvals, state("open")], "they can be corrected");
      return;
    }
    await session.retry();
    const { body } = await server.turn();
    assert.deepEqual([body.approvals, body.message], again ? [approvals, ""] : [undefined, "Pay both"]);
    if (again) assert.deepEqual(body.state, state("open"));
  });
}

test("calls are asked about no longer once their run has failed, and again when what took their place was not sent", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { isDown: () => isDown });
  const { client, until } = await openClient(t, server);
  const { session } = client;
  const broken = await session.send(text("Pay"));
  await answer(server, approval("1"), failure("provider_error"));
  await broken.ended;
  assert.deepEqual(session.waitingCalls, []);
  const sent = await session.send(text("Pay now"));
  await answer(server, approval("2"), asked("", state("open")));
  await sent.ended;
  const waiting = () => session.waitingCalls.map(({ callId, decision }) => [callId, decision]);
  isDown = true;
  await cut(server);
  await session.send(text("Never mind"));
  await until(() => session.isQueued);
  assert.deepEqual(session.withdraw(), text("Never mind"));
  assert.deepEqual(waiting(), [["2", undefined]], "after a message that was taken back");
  session.mark("2", { approved: true });
  const { ended } = await session.decide(session.decisions ?? []);
  await until(({ reconnect }) => reconnect.state === "waiting");
  session.stop();
  await ended;
  assert.deepEqual(waiting(), [["2", undefined]], "after a decision that was stopped");
});

for (const socket of [true, false]) {
  test(`an answer that failed after its tools have run goes on with what they did, over ${socket ? "a socket" : "HTTP"}`, async (t) => {
    const server = await startScriptedServer(t, { socket });
    const { client } = await openClient(t, server);
    const { session } = client;
    const first = await session.send(text("Look"));
    const broken = {
      ...failure("provider_error"),
      retryable: false,
      continue: true,
      state: state("open"),
    } as StreamEvent;
    await answer(server, token("Let me see."), call("1"), result("1"), token("It sh"), broken);
    await first.ended;
    const failed = await session.retry();
    assert.deepEqual(textsOf(session.messages), ["Look", "Let me see. tool"], "what broke off is said again");
    const body = await answer(server, token("It shines."), done("It shines.", state("after")));
    await failed.ended;
    assert.deepEqual([body.continue, body.message, body.state], [true, "", state("open")]);
    assert.deepEqual(textsOf(session.messages), ["Look", "Let me see. tool It shines."]);
    assert.equal(session.canContinue, false);
    await session.send(text("And now?"));
    assert.deepEqual((await server.turn()).body.state, state("after"));
  });
}

const cuts = [
  { reason: "length", more: [token("lo"), done("lo")], whole: "Hello" },
  { reason: "stopped", more: [done("lo")], whole: "Hello" },
  { reason: "max_turns", more: [token("lo"), done("lo")], calls: [call("1"), result("1")], whole: "lo" },
] as const;

for (const { reason, more, calls = [], whole } of cuts as readonly (Omit<(typeof cuts)[number], "calls"> & {
  calls?: StreamEvent[];
})[]) {
  test(`an answer that ended with ${reason} goes on in place`, async (t) => {
    const server = await startScriptedServer(t);
    const { client } = await openClient(t, server);
    const { session } = client;
    const first = await session.send(text("Hi"));
    const end = { ...done("Hel", state("cut")), finish_reason: reason } as StreamEvent;
    await answer(server, ...calls, token("Hel"), end);
    await first.ended;
    assert.equal(session.canContinue, true);
    const { ended } = await session.continue();
    assert.equal(session.canContinue, false);
    const body = await answer(server, ...more);
    await ended;
    assert.deepEqual([body.continue, body.message, body.state], [true, "", state("cut")]);
    const last = lastAnswer(client);
    assert.deepEqual([last && answerText(last), last?.finishReason, session.messages.length], [whole, "stop", 2]);
  });
}

test("an answer that was cut goes on with the state of its own branch, and what is said behind it has all of its history", async (t) => {
  const server = await startScriptedServer(t);
  const { client } = await openClient(t, server);
  const { session } = client;
  const history = (question: string, said: string) => ({
    conversation_history: [
      { role: "user", content: question },
      { role: "assistant", content: said },
    ],
  });
  const first = await session.send(text("Hi"));
  await answer(server, token("Hel"), { ...done("Hel", history("Hi", "Hel")), finish_reason: "length" } as StreamEvent);
  await first.ended;
  const { id = "" } = session.lastQuestion ?? {};
  const changed = await session.send(text("Hi, changed"), { replaces: id });
  await answer(server, done("ok", history("Hi, changed", "ok")));
  await changed.ended;
  assert.equal(await session.switchTo(id), true);
  const more = await session.continue();
  const body = await answer(server, token("lo"), done("lo", history("Hi", "Hello")));
  await more.ended;
  assert.deepEqual([body.continue, body.state], [true, history("Hi", "Hel")]);
  await session.send(text("More"));
  assert.deepEqual((await server.turn()).body.state, history("Hi", "Hello"));
});

test("an answer that was to go on, but was stopped before that was sent, can still go on", async (t) => {
  let isDown = false;
  const server = await startScriptedServer(t, { isDown: () => isDown });
  const { client, until } = await openClient(t, server);
  const { session } = client;
  const first = await session.send(text("Hi"));
  await answer(server, { ...done("Hel", state("cut")), finish_reason: "length" } as StreamEvent);
  await first.ended;
  const before = lastAnswer(client);
  isDown = true;
  await cut(server);
  const { ended } = await session.continue();
  await until(({ reconnect }) => reconnect.state === "waiting");
  session.stop();
  await ended;
  assert.deepEqual([session.canContinue, lastAnswer(client)], [true, before]);
});

test("an answer that was stopped before the server said where cannot go on", async (t) => {
  const server = await startScriptedServer(t);
  const { client, until } = await openClient(t, server);
  const { ended } = await client.session.send(text("Hi"));
  (await server.turn()).send(token("Half"));
  await until((it) => lastAnswer(it)?.blocks.length === 1);
  client.close();
  client.session.stop();
  await ended;
  assert.deepEqual([lastAnswer(client)?.finishReason, client.session.canContinue], ["stopped", false]);
});
