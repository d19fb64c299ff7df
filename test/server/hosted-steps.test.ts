/** What clients get of agents within tools, from frameworks' streams; test/agents runs the packages themselves. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { RunInput } from "../../server/agent/run-function.ts";
import { SHAPES } from "../../server/hosted/shapes.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { send } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { type Items, steps as recorded, shapesOf } from "../support/hosted-streams.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { startServer } from "../support/start-server.ts";

/** A summary of events, indented by level: "tool(arguments)", "tool: progress", and "tool=output" or "tool!output". */
function inShort(events: readonly StreamEvent[]): string[] {
  const levels = new Map<string, { level: string; tool: string }>();
  return events.flatMap((event) => {
    if (event.type === "tool_call") {
      const { id, tool, arguments: args, parent = "" } = event.data;
      const around = levels.get(parent);
      const level = around === undefined ? "" : `${around.level}  `;
      levels.set(id, { level, tool });
      return [`${level}${tool}${args}`];
    }
    if (event.type !== "tool_progress" && event.type !== "tool_result") return [];
    const { level = "", tool = "" } = levels.get(event.data.id) ?? {};
    if (event.type === "tool_progress") return [`${level}${tool}: ${event.data.text}`];
    return [`${level}${tool}${event.data.status === "failed" ? "!" : "="}${event.data.output}`];
  });
}

const SEARCHED = (order: string) => [`  search_orders{"order":"${order}"}`, `  ask_carrier{"order":"${order}"}`];
const FOUND = (order: string) => `  search_orders={"order":"${order}","status":"sent"}`;
const ANSWERED = (order: string) => `  ask_carrier=at the depot: ${order}`;
const BEGUN = (order: string) => `ask_desk{"input":"look up ${order}"}`;
const ENDED = "ask_desk=It is at the depot.";

const withoutTasks = (items: Items) => items.filter((item) => Object(item)[1] !== "tasks");

/** Agents that look an order up with two tools; clients get these calls, but not the inner agents' texts. */
const STREAMS: [name: string, items: Items, rows: string[]][] = [
  [
    "the AI SDK 6, whose tools yield the messages of two agents at once",
    recorded("ai-sdk-6"),
    [
      ...[BEGUN("1"), ...SEARCHED("1"), "  ask_carrier: Calling", FOUND("1")],
      ...[BEGUN("2"), ...SEARCHED("2"), "  ask_carrier: Calling", FOUND("2")],
      ...[ANSWERED("1"), ENDED, ANSWERED("2"), ENDED],
    ],
  ],
  [
    "the AI SDK 7, as UI message chunks",
    recorded("ai-sdk-7"),
    [...[BEGUN("3"), ...SEARCHED("3"), "  ask_carrier: Calling", FOUND("3")], ...[ANSWERED("3"), ENDED]],
  ],
  [
    "LangGraph in the modes messages and tools",
    recorded("langgraph"),
    [...[BEGUN("3"), ...SEARCHED("3"), FOUND("3")], ...["  ask_carrier: waits", ANSWERED("3"), ENDED]],
  ],
  [
    "LangGraph in these modes, updates and custom",
    recorded("langgraph-four-modes"),
    [
      ...[BEGUN("3"), "ask_desk: Still asking", ...SEARCHED("3"), FOUND("3")],
      ...["  ask_carrier: waits", ANSWERED("3"), ENDED],
    ],
  ],
  [
    "LangGraph, whose tool within names its call from outside",
    recorded("langgraph-v2"),
    [BEGUN("3"), ...SEARCHED("3"), "  ask_carrier: Calling the carrier", FOUND("3"), "  ask_carrier=x", ENDED],
  ],
  [
    "LangGraph with two agents at once, whose calls the mode tasks names",
    recorded("langgraph-tasks"),
    ["1", "2"]
      .flatMap((order) => [
        ...[BEGUN(order), ...SEARCHED(order), FOUND(order)],
        ...["  ask_carrier: Dialling", ANSWERED(order)],
      ])
      .concat(ENDED, ENDED),
  ],
  [
    "LangGraph with two agents at once, of which nobody knows whose steps are whose",
    withoutTasks(recorded("langgraph-tasks")),
    [BEGUN("1"), ENDED, BEGUN("2"), ENDED],
  ],
  [
    "LangChain with two agents at once",
    recorded("langchain"),
    ["1", "2"]
      .flatMap((order) => [BEGUN(order), ...SEARCHED(order), FOUND(order), ANSWERED(order)])
      .concat(ENDED, ENDED),
  ],
  [
    "Mastra's agent of an agent",
    recorded("mastra"),
    [
      ...[
        'agent-desk{"prompt":"look up 3"}',
        ...SEARCHED("3"),
        "  search_orders: Searching",
        "agent-desk: custom data",
      ],
      ...[FOUND("3"), ANSWERED("3"), "agent-desk=It is at the depot."],
    ],
  ],
  [
    "a tool of Mastra that hands on the stream of an agent, whose tool fails",
    recorded("mastra-tool"),
    [
      ...[BEGUN("3"), ...SEARCHED("3"), "  search_orders: Searching", "ask_desk: custom data"],
      ...["  ask_carrier!The tool failed.", FOUND("3"), ENDED],
    ],
  ],
  [
    "the OpenAI Agents SDK 0.14, two of whose agents are asked at once",
    recorded("openai-agents-0.14"),
    ["1", "2"]
      .flatMap((order) => [BEGUN(order), ...SEARCHED(order), FOUND(order), ANSWERED(order)])
      .concat(ENDED, ENDED),
  ],
  [
    "the OpenAI Agents SDK 0.20",
    recorded("openai-agents-0.20"),
    [BEGUN("3"), ...SEARCHED("3"), FOUND("3"), ANSWERED("3"), ENDED],
  ],
];

const serve = (t: Parameters<typeof startServer>[0], run: (input: RunInput) => unknown) =>
  startServer(t, { agent: { model: undefined, run } as never });

for (const [name, items, rows] of STREAMS) {
  test(`clients get of ${name} what its agents within tools do, and none of their words`, async (t) => {
    const server = await serve(t, () => items.values());
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual(inShort(events), rows);
    assert.deepEqual([last.type, last.data], ["done", "Here it is."]);
    assert.doesNotMatch(JSON.stringify(events), /Inner words|no carrier/);
    assert.doesNotMatch(server.log.join(""), /does not know/);
    for (const item of items)
      assert.equal(SHAPES.filter((shape) => shape.fits(item)).length, shapesOf(item), JSON.stringify(item));
  });
}

test("an agent within a tool whose model gives its calls the ids of those around it has steps of its own", async (t) => {
  for (const items of [
    recorded("openai-agents-0.20"),
    recorded("mastra"),
    recorded("langgraph"),
    recorded("ai-sdk-7"),
  ]) {
    const text = JSON.stringify(items);
    const ids = [...new Set([...text.matchAll(/"((?:c|call)[_\d]\w*)"/g)].map(([, id]) => id ?? ""))];
    const [outer = "", inner = ""] = ids;
    const alike = JSON.parse(text.replaceAll(`"${inner}"`, `"${outer}"`)) as Items;
    const get = async (list: Items) => {
      const server = await serve(t, () => list.values());
      return inShort((await send.sse(t, server, { message: "Hi" })).events);
    };
    assert.deepEqual(await get(alike), await get(items));
  }
});

const began = (id: string, tool: string, args: object) => ({ toolCallId: id, toolName: tool, input: args });
const mastra = (type: string, payload: object) => ({ type, runId: "r", from: "AGENT", payload });
const call = (id: string) => ({ toolCallId: id, toolName: id, args: {} });
const within = (id: string, output: unknown) => mastra("tool-output", { toolCallId: id, output });
const result = (id: string) => mastra("tool-result", { toolCallId: id, result: id });

const agents = (callId: string, event: object) => ({ event, toolCall: { callId, name: callId, arguments: "{}" } });
const step = (name: string, callId: string) => ({
  ...{ type: "run_item_stream_event", name },
  item: { rawItem: { type: "function_call", callId, name: callId, arguments: "{}" }, output: callId },
});

const message = (...parts: object[]) => ({
  role: "assistant",
  parts: [{ type: "text", text: "Inner words" }, ...parts],
});
const part = (id: string, more: object) => ({ type: `tool-${id}`, toolCallId: id, input: {}, ...more });

const graphMessage = (id: string) => ({ type: "tool", tool_call_id: id, content: id });
const graphTool = (namespace: string[], event: string, id: string) => [
  ...[namespace, "tools"],
  { event, toolCallId: id, name: id, ...(event === "on_tool_start" ? { input: "{}" } : { output: graphMessage(id) }) },
];

const DEEP: [name: string, items: Items][] = [
  [
    "Mastra",
    [
      ...[mastra("tool-call", call("a")), within("a", mastra("tool-call", call("b")))],
      within("a", within("b", mastra("tool-call", call("c")))),
      within("a", within("b", mastra("text-delta", { text: "Inner words" }))),
      within("a", within("b", within("c", { type: "data-status", status: "Half done" }))),
      ...[within("a", within("b", result("c"))), within("a", result("b")), result("a")],
    ],
  ],
  [
    "the OpenAI Agents SDK",
    [
      ...[step("tool_called", "a"), agents("a", step("tool_called", "b")), agents("b", step("tool_called", "c"))],
      { type: "tool_progress", data: { id: "a.b.c", text: "Half done" } },
      ...[agents("b", step("tool_output", "c")), agents("a", step("tool_output", "b")), step("tool_output", "a")],
    ],
  ],
  [
    "the AI SDK",
    [
      { type: "tool-call", ...began("a", "a", {}) },
      ...[
        part("c", { state: "input-available" }),
        part("c", { state: "output-available", preliminary: true, output: { status: "Half done" } }),
      ].map((inner) => ({
        ...{ type: "tool-result", toolCallId: "a", preliminary: true },
        output: message(part("b", { state: "output-available", preliminary: true, output: message(inner) })),
      })),
      {
        ...{ type: "tool-result", toolCallId: "a" },
        output: message(
          part("b", {
            state: "output-available",
            output: message(part("c", { state: "output-available", output: "c" }), { type: "text", text: "b" }),
          }),
          { type: "text", text: "a" },
        ),
      },
    ],
  ],
  [
    "LangGraph, where a sub-graph is a node,",
    [
      graphTool(["node:1"], "on_tool_start", "a"),
      graphTool(["node:1", "tools:2"], "on_tool_start", "b"),
      graphTool(["node:1", "tools:2", "1", "tools:3"], "on_tool_start", "c"),
      [["node:1", "tools:2", "1", "tools:3"], "messages", [{ type: "ai", id: "m", content: "Inner words" }, {}]],
      [["node:1", "tools:2", "1", "tools:3"], "custom", { progress: "Half done", toolCallId: "c" }],
      [["node:1", "tools:2", "1", "tools:3"], "messages", [graphMessage("c"), {}]],
      graphTool(["node:1", "tools:2"], "on_tool_end", "b"),
      graphTool(["node:1"], "on_tool_end", "a"),
      [[], "messages", [{ type: "ai", id: "m2", content: "Done" }, {}]],
    ],
  ],
];

for (const [name, items] of DEEP) {
  test(`agents of ${name} within agents within tools have steps within steps`, async (t) => {
    const server = await serve(t, () => [...items, "Done"].values());
    const { events } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual(inShort(events), ["a{}", "  b{}", "    c{}", "    c: Half done", "    c=c", "  b=b", "a=a"]);
    assert.doesNotMatch(JSON.stringify(events), /Inner words/);
  });
}

const said = (text: string) => [text, { text }, { type: "text-delta", id: "t", text }, { data: { text } }];
const ofMastra = [mastra("tool-call", call("a")), mastra("tool-result", { toolCallId: "a", result: "found" })];

/** Calls whose tools yield the texts of an inner agent in place of progress. */
const WORDS: [name: string, items: (words: string) => Items][] = [
  [
    "an AI SDK tool",
    (words) => [
      { type: "tool-call", ...began("a", "a", {}) },
      ...said(words).map((output) => ({ type: "tool-result", toolCallId: "a", preliminary: true, output })),
      ...said(words).map((data) => ({ type: "data-delta", id: "a", data })),
      // This part names no call, so it could belong to anything.
      { type: "data-answer", data: { message: words } },
      { type: "data-answer", id: "other", data: { message: words } },
      { type: "tool-result", toolCallId: "a", output: "found" },
    ],
  ],
  [
    "a tool of LangGraph",
    (words) => [
      graphTool([], "on_tool_start", "a"),
      ...said(words).map((data) => [[], "custom", data]),
      ...said(words).map((data) => [[], "tools", { event: "on_tool_event", toolCallId: "a", data }]),
      [[], "tools", { event: "on_tool_end", toolCallId: "a", name: "a", output: "found" }],
    ],
  ],
  [
    "a tool of Mastra",
    (words) => [
      ...[ofMastra[0], ...said(words).map((output) => within("a", output))],
      ...said(words).map((data) => ({ type: "data-delta", data })),
      ofMastra[1],
    ],
  ],
];

for (const [name, items] of WORDS) {
  test(`the growing words of an agent within ${name} are no progress`, async (t) => {
    const list = ["Inner", "Inner words"].flatMap((words) => items(words));
    const server = await serve(t, () => [...list, "Done"].values());
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual(inShort(events), ["a{}", "a=found"]);
    assert.deepEqual([last.type, last.data], ["done", "Done"]);
  });
}

const PROGRESS = [{ message: "One" }, { progress: "One" }, { status: "One" }, { status: "busy", text: "One" }];

const TOLD: [name: string, items: (progress: object) => Items][] = [
  [
    "an AI SDK tool",
    (output) => [
      { type: "tool-call", ...began("a", "a", {}) },
      { type: "tool-result", toolCallId: "a", preliminary: true, output },
      { type: "tool-result", toolCallId: "a", output: "found" },
    ],
  ],
  [
    "a data part of the AI SDK",
    (data) => [
      ...[
        { type: "tool-call", ...began("a", "a", {}) },
        { type: "data-status", id: "a", data },
      ],
      { type: "tool-result", toolCallId: "a", output: "found" },
    ],
  ],
  [
    "a tool of LangGraph",
    (data) => [
      ...[graphTool([], "on_tool_start", "a"), [[], "custom", data]],
      [[], "tools", { event: "on_tool_end", toolCallId: "a", name: "a", output: "found" }],
    ],
  ],
  ["a tool of Mastra that writes", (output) => [ofMastra[0], within("a", output), ofMastra[1]]],
  ["a tool of Mastra with custom", (data) => [ofMastra[0], { type: "data-status", data }, ofMastra[1]]],
  [
    "one of two tools of Mastra with custom, behind words of one's own",
    (data) => [
      ...[ofMastra[0], mastra("tool-call", call("b")), { type: "tool_progress", data: { id: "b", text: "Two" } }],
      ...[{ type: "data-status", data: { message: "of either" } }, { type: "data-status", id: "a", data }, ofMastra[1]],
      mastra("tool-result", { toolCallId: "b", result: "found" }),
    ],
  ],
];

for (const [name, items] of TOLD) {
  test(`what ${name} says that it does is progress of its call`, async (t) => {
    for (const one of PROGRESS) {
      const server = await serve(t, () => [...items(one), "Done"].values());
      const { events } = await send.sse(t, server, { message: "Hi" });
      const rows = inShort(events).filter((row) => row.startsWith("a"));
      assert.deepEqual(rows, ["a{}", "a: One", "a=found"]);
    }
  });
}

test("what a graph within a tool asks is asked about that tool's call, whose steps end, and its words are no answer", async (t) => {
  const namespace = ["tools:1"];
  const server = await serve(t, () =>
    [
      ...[graphTool([], "on_tool_start", "a"), graphTool(namespace, "on_tool_start", "b")],
      [namespace, "messages", [{ type: "ai", id: "m", content: "Inner words" }, {}]],
      [namespace, "updates", { agent: { messages: [{ type: "ai", id: "m", content: "Inner words" }] } }],
      [[], "updates", { __interrupt__: [{ id: "i", value: { question: "Go on?", toolCallId: "b" } }] }],
    ].values(),
  );
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(inShort(events), ["a{}", "  b{}", "  b!It was not finished."]);
  assert.ok(last.type === "done" && last.finish_reason === "approval_required");
  assert.deepEqual(
    last.approvals?.map(({ id, tool, text }) => [id, tool, text]),
    [["a", "a", "Go on?"]],
  );
  assert.doesNotMatch(JSON.stringify(events), /Inner words/);
});

test("what a callback emits is sent while run waits, before anything is yielded and while a tool runs", async (t) => {
  const [first, second] = [gate(), gate()];
  const server = await serve(t, async function* ({ emit }) {
    emit("Let me look. ");
    await first.opened;
    yield step("tool_called", "a");
    queueMicrotask(() => emit(agents("a", step("tool_called", "b"))));
    await second.opened;
    yield step("tool_output", "a");
    yield "Done";
  });
  const line = await openLine.sse(t, server, { message: "Hi", run: newRun() });
  assert.equal((await line.next()).data, "Let me look. ");
  first.open();
  const rows = [await line.next(), await line.next()];
  assert.deepEqual(inShort(rows), ["a{}", "  b{}"]);
  second.open();
  const rest = await line.rest();
  assert.deepEqual(
    rest.map(({ type }) => type),
    ["tool_result", "tool_result", "token", "done"],
  );
});

test("an event of a callback that is wrong ends the answer, and one that comes late is not heard", async (t) => {
  const late = gate();
  const server = await serve(t, async ({ emit, message, signal }) => {
    if (message === "wrong") {
      emit({ type: "tool_call", data: { id: 1 } });
      await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
    }
    setImmediate(() => {
      emit("too late");
      late.open();
    });
    return "Done";
  });
  const { last } = await send.sse(t, server, { message: "wrong" });
  assert.equal(last.type === "error" && last.code, "provider_error");
  const { events } = await send.sse(t, server, { message: "Hi" });
  await late.opened;
  assert.doesNotMatch(JSON.stringify(events), /too late/);
});

test("an agent that only emits is not silent", async (t) => {
  const run = async ({ emit }: RunInput) => {
    for (const piece of ["One ", "two ", "three"]) {
      await delay(150);
      emit(piece);
    }
  };
  const env = { PARLEY_FIRST_CHUNK_SECONDS: "0.4", PARLEY_IDLE_SECONDS: "0.4" };
  const server = await startServer(t, { agent: { model: undefined, run } as never, env });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual([last.type, last.data], ["done", "One two three"]);
});
