/** Streams of frameworks, recorded and cut to what Parley reads; test/agents runs the frameworks themselves. */

import { readdirSync, readFileSync } from "node:fs";

export type Items = readonly unknown[];

/** Number of formats that an item matches: data parts look alike in the AI SDK and Mastra. */
export const shapesOf = (item: unknown): number => (/^data-/.test(Object(item).type) ? 2 : 1);

export const LOOKED = [
  "(Hm.)",
  "Let me look.",
  'look{"a":1}',
  'read{"b":2}',
  "!The tool failed.",
  "=found",
  "Here it is.",
  "stop: Here it is.",
];

// AI SDK

export const AI_PARTS: Items = [
  { type: "start" },
  { type: "start-step", request: {}, warnings: [] },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", text: "Hm." },
  { type: "text-start", id: "t1" },
  { type: "text-delta", id: "t1", text: "Let me look." },
  { type: "text-end", id: "t1" },
  { type: "tool-input-start", id: "c1", toolName: "look" },
  { type: "tool-input-delta", id: "c1", delta: '{"a":1}' },
  { type: "tool-input-end", id: "c1" },
  { type: "tool-call", toolCallId: "c1", toolName: "look", input: { a: 1 } },
  { type: "tool-call", toolCallId: "c2", toolName: "read", input: { b: 2 } },
  { type: "tool-result", toolCallId: "c1", toolName: "look", input: {}, output: "half", preliminary: true },
  { type: "tool-error", toolCallId: "c2", toolName: "read", input: {}, error: new Error("secret") },
  { type: "tool-result", toolCallId: "c1", toolName: "look", input: {}, output: "found" },
  { type: "finish-step", finishReason: "tool-calls", usage: { inputTokens: 1, outputTokens: 1 } },
  { type: "start-step", request: {}, warnings: [] },
  { type: "text-delta", id: "t2", text: "Here " },
  { type: "text-delta", id: "t3", text: "it is." },
  { type: "finish", finishReason: "stop", totalUsage: { inputTokens: 3, outputTokens: 2 } },
];

const UI_CHUNKS: Items = [
  { type: "start" },
  { type: "start-step" },
  { type: "reasoning-delta", id: "r", delta: "Hm." },
  { type: "text-delta", id: "t1", delta: "Let me look." },
  { type: "tool-input-start", toolCallId: "c1", toolName: "look" },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"a":1}' },
  { type: "tool-input-available", toolCallId: "c1", toolName: "look", input: { a: 1 } },
  { type: "tool-input-available", toolCallId: "c2", toolName: "read", input: { b: 2 } },
  { type: "tool-output-error", toolCallId: "c2", errorText: "secret" },
  { type: "tool-output-available", toolCallId: "c1", output: "half", preliminary: true },
  { type: "tool-output-available", toolCallId: "c1", output: "found" },
  { type: "data-weather", data: {} },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "text-delta", id: "t2", delta: "Here it is." },
  { type: "finish", finishReason: "stop" },
];

// OpenAI Agents SDK

const raw = (data: object) => ({ type: "raw_model_stream_event", data });
const step = (name: string, item: object) => ({ type: "run_item_stream_event", name, item });
const message = (text: string) =>
  step("message_output_created", { rawItem: { type: "message", content: [{ type: "output_text", text }] } });
const called = (callId: string, name: string, args: string) =>
  step("tool_called", { rawItem: { type: "function_call", id: "fc", callId, name, arguments: args } });
const output = (callId: string, text: string) => step("tool_output", { rawItem: { callId }, output: text });
const done = (calls: object[] = []) =>
  raw({ type: "response_done", response: { output: calls, usage: { inputTokens: 1, outputTokens: 1 } } });

const AGENTS_EVENTS: Items = [
  { type: "agent_updated_stream_event", agent: {} },
  raw({ type: "response_started" }),
  raw({ type: "model", event: { type: "response.reasoning_summary_text.delta", delta: "Hm." } }),
  raw({ type: "output_text_delta", delta: "Let me look." }),
  done([
    { type: "function_call", callId: "c1" },
    { type: "function_call", callId: "c2" },
  ]),
  step("reasoning_item_created", { rawItem: { content: [{ type: "input_text", text: "Hm." }] } }),
  message("Let me look."),
  called("c1", "look", '{"a":1}'),
  called("c2", "read", '{"b":2}'),
  output("c1", "found"),
  output("c2", "not there"),
  step("handoff_requested", { rawItem: { type: "function_call", callId: "h", name: "transfer_to_b" } }),
  step("handoff_occurred", { rawItem: {} }),
  { type: "agent_updated_stream_event", agent: {} },
  raw({ type: "response_started" }),
  raw({ type: "output_text_delta", delta: "Here it is." }),
  done(),
  message("Here it is."),
];

// LangGraph and LangChain: instances of classes, and their JSON.

class Chunk {
  readonly #kind: string;
  constructor(kind: string, fields: object) {
    this.#kind = kind;
    Object.assign(this, { content: "", ...fields });
  }
  _getType() {
    return this.#kind;
  }
  concat() {}
}

const chunk = (id: string, fields: object) => new Chunk("ai", { id, ...fields });
const toolMessage = (id: string, content: string, status = "success") => ({
  type: "tool",
  tool_call_id: id,
  name: id === "c1" ? "look" : "read",
  content,
  status,
});
const AGENT = { langgraph_node: "agent", langgraph_checkpoint_ns: "agent:1" };
const TOOLS = { langgraph_node: "tools", langgraph_checkpoint_ns: "tools:1" };
const piece = (index: number, id: string | undefined, name: string | undefined, args: string) => ({
  index,
  id,
  name,
  args,
});

const CALLS = [
  { id: "c1", name: "look", args: { a: 1 } },
  { id: "c2", name: "read", args: { b: 2 } },
];

/** A tool's result that changes the state of its graph. */
const command = (update: unknown) => ({ lg_name: "Command", lc_direct_tool_output: true, update, goto: [], secret: 1 });

const NAMELESS_CALLS = { type: "ai", content: "Two.", tool_calls: CALLS.map(({ name, args }) => ({ name, args })) };

/** Items of the stream mode "messages", as [message, metadata]. */
const GRAPH_MESSAGES: [object, object][] = [
  [{ type: "human", content: "Hi", id: "h" }, AGENT],
  [chunk("m1", { additional_kwargs: { reasoning_content: "Hm." } }), AGENT],
  [chunk("m1", { content: "Let me look." }), AGENT],
  [chunk("m1", { tool_call_chunks: [piece(0, "c1", "look", "")] }), AGENT],
  [
    chunk("m1", { tool_call_chunks: [piece(0, undefined, undefined, '{"a":1}'), piece(1, "c2", "read", '{"b":2}')] }),
    AGENT,
  ],
  [chunk("m1", { usage_metadata: { input_tokens: 1, output_tokens: 1 } }), AGENT],
  [chunk("inner", { content: "A model within a tool." }), TOOLS],
];
const GRAPH_RESULTS: [object, object][] = [
  [toolMessage("c2", "Error: secret", "error"), TOOLS],
  [toolMessage("c1", "found"), TOOLS],
];
const GRAPH_ANSWER: [object, object][] = [
  [chunk("m2", { content: [{ type: "text", text: "Here " }] }), AGENT],
  [chunk("m2", { content: "it is." }), AGENT],
  [{ type: "ai", id: "m2", content: "Here it is.", tool_calls: [] }, AGENT],
];
const mode = (name: string, list: Items, namespace?: string[]) =>
  list.map((data) => (namespace === undefined ? [name, data] : [namespace, name, data]));
const GRAPH_UPDATE = { agent: { messages: [{ type: "ai", id: "m1", content: "Let me look.", tool_calls: CALLS }] } };
const RESULTS_UPDATE = { tools: { messages: GRAPH_RESULTS.map(([result]) => result) } };
const ANSWER_UPDATE = { agent: { messages: [{ type: "ai", id: "m2", content: "Here it is." }] } };

const toolEvents = (withIds: boolean) => {
  const id = (toolCallId: string) => (withIds ? { toolCallId } : {});
  return [
    { event: "on_tool_start", ...id("c1"), name: "look", input: '{"a":1}' },
    { event: "on_tool_start", ...id("c2"), name: "read", input: '{"b":2}' },
    { event: "on_tool_error", ...id("c2"), name: "read", error: new Error("secret") },
    { event: "on_tool_end", ...id("c1"), name: "look", output: toolMessage("c1", "found") },
  ];
};

const graph = (withIds: boolean, namespace?: string[]): Items => [
  ...mode("values", [{ messages: [{ type: "human", content: "Hi" }] }], namespace),
  ...mode("messages", GRAPH_MESSAGES, namespace),
  ...mode("updates", [GRAPH_UPDATE], namespace),
  ...mode("tools", toolEvents(withIds), namespace),
  ...mode("messages", GRAPH_RESULTS, namespace),
  ...mode("updates", [RESULTS_UPDATE], namespace),
  ...mode("messages", GRAPH_ANSWER, namespace),
  ...mode("updates", [ANSWER_UPDATE], namespace),
];

const event = (name: string, data: object, more: object = {}) => ({
  event: name,
  data,
  run_id: "m",
  metadata: AGENT,
  ...more,
});

const CHAIN_EVENTS: Items = [
  event("on_chain_start", { input: {} }),
  event("on_chat_model_start", { input: {} }),
  ...GRAPH_MESSAGES.slice(1).map(([one, metadata]) => event("on_chat_model_stream", { chunk: one }, { metadata })),
  event("on_chat_model_end", { output: { type: "ai", id: "m1", content: "Let me look.", tool_calls: CALLS } }),
  event("on_tool_start", { input: { a: 1 } }, { name: "look", run_id: "1" }),
  event("on_tool_start", { input: { b: 2 } }, { name: "read", run_id: "2" }),
  event("on_tool_error", { error: "secret at /srv" }, { run_id: "2" }),
  event("on_tool_end", { output: toolMessage("c1", "found") }, { run_id: "1" }),
  event("on_chat_model_end", { output: { type: "ai", id: "m2", content: "Here it is." } }, { run_id: "other" }),
  event("on_chain_end", { output: {} }),
];

// Mastra

const AGENTS = new URL("../fixtures/agents/", import.meta.url);

const linesOf = (path: string) =>
  readFileSync(new URL(path, AGENTS), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

/** `fullStream` from `test/fixtures/agents/mastra-1.71/<name>.jsonl`, with answers, stacks and ids shortened. */
export const recorded = (name: string): Items => linesOf(`mastra-1.71/${name}.jsonl`);

/** Agents within tools (`test/fixtures/agents/steps/<name>.jsonl`), with short ids and without ignored fields. */
export const steps = (name: string): Items => linesOf(`steps/${name}.jsonl`);

/** Streams of Python servers over AG-UI and the Responses API, recorded by test/agents. */
export const RECORDED: Items[] = readdirSync(new URL("python/", AGENTS)).flatMap((name) => linesOf(`python/${name}`));

export const mastra = (type: string, payload: object = {}) => ({ type, runId: "r", from: "AGENT", payload });

const MASTRA_CHUNKS: Items = [
  mastra("start"),
  mastra("step-start"),
  mastra("reasoning-delta", { id: "r", text: "Hm." }),
  mastra("text-delta", { id: "t", text: "Let me look." }),
  mastra("tool-call", { toolCallId: "c1", toolName: "look", args: { a: 1, __mastraMetadata: {} } }),
  mastra("tool-call", { toolCallId: "c2", toolName: "read", args: { b: 2 } }),
  mastra("tool-output", { toolCallId: "c1", output: mastra("text-delta", { text: "An agent within a tool." }) }),
  mastra("tool-error", { toolCallId: "c2", toolName: "read", error: new Error("secret") }),
  mastra("tool-result", { toolCallId: "c1", toolName: "look", result: "found" }),
  mastra("step-finish", {}),
  mastra("step-start"),
  mastra("text-delta", { id: "t", text: "Here it is." }),
  mastra("finish", { stepResult: { reason: "stop" }, output: { usage: { inputTokens: 3, outputTokens: 2 } } }),
];

// AG-UI

const agUiCall = (id: string, name: string, args: string): Items => [
  { type: "TOOL_CALL_START", toolCallId: id, toolCallName: name },
  { type: "TOOL_CALL_ARGS", toolCallId: id, delta: args },
  { type: "TOOL_CALL_END", toolCallId: id },
];
const agUiText = (messageId: string, delta: string): Items => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
  { type: "TEXT_MESSAGE_END", messageId },
];
/** Messages by id; an id that begins with "u" is a user's message. */
const agUiSnapshot = (...messages: [id: string, content: string][]) => ({
  type: "MESSAGES_SNAPSHOT",
  messages: messages.map(([id, content]) => ({ id, role: id.startsWith("u") ? "user" : "assistant", content })),
});

const AG_UI_EVENTS: Items = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "REASONING_MESSAGE_CONTENT", messageId: "m0", delta: "Hm." },
  { type: "TEXT_MESSAGE_START", messageId: "m1", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: "Let me look." },
  { type: "TEXT_MESSAGE_END", messageId: "m1" },
  { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "look" },
  { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: '{"a"' },
  { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: ":1}" },
  { type: "TOOL_CALL_END", toolCallId: "c1" },
  { type: "TOOL_CALL_CHUNK", toolCallId: "c2", toolCallName: "read", delta: '{"b"' },
  { type: "TOOL_CALL_CHUNK", delta: ":2}" },
  { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "found", messageId: "m2" },
  { type: "TOOL_CALL_RESULT", toolCallId: "c2", content: "there", messageId: "m3" },
  { type: "TEXT_MESSAGE_CHUNK", messageId: "m4", role: "assistant", delta: "Here it is." },
  { type: "MESSAGES_SNAPSHOT", messages: [{ role: "assistant", content: "Here it is." }] },
  { type: "RUN_FINISHED", threadId: "t", runId: "r" },
];

const END = ["Here it is.", "stop: Here it is."];
/** A call may still need approval: parallel calls are reported together with their results. */
const withoutFailure = (...[first = "", second = ""]: string[]) => [
  ...["(Hm.)", "Let me look.", 'look{"a":1}', first, 'read{"b":2}', second],
  ...END,
];

export const STREAMS: [name: string, items: Items, events: string[]][] = [
  ["the AI SDK's parts", AI_PARTS, LOOKED],
  ["the AI SDK's UI message chunks", UI_CHUNKS, LOOKED],
  ["the OpenAI Agents SDK's events", AGENTS_EVENTS, withoutFailure("=found", "=not there")],
  [
    "the OpenAI Agents SDK's tools that throw, in the sentences of 0.14 and 0.20",
    [
      raw({ type: "response_started" }),
      called("c1", "look", '{"a":1}'),
      called("c2", "read", '{"b":2}'),
      output("c1", "An error occurred while running the tool. Please try again. Error: Error: secret at /srv"),
      output("c2", "An error occurred while running the tool. Please try again."),
      raw({ type: "response_started" }),
      raw({ type: "output_text_delta", delta: "Here it is." }),
    ],
    ['look{"a":1}', "!The tool failed.", 'read{"b":2}', "!The tool failed.", ...END],
  ],
  ["LangGraph in three modes", graph(true), LOOKED],
  ["LangGraph whose tools name no call", graph(false), LOOKED],
  ["LangGraph with namespaces", graph(true, []), LOOKED],
  [
    "LangGraph in the mode messages alone",
    [...GRAPH_MESSAGES, ...GRAPH_RESULTS, ...GRAPH_ANSWER],
    ["(Hm.)", "Let me look.", 'read{"b":2}', "!The tool failed.", 'look{"a":1}', "=found", ...END],
  ],
  ["LangGraph in the mode updates alone", [GRAPH_UPDATE, RESULTS_UPDATE, ANSWER_UPDATE], LOOKED.slice(1)],
  [
    "LangGraph, whose nodes return plain objects",
    [
      ["updates", { greet: { messages: { role: "user", content: "Hi" } } }],
      [
        "updates",
        { plan: { messages: [{ role: "assistant", content: "Let me look.", tool_calls: CALLS.slice(0, 1) }] } },
      ],
      ["updates", { act: { messages: [{ role: "tool", content: "found", tool_call_id: CALLS[0]?.id }] } }],
      ["updates", { plan: { messages: [{ role: "assistant", content: "Then.", tool_calls: CALLS.slice(1, 2) }] } }],
      ["updates", { act: { messages: [{ role: "tool", content: "read", tool_call_id: CALLS[1]?.id }] } }],
      ["updates", { say: { messages: [{ role: "assistant", content: "Here it is." }] } }],
    ],
    ["Let me look.", ...LOOKED.slice(2, 3), "=found", "Then.", ...LOOKED.slice(3, 4), "=read", ...END],
  ],
  [
    "LangGraph in the mode tools alone",
    toolEvents(true),
    [...LOOKED.slice(2, 6), "I have nothing to add.", "stop: I have nothing to add."],
  ],
  [
    "LangGraph's sub-graph, whose text is no answer",
    [
      ...mode("messages", GRAPH_MESSAGES, ["sub:1"]),
      ...mode("messages", GRAPH_RESULTS, ["sub:1"]),
      ...mode("messages", [[chunk("m2", { content: "Mine." }), AGENT]], ["sub:1"]),
      ...mode("messages", [[chunk("m3", { content: "Here it is." }), AGENT]], []),
    ],
    ['read{"b":2}', "!The tool failed.", 'look{"a":1}', "=found", ...END],
  ],
  [
    "LangGraph's tools that return a Command, with a message for the model and without one",
    [
      ...mode("messages", GRAPH_MESSAGES.slice(3, 5)),
      ...mode("tools", [
        { event: "on_tool_start", toolCallId: "c1", name: "look", input: '{"a":1}' },
        { event: "on_tool_start", toolCallId: "c2", name: "read", input: '{"b":2}' },
        { event: "on_tool_end", toolCallId: "c1", output: command({ messages: [toolMessage("c1", "found")] }) },
        { event: "on_tool_end", toolCallId: "c2", output: [command({ user: "secret" })] },
      ]),
      ...mode("messages", GRAPH_ANSWER),
    ],
    ['look{"a":1}', "=found", 'read{"b":2}', "=", ...END],
  ],
  [
    "LangChain's tools that return a Command",
    [
      event("on_tool_start", { input: { a: 1 } }, { name: "look", run_id: "1" }),
      event("on_tool_end", { output: command([["messages", toolMessage("c1", "found")]]) }, { run_id: "1" }),
      event("on_chat_model_stream", { chunk: chunk("m2", { content: "Here it is." }) }),
    ],
    ['look{"a":1}', "=found", ...END],
  ],
  ["LangGraph's sub-graph, where nothing else is said", mode("messages", GRAPH_ANSWER, ["sub:1"]), END],
  [
    "LangGraph's sub-graph, where the author alone said something before",
    ["One moment.", ...mode("messages", GRAPH_ANSWER, ["sub:1"])],
    ["One moment.\n\nHere it is.", "stop: Here it is."],
  ],
  [
    "LangGraph whose messages and calls have no ids",
    [
      ...mode("messages", [
        [{ type: "ai", content: "One." }, AGENT],
        [NAMELESS_CALLS, AGENT],
      ]),
      ...mode("updates", [{ agent: { messages: [NAMELESS_CALLS] } }]),
      ...mode("tools", toolEvents(false).slice(0, 2)),
      ...mode("messages", [[{ type: "tool", name: "look", content: "found" }, TOOLS]]),
      ...mode("tools", toolEvents(false).slice(2)),
      ...mode("updates", [{ tools: { messages: [{ type: "tool", name: "look", content: "found" }] } }]),
      ...mode("messages", [[{ type: "ai", content: "Here it is." }, AGENT]]),
    ],
    ["One.\n\nTwo.", 'look{"a":1}', "=found", 'read{"b":2}', "!The tool failed.", ...END],
  ],
  [
    "two messages of LangGraph in a row, which stay apart",
    mode("messages", [
      [chunk("m1", { content: "One." }), AGENT],
      [chunk("m2", { content: "Two." }), AGENT],
    ]),
    ["One.\n\nTwo.", "stop: Two."],
  ],
  ["LangChain's events", CHAIN_EVENTS, LOOKED],
  ["Mastra 0.24's chunks", MASTRA_CHUNKS, LOOKED],
  ["Mastra", recorded("tools"), LOOKED],
  [
    "Mastra's agent within an agent, whose text is no answer",
    recorded("nested"),
    ['agent-helper{"prompt":"go"}', "=An agent within.", ...END],
  ],
  ["AG-UI's events", AG_UI_EVENTS, withoutFailure("=found", "=there")],
  [
    "LangGraph's node behind AG-UI, which says a whole message behind one that was streamed",
    [...agUiText("m1", "Let me look."), agUiSnapshot(["u1", "Hi"], ["m1", "Let me look."], ["m2", "Here it is."])],
    ["Let me look.\n\nHere it is.", "stop: Here it is."],
  ],
  [
    "CrewAI behind AG-UI, whose results stand in its list of messages alone",
    [
      ...agUiCall("c1", "look", '{"a":1}'),
      ...agUiText("m1", "Here it is."),
      { type: "MESSAGES_SNAPSHOT", messages: [{ id: "x", role: "tool", toolCallId: "c1", content: "found" }] },
      { type: "RUN_FINISHED" },
    ],
    ['look{"a":1}', "Here it is.", "=found", "stop: Here it is."],
  ],
  [
    "CrewAI behind AG-UI, whose model was not streamed: its calls stand in its list of messages alone",
    [
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "found" },
      {
        type: "MESSAGES_SNAPSHOT",
        messages: [
          { id: "u1", role: "user", content: "Hi" },
          { id: "m1", role: "assistant", toolCalls: [{ id: "c1", function: { name: "look", arguments: '{"a":1}' } }] },
          { id: "m2", role: "tool", toolCallId: "c1", content: "found" },
          { id: "m3", role: "assistant", content: "Here it is." },
        ],
      },
      { type: "RUN_FINISHED" },
    ],
    ['look{"a":1}', "=found", ...END],
  ],
  [
    "Strands behind AG-UI, which lists its thread again and again",
    [
      agUiSnapshot(["u1", "Hi"]),
      ...agUiText("m1", "Here it is."),
      agUiSnapshot(["u1", "Hi"], ["m1", "Here it is."]),
      { type: "RUN_FINISHED", outcome: { type: "success" } },
    ],
    END,
  ],
  ...[[{ type: "TEXT_MESSAGE_CHUNK", delta: "Here it is." }], []].map((last): (typeof STREAMS)[number] => [
    `AG-UI whose messages have no ids, and of which the last one is ${last.length > 0 ? "streamed" : "in the list alone"}`,
    [
      { type: "TEXT_MESSAGE_CHUNK", delta: "Let me look." },
      ...agUiCall("c1", "look", '{"a":1}'),
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "found" },
      ...last,
      { type: "MESSAGES_SNAPSHOT", messages: [{ role: "assistant", content: "Here it is." }] },
      { type: "RUN_FINISHED" },
    ],
    ["Let me look.", 'look{"a":1}', "=found", ...END],
  ]),
  [
    "Google's kit behind AG-UI, which lists what it has streamed under other ids",
    [...agUiText("m1", "Here it is."), agUiSnapshot(["u1", "Hi"], ["x1", "Here it is."]), { type: "RUN_FINISHED" }],
    END,
  ],
  [
    "an agent behind AG-UI that lists its answer, and what it has streamed before it, under other ids",
    [
      ...[...agUiText("m1", "Let me look."), ...agUiCall("c1", "look", '{"a":1}')],
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "found" },
      agUiSnapshot(["u1", "Hi"], ["x1", "Let me look."], ["x2", "Here it is."]),
      { type: "RUN_FINISHED" },
    ],
    ["Let me look.", 'look{"a":1}', "=found", ...END],
  ],
  [
    "an answer that the token limit cut",
    [
      { type: "text-delta", text: "Hel" },
      { type: "finish", finishReason: "length" },
    ],
    ["Hel", "length: Hel"],
  ],
];

const REFUND = { toolCallId: "c1", toolName: "refund", input: { a: 1 } };
const WANTS = 'The assistant wants to use "refund".';
const ASKED_REFUND = [`?refund{"a":1}: ${WANTS}`, `approval_required: ${WANTS}`];
const REFUNDED = ['refund{"a":1}', "=done", ...END];
const AI_REFUNDED: Items = [
  { type: "tool-result", toolCallId: "c1", toolName: "refund", input: {}, output: "done" },
  { type: "text-delta", id: "t2", text: "Here it is." },
];
const REFUND_STEP = { type: "function_call", callId: "c1", name: "refund", arguments: '{"a":1}' };
const REFUND_MESSAGE = {
  type: "ai",
  id: "m1",
  content: "",
  tool_calls: [{ id: "c1", name: "refund", args: { a: 1 } }],
};
const STARTED = ["tools", { event: "on_tool_start", toolCallId: "c1", name: "refund", input: '{"a":1}' }];
const GRAPH_REFUNDED: Items = [
  STARTED,
  ["tools", { event: "on_tool_end", toolCallId: "c1", name: "refund", output: "done" }],
  ...mode("messages", GRAPH_ANSWER),
];
const interrupted = (...interrupts: object[]) => ["updates", { __interrupt__: interrupts }];
const agUiFinished = (...interrupts: object[]) => ({
  type: "RUN_FINISHED",
  ...(interrupts.length === 0 ? {} : { outcome: { type: "interrupt", interrupts } }),
});
/** An interrupt in the format of LangGraph's servers. */
const onInterrupt = (id: string, value: unknown) => ({
  ...{ type: "CUSTOM", name: "on_interrupt", value: typeof value === "string" ? value : JSON.stringify(value) },
  rawEvent: { id, value },
});
const HUMAN = {
  actionRequests: [
    { name: "refund", args: { a: 1 }, description: "Refund 1?" },
    { name: "refund", args: { a: 2 } },
  ],
  reviewConfigs: [{ actionName: "refund", allowedDecisions: ["approve", "edit", "reject"] }],
};

const REFUND_CALLS = [1, 2].map((n) => ({ id: `c${n}`, name: "refund", args: { a: n } }));
const REFUND_EVENTS: Items = [
  event("on_tool_start", { input: { a: 1 } }, { name: "refund", run_id: "1" }),
  event("on_tool_start", { input: '{"a":2}' }, { name: "refund", run_id: "2" }),
  ...["1", "2"].map((run_id) => event("on_tool_end", { output: "done" }, { run_id })),
  event("on_chat_model_stream", { chunk: chunk("m2", { content: "Here it is." }) }),
];

/** A framework's interrupt, the events that clients get for it, and the second run's stream after all was approved. */
export const INTERRUPTS: [
  name: string,
  items: Items,
  asked: string[],
  kept: unknown[],
  then: Items,
  events: string[],
][] = [
  [
    "the AI SDK",
    [
      { type: "tool-call", ...REFUND },
      { type: "tool-approval-request", approvalId: "a", toolCall: REFUND },
    ],
    ASKED_REFUND,
    [undefined],
    AI_REFUNDED,
    REFUNDED,
  ],
  [
    "a UI message stream",
    [
      { type: "tool-input-available", ...REFUND },
      { type: "tool-approval-request", approvalId: "a", toolCallId: "c1" },
    ],
    ASKED_REFUND,
    [undefined],
    AI_REFUNDED,
    REFUNDED,
  ],
  [
    "the OpenAI Agents SDK, beside a call that needs none",
    [
      called("c0", "look", "{}"),
      called("c1", "refund", '{"a":1}'),
      output("c0", "found"),
      step("tool_approval_requested", { rawItem: REFUND_STEP }),
    ],
    ["look{}", "=found", ...ASKED_REFUND],
    [undefined],
    [output("c1", "done"), message("Here it is.")],
    REFUNDED,
  ],
  [
    "an agent within a tool of the OpenAI Agents SDK, of which the result alone tells",
    [
      {
        interruptions: [{ type: "tool_approval_item", rawItem: REFUND_STEP }],
        async *[Symbol.asyncIterator]() {
          yield called("c0", "ask_desk", "{}");
        },
      },
    ],
    ["ask_desk{}", "!It was not finished.", ...ASKED_REFUND],
    [undefined],
    [output("c0", "done"), message("Here it is.")],
    ['refund{"a":1}', "=", "ask_desk{}", "=done", ...END],
  ],
  [
    "a tool of LangGraph",
    [STARTED, interrupted({ id: "i1", value: { question: "Refund?", sum: 1 } })],
    ['?refund{"sum":1}: Refund?', "approval_required: Refund?"],
    [{ interrupt: "i1" }],
    GRAPH_REFUNDED,
    ['refund{"sum":1}', "=done", ...END],
  ],
  [
    "a node of LangGraph, told twice",
    [interrupted({ id: "i1", value: "Go on?" }), ["values", { __interrupt__: [{ id: "i1", value: "Go on?" }] }]],
    ["?interrupt{}: Go on? (in words)", "approval_required: Go on?"],
    [{ interrupt: "i1", question: true }],
    mode("messages", GRAPH_ANSWER),
    ["interrupt{}", "=", ...END],
  ],
  [
    "two tools of LangGraph, of which one names its call",
    [
      ...["c1", "c2"].map((id) => ["tools", { event: "on_tool_start", toolCallId: id, name: "refund", input: "{}" }]),
      interrupted({ id: "i1", value: { message: "One?", toolCallId: "c2" } }),
      interrupted({ id: "i2", value: { message: "Two?" } }),
    ],
    ["?refund{}: One?", "?interrupt{}: Two?", "approval_required: One?\nTwo?"],
    [{ interrupt: "i1" }, { interrupt: "i2" }],
    mode("messages", GRAPH_ANSWER),
    ["refund{}", "interrupt{}", "=", "Here it is.", "!It was not finished.", "stop: Here it is."],
  ],
  [
    "LangGraph, where calls of two tools were made with what it shows",
    [
      ...["look", "refund"].map((name) => {
        return ["tools", { event: "on_tool_start", toolCallId: name, name, input: '{"a":1}' }];
      }),
      interrupted({ id: "i1", value: { message: "One?", a: 1 } }),
    ],
    ['?interrupt{"a":1}: One?', "approval_required: One?"],
    [{ interrupt: "i1" }],
    mode("messages", GRAPH_ANSWER),
    ['interrupt{"a":1}', "=", "Here it is.", "stop: Here it is."],
  ],
  [
    "LangChain's middleware",
    [["updates", { model: { messages: [REFUND_MESSAGE] } }], interrupted({ id: "i1", value: HUMAN })],
    ['?refund{"a":1}: Refund 1?', `?refund{"a":2}: ${WANTS}`, `approval_required: Refund 1?\n${WANTS}`],
    [
      { interrupt: "i1", action: 0 },
      { interrupt: "i1", action: 1 },
    ],
    GRAPH_REFUNDED,
    ['refund{"a":1}', 'refund{"a":2}', "=", "=done", ...END],
  ],
  [
    "LangChain's events",
    [event("on_chain_stream", { chunk: { __interrupt__: [{ id: "i1", value: "Go on?" }] } })],
    ["?interrupt{}: Go on? (in words)", "approval_required: Go on?"],
    [{ interrupt: "i1", question: true }],
    CHAIN_EVENTS.slice(-4),
    ["interrupt{}", "=", ...END],
  ],
  [
    "LangChain's middleware, in events, whose tools name no call",
    [
      event("on_chat_model_end", { output: chunk("m1", { tool_calls: REFUND_CALLS }) }),
      event("on_chain_stream", { chunk: { __interrupt__: [{ id: "i1", value: HUMAN }] } }),
    ],
    ['?refund{"a":1}: Refund 1?', `?refund{"a":2}: ${WANTS}`, `approval_required: Refund 1?\n${WANTS}`],
    [
      { interrupt: "i1", action: 0 },
      { interrupt: "i1", action: 1 },
    ],
    REFUND_EVENTS,
    ['refund{"a":1}', 'refund{"a":2}', "=done", "=done", ...END],
  ],
  [
    "two tools of LangGraph, in events, of which both throw what they ask",
    [
      event("on_chat_model_end", { output: chunk("m1", { tool_calls: REFUND_CALLS }) }),
      ...REFUND_EVENTS.slice(0, 2),
      ...["1", "2"].map((run_id) => event("on_tool_error", { error: "[]\n\nGraphInterrupt: []\n    at" }, { run_id })),
      event("on_chain_stream", {
        chunk: {
          __interrupt__: [1, 2].map((n) => ({ id: `i${n}`, value: { message: `${n}?`, toolCallId: `c${n}` } })),
        },
      }),
    ],
    ['?refund{"a":1}: 1?', '?refund{"a":2}: 2?', "approval_required: 1?\n2?"],
    [{ interrupt: "i1" }, { interrupt: "i2" }],
    REFUND_EVENTS,
    ['refund{"a":1}', 'refund{"a":2}', "=done", "=done", ...END],
  ],
  [
    "Mastra",
    recorded("approval"),
    ASKED_REFUND,
    [{ runId: "id-1", toolCallId: "c1" }],
    [mastra("tool-result", { toolCallId: "c1", result: "done" }), mastra("text-delta", { text: "Here it is." })],
    REFUNDED,
  ],
  [
    "AG-UI, about a call and about something else",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      agUiFinished({ id: "i1", toolCallId: "c1", message: "Refund?" }, { id: "i2", reason: "budget", message: "2?" }),
    ],
    ['?refund{"a":1}: Refund?', "?budget{}: 2? (in words)", "approval_required: Refund?\n2?"],
    [{ interrupt: "i1" }, { interrupt: "i2", question: true }],
    [
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" },
      { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Here it is." },
    ],
    ['refund{"a":1}', "budget{}", "=", "=done", ...END],
  ],
  [
    "LangGraph behind AG-UI, about a tool's call, whose answer is in the list of messages alone",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      agUiSnapshot(["u1", "Hi"], ["m1", ""]),
      onInterrupt("i1", { question: "Sure?", a: 1 }),
      agUiFinished(),
    ],
    ['?refund{"a":1}: Sure?', "approval_required: Sure?"],
    [{ interrupt: "i1", isGraph: true }],
    [
      ...agUiCall("c1", "refund", '{"a": 1}'),
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" },
      agUiSnapshot(["u1", "Hi"], ["m1", ""], ["m2", "Here it is."]),
      agUiFinished(),
    ],
    REFUNDED,
  ],
  [
    "LangGraph behind AG-UI, about two calls, told twice",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      ...agUiCall("c2", "refund", '{"a":2}'),
      onInterrupt("i2", { message: "Two?", a: 2 }),
      onInterrupt("i1", { message: "One?", a: 1 }),
      agUiFinished(
        {
          id: "i2",
          reason: "langgraph:interrupt",
          message: "Two?",
          metadata: { langgraph: { raw: { message: "Two?", a: 2 } } },
        },
        {
          id: "i1",
          reason: "langgraph:interrupt",
          message: "One?",
          metadata: { langgraph: { raw: { message: "One?", a: 1 } } },
        },
      ),
    ],
    ['?refund{"a":2}: Two?', '?refund{"a":1}: One?', "approval_required: Two?\nOne?"],
    [
      { interrupt: "i2", isGraph: true },
      { interrupt: "i1", isGraph: true },
    ],
    agUiText("m2", "Here it is."),
    [
      'refund{"a":2}',
      'refund{"a":1}',
      "Here it is.",
      "!It was not finished.",
      "!It was not finished.",
      "stop: Here it is.",
    ],
  ],
  [
    "LangGraph's node behind AG-UI, which wants words",
    [onInterrupt("i1", "Your name?"), agUiFinished()],
    ["?interrupt{}: Your name? (in words)", "approval_required: Your name?"],
    [{ interrupt: "i1", isGraph: true, question: true }],
    agUiText("m2", "Here it is."),
    ["interrupt{}", "=", ...END],
  ],
  [
    "LangChain's middleware in Python, behind AG-UI",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      onInterrupt("i1", {
        action_requests: [{ name: "refund", args: { a: 1 }, description: "Refund 1?" }],
        review_configs: [{ action_name: "refund", allowed_decisions: ["approve", "edit"] }],
      }),
      agUiFinished(),
    ],
    ['?refund{"a":1}: Refund 1?', "approval_required: Refund 1?"],
    [{ interrupt: "i1", isGraph: true, action: 0, isPython: true }],
    [{ type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" }, ...agUiText("m2", "Here it is.")],
    REFUNDED,
  ],
  [
    "Strands behind AG-UI, in a tool",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      agUiFinished({ id: "v1:c1:x", reason: "confirm", metadata: { reason: { question: "Sure?", sum: 1 } } }),
    ],
    ['?refund{"sum":1}: Sure?', "approval_required: Sure?"],
    [{ interrupt: "v1:c1:x" }],
    [{ type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" }, ...agUiText("m2", "Here it is.")],
    ['refund{"sum":1}', "=done", ...END],
  ],
  [
    "Google's kit behind AG-UI, by a call of its own",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      ...agUiCall(
        "adk-1",
        "adk_request_confirmation",
        JSON.stringify({
          originalFunctionCall: { id: "c1", args: { a: 1 }, name: "refund" },
          toolConfirmation: { hint: "Please approve or reject the tool call refund() by responding with …" },
        }),
      ),
      agUiFinished(),
    ],
    ASKED_REFUND,
    [{ interrupt: "adk-1", takesReason: false, by: "adk_request_confirmation" }],
    [{ type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" }, ...agUiText("m2", "Here it is.")],
    REFUNDED,
  ],
  [
    "Microsoft's framework behind AG-UI, by a call of its own beside the interrupt",
    [
      ...agUiCall("c1", "refund", '{"a":1}'),
      ...agUiCall("x", "confirm_changes", '{"function_name":"refund","function_call_id":"c1"}'),
      agUiFinished({
        ...{ id: "af-1", reason: "tool_call", message: "Sure?", toolCallId: "c1", metadata: { agent_framework: {} } },
        responseSchema: { type: "object", properties: { approved: {}, editedArgs: {} }, additionalProperties: false },
      }),
    ],
    ['?refund{"a":1}: Sure?', "approval_required: Sure?"],
    [{ interrupt: "af-1", takesReason: false, alike: true }],
    [{ type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" }, ...agUiText("m2", "Here it is.")],
    REFUNDED,
  ],
  [
    "Agno behind AG-UI, by leaving the call open, behind others that it left without a result",
    [
      ...[...agUiCall("c0", "look", "{}"), ...agUiText("m1", "I need confirmation."), ...agUiCall("c9", "read", "{}")],
      ...[{ type: "REASONING_MESSAGE_CONTENT", delta: "Hm." }, ...agUiCall("c1", "refund", '{"a":1}'), agUiFinished()],
    ],
    [
      "look{}",
      "I need confirmation.",
      "(Hm.)",
      "!It was not finished.",
      `?refund{"a":1}: ${WANTS}`,
      "approval_required: I need confirmation.",
    ],
    [{ call: "c1" }],
    [
      ...agUiCall("c1", "refund", '{"a": 1}'),
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" },
      ...agUiText("m2", "Here it is."),
    ],
    REFUNDED,
  ],
  [
    "CrewAI behind AG-UI, which wants feedback",
    [
      {
        ...{ type: "CUSTOM", name: "on_interrupt" },
        value: {
          ...{
            id: "t",
            reason: "crewai:human_feedback",
            message: "Fine?",
            responseSchema: { type: "string", enum: ["yes", "no"] },
          },
          metadata: { crewai: { flowId: "t", methodName: "draft", output: "A draft" } },
        },
      },
      agUiFinished(),
    ],
    ['?crewai:human_feedback{"output":"A draft"}: Fine? (yes, no) (in words)', "approval_required: Fine? (yes, no)"],
    [{ interrupt: "t", question: true }],
    agUiText("m2", "Here it is."),
    ['crewai:human_feedback{"output":"A draft"}', "=", ...END],
  ],
  [
    "an event of ours",
    [{ type: "tool_approval", data: { id: "c1", tool: "refund", arguments: { a: 1 }, text: "Sure?", kept: [7] } }],
    ['?refund{"a":1}: Sure?', "approval_required: Sure?"],
    [[7]],
    [{ type: "tool_result", data: { id: "c1", output: "done" } }, "Here it is."],
    REFUNDED,
  ],
  [
    "an event of ours that wants words",
    [{ type: "tool_approval", data: { id: "q1", tool: "ask", text: "Name?", question: true, kept: [7] } }],
    ["?ask{}: Name? (in words)", "approval_required: Name?"],
    [[7]],
    ["Here it is."],
    ["ask{}", "=", ...END],
  ],
];
