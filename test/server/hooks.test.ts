/** Hooks of an agent: their input, their effects, and that nothing waits for hooks that run after the answer. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import { HookQueue } from "../../server/agent/hook-queue.ts";
import type { RunRecord } from "../../server/agent/run-record.ts";
import { ModuleLife } from "../../server/agent/served-agent.ts";
import { ToolError } from "../../server/agent/tool-definition.ts";
import {
  onEveryTransport,
  post,
  readEventStream,
  send,
  stateOf,
  TRANSPORTS,
  typesOf,
} from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { onceCalled } from "../support/once-called.ts";
import { call, cut, end, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const PNG = "iVBORw0KGgo=";
const NOTHING = "I have nothing to add.";

for (const how of TRANSPORTS) {
  test(`onRunEnd gets what was said, done and answered over ${how}`, async (t) => {
    const { hook: onRunEnd, next } = onceCalled<RunRecord>();
    const tools = [
      define("look", () => "sunny"),
      define("fall", () => {
        throw new ToolError("It is closed.");
      }),
    ];
    const server = await startServer(t, {
      agent: { onRunEnd, tools },
      authenticate: () => ({ id: "ada", plan: "pro" }),
      turns: [
        [say("Let me look. "), call("c1", "look", { at: "Bern" }), call("c2", "fall"), end("stop", usage(5, 2))],
        [say("It is "), say("sunny."), end("stop", usage(7, 3))],
      ],
    });
    const file = { type: "image", name: "a.png", mime_type: "image/png", data: PNG };
    const message = { message: "How is it?", metadata: { page: "/a" }, attachments: [file] };
    const { last } = await send[how](t, server, message);
    const { run, startedAt, firstTokenMs, ms, toolCalls, ...record } = await next();
    assert.ok(last.type === "done");
    assert.deepEqual(record, {
      conversation: last.state.conversation,
      user: { id: "ada", plan: "pro" },
      metadata: { page: "/a" },
      keyKind: "none",
      transport: how === "socket" ? "ws" : how,
      model: "demo",
      message: "How is it?",
      attachments: [{ name: "a.png", mimeType: "image/png", bytes: 8 }],
      answer: "It is sunny.",
      said: "Let me look.\n\nIt is sunny.",
      approvals: [],
      suggestions: [],
      title: undefined,
      usage: { input_tokens: 12, output_tokens: 5 },
      cost: undefined,
      finishReason: "stop",
      error: undefined,
    });
    const known = toolCalls.map(({ durationMs, decision, parent, ...known }) => {
      assert.deepEqual([decision, parent], [undefined, undefined]);
      return { ...known, isTimed: durationMs >= 0 };
    });
    const byId = known.sort((one, other) => one.id.localeCompare(other.id));
    assert.deepEqual(byId, [
      { id: "c1", tool: "look", arguments: '{"at":"Bern"}', output: "sunny", status: "completed", isTimed: true },
      { id: "c2", tool: "fall", arguments: "{}", output: "It is closed.", status: "failed", isTimed: true },
    ]);
    assert.match(run, /^[\w-]{36}$/);
    assert.equal(new Date(startedAt).toISOString(), startedAt);
    assert.ok(firstTokenMs !== undefined && firstTokenMs <= ms);
    assert.match(await metricsOf(server), /^parley_hooks_total\{hook="onRunEnd",outcome="done"\} 1$/m);
  });
}

const usage = (input_tokens: number, output_tokens: number) => ({ input_tokens, output_tokens });

const lookUp = define("look", () => "sunny");
const LOOKS = [say("Let me look. "), call("c1", "look")];
async function* parted() {
  yield "Let me ";
  yield "look.";
  yield { type: "tool_call", data: { id: "c1", tool: "look" } };
  yield { type: "tool_result", data: { id: "c1", output: "sunny" } };
  yield "\n\nIt is sunny.";
}

const SAID: [what: string, agent: object, turns: Turn[] | undefined, said: string, answer: string][] = [
  [
    "a blank line between turns",
    {},
    [LOOKS, [say("It is "), say("sunny.")]],
    "Let me look.\n\nIt is sunny.",
    "It is sunny.",
  ],
  ["the sentence in place of an empty answer", {}, [LOOKS, []], `Let me look.\n\n${NOTHING}`, NOTHING],
  [
    "no text that was thinking",
    {},
    [[say("Hm."), { type: "text_was_thinking" }, say("Let me look."), call("c1", "look")], [say("It is sunny.")]],
    "Let me look.\n\nIt is sunny.",
    "It is sunny.",
  ],
  ["what was said before the turn limit", { maxTurns: 1 }, [LOOKS], "Let me look.", "Let me look. "],
  [
    "what onAnswer lets pass",
    { onAnswer() {} },
    [LOOKS, [say("It is sunny.")]],
    "Let me look.\n\nIt is sunny.",
    "It is sunny.",
  ],
  [
    "nothing that onAnswer refuses",
    { onAnswer: () => ({ refuse: "No." }) },
    [LOOKS, [say("It is sunny.")]],
    "No.",
    "No.",
  ],
  ["why onMessage refuses", { onMessage: () => ({ refuse: "No." }) }, [], "No.", "No."],
  ["what was said before a failure", {}, [LOOKS, [say("It "), cut]], "Let me look.\n\nIt", "It "],
  ["nothing that onAnswer has not let pass", { onAnswer() {} }, [LOOKS, [say("It "), cut]], "", ""],
  [
    "what run says around its tools",
    { model: undefined, run: parted },
    undefined,
    "Let me look.\n\nIt is sunny.",
    "\n\nIt is sunny.",
  ],
];

for (const [what, agent, turns, said, answer] of SAID) {
  test(`onRunEnd gets all that was said: ${what}`, async (t) => {
    const { hook: onRunEnd, next } = onceCalled<RunRecord>();
    const tools = "run" in agent ? {} : { tools: [lookUp] };
    const server = await startServer(t, { agent: { ...tools, ...agent, onRunEnd }, ...(turns && { turns }) });
    await send.sse(t, server, { message: "How is it?" });
    const record = await next();
    assert.deepEqual([record.said, record.answer], [said, answer]);
  });
}

test("onRunEnd gets runs that failed, were stopped or were left, with what was said so far", async (t) => {
  const { hook: onRunEnd, next } = onceCalled<RunRecord>();
  const forever = define(
    "forever",
    (_args, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)),
  );
  const server = await startServer(t, {
    agent: { onRunEnd, tools: [forever] },
    turns: [
      [say("Half"), cut],
      [say("Some"), hang],
      [say("More"), call("c1", "forever")],
    ],
  });
  await post(server, { message: "One", stream: true }).then((response) => response.text());
  const failed = await next();
  assert.deepEqual([failed.finishReason, failed.error?.code, failed.answer], [undefined, "provider_truncated", "Half"]);

  const client = await connect(t, server.socketUrl);
  client.send({ message: "Two" });
  await client.until("token");
  client.send({ type: "stop" });
  const stopped = await next();
  assert.deepEqual([stopped.finishReason, stopped.answer, stopped.message], ["stopped", "Some", "Two"]);
  await client.until("done");

  client.send({ message: "Three" });
  await client.until("tool_call");
  client.send({ type: "clear" });
  const { finishReason, error, answer, toolCalls } = await next();
  assert.deepEqual([finishReason, error, answer, toolCalls.length], ["gone", undefined, "More", 1]);
  assert.deepEqual([toolCalls[0]?.status, toolCalls[0]?.output], ["failed", "Stopped before it finished."]);
});

test("eight hooks run at once and a thousand wait; beyond that they are dropped, counted and said once", async () => {
  const held = gate();
  const counts: string[] = [];
  const warnings: string[] = [];
  let called = 0;
  const call = () => {
    called += 1;
    return held.opened;
  };
  const queue = new HookQueue({
    maxMs: 10_000,
    count: (hook, outcome) => counts.push(`${hook} ${outcome}`),
    warn: (sentence) => warnings.push(sentence),
    fail: assert.fail,
  });
  const job = { hook: "onRunEnd", about: { requestId: "r" }, call, life: new ModuleLife(undefined) } as const;
  for (let index = 0; index < 8; index++) queue.add(job);
  await turns();
  const taken = Array.from({ length: 1002 }, () => queue.add(job));
  await turns();
  assert.deepEqual([called, taken.filter(Boolean).length], [8, 1000]);
  assert.deepEqual(counts, ["onRunEnd dropped", "onRunEnd dropped"]);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^onRunEnd is slower than messages come: 1000 calls wait/);
  held.open();
  await queue.drain();
  assert.deepEqual([called, counts.length], [1008, 1010]);
});

const metricsOf = async ({ url }: TestServer) => (await fetch(`${url}/metrics`)).text();

test("a server that stops waits for its hooks, and then closes what the agent has opened", async (t) => {
  const order: string[] = [];
  const held = gate();
  const { hook, next } = onceCalled<RunRecord>();
  const server = await startServer(t, {
    agent: {
      async onRunEnd(record) {
        hook(record);
        await held.opened;
        order.push("stored");
      },
    },
    close: () => void order.push("closed"),
    turns: [[say("Hi")]],
  });
  await post(server, { message: "Hi", stream: false });
  await next();
  const closed = server.close();
  held.open();
  await closed;
  assert.deepEqual(order, ["stored", "closed"]);
});

test("hooks that never end hold a server that stops no longer than the time of one, and the rest is dropped", async (t) => {
  const { hook, next } = onceCalled<RunRecord>();
  const server = await startServer(t, {
    agent: {
      onRunEnd(record) {
        hook(record);
        return new Promise(() => {});
      },
    },
    turns: Array.from({ length: 9 }, () => [say("Hi")]),
    hookMs: 300,
  });
  const client = await connect(t, server.socketUrl);
  for (let run = 0; run < 9; run++) await client.run({ message: "Hi" });
  await next();
  await server.close();
  assert.ok(server.log.every((record) => !record.includes('"level":"fatal"')));
});

test("a run that began with the agent before it was replaced ends with the hooks of that one", async (t) => {
  const before = onceCalled<RunRecord>();
  const after = onceCalled<RunRecord>();
  const server = await startServer(t, {
    agent: { onRunEnd: before.hook },
    turns: [[say("A"), wait(Promise.resolve()), hang], [say("B")]],
  });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "One" });
  await client.next();
  await server.server.replaceAgent({
    agent: checkAgent({ name: "Acme Support", model: "demo", onRunEnd: after.hook }),
  });
  client.send({ type: "stop" });
  await client.until("done");
  assert.equal((await before.next()).message, "One");
  await client.run({ message: "Two" });
  assert.equal((await after.next()).message, "Two");
});

const REFUSAL = "I may not speak about that.";

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  test(`a refused message ends with the sentence of onMessage, asks no model and leaves the state as it was: ${stateKind}`, async (t) => {
    const onMessage = ({ message }: { message: string }) => (message === "Bad" ? { refuse: REFUSAL } : undefined);
    const setup = () => ({ agent: { onMessage }, turns: [[say("Hi")]], stateKind });
    const { sse, json } = await onEveryTransport(t, setup, { message: "Bad" });
    assert.equal(json.status, 200);
    assert.deepEqual(sse.events, [
      { type: "token", data: REFUSAL },
      { type: "done", data: REFUSAL, state: {}, finish_reason: "refused" },
    ]);
    const server = await startServer(t, setup());
    const client = await connect(t, server.socketUrl);
    const [, good] = await client.run({ message: "Good" });
    const [, bad] = await client.run({ message: "Bad" });
    assert.ok(good?.type === "done" && bad?.type === "done");
    assert.deepEqual(bad.state, good.state);
    assert.equal(server.model.asked.length, 1);
  });
}

test("the message that onMessage puts in place is what model, state and later hooks get", async (t) => {
  const { hook: onRunEnd, next } = onceCalled<RunRecord>();
  const onMessage: AgentDefinition["onMessage"] = async ({ message }) => ({
    message: message.replace("4111", "[card]"),
  });
  const setup = () => ({ agent: { onMessage, onRunEnd }, turns: [[say("Thanks")]] });
  const { sse } = await onEveryTransport(t, setup, { message: "My card is 4111" });
  assert.ok(sse.last.type === "done");
  const history = stateOf(sse.last)?.conversation_history;
  assert.deepEqual(history?.[0], { role: "user", content: "My card is [card]" });
  for (const _ of TRANSPORTS) assert.equal((await next()).message, "My card is [card]");
});

test("onMessage gets the files and the ctx of its message", async (t) => {
  const { hook, next } = onceCalled<unknown[]>();
  const onMessage: AgentDefinition["onMessage"] = (incoming, { user, metadata, run }) =>
    hook([incoming, user?.id, metadata, run.transport]);
  const server = await startServer(t, {
    agent: { onMessage },
    authenticate: () => ({ id: "ada" }),
    turns: [[say("Hi")]],
  });
  const file = { type: "image", name: "a.png", mime_type: "image/png", data: PNG };
  await send.sse(t, server, { message: "", attachments: [file], metadata: { plan: "pro" } });
  const attachments = [{ name: "a.png", mimeType: "image/png", bytes: 8 }];
  assert.deepEqual(await next(), [{ message: "", attachments }, "ada", { plan: "pro" }, "sse"]);
});

const SECRET = "the launch is on Friday";

/** Each turn says what no client may read, before and after a tool call. */
const LEAKY = [
  [think(`think: ${SECRET}`), say(SECRET), call("c1", "look")],
  [think(`again: ${SECRET}`), say(SECRET), say("!"), end("stop", usage(3, 4))],
];

const look = define("look", () => "sunny");

test("a refused answer reaches nobody: neither its text nor its thinking, in events or state", async (t) => {
  const { hook: onRunEnd, next } = onceCalled<RunRecord>();
  const { hook, next: nextAnswer } = onceCalled<string>();
  const onAnswer: AgentDefinition["onAnswer"] = ({ answer }) => {
    hook(answer);
    return { refuse: REFUSAL };
  };
  const outcomes = await onEveryTransport(t, () => ({ agent: { onAnswer, onRunEnd, tools: [look] }, turns: LEAKY }), {
    message: "When?",
  });
  for (const how of TRANSPORTS) {
    assert.equal(await nextAnswer(), `${SECRET}\n\n${SECRET}!`);
    assert.doesNotMatch(JSON.stringify(outcomes[how].events), /Friday/);
    const { answer, finishReason } = await next();
    assert.deepEqual([answer, finishReason], [REFUSAL, "refused"]);
  }
  const { sse } = outcomes;
  assert.deepEqual(typesOf(sse.events), ["tool_call", "tool_result", "token", "done"]);
  assert.ok(sse.last.type === "done");
  assert.deepEqual([sse.last.data, sse.last.finish_reason, sse.last.usage], [REFUSAL, "refused", usage(3, 4)]);
  assert.deepEqual(stateOf(sse.last)?.conversation_history, [
    { role: "user", content: "When?" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: "sunny" },
    { role: "assistant", content: REFUSAL },
  ]);
});

test("a conversation goes on after a refused answer, and the model sees the refusal in its place", async (t) => {
  const onAnswer: AgentDefinition["onAnswer"] = ({ answer }) => (answer === SECRET ? { refuse: REFUSAL } : undefined);
  const server = await startServer(t, { agent: { onAnswer }, turns: [[say(SECRET)], [say("Hello")]] });
  const client = await connect(t, server.socketUrl);
  await client.run({ message: "When?" });
  await client.run({ message: "Hi" });
  const { messages } = server.model.asked[1] ?? assert.fail();
  assert.deepEqual(messages.slice(0, 2), [
    { role: "user", content: "When?" },
    { role: "assistant", content: REFUSAL },
  ]);
});

test("an answer that onAnswer lets pass comes whole, after its tools", async (t) => {
  const setup = () => ({ agent: { onAnswer: () => {}, tools: [look] }, turns: LEAKY });
  const { sse } = await onEveryTransport(t, setup, { message: "When?" });
  assert.deepEqual(typesOf(sse.events), [
    "tool_call",
    "tool_result",
    "thinking",
    "token",
    "thinking",
    "token",
    "token",
    "done",
  ]);
  const text = sse.events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join("");
  assert.equal(text, `${SECRET}\n\n${SECRET}!`);
  assert.equal(sse.last.data, `${SECRET}!`);
});

test("text that was thinking all along is no part of the answer that onAnswer gets", async (t) => {
  const { hook: onAnswer, next } = onceCalled<{ answer: string }>();
  const script = [[say("Hm. "), { type: "text_was_thinking" } as const, say("Yes.")]];
  const server = await startServer(t, { agent: { onAnswer }, turns: script });
  await send.sse(t, server, { message: "Hi" });
  assert.equal((await next()).answer, "Yes.");
});

test("until onAnswer has decided, nobody who reads the run gets a word of it, also not after a resume", async (t) => {
  const asked = gate();
  const held = gate();
  const onAnswer: AgentDefinition["onAnswer"] = async () => {
    asked.open();
    await held.opened;
    return { refuse: REFUSAL };
  };
  const server = await startServer(t, { agent: { onAnswer, tools: [look] }, turns: LEAKY });
  const run = "run-of-this-test-0001";
  const first = await connect(t, server.socketUrl);
  first.send({ message: "When?", run });
  await first.until("tool_result");
  await asked.opened;
  first.socket.terminate();
  const resumed = await fetch(`${server.url}/api/chat/runs/${run}`);
  held.open();
  const events = readEventStream(await resumed.text());
  assert.deepEqual(typesOf(events), ["tool_call", "tool_result", "token", "done"]);
  assert.doesNotMatch(JSON.stringify(events), /Friday/);
});

test("stop ends an answer that was not let pass without a word of it, in the state neither", async (t) => {
  const { hook, next } = onceCalled<AbortSignal>();
  const onAnswer: AgentDefinition["onAnswer"] = (_outgoing, { signal }) => {
    hook(signal);
    return new Promise<undefined>(() => {});
  };
  const server = await startServer(t, { agent: { onAnswer, tools: [look] }, turns: LEAKY });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "When?" });
  const signal = await next();
  client.send({ type: "stop" });
  const events = await client.until("done");
  assert.ok(signal.aborted);
  const last = events.at(-1);
  assert.ok(last?.type === "done");
  assert.deepEqual([last.data, last.finish_reason], ["", "stopped"]);
  assert.doesNotMatch(JSON.stringify(events), /Friday/);
});

test("stop during onMessage leaves the state as it was", async (t) => {
  const { hook, next } = onceCalled<string>();
  const onMessage: AgentDefinition["onMessage"] = ({ message }) => {
    hook(message);
    return new Promise<undefined>(() => {});
  };
  const server = await startServer(t, { agent: { onMessage }, turns: [] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await next();
  client.send({ type: "stop" });
  assert.deepEqual(await client.until("done"), [
    { type: "done", data: "", state: {}, finish_reason: "stopped", id: 1 },
  ]);
});

const WRONG: [name: string, hook: () => unknown, said: RegExp][] = [
  ["throws", () => assert.fail("secret at /srv"), /failed[\s\S]*secret at \/srv/],
  ["returns a misspelt field", () => ({ refused: "No." }), /must return nothing/],
  ["returns false", () => false, /must return nothing/],
  ["refuses without a sentence", () => ({ refuse: " " }), /must return nothing/],
  ["refuses and replaces", () => ({ refuse: "No.", message: "Hi" }), /must return nothing/],
];

for (const name of ["onMessage", "onAnswer"] as const) {
  for (const [what, hook, said] of WRONG) {
    test(`an ${name} that ${what} ends the run as a fault of the server, and nothing passes`, async (t) => {
      const agent = { [name]: hook, tools: [look] };
      const server = await startServer(t, { agent, turns: LEAKY });
      const { events, last } = await send.sse(t, server, { message: "When?" });
      assert.ok(last.type === "error");
      assert.equal(last.code, "internal");
      assert.equal(last.continue, name === "onMessage" ? undefined : true);
      assert.doesNotMatch(JSON.stringify(events), /Friday|secret/);
      const failure = server.log.find((record) => record.includes('"msg":"failure"')) ?? assert.fail();
      assert.match(JSON.parse(failure).error, said);
      assert.equal(server.model.asked.length, name === "onMessage" ? 0 : 2);
    });
  }
}

test("a hook that is no function is a mistake that names it", () => {
  const agent = { name: "Acme", model: "demo", onAnswer: "log" };
  assert.throws(() => checkAgent(agent), /onAnswer must be a function/);
});
