/** Tools that throw, hang, return too much or what is no JSON, and calls of what is no tool. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { type AnyToolDefinition, tool } from "../../server/agent/define.ts";
import { ToolError } from "../../server/parley-agent.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { answersTo, define, echo, lookup, throwing } from "../support/test-tools.ts";

interface Failure {
  name: string;
  turn: Turn;
  tools: AnyToolDefinition[];
  /** What the model is told. */
  output: RegExp;
  /** What clients are told; without it, the same. */
  shown?: RegExp;
}

const HIDDEN = /^The tool failed\.$/;

const FAILURES: Failure[] = [
  {
    name: "throws",
    turn: [call("c1", "broken")],
    tools: [
      define("broken", () => {
        throw new Error("The shelf is empty.");
      }),
    ],
    output: /^The shelf is empty\.$/,
    shown: HIDDEN,
  },
  {
    name: "throws a ToolError",
    turn: [call("c1", "broken")],
    tools: [
      define("broken", () => {
        throw new ToolError("There are no more wheels of this size.");
      }),
    ],
    output: /^There are no more wheels of this size\.$/,
  },
  {
    name: "throws a ToolError without a message",
    turn: [call("c1", "broken")],
    tools: [define("broken", () => Promise.reject(new ToolError("")))],
    output: /^The tool failed without a message\.$/,
    shown: HIDDEN,
  },
  {
    name: "has a schema that throws",
    turn: [call("c1", "picky", { text: "a" })],
    tools: [
      tool({
        name: "picky",
        description: "For a test.",
        parameters: z.object({ text: z.string().refine(throwing(new Error("in a refine"))) }),
        execute: () => "never",
      }),
    ],
    output: /^in a refine$/,
    shown: HIDDEN,
  },
  {
    name: "rejects without an error",
    turn: [call("c1", "broken")],
    tools: [define("broken", () => Promise.reject(undefined))],
    output: /^undefined$/,
    shown: HIDDEN,
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
const noClass = Object.assign(new Error("no class"), { constructor: undefined });
const revoked = Proxy.revocable(new Error("revoked"), {});
revoked.revoke();
const odd: [name: string, execute: () => unknown, output: RegExp, shown?: RegExp][] = [
  ["returns a BigInt", () => 1n, /BigInt/, HIDDEN],
  ["returns a circle", () => circle, /circular/, HIDDEN],
  ["returns a function", () => () => "source code", /^The tool returned something that is not JSON\.$/],
  ["returns a symbol", () => Symbol("x"), /^The tool returned something that is not JSON\.$/],
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
  ["throws a revoked proxy", throwing(revoked.proxy), /^The tool failed without a message\.$/, HIDDEN],
  ["throws an error without a message", throwing(new Error("")), /^The tool failed without a message\.$/, HIDDEN],
  ["throws what has no text", throwing(hostile), /^The tool failed without a message\.$/, HIDDEN],
  [
    "throws an object without a prototype",
    throwing(Object.create(null)),
    /^The tool failed without a message\.$/,
    HIDDEN,
  ],
  [
    "throws 50 MB",
    throwing(new Error("x".repeat(50_000_000))),
    /^x{100000}\n\[cut: 49900000 more characters\]$/,
    HIDDEN,
  ],
  [
    "throws a ToolError of 50 MB",
    throwing(new ToolError("x".repeat(50_000_000))),
    /^x{100000}\n\[cut: 49900000 more characters\]$/,
  ],
];
for (const [name, execute, output, shown = output] of odd) {
  const tools = [define("odd", execute)];
  FAILURES.push({ name, turn: [call("c1", "odd")], tools, output, shown });
}

for (const { name, turn, tools, output, shown = output } of FAILURES) {
  test(`a tool that ${name} is a failed result for model and client, and the run goes on`, async (t) => {
    const turns = [turn, [say("Sorry")]];
    const { sse } = await onEveryTransport(t, () => ({ turns, agent: { tools } }), {
      message: "Hi",
    });
    const [result] = sse.events.flatMap((event) => (event.type === "tool_result" ? [event] : []));
    assert.equal(result?.data.status, "failed");
    assert.match(result?.data.output ?? "", shown);
    assert.equal(sse.last.data, "Sorry");

    const server = await startServer(t, { turns, agent: { tools } });
    await send.json(t, server, { message: "Hi" });
    const [answer = "", ...more] = answersTo(server.model);
    assert.match(answer, output);
    assert.deepEqual(more, []);
  });
}
