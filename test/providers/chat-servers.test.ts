/** The servers that people point `compatible/NAME` at, each with a stream as it sends it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const compatible = (upstream: UpstreamServer, model = "m") =>
  serve(`compatible/${model}`, { COMPATIBLE_BASE_URL: upstream.url });

/** One call with reasoning, answered: the turn's events, and the assistant's message as it went back. */
async function callAndReplay(upstream: UpstreamServer) {
  const conversation = open(await compatible(upstream), { tools: [WEATHER] });
  const [turn, next] = await runTools(conversation);
  assert.equal(said(turn, "thinking"), "The user wants the weather.");
  assert.equal(said(next), "ok");
  assert.deepEqual(turn.events.at(-1), {
    type: "end",
    finish: "stop",
    usage: { input_tokens: 50, output_tokens: 20 },
  });
  return { turn, sent: upstream.calls[1]?.json.messages[2], conversation };
}

const call = (id: string, written = '{"city":"Lima"}') => ({
  id,
  type: "function",
  function: { name: "get_weather", arguments: written },
});

test("llama.cpp: reasoning_content, a call in pieces under a long id, and usage beside its timings", async () => {
  await using upstream = await startUpstream(stream("chat-completions/llama-cpp-reasoning-and-call"), ok());
  const { sent } = await callAndReplay(upstream);
  assert.deepEqual(sent, {
    reasoning_content: "The user wants the weather.",
    role: "assistant",
    content: null,
    tool_calls: [call("6CQx3cVnWkA0Zf7rD1m2LbT9uYhS4pEo")],
  });
});

test("Groq: reasoning, and usage inside x_groq", async () => {
  await using upstream = await startUpstream(stream("chat-completions/groq-reasoning-and-call"), ok());
  const { sent } = await callAndReplay(upstream);
  assert.equal(sent.reasoning, "The user wants the weather.");
  assert.deepEqual(sent.tool_calls, [call("fc_0f2a")]);
});

test("Groq: an error inside x_groq is an error, although the finish reason says stop", async () => {
  await using upstream = await startUpstream(stream("chat-completions/groq-stopped-early"));
  const turn = await ask(open(await compatible(upstream)));
  assert.equal(said(turn), "Once ");
  assert.equal(failureOf(turn).code, "provider_error");
  assert.doesNotMatch(failureOf(turn).detail, /secret/);
});

test("OpenRouter: comments are passed over, and reasoning_details go back whole, with their signature", async () => {
  await using upstream = await startUpstream(stream("chat-completions/openrouter-reasoning-details"), ok());
  const { sent } = await callAndReplay(upstream);
  assert.deepEqual(sent, {
    reasoning: "The user wants the weather.",
    reasoning_details: [
      {
        format: "anthropic-claude-v1",
        index: 0,
        type: "reasoning.text",
        text: "The user wants the weather.",
        signature: "EqoBCkgIARAB",
      },
      {
        type: "reasoning.encrypted",
        data: "gAAAAB",
        id: "rs_1",
        format: "openai-responses-v1",
        index: 1,
      },
    ],
    role: "assistant",
    content: null,
    tool_calls: [call("toolu_01")],
  });
});

test("OpenRouter: an error inside a choice is an error of its kind", async () => {
  await using upstream = await startUpstream(stream("chat-completions/openrouter-error-in-choice"));
  const turn = await ask(open(await compatible(upstream)));
  assert.equal(said(turn), "Once ");
  assert.equal(failureOf(turn).code, "provider_rate_limited");
  assert.doesNotMatch(failureOf(turn).detail, /secret/);
});

test("Mistral: thinking parts inside the content are thinking, and go back as parts while tools are used", async () => {
  await using upstream = await startUpstream(stream("chat-completions/mistral-thinking-and-call"), ok(), ok());
  const { turn, sent, conversation } = await callAndReplay(upstream);
  assert.equal(said(turn), "Let me look.");
  const thinking = [{ type: "text", text: "The user wants the weather." }];
  assert.deepEqual(sent, {
    role: "assistant",
    content: [
      { type: "thinking", thinking, closed: true },
      { type: "text", text: "Let me look." },
    ],
    tool_calls: [call("D681PevKs", '{"city": "Lima"}')],
  });
  assert.deepEqual(historyOf(conversation.state())[1], {
    thinking_parts: [{ type: "thinking", thinking, closed: true }],
    role: "assistant",
    content: "Let me look.",
    tool_calls: sent.tool_calls,
  });
});

test("Mistral: of thinking parts that a client holds, nothing goes on but thinking", async () => {
  await using upstream = await startUpstream(ok());
  const image = { type: "image_url", image_url: { url: "http://169.254.169.254/" } };
  const conversation_history = [
    { role: "user" as const, content: "Weather?" },
    {
      role: "assistant" as const,
      content: "Let me look.",
      thinking_parts: [image, { type: "thinking", thinking: [] }],
      tool_calls: [{ ...call("D681PevKs"), type: "function" as const }],
    },
    { role: "tool" as const, tool_call_id: "D681PevKs", content: "mild" },
  ];
  await ask(open(await compatible(upstream), { state: { conversation_history } }));
  assert.deepEqual(upstream.calls[0]?.json.messages[2].content, [
    { type: "thinking", thinking: [] },
    { type: "text", text: "Let me look." },
  ]);
});

test("DeepSeek: reasoning goes back from turns with tools, also in later messages, and from no others", async () => {
  await using upstream = await startUpstream(
    stream("chat-completions/deepseek-reasoning-and-call"),
    stream("chat-completions/deepseek-reasoning-and-text"),
    stream("chat-completions/deepseek-reasoning-and-text"),
    ok(),
  );
  const provider = await compatible(upstream, "deepseek-v4-pro");
  const first = open(provider, { tools: [WEATHER] });
  await runTools(first);
  const second = open(provider, { state: first.state(), message: "And now?" });
  assert.equal(said(await ask(second), "thinking"), "Mild is an answer.");
  await ask(open(provider, { state: second.state(), message: "Thanks" }));
  const reasoning = (upstream.calls[3]?.json.messages ?? [])
    .filter((message: { role: string }) => message.role === "assistant")
    .map((message: { reasoning_content?: string }) => message.reasoning_content);
  assert.deepEqual(reasoning, ["The user wants the weather.", "Mild is an answer.", undefined]);
});

test("<think> tags at the start of the content are thinking, however the chunks are cut", async () => {
  await using upstream = await startUpstream(stream("chat-completions/think-tags"), ok());
  const provider = await compatible(upstream);
  const conversation = open(provider);
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), "\nIs 9.8 < 9.11? No.\n");
  assert.equal(said(turn), "9.8, said in <think> tags.");
  await ask(open(provider, { state: conversation.state() }));
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    role: "assistant",
    content: "9.8, said in <think> tags.",
  });
});
