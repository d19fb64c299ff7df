import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { type AnyToolDefinition, tool } from "../../server/agent/tool-definition.ts";
import { ToolError } from "../../server/parley-agent.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import type { ToolResultEvent } from "../../server/protocol/events.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import {
  call,
  fail,
  hang,
  type ScriptedProvider,
  type Step,
  say,
  scriptedProvider,
  type Turn,
} from "../support/scripted-provider.ts";
import { startWithClient } from "../support/socket-client.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { answersTo, define, echo, lookup, throwing } from "../support/test-tools.ts";

test("the calls of one turn run at the same time", async (t) => {
  const [first, second] = [gate(), gate()];
  const meet = (mine: typeof first, other: typeof first) => async () => {
    mine.open();
    await other.opened;
    return "met";
  };
  const server = await startServer(t, {
    turns: [[call("c1", "one"), call("c2", "two")], [say("Done")]],
    agent: {
      tools: [
        define("one", meet(first, second), { timeoutMs: 5000 }),
        define("two", meet(second, first), { timeoutMs: 5000 }),
      ],
    },
  });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.data, "Done");
  assert.deepEqual(answersTo(server.model), ["met", "met"]);
});

test("two calls of one id end the run with an error, and its record says so", async (t) => {
  const ended = gate();
  const server = await startServer(t, {
    turns: [[call("c1", "echo"), call("c1", "echo")]],
    agent: { tools: [echo], onRunEnd: ({ error }) => error?.code === "internal" && ended.open() },
  });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type, "error");
  await ended.opened;
});

test("every call is told before any result, results as they come, and the model in the order of its calls", async (t) => {
  const quickIsDone = gate();
  const server = await startServer(t, {
    turns: [[call("c1", "slow"), call("c2", "quick")], [say("Done")]],
    agent: {
      tools: [
        define("slow", async () => {
          await quickIsDone.opened;
          return "slow";
        }),
        define("quick", () => {
          setImmediate(quickIsDone.open);
          return "quick";
        }),
      ],
    },
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const told = events.flatMap((event) =>
    event.type === "tool_call" || event.type === "tool_result" ? [[event.type, event.data.id]] : [],
  );
  assert.deepEqual(told, [
    ["tool_call", "c1"],
    ["tool_call", "c2"],
    ["tool_result", "c2"],
    ["tool_result", "c1"],
  ]);
  assert.deepEqual(answersTo(server.model), ["slow", "quick"]);
});

test("duration_ms is how long the tool took, in whole milliseconds", async (t) => {
  const delay = () => new Promise((resolve) => setTimeout(resolve, 30, "late"));
  const server = await startServer(t, {
    turns: [[call("c1", "late")], [say("Done")]],
    agent: { tools: [define("late", delay)] },
  });
  const { events } = await send.socket(t, server, { message: "Hi" });
  const result = events.find((event): event is ToolResultEvent => event.type === "tool_result");
  const took = result?.data.duration_ms ?? 0;
  assert.ok(Number.isInteger(took) && took >= 29 && took < 5000, `${took} ms`);
});

test("a tool gets the output of its zod schema, its own call's id, and a signal that is not aborted", async (t) => {
  const seen: unknown[] = [];
  const convert = tool({
    name: "convert",
    description: "For a test.",
    parameters: z.object({ n: z.coerce.number().default(3) }),
    execute: ({ n }, { callId, signal }) => {
      seen.push(n, callId, signal.aborted);
      return null;
    },
  });
  const server = await startServer(t, {
    turns: [[call("c9", "convert", {})], [say("Done")]],
    agent: { tools: [convert] },
  });
  await send.json(t, server, { message: "Hi" });
  assert.deepEqual(seen, [3, "c9", false]);
  assert.deepEqual(answersTo(server.model), ["null"]);
});

test("a tool's signal is aborted when its time is over", async (t) => {
  const aborted = gate();
  const slow = define(
    "slow",
    (_args, { signal }) => {
      signal.addEventListener("abort", aborted.open);
      return new Promise(() => {});
    },
    { timeoutMs: 20 },
  );
  const server = await startServer(t, { turns: [[call("c1", "slow")], [say("Done")]], agent: { tools: [slow] } });
  await send.json(t, server, { message: "Hi" });
  await aborted.opened;
});

test("an output beyond 100,000 characters is cut with a note for model and client", async (t) => {
  const server = await startServer(t, {
    turns: [[call("c1", "huge")], [say("Done")]],
    agent: { tools: [define("huge", () => "x".repeat(100_005))] },
  });
  await send.json(t, server, { message: "Hi" });
  const [answer = ""] = answersTo(server.model);
  assert.ok(answer.endsWith("x\n[cut: 5 more characters]"));
});

test("the model is told each tool's name, description and JSON Schema", async (t) => {
  const server = await startServer(t, { turns: [[say("Hi")]], agent: { tools: [echo, lookup] } });
  await send.json(t, server, { message: "Hi" });
  const [first, second] = server.model.asked[0]?.start.setup.tools ?? [];
  assert.deepEqual([first?.name, second?.name], ["echo", "lookup"]);
  assert.equal(first?.description, "Repeats a text.");
  assert.deepEqual(first?.parameters.properties, { text: { type: "string" } });
  assert.equal(first !== undefined && "$schema" in first.parameters, false);
  assert.deepEqual(second?.parameters, lookup.parameters);
});

test("a JSON Schema with references reaches the model as its author wrote it but for its draft, frozen or not", async (t) => {
  const written = () => ({
    type: "object",
    properties: { city: { $ref: "#/$defs/city" } },
    $defs: { city: { type: "string" } },
  });
  const frozen = Object.freeze({ $schema: "https://json-schema.org/draft/2020-12/schema", ...written() });
  const turns = [[call("c1", "visit", { city: 5 })], [say("ok")]];
  const tools = [define("visit", () => "seen", { parameters: frozen })];
  const server = await startServer(t, { turns, agent: { tools } });
  await send.json(t, server, { message: "Go" });
  assert.deepEqual(server.model.asked[0]?.start.setup.tools[0]?.parameters, written());
  assert.match(answersTo(server.model)[0] ?? "", /\n\/city: Instance type "number" is invalid/);
});

test("an agent that says nothing of it makes 10 model requests for one message", async (t) => {
  const turns = Array.from({ length: 12 }, (_, turn) => [call(`c${turn}`, "echo", { text: "again" })]);
  const server = await startServer(t, { turns, agent: { tools: [echo] } });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "max_turns");
  assert.equal(server.model.asked.length, 10);
});

test("a tool that says nothing of it has 30 seconds", async (t) => {
  const started = gate();
  const endless = define("endless", () => {
    started.open();
    return new Promise(() => {});
  });
  const server = await startServer(t, {
    turns: [[call("c1", "endless")], [say("Sorry")]],
    agent: { tools: [endless] },
  });
  t.after(() => t.mock.restoreAll());
  const clock = stopClock(t);
  const answer = send.sse(t, server, { message: "Hi" });
  await started.opened;
  clock.tick(29_999);
  clock.tick(1);
  const { events } = await answer;
  const [result] = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  assert.equal(result?.output, "Timed out after 30000 ms.");
});

// Tools with unusual names, with endless output, and called endlessly.

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

test("5 MB that a tool returns, as text or as an object, are cut and not kept", async (t) => {
  const tools = [define("text", () => "x".repeat(5_000_000)), define("object", () => Array(500_000).fill("xxxxxxx"))];
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

// Tools that throw, hang, return too much or invalid JSON, and calls of unknown tools.

const HIDDEN = /^The tool failed\.$/;
const NO_MESSAGE = /^The tool failed without a message\.$/;
const NOT_JSON = /^The tool returned something that is not JSON\.$/;

const picky = tool({
  name: "picky",
  description: "For a test.",
  parameters: z.object({ text: z.string().refine(throwing(new Error("in a refine"))) }),
  execute: () => "never",
});

type Failure = [name: string, tool: AnyToolDefinition, called: Step, output: RegExp, shown?: RegExp];

/** A call, the output for the model, and the output for clients if it differs. */
const CALLS: Failure[] = [
  ["has a schema that throws", picky, call("c1", "picky", { text: "a" }), /^in a refine$/, HIDDEN],
  ["does not exist", echo, call("c1", "nowhere"), /^There is no tool named "nowhere"\.$/],
  [
    "is called by the name of something that every object has",
    echo,
    call("c1", "constructor"),
    /^There is no tool named "constructor"\.$/,
  ],
  ["gets arguments that are no JSON", echo, call("c1", "echo", '{"text": '), /^The arguments are not valid JSON\.$/],
  [
    "gets arguments that do not fit its zod schema",
    echo,
    call("c1", "echo", { text: 5 }),
    /^The arguments do not fit:\n\/text: .*string/,
  ],
  [
    "gets arguments that do not fit its JSON Schema",
    lookup,
    call("c1", "lookup", { id: "seven", more: true }),
    /^The arguments do not fit:\n.*\/id/s,
  ],
];

const circle: Record<string, unknown> = {};
circle.self = circle;
const hostile = {
  get message() {
    throw new Error("no message");
  },
  toString() {
    throw new Error("no text");
  },
};
const unreadable = Object.defineProperty(new Error(), "message", { get: throwing("in a getter") });
const noClass = Object.assign(new Error("no class"), { constructor: undefined });
const SOLD_OUT = "There are no more wheels of this size.";
const CUT = /^x{100000}\n\[cut: 4900000 more characters\]$/;

/** A tool's implementation, the output for the model, and the output for clients if it differs. */
const EXECUTIONS: [name: string, execute: AnyToolDefinition["execute"], output: RegExp, shown?: RegExp][] = [
  ["throws", throwing(new Error("The shelf is empty.")), /^The shelf is empty\.$/, HIDDEN],
  ["throws a ToolError", throwing(new ToolError(SOLD_OUT)), new RegExp(`^${SOLD_OUT}$`)],
  ["throws a ToolError without a message", () => Promise.reject(new ToolError("")), NO_MESSAGE, HIDDEN],
  ["rejects without an error", () => Promise.reject(undefined), NO_MESSAGE, HIDDEN],
  ["returns a BigInt", () => 1n, /BigInt/, HIDDEN],
  ["returns a circle", () => circle, /circular/, HIDDEN],
  ["returns a function", () => () => "source code", NOT_JSON],
  ["returns a symbol", () => Symbol("x"), NOT_JSON],
  ["returns a Map", () => new Map([[1, 2]]), NOT_JSON],
  ["returns a response", () => new Response("x"), NOT_JSON],
  ["returns a generator", async function* () {}, NOT_JSON],
  ["returns what cannot be written", () => ({ toJSON: throwing("in toJSON") }), /^in toJSON$/, HIDDEN],
  [
    "returns an object with a getter that throws",
    () => Object.defineProperty({}, "a", { enumerable: true, get: throwing("in a getter") }),
    /^in a getter$/,
    HIDDEN,
  ],
  ["returns a promise that rejects later", () => new Promise((_, no) => setImmediate(no, "late")), /^late$/, HIDDEN],
  ["throws a text", throwing("no error"), /^no error$/, HIDDEN],
  ["throws an error without a class", throwing(noClass), /^no class$/, HIDDEN],
  ["throws an error without a message", throwing(new Error("")), NO_MESSAGE, HIDDEN],
  ["throws what has no text", throwing(hostile), NO_MESSAGE, HIDDEN],
  ["throws an object without a prototype", throwing(Object.create(null)), NO_MESSAGE, HIDDEN],
  ["throws an error that cannot be read", throwing(unreadable), NO_MESSAGE, HIDDEN],
  ["throws 5 MB", throwing(new Error("x".repeat(5_000_000))), CUT, HIDDEN],
  ["throws a ToolError of 5 MB", throwing(new ToolError("x".repeat(5_000_000))), CUT],
];

const FAILURES: Failure[] = [
  ...CALLS,
  [
    "takes longer than its timeoutMs",
    define("slow", () => new Promise(() => {}), { timeoutMs: 20 }),
    call("c1", "slow"),
    /^Timed out after 20 ms\.$/,
  ],
  ...EXECUTIONS.map(
    ([name, execute, output, shown = output]): Failure => [
      name,
      define("odd", execute),
      call("c1", "odd"),
      output,
      shown,
    ],
  ),
];

for (const [name, called, turn, output, shown = output] of FAILURES) {
  test(`a tool that ${name} is a failed result for model and client, and the run goes on`, async (t) => {
    const models: ScriptedProvider[] = [];
    const setup = () => {
      const provider = scriptedProvider([[turn], [say("Sorry")]]);
      models.push(provider);
      return { provider, agent: { tools: [called] } };
    };
    const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
    const [result] = sse.events.flatMap((event) => (event.type === "tool_result" ? [event] : []));
    assert.equal(result?.data.status, "failed");
    assert.match(result?.data.output ?? "", shown);
    assert.equal(sse.last.data, "Sorry");
    for (const model of models) {
      const [answer = "", ...more] = answersTo(model);
      assert.match(answer, output);
      assert.deepEqual(more, []);
    }
  });
}

// What a tool throws is for the model and the log; clients must not get it.

const SECRET = "postgres://shop:hunter2@db.internal/orders";

/** Throws an error like a database driver's. */
const leaky = define("leaky", () => {
  throw new Error(`cannot connect to ${SECRET}`, { cause: new Error("hunter2 was refused") });
});

const ENDS: [how: string, next: Turn][] = [
  ["is answered", [say("Sorry")]],
  ["fails", [fail(new ApiError("provider_overloaded", "Too busy."))]],
  ["is at its turn limit", [call("c2", "leaky")]],
];
for (const [how, next, stateKind] of ENDS.flatMap(([how, next]) =>
  (["conversation_history", "previous_response_id"] as const).map((kind) => [how, next, kind] as const),
)) {
  test(`what a tool throws is in no byte that a client gets when the run ${how} (${stateKind})`, async (t) => {
    const agent = { tools: [leaky], maxTurns: 2 };
    const state =
      stateKind === "conversation_history"
        ? { conversation_history: [{ role: "user", content: "Hello" }] }
        : { previous_response_id: "resp_0" };
    const setup = () => ({ turns: [[call("c1", "leaky")], next], agent, stateKind });
    const { json, sse, socket } = await onEveryTransport(t, setup, { message: "Hi", state });
    assert.ok(sse.last.state !== undefined);
    assert.doesNotMatch(JSON.stringify([json, sse, socket]), /postgres|hunter2/);
  });
}

test("what a tool throws is in no byte that a client gets when the run is stopped", async (t) => {
  const turns = [[call("c1", "leaky")], [say("Half"), hang]];
  const { client } = await startWithClient(t, { turns, agent: { tools: [leaky] } });
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
    for (const part of ['"broken"', SECRET, "tools.test", "all", "first part", "second part"]) {
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
