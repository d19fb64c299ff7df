/** What clients get of frameworks' streams; test/agents runs the packages themselves. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunInput } from "../../server/agent/run-function.ts";
import { SHAPES } from "../../server/hosted/shapes.ts";
import { toModelMessages } from "../../server/hosted/to-framework.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { send, TRANSPORTS } from "../support/chat-transports.ts";
import {
  AI_PARTS,
  INTERRUPTS,
  type Items,
  LOOKED,
  mastra,
  recorded,
  STREAMS,
  shapesOf,
} from "../support/hosted-streams.ts";
import { newRun, readBytes } from "../support/run-lines.ts";
import { startServer } from "../support/start-server.ts";

/** Events in short: "text", "(thinking)", "tool(arguments)", "=output" or "!output", and the answer with its end. */
function inShort(events: readonly StreamEvent[]): string[] {
  const short: string[] = [];
  let text = "";
  const flush = () => {
    if (text !== "") short.push(text);
    text = "";
  };
  for (const event of events) {
    if (event.type === "token") {
      text += event.data;
      continue;
    }
    flush();
    if (event.type === "thinking") short.push(`(${event.data})`);
    if (event.type === "tool_call") short.push(`${event.data.tool}${event.data.arguments}`);
    if (event.type === "tool_result") short.push(`${event.data.status === "failed" ? "!" : "="}${event.data.output}`);
    if (event.type === "tool_approval") {
      const { tool, arguments: args, text, question } = event.data;
      short.push(`?${tool}${args}: ${text}${question ? " (in words)" : ""}`);
    }
    if (event.type === "done") short.push(`${event.finish_reason}: ${event.data}`);
    if (event.type === "error") short.push(`error: ${event.code}`);
  }
  return short;
}

async function* streamed(list: Items) {
  yield* list;
}

const serverWith = (t: Parameters<typeof startServer>[0], list: Items) =>
  startServer(t, { agent: { model: undefined, run: () => streamed(list) } as never });

for (const [name, list, events] of STREAMS) {
  test(`clients get of ${name} what the agent said, once and in order`, async (t) => {
    const server = await serverWith(t, list);
    const { events: got } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual(inShort(got), events);
    assert.doesNotMatch(JSON.stringify(got), /secret/);
    assert.doesNotMatch(server.log.join(""), /does not know/);
  });
}

for (const [name, first, asked, kept, then, events] of INTERRUPTS) {
  test(`a request of ${name} for an approval ends the run, and the decision comes back with what was kept`, async (t) => {
    const inputs: RunInput[] = [];
    const run = (input: RunInput) => {
      inputs.push(input);
      return streamed(inputs.length === 1 ? first : then);
    };
    const server = await startServer(t, { agent: { model: undefined, run } as never });
    const { events: got, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual(inShort(got), asked);
    assert.ok(last.type === "done");
    assert.doesNotMatch(JSON.stringify(last.state), /"kept"/);
    const approvals = last.approvals?.map(({ id }) => ({ id, approved: true })) ?? [];
    const second = await send.sse(t, server, { approvals: approvals.toReversed(), state: last.state });
    assert.deepEqual(inShort(second.events), events);
    const decided = inputs[1]?.ctx.approvals;
    assert.deepEqual(
      decided?.map((decision) => [decision.id, decision.approved, decision.kept]),
      approvals.map(({ id }, index) => [id, true, kept[index]]),
    );
    assert.deepEqual([inputs[1]?.message, inputs[1]?.messages], ["", [{ role: "user", content: "Hi" }]]);
    const next = await send.sse(t, server, { message: "And?", state: second.last.state });
    assert.equal(next.last.type, "done");
    assert.doesNotMatch(server.log.join(""), /does not know/);
  });
}

test("a graph that stops at a breakpoint asks nobody, and the log says what it is", async (t) => {
  const call = { type: "ai", id: "m1", content: "", tool_calls: [{ id: "c1", name: "look", args: {} }] };
  const server = await serverWith(t, [
    ["updates", { plan: { messages: [call] } }],
    ["updates", { __interrupt__: [] }],
  ]);
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(inShort(events).slice(0, 2), ["look{}", "!It was not carried out."]);
  const log = server.log.join("");
  assert.match(log, /stopped at a breakpoint .*Call interrupt in the node or the tool instead\./);
  assert.doesNotMatch(log, /got no result/);
});

const FAILURES: [name: string, item: unknown][] = [
  ["the AI SDK", { type: "error", error: new Error("secret") }],
  ["a UI message stream", { type: "error", errorText: "secret" }],
  ["an AI SDK agent that aborts itself", { type: "abort", reason: "secret" }],
  ["Mastra", mastra("error", { error: new Error("secret") })],
  ["Mastra's model", recorded("fail")],
  ["a Mastra agent that aborts itself", recorded("abort")],
  ["a processor of Mastra", mastra("tripwire", { reason: "secret" })],
  ["AG-UI", { type: "RUN_ERROR", message: "secret" }],
  ["LangGraph, which asks twice at once without ids,", { __interrupt__: [{ value: "secret" }, { value: "secret" }] }],
  [
    "LangGraph, which asks one question after another without ids,",
    ["secret", "Secret?"].map((value) => ({ __interrupt__: [{ value }] })),
  ],
];

for (const [name, item] of FAILURES) {
  test(`an error of ${name} ends the run with provider_error after what was said`, async (t) => {
    const env = { PARLEY_CHAT_KEY: "k".repeat(24) };
    const server = await startServer(t, {
      agent: { model: undefined, run: () => streamed(["Hel", item].flat()) } as never,
      env,
    });
    const answer = await fetch(`${server.url}/api/chat`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${env.PARLEY_CHAT_KEY}`,
        origin: server.url,
      },
      body: '{"message":"Hi","stream":true}',
    });
    const text = await answer.text();
    assert.match(text, /"data":"Hel".*"code":"provider_error"/s);
    assert.doesNotMatch(text, /secret/);
  });
}

test("each item of every stream fits exactly one shape", () => {
  for (const [name, list] of STREAMS) {
    for (const item of list) {
      const fitting = SHAPES.filter((shape) => shape.fits(item)).map((shape) => shape.name);
      assert.equal(fitting.length, shapesOf(item), `${name}: ${JSON.stringify(item)} fits ${fitting}`);
    }
  }
});

test("an agent of the AI SDK may stand for run, and gets the conversation with the files of the message", async (t) => {
  const asked: { messages: unknown[]; abortSignal: AbortSignal }[] = [];
  const agent = {
    version: "agent-v1",
    async stream(options: (typeof asked)[number]) {
      asked.push(options);
      return { stream: streamed(AI_PARTS) };
    },
  };
  for (const run of [agent, () => agent]) {
    const server = await startServer(t, { agent: { model: undefined, run, accepts: ["application/pdf"] } as never });
    const attachments = [{ type: "file", name: "a.pdf", mime_type: "application/pdf", data: "JVBERi0=" }];
    const { events, last } = await send.sse(t, server, { message: "Hi", attachments });
    assert.deepEqual(inShort(events), LOOKED);
    assert.deepEqual(last.type === "done" && last.usage, { input_tokens: 3, output_tokens: 2 });
    const file = {
      type: "file",
      data: new TextEncoder().encode("%PDF-"),
      mediaType: "application/pdf",
      filename: "a.pdf",
    };
    assert.deepEqual(asked.at(-1)?.messages, [{ role: "user", content: [{ type: "text", text: "Hi" }, file] }]);
    assert.ok(asked.at(-1)?.abortSignal instanceof AbortSignal);
  }
});

test("messages for the AI SDK's kind of agent can be made of a conversation in which Mastra has asked", async (t) => {
  const made: { role: string }[][] = [];
  const run = (input: RunInput) => {
    made.push(toModelMessages(input));
    return streamed(made.length === 1 ? recorded("approval") : ["As you like."]);
  };
  const server = await startServer(t, { agent: { model: undefined, run } as never });
  const { last } = await send.sse(t, server, { message: "Hi" });
  const second = await send.sse(t, server, { message: "Never mind", state: last.state });
  assert.equal(second.last.data, "As you like.", JSON.stringify(second.last));
  assert.deepEqual(
    made[1]?.map(({ role }) => role),
    ["user", "assistant", "tool", "user"],
  );
});

test("an agent of the AI SDK goes on by itself, round after round, with the messages of its own result", async (t) => {
  const asked: unknown[][] = [];
  const ask = (id: string) => ({ type: "tool-approval-request", approvalId: `a-${id}`, toolCallId: id });
  const message = (id: string) => ({ role: "assistant", content: [{ type: "reasoning", text: "Hm." }, ask(id)] });
  const said = [[message("c1")], [message("c2")], [{ role: "assistant", content: "Done." }]];
  const parts = [[ask("c1")], [ask("c2")], ["Done."]];
  const agent = {
    version: "agent-v1",
    stream({ messages }: { messages: unknown[] }) {
      asked.push(messages);
      const n = asked.length - 1;
      return { stream: streamed(parts[n] ?? ["Fine."]), response: Promise.resolve({ messages: said[n] ?? [] }) };
    },
  };
  const server = await startServer(t, {
    agent: { model: undefined, run: agent, accepts: ["application/pdf"] } as never,
  });
  const first = await send.sse(t, server, { message: "Hi" });
  const yes = (id: string) => [{ id, approved: true }];
  const second = await send.sse(t, server, { approvals: yes("c1"), state: first.last.state });
  await send.sse(t, server, { approvals: yes("c2"), state: second.last.state });
  const response = (id: string) => ({ type: "tool-approval-response", approvalId: `a-${id}`, approved: true });
  const user = { role: "user", content: "Hi" };
  const once = [user, message("c1"), { role: "tool", content: [response("c1")] }];
  assert.deepEqual(JSON.parse(JSON.stringify(asked.slice(0, 3))), [
    [user],
    once,
    [...once, message("c2"), { role: "tool", content: [response("c2")] }],
  ]);
  const attachments = [{ type: "file", name: "a.pdf", mime_type: "application/pdf", data: "JVBERi0=" }];
  await send.sse(t, server, { message: "", attachments, state: first.last.state });
  const [before, , results, last] = asked.at(-1) as { role: string; content: { type: string }[] }[];
  assert.deepEqual(before, user);
  assert.deepEqual(
    results?.content.map(({ type }) => type),
    ["tool-result"],
  );
  assert.deepEqual(
    last?.content.map(({ type }) => type),
    ["file"],
  );
});

// Data that a framework keeps while an answer waits for approval: only the next run gets them.

const REFUND = { toolCallId: "c1", toolName: "refund", input: { a: 1 } };
const ASKED_STEP = { rawItem: { type: "function_call", callId: "c1", name: "refund", arguments: "{}" } };
const PLANTED = "postgres://ada:planted@db";
const ASK = { type: "tool-approval-request", approvalId: "a", toolCall: REFUND };
/** Messages that the AI SDK adds to a conversation: thinking, and a tool's error. */
const AI_SAID = [
  { role: "assistant", content: [{ type: "reasoning", text: PLANTED }, ASK] },
  {
    role: "tool",
    content: [{ type: "tool-result", toolCallId: "c0", output: { type: "error-text", value: PLANTED } }],
  },
];
const AI_ASKS = [
  { type: "tool-call", toolCallId: "c0", toolName: "look", input: {} },
  { type: "tool-error", toolCallId: "c0", error: new Error(PLANTED) },
  { type: "tool-call", ...REFUND },
  ASK,
];

/** Data that frameworks keep for a waiting run, with a secret in them. */
const KEEPERS: [name: string, source: () => unknown][] = [
  ["the AI SDK 5 and 6", () => ({ stream: streamed(AI_ASKS), response: Promise.resolve({ messages: AI_SAID }) })],
  ["the AI SDK 7", () => ({ stream: streamed(AI_ASKS), responseMessages: Promise.resolve(AI_SAID) })],
  [
    "the OpenAI Agents SDK",
    () =>
      Object.assign(streamed([{ type: "run_item_stream_event", name: "tool_approval_requested", item: ASKED_STEP }]), {
        // As written by the class RunState, with the local context, which even the model does not get.
        state: { toString: () => JSON.stringify({ $schemaVersion: "1.0", context: { context: { db: PLANTED } } }) },
      }),
  ],
  [
    "LangGraph",
    () =>
      streamed([
        ["tools", { event: "on_tool_start", toolCallId: "c1", name: "refund", input: "{}" }],
        ["updates", { __interrupt__: [{ id: PLANTED, value: "Go on?" }] }],
      ]),
  ],
  [
    "Mastra",
    () => streamed([{ type: "tool-call-approval", runId: PLANTED, from: "AGENT", payload: { ...REFUND, args: {} } }]),
  ],
  [
    "AG-UI",
    () =>
      streamed([
        { type: "TOOL_CALL_CHUNK", toolCallId: "c1", toolCallName: "refund", delta: "{}" },
        {
          type: "RUN_FINISHED",
          outcome: { type: "interrupt", interrupts: [{ id: PLANTED, toolCallId: "c1", message: "Sure?" }] },
        },
      ]),
  ],
  [
    "an event of ours, which is so large that a thread parses it",
    () => {
      const kept = [PLANTED, "x".repeat(250_000)];
      return streamed([{ type: "tool_approval", data: { id: "c1", tool: "refund", arguments: {}, kept } }]);
    },
  ],
];

for (const [name, source] of KEEPERS) {
  test(`no client reads what ${name} keeps of an answer that waits, and the next run gets it whole`, async (t) => {
    for (const transport of TRANSPORTS) {
      const inputs: RunInput[] = [];
      const run = (input: RunInput) => {
        inputs.push(input);
        return inputs.length === 1 ? source() : Promise.reject(new Error("down"));
      };
      const server = await startServer(t, { agent: { model: undefined, run } as never });
      const { last } = await send.socket(t, server, { message: "Hi" });
      assert.ok(last.type === "done" && last.approvals !== undefined, JSON.stringify(last));
      inputs.length = 0;
      let bytes = await readBytes[transport](t, server, { message: "Hi", run: newRun() });
      // A run that fails before any event returns the state that it received.
      const approvals = last.approvals.map(({ id }) => ({ id, approved: true }));
      for (const wish of [{ approvals }, { message: "Never mind" }]) {
        bytes += await readBytes[transport](t, server, { ...wish, state: last.state, run: newRun() });
        assert.match(JSON.stringify(inputs.at(-1)?.ctx.approvals), new RegExp(PLANTED));
      }
      assert.doesNotMatch(bytes + JSON.stringify(last), /planted/, transport);
    }
  });
}

test("what a framework promises beside an answer that waits has to come within the idle limit", async (t) => {
  const run = () => ({ stream: streamed(AI_ASKS), response: new Promise(() => {}) });
  const server = await startServer(t, {
    agent: { model: undefined, run } as never,
    env: { PARLEY_IDLE_SECONDS: "0.05" },
  });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.type === "error" && last.code, "provider_timeout");
});
