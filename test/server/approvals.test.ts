/** Tool calls that a person has to approve: none runs without approval, none twice, none by another user's approval. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import type { RunRecord } from "../../server/agent/run-record.ts";
import { type ToolDefinition, tool } from "../../server/agent/tool-definition.ts";
import type { StandardSchema } from "../../server/agent/tool-schema.ts";
import type { ConversationState, ToolApproval } from "../../server/protocol/chat.ts";
import type { DoneEvent, ErrorEvent } from "../../server/protocol/events.ts";
import { changesOf } from "../support/changes.ts";
import { type Outcome, onEveryTransport, post, send, stateOf, typesOf } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { onceCalled } from "../support/once-called.ts";
import { newRun } from "../support/run-lines.ts";
import { call, fail, type Step, say, type Turn } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

const KINDS = ["conversation_history", "previous_response_id"] as const;

/** A shop whose orders can be cancelled after approval. `done` records each cancellation. */
function shop(more: Partial<ToolDefinition<{ order: string }>> = {}) {
  const done: unknown[] = [];
  const cancel: ToolDefinition<{ order: string }> = tool({
    name: "cancel_order",
    description: "Cancels an order.",
    parameters: z.object({ order: z.string() }),
    needsApproval: true,
    approvalText: ({ order }) => `Cancel order ${order}?`,
    execute: ({ order }, { callId }) => {
      done.push([callId, order]);
      return `cancelled ${order}`;
    },
  });
  return { done, cancel: { ...cancel, ...more } };
}

const CANCEL = call("c1", "cancel_order", { order: "A1" });

interface Asking extends ServerOptions {
  first?: Step[];
  turnsAfter?: Turn[];
  tools?: AgentDefinition["tools"];
}

/** Starts a server, makes it ask for approval, and returns what it asked. */
async function ask(
  t: TestContext,
  { first = [CANCEL], turnsAfter = [[say("Done.")]], tools, agent, ...more }: Asking = {},
) {
  const { done, cancel } = shop();
  const server = await startServer(t, {
    turns: [first, ...turnsAfter],
    agent: { tools: tools ?? [cancel, echo], ...agent },
    ...more,
  });
  const outcome = await send.sse(t, server, { message: "Cancel it." });
  const { last } = outcome;
  assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
  return { server, done, ...outcome, last, state: last.state, approvals: last.approvals ?? [] };
}

const approve = (id = "c1", more = {}) => ({ id, approved: true, ...more });
const decline = (id = "c1", more = {}) => ({ id, approved: false, ...more });
const codeOf = ({ last, status }: Outcome) => [status, last.type === "error" ? last.code : last.finish_reason];
const results = (server: TestServer) => server.model.asked.at(-1)?.sent.filter(({ role }) => role === "tool");
const reopened = (state: ConversationState, more: object) =>
  ({ ...state, open: { ...state.open, ...more } }) as unknown as ConversationState;

for (const stateKind of KINDS) {
  const title = (text: string) => `${text} (${stateKind})`;

  test(title("a call that needs approval ends the run, with what the person is asked"), async (t) => {
    const first = [say("Let me see."), CANCEL, call("c2", "echo", { text: "b" })];
    const setup = () => ({ turns: [first], agent: { tools: [shop().cancel, echo] }, stateKind });
    const { json, sse } = await onEveryTransport(t, setup, { message: "Hi" });
    assert.deepEqual(typesOf(sse.events), ["token", "tool_call", "tool_result", "tool_approval", "done"]);
    const { last } = sse;
    assert.ok(last.type === "done" && json.last.type === "done");
    assert.deepEqual([last.data, last.finish_reason], ["Let me see.", "approval_required"]);
    const [{ expires_at, ...approval } = {} as ToolApproval] = last.approvals ?? [];
    assert.deepEqual(approval, {
      id: "c1",
      tool: "cancel_order",
      arguments: '{"order":"A1"}',
      text: "Cancel order A1?",
    });
    const seconds = (Date.parse(expires_at) - Date.now()) / 1000;
    assert.ok(seconds > 3500 && seconds <= 3600 && expires_at.endsWith("Z"));
    assert.deepEqual(sse.events.at(-2), { type: "tool_approval", data: last.approvals?.[0] });
    assert.equal(json.last.approvals?.length, 1);
    assert.equal(json.toolCalls?.length, 1);
  });

  test(title("an approved call runs in the next run, and the model goes on from its result"), async (t) => {
    for (const transport of ["json", "sse", "socket"] as const) {
      const { server, done, state } = await ask(t, { stateKind });
      const outcome = await send[transport](t, server, { approvals: [approve()], state });
      assert.deepEqual([outcome.last.type, outcome.last.data], ["done", "Done."]);
      assert.deepEqual(done, [["c1", "A1"]]);
      assert.deepEqual(results(server), [{ role: "tool", tool_call_id: "c1", content: "cancelled A1" }]);
      if (transport !== "json") {
        assert.deepEqual(typesOf(outcome.events), ["tool_call", "tool_result", "token", "done"]);
      } else assert.equal(outcome.toolCalls?.length, 1);
      const expected =
        stateKind === "previous_response_id"
          ? { previous_response_id: "resp_2" }
          : ["user", "assistant", "tool", "assistant"];
      const after = stateOf(outcome.last);
      assert.deepEqual(after?.conversation_history?.map(({ role }) => role) ?? after, expected);
    }
  });

  test(title("a declined call does not run, and the model is told why"), async (t) => {
    const { server, done, state } = await ask(t, { stateKind });
    const outcome = await send.sse(t, server, { approvals: [decline("c1", { reason: "Too late" })], state });
    assert.deepEqual(typesOf(outcome.events), ["tool_result", "token", "done"]);
    const [result] = outcome.events;
    assert.ok(result?.type === "tool_result");
    assert.deepEqual([result.data.id, result.data.status, result.data.declined], ["c1", "failed", true]);
    assert.deepEqual(done, []);
    assert.match(JSON.stringify(results(server)), /declined this call.*Their reason: Too late.*"is_error":true/);
  });

  test(title("a plain message declines all, and no yes counts afterwards"), async (t) => {
    const { server, done, state } = await ask(t, { stateKind, turnsAfter: [[say("Fine.")]] });
    const outcome = await send.sse(t, server, { message: "Never mind", state });
    assert.deepEqual(typesOf(outcome.events), ["tool_result", "token", "done"]);
    const sent = server.model.asked.at(-1)?.sent ?? [];
    assert.match(JSON.stringify(sent.at(-2)), /did not decide.*was not carried out/);
    assert.deepEqual(sent.at(-1), { role: "user", content: "Never mind" });
    assert.deepEqual(codeOf(await send.json(t, server, { approvals: [approve()], state })), [409, "approval_used"]);
    assert.deepEqual(done, []);
  });

  test(
    title("a message that fails after it has declined all can be sent again with the state of its error"),
    async (t) => {
      const turnsAfter = [[fail(new Error("down"))], [say("Fine.")]];
      const { server, done, state } = await ask(t, { stateKind, turnsAfter });
      const failed = await send.json(t, server, { message: "Never mind", state });
      const { last } = await send.sse(t, server, {
        message: "Never mind",
        state: (failed.last as ErrorEvent).state ?? state,
      });
      assert.equal(last.data, "Fine.");
      assert.deepEqual(done, []);
    },
  );

  for (const transport of ["json", "socket"] as const) {
    test(title(`a yes counts once (${transport})`), async (t) => {
      const { server, done, state } = await ask(t, {
        stateKind,
        turnsAfter: [[say("Done.")], [say("Again.")], [say("On.")]],
      });
      const approvals = [approve()];
      const both = await Promise.all([0, 1].map(() => send[transport](t, server, { approvals, state })));
      const codes = both.map((one) => codeOf(one)[1]).sort();
      assert.deepEqual(codes, ["approval_used", "stop"]);
      const late = await send[transport](t, server, { approvals: [decline()], state });
      assert.equal(codeOf(late)[1], "approval_used");
      assert.equal(done.length, 1);
      assert.equal((await send[transport](t, server, { message: "Go on", state })).last.data, "Again.");
      assert.match(JSON.stringify(results(server)), /unless they had approved it elsewhere/);
      assert.equal(done.length, 1);
    });
  }
}

test("the socket remembers the state: decisions alone are enough", async (t) => {
  const { done, cancel } = shop();
  const server = await startServer(t, { turns: [[CANCEL], [say("Done.")]], agent: { tools: [cancel] } });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "Cancel it." });
  assert.equal((await client.run({ approvals: [approve()] })).at(-1)?.data, "Done.");
  assert.equal(done.length, 1);
});

test("decisions that are sent again under the same run name get the events of the same run", async (t) => {
  const { server, done, state } = await ask(t);
  const message = { approvals: [approve()], state, run: newRun() };
  const [one, two] = [await send.sse(t, server, message), await send.socket(t, server, message)];
  assert.deepEqual(one.events, two.events);
  assert.equal(done.length, 1);
  const other = await send.json(t, server, { ...message, approvals: [decline()] });
  assert.deepEqual(codeOf(other), [400, "invalid_request"]);
});

test("a run name belongs to one state, where both messages name one", async (t) => {
  const server = await startServer(t, { turns: [[say("One")], [say("Two")]] });
  const { last } = await send.sse(t, server, { message: "Hi" });
  const run = newRun();
  await send.sse(t, server, { message: "On", run, state: last.state });
  assert.equal((await send.sse(t, server, { message: "On", run, state: last.state })).last.data, "Two");
  assert.deepEqual(codeOf(await send.json(t, server, { message: "On", run })), [400, "invalid_request"]);
});

// What clients must not do.

test("a state in which anything of what is open was changed is invalid_state, and no call is made", async (t) => {
  const { server, done, state } = await ask(t);
  const { waiting } = state.open ?? {};
  const forged: unknown[] = [
    ...[...changesOf(state.open)].map((open) => ({ ...state, open })),
    reopened(state, { waiting: { ...waiting, calls: waiting?.calls.map((one) => ({ ...one, editable: true })) } }),
    reopened(state, { waiting: { ...waiting, calls: waiting?.calls.flatMap((one) => [one, one]) } }),
    { ...state, conversation: "another-conversation" },
    { ...state, conversation: undefined },
    { ...state, conversation_history: [{ role: "user", content: "Hi" }] },
    { ...state, open: "x" },
  ];
  for (const [index, one] of forged.entries()) {
    // Alternates between transports, because both check states with the same code.
    const transport = index % 2 === 0 ? "json" : "socket";
    const body = index % 4 < 2 ? { approvals: [approve()] } : { message: "Hi" };
    const outcome = await send[transport](t, server, { ...body, state: one });
    assert.deepEqual(codeOf(outcome), [transport === "json" ? 400 : 101, "invalid_state"], JSON.stringify(one));
  }
  assert.deepEqual(done, []);
  assert.equal(server.model.asked.length, 1);
});

test("what is open before one id of OpenAI is not open before another", async (t) => {
  const { server, state } = await ask(t, { stateKind: "previous_response_id" });
  for (const id of ["resp_0", "resp_1"]) {
    const forged = { ...state, previous_response_id: id };
    assert.deepEqual(codeOf(await send.json(t, server, { approvals: [approve()], state: forged })), [
      400,
      "invalid_state",
    ]);
  }
});

test("two tabs: what one was asked cannot be answered with the other's exchange", async (t) => {
  const { cancel, done } = shop();
  const turns = [[CANCEL], [CANCEL], [say("Done.")]];
  const server = await startServer(t, { turns, agent: { tools: [cancel] } });
  const [one, two] = [await send.json(t, server, { message: "1" }), await send.json(t, server, { message: "2" })];
  const crossed = { ...one.last.state, open: two.last.state?.open };
  assert.deepEqual(codeOf(await send.json(t, server, { approvals: [approve()], state: crossed })), [
    400,
    "invalid_state",
  ]);
  assert.deepEqual(done, []);
});

const SECRET = { PARLEY_STATE_SECRET: "a secret of many characters" };

test("another start, agent or user cannot use what one was asked", async (t) => {
  const authenticate = ({ token }: { token?: string | undefined }) => ({ id: token ?? "nobody" });
  const first = await ask(t, { env: SECRET, authenticate });
  const { state } = first;
  const others: [ServerOptions, string, unknown[]][] = [
    [{ env: SECRET }, "nobody", [409, "approval_expired"]],
    [{}, "nobody", [400, "invalid_state"]],
    [{ env: SECRET, agent: { id: "another" } }, "nobody", [400, "invalid_state"]],
    [{ env: SECRET }, "eve", [400, "invalid_state"]],
  ];
  for (const [options, token, expected] of others) {
    const { cancel, done } = shop();
    const agent = { tools: [cancel], ...options.agent };
    const server = await startServer(t, { turns: [[say("On.")]], authenticate, ...options, agent });
    const body = { approvals: [approve()], state, stream: false };
    const answer = await post(server, body, { headers: { "x-user-token": token } });
    assert.deepEqual([answer.status, (await answer.json()).error.code], expected);
    assert.deepEqual(done, []);
  }
});

test("a conversation of another start goes on with a message, and the model knows what it cannot know", async (t) => {
  const { state } = await ask(t, { env: SECRET });
  const { cancel, done } = shop();
  const server = await startServer(t, { turns: [[say("On.")]], env: SECRET, agent: { tools: [cancel] } });
  assert.equal((await send.json(t, server, { message: "Well?", state })).last.data, "On.");
  assert.match(JSON.stringify(results(server)), /unless they had approved it elsewhere/);
  assert.deepEqual(done, []);
});

const BAD: [name: string, body: object, param: string, sentence?: RegExp][] = [
  ["no array", { approvals: {} }, "/approvals"],
  ["nothing", { approvals: [] }, "/approvals"],
  ["text", { approvals: ["c1"] }, "/approvals/0"],
  ["no id", { approvals: [{ approved: true }] }, "/approvals/0/id"],
  [
    "an unknown id",
    { approvals: [approve("c9")] },
    "/approvals/0/id",
    /a call that waits, such as c1, and stand here once\.$/,
  ],
  [
    "an unknown id behind it",
    { approvals: [approve(), approve("c9")] },
    "/approvals/1/id",
    /waits, and stand here once\.$/,
  ],
  ["an id twice", { approvals: [approve(), decline()] }, "/approvals/1/id"],
  ["no yes and no no", { approvals: [{ id: "c1" }] }, "/approvals/0/approved"],
  ["a reason that is too long", { approvals: [decline("c1", { reason: "x".repeat(1001) })] }, "/approvals/0/reason"],
  [
    "arguments of a call that is not editable",
    { approvals: [approve("c1", { arguments: "{}" })] },
    "/approvals/0/arguments",
  ],
  ["continue beside them", { approvals: [approve()], continue: true }, "/continue"],
  ["continue in their place", { continue: true }, "/continue"],
  ["continue that is no true", { continue: "yes" }, "/continue"],
  ["continue beside a message", { continue: true, message: "Hi" }, "/continue"],
  ["a message that is no text", { message: 5, approvals: [approve()] }, "/message"],
];
for (const [name, body, param, sentence = /\.$/] of BAD) {
  test(`approvals with ${name} are 400 at ${param}, and may be sent again`, async (t) => {
    const { server, done, state } = await ask(t);
    const answer = await post(server, { ...body, state, stream: true });
    const { error } = await answer.json();
    assert.deepEqual([answer.status, error.code, error.param], [400, "invalid_request", param]);
    assert.match(error.message, sentence);
    assert.equal(codeOf(await send.socket(t, server, { ...body, state }))[1], "invalid_request");
    assert.deepEqual(done, []);
    assert.equal((await send.json(t, server, { approvals: [approve()], state })).last.data, "Done.");
  });
}

for (const state of [undefined, {}, { conversation_history: [{ role: "user", content: "Hi" }] }]) {
  test(`approvals with the state ${JSON.stringify(state)} are 400: nothing waits there`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, { approvals: [approve()], state, stream: false });
    const { error } = await answer.json();
    assert.deepEqual([answer.status, error.param], [400, "/approvals"]);
    assert.match(error.message, /send the state of the answer that asked/);
  });
}

test("a decision that is late is approval_expired, and a message still goes on", async (t) => {
  const { server, done, state } = await ask(t, { env: { PARLEY_APPROVAL_SECONDS: "0.001" } });
  await new Promise(setImmediate);
  while (Date.now() <= Date.parse(state.open?.waiting?.expires_at ?? "")) await new Promise(setImmediate);
  assert.deepEqual(codeOf(await send.json(t, server, { approvals: [approve()], state })), [409, "approval_expired"]);
  assert.deepEqual(done, []);
  assert.equal((await send.json(t, server, { message: "Well?", state })).last.data, "Done.");
});

test("a clock that is set back does not make a used decision a new one", async (t) => {
  const { server, done, state } = await ask(t, { turnsAfter: [[say("Done.")], [say("Again.")]] });
  await send.json(t, server, { approvals: [approve()], state });
  const [date, time] = [Date.now.bind(Date), performance.now.bind(performance)];
  t.mock.method(performance, "now", () => time() + 4_000_000);
  t.mock.method(Date, "now", () => date() - 4_000_000);
  assert.deepEqual(codeOf(await send.json(t, server, { approvals: [approve()], state })), [409, "approval_expired"]);
  assert.equal(done.length, 1);
});

// Options of the agent's author.

test("edited arguments are checked before anything is used, shown, and told to the model", async (t) => {
  const { done, cancel } = shop({ editable: true });
  const { server, state, approvals } = await ask(t, { tools: [cancel] });
  assert.equal(approvals[0]?.editable, true);
  const wrong = await send.json(t, server, { approvals: [approve("c1", { arguments: '{"order":5}' })], state });
  assert.deepEqual(codeOf(wrong), [400, "invalid_request"]);
  assert.match(wrong.last.data, /arguments do not fit/);
  const right = await send.sse(t, server, { approvals: [approve("c1", { arguments: '{"order":"B2"}' })], state });
  const [called, result] = right.events;
  assert.equal(called?.type === "tool_call" && called.data.arguments, '{"order":"B2"}');
  assert.equal(result?.type === "tool_result" && result.data.output, "cancelled B2");
  assert.match(JSON.stringify(results(server)), /other arguments: .*B2.*cancelled B2/);
  assert.deepEqual(done, [["c1", "B2"]]);
});

test("what may be changed is asked with the schema of its arguments, if that is short and the call is not hidden", async (t) => {
  const { cancel } = shop({ editable: true });
  const asked = async (more: object, setup: Asking = {}) => {
    const { events, approvals } = await ask(t, { ...setup, tools: [{ ...cancel, ...more }] });
    assert.deepEqual(events.at(-2), { type: "tool_approval", data: approvals[0] });
    return approvals[0];
  };
  const schema = { type: "object", properties: { order: { type: "string", maxLength: 9 } }, required: ["order"] };
  const draft = { $schema: "https://json-schema.org/draft/2020-12/schema" };
  assert.deepEqual((await asked({ parameters: { ...draft, ...schema } }))?.schema, schema);
  const { properties } = Object((await asked({}))?.schema);
  assert.deepEqual(properties, { order: { type: "string" } }, "also of a zod object");
  const described = (length: number) => ({ ...schema, description: "é".repeat(length) });
  const room = (16 * 1024 - JSON.stringify(described(0)).length) / 2;
  assert.ok((await asked({ parameters: described(Math.floor(room)) }))?.schema);
  for (const more of [
    { parameters: described(Math.floor(room) + 1) },
    { editable: false },
    { expose: "title", title: "Cancel" },
  ]) {
    assert.equal((await asked(more))?.schema, undefined, JSON.stringify(more).slice(0, 80));
  }
});

test("edited arguments are nested as deep as a message may be", async (t) => {
  const tree = { type: "array", items: { $ref: "#/$defs/tree" } };
  const parameters = { type: "object", properties: { order: { $ref: "#/$defs/tree" } }, $defs: { tree } } as const;
  const done: unknown[] = [];
  const edit = define("cancel_order", () => done.push("ran"), { parameters, needsApproval: true, editable: true });
  const { server, state } = await ask(t, { first: [call("c1", "cancel_order", { order: [] })], tools: [edit] });
  const nested = (depth: number) => ({ arguments: `{"order":${"[".repeat(depth)}${"]".repeat(depth)}}` });
  const deep = await send.json(t, server, { approvals: [approve("c1", nested(15_000))], state });
  assert.deepEqual(codeOf(deep), [400, "invalid_request"]);
  assert.match(deep.last.data, /approvals\[0\]\.arguments must be .* at most 64 levels/);
  assert.equal((await send.json(t, server, { approvals: [approve("c1", nested(10))], state })).last.data, "Done.");
  assert.deepEqual(done, ["ran"]);
});

for (const [name, asks] of [
  ["takes no changes", true],
  ["does not ask any more", false],
] as const) {
  test(`arguments are not changed of a tool that ${name} when the person says yes`, async (t) => {
    const { done, cancel } = shop();
    const { server, state } = await ask(t, { tools: [{ ...cancel, editable: true }] });
    const { approvalText: _text, ...silent } = cancel;
    const next = asks ? cancel : { ...silent, needsApproval: false };
    const agent = checkAgent({ name: "Acme Support", model: "demo", tools: [next] });
    await server.server.replaceAgent({ agent });
    const edited = await send.json(t, server, { approvals: [approve("c1", { arguments: '{"order":"B2"}' })], state });
    assert.deepEqual(codeOf(edited), [400, "invalid_request"]);
    assert.equal((await send.json(t, server, { approvals: [approve()], state })).last.data, "Done.");
    assert.deepEqual(done, [["c1", "A1"]]);
  });
}

test("an approved call does not begin once its run was stopped", async (t) => {
  const stopped = gate();
  let isLate = false;
  const order = z.string().refine(async () => {
    if (isLate) await stopped.opened;
    return true;
  });
  const { done, cancel } = shop({ parameters: z.object({ order }) });
  const { server, state } = await ask(t, { tools: [cancel] });
  const client = await connect(t, server.socketUrl);
  isLate = true;
  client.send({ approvals: [approve()], state });
  await client.until("tool_call");
  client.send({ type: "stop" });
  const last = (await client.until("done")).at(-1);
  stopped.open();
  await turns(5);
  assert.match(JSON.stringify(last), /Stopped before it finished/);
  assert.deepEqual(done, []);
});

type Rule = ToolDefinition<{ order: string }>["needsApproval"] & {};
const RULES: [name: string, rule: Rule, asks: boolean][] = [
  ["says no", () => false, false],
  ["says yes", async () => true, true],
  ["looks at arguments and user", ({ order }, { user }) => order === "A1" && user === undefined, true],
  ["is false", false, false],
];
for (const [name, needsApproval, asks] of RULES) {
  test(`a rule that ${name} ${asks ? "asks" : "does not ask"}`, async (t) => {
    const { done, cancel } = shop({ needsApproval });
    const definition: Partial<typeof cancel> = { ...cancel };
    if (needsApproval === false) delete definition.approvalText;
    const tools = [definition as typeof cancel];
    const server = await startServer(t, { turns: [[CANCEL], [say("Done.")]], agent: { tools } });
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.equal((last as DoneEvent).finish_reason, asks ? "approval_required" : "stop");
    assert.equal(done.length, asks ? 0 : 1);
    assert.doesNotMatch(server.log.join(""), /needsApproval/);
  });
}

test("a call that would not run is not shown: its arguments do not fit, or its turn has too many", async (t) => {
  const { done, cancel } = shop();
  const first = [
    call("c1", "cancel_order", { order: 5 }),
    call("c2", "cancel_order", { order: "A" }),
    call("c3", "cancel_order", { order: "B" }),
  ];
  const { approvals, events } = await ask(t, { first, tools: [cancel], env: { PARLEY_MAX_TOOL_CALLS: "2" } });
  assert.deepEqual(
    approvals.map(({ id }) => id),
    ["c2"],
  );
  const failed = events.flatMap((event) => (event.type === "tool_result" ? [event.data.status] : []));
  assert.deepEqual(failed, ["failed", "failed"]);
  assert.deepEqual(done, []);
});

type Check = StandardSchema<{ order: string }>["~standard"]["validate"];
const value = { order: "A1" };
const FAILING: [name: string, check: Check][] = [
  ["throws", () => assert.fail("The database is away.")],
  ["says no", () => ({ issues: [{ message: "Not now." }] })],
  ["never answers", () => new Promise(() => {})],
];
for (const [name, check] of FAILING) {
  test(`a call whose check ${name} when approval is due, and would succeed later, is not carried out`, async (t) => {
    const { done, cancel } = shop();
    let checks = 0;
    const validate: Check = (args) => (checks++ === 0 ? check(args) : { value });
    const jsonSchema = { input: () => ({ type: "object" }) };
    const parameters = { "~standard": { version: 1, vendor: "own", validate, jsonSchema } } as const;
    const tools = [{ ...cancel, parameters }];
    const server = await startServer(t, { turns: [[CANCEL], [say("Done.")]], agent: { tools }, hookMs: 50 });
    const { events } = await send.sse(t, server, { message: "Hi" });
    const ended = events.flatMap((event) => (event.type === "tool_result" ? [event.data.status] : []));
    assert.deepEqual([ended, done], [["failed"], []]);
  });
}

const TEXTS: [approvalText: ToolDefinition<{ order: string }>["approvalText"] & {}, text: string][] = [
  [() => "Cancel\n\u202eit\u2066?", "Cancel it?"],
  [() => "x".repeat(2000), `${"x".repeat(999)}…`],
  [async () => "Shall I?", "Shall I?"],
  [() => " ", 'The assistant wants to use "cancel_order".'],
];
for (const [approvalText, text] of TEXTS) {
  test(`people are asked in plain text: ${text.slice(0, 40)}`, async (t) => {
    const { approvals, last } = await ask(t, { tools: [shop({ approvalText, danger: true }).cancel] });
    assert.deepEqual([approvals[0]?.text, approvals[0]?.danger, last.data], [text, true, text]);
  });
}

const WRONG: [fields: object, said: RegExp][] = [
  [{ needsApproval: "yes" }, /needsApproval of the tool "cancel_order" must be true, false or a function/],
  [{ approvalText: "Sure?" }, /approvalText of the tool "cancel_order" must be a function/],
  [{ editable: 1 }, /editable of the tool "cancel_order" must be true or false/],
  [{ danger: "very" }, /danger of the tool "cancel_order" must be true or false/],
  [{ needsApproval: undefined }, /approvalText of the tool "cancel_order" does nothing without needsApproval/],
  [
    { needsApproval: undefined, approvalText: undefined, editable: true },
    /editable .* does nothing without needsApproval/,
  ],
];
for (const [fields, said] of WRONG) {
  test(`a tool with ${JSON.stringify(fields)} is a mistake that says what is right`, () => {
    const agent = { name: "Acme", model: "demo", tools: [{ ...shop().cancel, ...fields }] };
    assert.throws(() => checkAgent(agent), said);
  });
}

test("a tool that is gone when the person says yes is a failed result", async (t) => {
  let has = true;
  const { cancel } = shop();
  const agent = { tools: () => (has ? [cancel] : []) };
  const server = await startServer(t, { turns: [[CANCEL], [say("Sorry.")]], agent });
  const { last } = await send.json(t, server, { message: "Hi" });
  has = false;
  await send.json(t, server, { approvals: [approve()], state: last.state });
  assert.match(JSON.stringify(results(server)), /There is no tool named/);
});

test("several calls are decided one by one, and maxTurns counts anew", async (t) => {
  const { done, cancel } = shop();
  const first = [CANCEL, call("c2", "cancel_order", { order: "B2" })];
  const turnsAfter = [[call("c3", "cancel_order", { order: "C3" })], [say("Done.")]];
  const { server, state } = await ask(t, {
    first,
    turnsAfter,
    tools: [cancel],
    agent: { maxTurns: 2, tools: [cancel] },
  });
  const second = await send.sse(t, server, { approvals: [decline("c2"), approve("c1")], state });
  assert.equal((second.last as DoneEvent).finish_reason, "approval_required");
  const third = await send.sse(t, server, { approvals: [approve("c3")], state: second.last.state });
  assert.equal(third.last.data, "Done.");
  assert.deepEqual(done, [
    ["c1", "A1"],
    ["c3", "C3"],
  ]);
});

test("hooks, log and metrics know of it", async (t) => {
  const { hook, next } = onceCalled<RunRecord>();
  const { cancel } = shop();
  const agent = { onRunEnd: hook, tools: [cancel] };
  const first = [CANCEL, call("c2", "cancel_order", { order: "B2" })];
  const { server, state } = await ask(t, { first, agent });
  const asked = await next();
  assert.deepEqual([asked.finishReason, asked.approvals.map(({ id }) => id)], ["approval_required", ["c1", "c2"]]);
  await send.json(t, server, { approvals: [approve("c1"), decline("c2")], state });
  const { toolCalls, message, approvals } = await next();
  assert.deepEqual([message, approvals], ["", []]);
  assert.deepEqual(
    toolCalls.map(({ id, decision, status, arguments: args }) => [id, decision, status, args]),
    [
      ["c2", "declined", "failed", '{"order":"B2"}'],
      ["c1", "approved", "completed", '{"order":"A1"}'],
    ],
  );
  const records = server.log.map((record) => JSON.parse(record)).filter(({ msg }) => msg === "approval");
  assert.deepEqual(
    records.map(({ tool: name, decision }) => [name, decision]),
    [
      ["cancel_order", "approved"],
      ["cancel_order", "declined"],
    ],
  );
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /parley_approvals_total\{tool="cancel_order",decision="approved"\} 1/);
  assert.match(metrics, /parley_approvals_total\{tool="cancel_order",decision="declined"\} 1/);
});

test("onMessage decides on a message beside decisions; refused, it leaves them unused", async (t) => {
  const seen: string[] = [];
  const onMessage: AgentDefinition["onMessage"] = ({ message }) => {
    seen.push(message);
    return message === "bad" ? { refuse: "No." } : undefined;
  };
  const { done, cancel } = shop();
  const { server, state } = await ask(t, { agent: { onMessage, tools: [cancel] } });
  const refused = await send.sse(t, server, { message: "bad", approvals: [approve()], state });
  assert.deepEqual([refused.last.data, (refused.last as DoneEvent).finish_reason], ["No.", "refused"]);
  assert.deepEqual(done, []);
  const { last } = await send.json(t, server, { approvals: [approve()], state: refused.last.state });
  assert.deepEqual([last.data, seen], ["Done.", ["Cancel it.", "bad"]]);
});

test("with onAnswer, what people are asked has to pass; refused, nothing waits", async (t) => {
  const onAnswer: AgentDefinition["onAnswer"] = ({ answer }) => (/A1/.test(answer) ? { refuse: "No." } : undefined);
  const { cancel } = shop();
  const setup = () => ({ turns: [[CANCEL]], agent: { onAnswer, tools: [cancel] } });
  const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.deepEqual([sse.last.data, (sse.last as DoneEvent).finish_reason], ["No.", "refused"]);
  assert.deepEqual([typesOf(sse.events), stateOf(sse.last)?.open], [["token", "done"], undefined]);
});

test("ctx has the decisions", async (t) => {
  const seen: unknown[] = [];
  const { cancel } = shop();
  const agent: Partial<AgentDefinition> = {
    tools: [cancel],
    instructions: ({ approvals }) => {
      seen.push(approvals);
      return "";
    },
  };
  const { server, state } = await ask(t, { agent });
  await send.json(t, server, { approvals: [approve()], state });
  assert.deepEqual(seen, [[], [{ id: "c1", approved: true, tool: "cancel_order" }]]);
});

test("decisions count as a message", async (t) => {
  const { done, cancel } = shop();
  const env = { PARLEY_API_KEY: "a-key-of-twenty-characters", PARLEY_RATE_PER_KEY: "1" };
  const server = await startServer(t, { turns: [[CANCEL]], env, agent: { tools: [cancel] } });
  const headers = { authorization: "Bearer a-key-of-twenty-characters" };
  const { state } = await (await post(server, { message: "Hi", stream: false }, { headers })).json();
  const answer = await post(server, { approvals: [approve()], state, stream: false }, { headers });
  assert.equal((await answer.json()).error.code, "rate_limited");
  assert.deepEqual(done, []);
});
