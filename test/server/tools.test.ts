import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { tool } from "../../server/agent/define.ts";
import type { ToolResultEvent } from "../../server/protocol/events.ts";
import { send } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { call, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { answersTo, define, echo, lookup } from "../support/test-tools.ts";

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
  const server = await startServer(t, {
    turns: [[call("c1", "slow")], [say("Done")]],
    agent: { tools: [slow] },
  });
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
  assert.deepEqual(second?.parameters, lookup.parameters);
});

test("a JSON Schema with references reaches the model as its author wrote it, frozen or not", async (t) => {
  const written = () => ({
    type: "object",
    properties: { city: { $ref: "#/$defs/city" } },
    $defs: { city: { type: "string" } },
  });
  const frozen = Object.freeze(written());
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
