/** Tools that throw, hang, return too much or what is no JSON, and calls of what is no tool. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AnyToolDefinition } from "../../server/agent/define.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { answersTo, define, echo, lookup } from "../support/test-tools.ts";

const FAILURES: { name: string; turn: Turn; tools: AnyToolDefinition[]; output: RegExp }[] = [
  {
    name: "throws",
    turn: [call("c1", "broken")],
    tools: [
      define("broken", () => {
        throw new Error("The shelf is empty.");
      }),
    ],
    output: /^The shelf is empty\.$/,
  },
  {
    name: "rejects without an error",
    turn: [call("c1", "broken")],
    tools: [define("broken", () => Promise.reject(undefined))],
    output: /^undefined$/,
  },
  {
    name: "takes longer than its timeoutMs",
    turn: [call("c1", "slow")],
    tools: [define("slow", () => new Promise(() => {}), { timeoutMs: 20 })],
    output: /^Timed out after 20 ms\.$/,
  },
  {
    name: "does not exist",
    turn: [call("c1", "nowhere")],
    tools: [echo],
    output: /^There is no tool named "nowhere"\.$/,
  },
  {
    name: "is called by the name of something that every object has",
    turn: [call("c1", "constructor")],
    tools: [echo],
    output: /^There is no tool named "constructor"\.$/,
  },
  {
    name: "gets arguments that are no JSON",
    turn: [call("c1", "echo", '{"text": ')],
    tools: [echo],
    output: /^The arguments are not valid JSON\.$/,
  },
  {
    name: "gets arguments that do not fit its zod schema",
    turn: [call("c1", "echo", { text: 5 })],
    tools: [echo],
    output: /^The arguments do not fit:\n\/text: .*string/,
  },
  {
    name: "gets arguments that do not fit its JSON Schema",
    turn: [call("c1", "lookup", { id: "seven", more: true })],
    tools: [lookup],
    output: /^The arguments do not fit:\n.*\/id/s,
  },
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
const throwing = (thrown: unknown) => () => {
  throw thrown;
};
const odd: [name: string, execute: () => unknown, output: RegExp][] = [
  ["returns a BigInt", () => 1n, /BigInt/],
  ["returns a circle", () => circle, /circular/],
  [
    "returns a function",
    () => () => "source code",
    /^The tool returned something that is not JSON\.$/,
  ],
  ["returns a symbol", () => Symbol("x"), /^The tool returned something that is not JSON\.$/],
  ["returns what cannot be written", () => ({ toJSON: throwing("in toJSON") }), /^in toJSON$/],
  [
    "returns a promise that rejects later",
    () => new Promise((_, no) => setImmediate(no, "late")),
    /^late$/,
  ],
  ["throws a text", throwing("no error"), /^no error$/],
  [
    "throws an error without a message",
    throwing(new Error("")),
    /^The tool failed without a message\.$/,
  ],
  ["throws what has no text", throwing(hostile), /^The tool failed without a message\.$/],
  [
    "throws an object without a prototype",
    throwing(Object.create(null)),
    /^The tool failed without a message\.$/,
  ],
  [
    "throws 50 MB",
    throwing(new Error("x".repeat(50_000_000))),
    /^x{100000}\n\[cut: 49900000 more characters\]$/,
  ],
];
for (const [name, execute, output] of odd) {
  FAILURES.push({ name, turn: [call("c1", "odd")], tools: [define("odd", execute)], output });
}

for (const { name, turn, tools, output } of FAILURES) {
  test(`a tool that ${name} is a failed result for model and client, and the run goes on`, async (t) => {
    const turns = [turn, [say("Sorry")]];
    const { sse } = await onEveryTransport(t, () => ({ turns, agent: { tools } }), {
      message: "Hi",
    });
    const [result] = sse.events.flatMap((event) => (event.type === "tool_result" ? [event] : []));
    assert.equal(result?.data.status, "failed");
    assert.match(result?.data.output ?? "", output);
    assert.equal(sse.last.data, "Sorry");

    const server = await startServer(t, { turns, agent: { tools } });
    await send.json(t, server, { message: "Hi" });
    assert.deepEqual(answersTo(server.model), [`Error: ${result?.data.output}`]);
  });
}

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
  const sizes = events.flatMap((event) =>
    event.type === "tool_result" ? [event.data.output.length] : [],
  );
  assert.equal(sizes.length, 2);
  for (const size of sizes) assert.ok(size > 100_000 && size < 100_100, `${size}`);
  assert.equal(last.data, "Done");
  assert.ok(JSON.stringify(last).length < 250_000);
});

test("a model that makes the same call for ever is ended at the turn limit, with every call answered", async (t) => {
  const turns = Array.from({ length: 5 }, (_, turn) => [
    call(`c${turn}`, "echo", { text: "again" }),
  ]);
  const server = await startServer(t, { turns, agent: { tools: [echo], maxTurns: 4 } });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "max_turns");
  assert.equal(server.model.asked.length, 4);
  assert.equal(events.filter(({ type }) => type === "tool_result").length, 3);
  const { conversation_history: history = [] } = last.state as { conversation_history?: object[] };
  const roles = history.map((message) => ("role" in message ? message.role : ""));
  assert.equal(roles.filter((role) => role === "tool").length, 4);
});
