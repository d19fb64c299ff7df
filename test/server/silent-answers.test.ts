/** A model that says nothing after tool calls: the run ends, no tool runs twice, and the conversation continues. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentDefinition } from "../../server/agent/define.ts";
import { textContent } from "../../server/providers/history.ts";
import { frames } from "../support/bedrock.ts";
import { onEveryTransport, send, typesOf } from "../support/chat-transports.ts";
import { type Step, think } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { eventStream, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const SENTENCE = "I have nothing to add.";

const searched: Step[] = [
  { type: "hosted_call", call: { id: "ws_1", name: "web_search", arguments: "{}" } },
  {
    type: "hosted_result",
    answer: { id: "ws_1", name: "web_search", content: textContent("found"), failed: false },
    durationMs: 1,
  },
];

test("a model that says nothing after a tool of its provider is done", async (t) => {
  const { sse } = await onEveryTransport(t, () => ({ turns: [searched] }), { message: "Hi" });
  assert.deepEqual(typesOf(sse.events), ["tool_call", "tool_result", "token", "done"]);
  assert.equal(sse.last.data, SENTENCE);
});

test("a first turn of thoughts alone, which did nothing, is an error to be tried again", async (t) => {
  const { sse } = await onEveryTransport(t, () => ({ turns: [[think("Hm.")]] }), { message: "Hi" });
  assert.deepEqual(sse.last.type === "error" && [sse.last.code, sse.last.retryable], ["provider_error", true]);
});

// For each API: a tool call, an empty answer, and the next message, whose request must be valid for the API.

interface Wire {
  agent: Partial<AgentDefinition>;
  env: (url: string) => Record<string, string>;
  call: UpstreamReply;
  silence: UpstreamReply;
  answer: UpstreamReply;
  /** Like `sent`, for requests that continue from tool results: without a message, and with one. */
  goesOn: [alone: unknown[], withMessage: unknown[]];
  /** A short form of each message in a request. */
  // biome-ignore lint/suspicious/noExplicitAny: each API has a body of its own.
  shape(body: any): unknown[];
  sent: unknown[];
}

const CALL = { id: "call_1", name: "echo", args: { text: "a" } };
const root = (url: string) => url.replace(/\/v1$/, "");
const blocks = ({ role, content }: { role: string; content: object[] }) =>
  `${role}: ${content.flatMap((block) => ("type" in block ? [block.type] : Object.keys(block))).join(", ")}`;
const streamed = (...events: object[]): UpstreamReply => ({ body: [eventStream(...events)] });

const chat = {
  call: CHAT_COMPLETIONS.calls([CALL]),
  silence: { body: [eventStream({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]")] },
  answer: CHAT_COMPLETIONS.text("Yes."),
  shape: ({ messages }: { messages: { role: string }[] }) => messages.map(({ role }) => role),
  sent: ["user", "assistant", "tool", "assistant", "user"],
  goesOn: [
    ["user", "assistant", "tool"],
    ["user", "assistant", "tool", "user"],
  ] as Wire["goesOn"],
};

const completed = (id: string) => ({ type: "response.completed", response: { id, status: "completed", output: [] } });

const anthropicStart = { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } };
const anthropicEnd = (stop_reason: string) => [
  { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
];
const claudeBlock = (stop_reason: string, content_block: object) =>
  streamed(anthropicStart, { type: "content_block_start", index: 0, content_block }, ...anthropicEnd(stop_reason));

const bedrockEnd = (stopReason: string) => [
  { messageStop: { stopReason } },
  { metadata: { usage: { inputTokens: 1, outputTokens: 1 } } },
];

const WIRES: Record<string, Wire> = {
  "Chat Completions": { ...chat, agent: { model: CHAT_COMPLETIONS.model }, env: CHAT_COMPLETIONS.env },
  Gemini: {
    ...chat,
    agent: { model: "gemini/gemini-3-flash" },
    env: (url) => ({ GEMINI_API_KEY: "AIza", GEMINI_BASE_URL: url }),
  },
  Responses: {
    agent: { model: RESPONSES.model },
    env: RESPONSES.env,
    call: RESPONSES.calls([CALL], "resp_1"),
    silence: { body: [eventStream(completed("resp_2"))] },
    answer: RESPONSES.text("Yes.", "resp_3"),
    shape: ({ previous_response_id, input }) => [
      previous_response_id,
      ...input.map(({ role }: { role: string }) => role),
    ],
    sent: ["resp_2", "user"],
    goesOn: [
      ["resp_1", undefined],
      ["resp_1", undefined, "user"],
    ],
  },
  "Responses without store, after a search": {
    agent: { model: RESPONSES.model, store: false, hostedTools: ["web_search"] },
    env: RESPONSES.env,
    call: RESPONSES.calls([CALL], "resp_1"),
    silence: {
      body: [
        eventStream(
          {
            type: "response.output_item.done",
            output_index: 0,
            item: { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "a" } },
          },
          {
            type: "response.output_text.delta",
            output_index: 1,
            delta: " \n",
          },
          {
            type: "response.output_item.done",
            output_index: 1,
            item: { type: "message", id: "msg_1", content: [{ type: "output_text", text: " \n" }] },
          },
          completed("resp_2"),
        ),
      ],
    },
    answer: RESPONSES.text("Yes.", "resp_3"),
    shape: ({ input }) =>
      input.map(({ type, role, content }: Record<string, string>) => (role === "assistant" ? content : (type ?? role))),
    sent: ["user", "function_call", "function_call_output", SENTENCE, "web_search_call", "user"],
    goesOn: [
      ["user", "function_call", "function_call_output"],
      ["user", "function_call", "function_call_output", "user"],
    ],
  },
  Anthropic: {
    agent: { model: "anthropic/claude-sonnet-5" },
    env: (url) => ({ ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: root(url) }),
    call: claudeBlock("tool_use", { type: "tool_use", id: "c1", name: "echo", input: CALL.args }),
    silence: claudeBlock("end_turn", { type: "thinking", thinking: "Done.", signature: "s" }),
    answer: claudeBlock("end_turn", { type: "text", text: "Yes." }),
    shape: ({ messages }) => messages.map(blocks),
    sent: ["user: text", "assistant: tool_use", "user: tool_result", "assistant: thinking, text", "user: text"],
    goesOn: [
      ["user: text", "assistant: tool_use", "user: tool_result"],
      ["user: text", "assistant: tool_use", "user: tool_result, text"],
    ],
  },
  Bedrock: {
    agent: { model: "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0" },
    env: (url) => ({ AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "key", BEDROCK_BASE_URL: root(url) }),
    call: frames(
      { messageStart: { role: "assistant" } },
      { contentBlockStart: { contentBlockIndex: 0, start: { toolUse: { toolUseId: "c1", name: "echo" } } } },
      { contentBlockDelta: { contentBlockIndex: 0, delta: { toolUse: { input: '{"text":"a"}' } } } },
      { contentBlockStop: { contentBlockIndex: 0 } },
      ...bedrockEnd("tool_use"),
    ),
    silence: frames({ messageStart: { role: "assistant" } }, ...bedrockEnd("end_turn")),
    answer: frames(
      { messageStart: { role: "assistant" } },
      { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Yes." } } },
      ...bedrockEnd("end_turn"),
    ),
    shape: ({ messages }) => messages.map(blocks),
    sent: ["user: text", "assistant: toolUse", "user: toolResult", "assistant: text", "user: text"],
    goesOn: [
      ["user: text", "assistant: toolUse", "user: toolResult"],
      ["user: text", "assistant: toolUse", "user: toolResult, text"],
    ],
  },
};

for (const [name, { agent, env, call, silence, answer, shape, sent }] of Object.entries(WIRES)) {
  test(`${name}: the message after a silent answer goes out in a form that the API takes`, async (t) => {
    await using upstream = await startUpstream(call, silence, answer);
    let runs = 0;
    const counted = { ...echo, execute: () => String(++runs) };
    const server = await startServer(t, {
      agent: { ...agent, tools: [counted] },
      env: env(upstream.url),
    });
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type, last.data], ["done", SENTENCE]);
    const next = await send.sse(t, server, { message: "And?", state: last.state });
    assert.equal(next.last.data, "Yes.", JSON.stringify(next.last));
    assert.deepEqual(shape(upstream.calls[2]?.json), sent);
    assert.equal(runs, 1);
  });
}

for (const [name, { agent, env, call, answer, shape, goesOn }] of Object.entries(WIRES)) {
  test(`${name}: what follows a failure after tools goes out in a form that the API takes`, async (t) => {
    await using upstream = await startUpstream(call, jsonReply(400, { error: { message: "No." } }), answer);
    const server = await startServer(t, { agent: { ...agent, tools: [echo] }, env: env(upstream.url) });
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.ok(last.type === "error" && last.continue === true, JSON.stringify(last));
    const next = await send.sse(t, server, { continue: true, state: last.state });
    assert.equal(next.last.data, "Yes.", JSON.stringify(next.last));
    assert.deepEqual(shape(upstream.calls[2]?.json), goesOn[0]);
  });

  for (const approved of [true, false]) {
    test(`${name}: so does what follows ${approved ? "an approval" : "a decline with a message"}`, async (t) => {
      await using upstream = await startUpstream(call, answer);
      const tools = [{ ...echo, needsApproval: true }];
      const server = await startServer(t, { agent: { ...agent, tools }, env: env(upstream.url) });
      const { last } = await send.sse(t, server, { message: "Hi" });
      assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
      const approvals = (last.approvals ?? []).map(({ id }) => ({ id, approved }));
      const message = approved ? {} : { message: "Why?" };
      const next = await send.sse(t, server, { ...message, approvals, state: last.state });
      assert.equal(next.last.data, "Yes.", JSON.stringify(next.last));
      assert.deepEqual(shape(upstream.calls[1]?.json), goesOn[approved ? 0 : 1]);
    });
  }
}
