/** Servers used with `compatible/NAME`, each with a stream in its format. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { FOREIGN_HISTORY, historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const compatible = (upstream: UpstreamServer, model = "m") =>
  serve(`compatible/${model}`, { COMPATIBLE_BASE_URL: upstream.url });

/** One answered call with reasoning: returns the turn's events, and the assistant's message in the next request. */
async function callAndReplay(upstream: UpstreamServer) {
  const conversation = open(await compatible(upstream), { tools: [WEATHER] });
  const [turn, next] = await runTools(conversation);
  assert.equal(said(turn, "thinking"), "The user wants the weather.");
  assert.equal(said(next), "ok");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "stop", usage: { input_tokens: 50, output_tokens: 20 } });
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
      { type: "reasoning.encrypted", data: "gAAAAB", id: "rs_1", format: "openai-responses-v1", index: 1 },
    ],
    role: "assistant",
    content: null,
    tool_calls: [call("toolu_01")],
  });
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
  assert.deepEqual(upstream.calls[1]?.json.messages[2], { role: "assistant", content: "9.8, said in <think> tags." });
});

// Ollama's OpenAI-compatible API: requests, events from its streams, and failures.

const ollama = (upstream: UpstreamServer, settings = {}, model = "qwen3:8b") =>
  serve(`ollama/${model}`, { OLLAMA_BASE_URL: upstream.url }, settings);

test("ollama: a text answer streams and brings its usage; no key is sent", async () => {
  await using upstream = await startUpstream(stream("ollama/text"));
  const settings = { reasoningEffort: "low", temperature: 0, maxOutputTokens: 300 } as const;
  const { events } = await ask(open(await ollama(upstream, settings)));
  assert.deepEqual(events, [
    { type: "text", delta: "Hel" },
    { type: "text", delta: "lo 👋" },
    { type: "end", finish: "stop", usage: { input_tokens: 9, output_tokens: 3 } },
  ]);
  const [call] = upstream.calls;
  assert.equal(call?.headers.authorization, undefined);
  assert.deepEqual(call?.json, {
    model: "qwen3:8b",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
    reasoning_effort: "low",
    temperature: 0,
    max_tokens: 300,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("ollama: reasoning and a whole call with an empty id; both go back with an id of ours", async () => {
  await using upstream = await startUpstream(stream("ollama/reasoning-and-call"), ok());
  const [turn] = await runTools(open(await ollama(upstream), { tools: [WEATHER] }));
  assert.equal(said(turn, "thinking"), "The user wants the weather.");
  const [call] = turn.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.match(call?.id ?? "", /^[0-9a-f]{9}$/);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(2), [
    {
      reasoning: "The user wants the weather.",
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: call?.id,
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Lima"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: call?.id, content: "mild" },
  ]);
});

test("ollama: parallel calls stay apart, in one chunk without ids and under an index that comes again", async () => {
  await using upstream = await startUpstream(stream("ollama/parallel-calls"), ok());
  const conversation = open(await ollama(upstream), { tools: [WEATHER] });
  const [turn] = await runTools(conversation);
  const calls = turn.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(
    calls.map((call) => call.name + call.arguments),
    ['get_weather{"city":"Lima"}', 'get_weather{"city":"Oslo"}', "get_time{}"],
  );
  assert.equal(new Set(calls.map((call) => call.id)).size, 3);
  assert.equal(historyOf(conversation.state()).length, 6);
});

test("ollama: another model's history is sent without its PDF, its GIF and its extra fields", async () => {
  await using upstream = await startUpstream(ok());
  const state = { conversation_history: FOREIGN_HISTORY };
  await ask(open(await ollama(upstream), { state }));
  const [, user, assistant] = upstream.calls[0]?.json.messages ?? [];
  assert.equal(
    user.content,
    "Weather here?\n\n[an image (GIF) was attached here, which this model cannot read]\n\n[map.pdf (PDF) was attached here, which this model cannot read]",
  );
  assert.deepEqual(Object.keys(assistant), ["role", "content", "tool_calls"]);
  assert.deepEqual(Object.keys(assistant.tool_calls[0]), ["id", "type", "function"]);
});

const error = (status: number, message: string, type: string) =>
  jsonReply(status, { error: { message, type, param: null, code: null } });

for (const [what, reply, sentence] of [
  [
    "a model that was never pulled",
    error(404, 'model "qwen3:8b" not found, try pulling it first', "not_found_error"),
    "Ollama does not have the model qwen3:8b yet. Where it runs: ollama pull qwen3:8b",
  ],
  [
    "a model without tools",
    error(400, "registry.ollama.ai/library/qwen3:8b does not support tools", "invalid_request_error"),
    "The model qwen3:8b of Ollama does not support tools. Choose another one.",
  ],
  [
    "an effort for a model that cannot think",
    error(400, '"qwen3:8b" does not support thinking', "invalid_request_error"),
    "The model qwen3:8b of Ollama does not support thinking. Choose another one.",
  ],
] as const) {
  test(`ollama: ${what} is an error that says what to do`, async () => {
    await using upstream = await startUpstream(reply);
    const failure = failureOf(await ask(open(await ollama(upstream))));
    assert.deepEqual([failure.code, failure.retryable], ["provider_error", false]);
    assert.equal(failure.detail, sentence);
    assert.equal(upstream.calls.length, 1);
  });
}

test("ollama: where nothing listens, the error asks whether it is running", async () => {
  // Port 1, because another server could by now have the port of a closed one.
  const provider = await serve("ollama/qwen3:8b", { OLLAMA_BASE_URL: "http://127.0.0.1:1" }, {});
  const failure = failureOf(await ask(open(provider)));
  assert.deepEqual([failure.code, failure.retryable], ["provider_error", true]);
  assert.equal(failure.detail, "Ollama could not be reached: is it running?");
});

// A LiteLLM proxy and its providers; chat-completions.test.ts also covers LiteLLM with Claude.

const litellm = (upstream: UpstreamServer, model: string, settings = {}) =>
  serve(`litellm/${model}`, { LITELLM_BASE_URL: upstream.url, LITELLM_API_KEY: "sk-l" }, settings);

test("LiteLLM with Gemini: signatures on message and call go back verbatim, and the usage chunk counts", async () => {
  await using upstream = await startUpstream(stream("chat-completions/litellm-gemini-signature"), ok());
  const conversation = open(await litellm(upstream, "gemini-3-pro"), { tools: [WEATHER] });
  const [turn] = await runTools(conversation);
  assert.equal(said(turn, "thinking"), "I need the weather.");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "stop", usage: { input_tokens: 50, output_tokens: 20 } });
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    reasoning_content: "I need the weather.",
    provider_specific_fields: { thought_signatures: ["CsQBsig"] },
    role: "assistant",
    content: null,
    tool_calls: [
      {
        provider_specific_fields: { thought_signature: "CsQBsig" },
        id: "call_1__thought__CsQBsig",
        type: "function",
        function: { name: "get_weather", arguments: '{"city": "Lima"}' },
      },
    ],
  });
});

test("LiteLLM: thinking blocks of a finished turn go back, its plain reasoning does not", async () => {
  await using upstream = await startUpstream(ok());
  const block = { type: "thinking", thinking: "Hm.", signature: "EqoB" };
  const conversation_history = [
    { role: "user" as const, content: "Hello" },
    { role: "assistant" as const, content: "Hi", reasoning_content: "Hm.", thinking_blocks: [block] },
  ];
  await ask(open(await litellm(upstream, "claude"), { state: { conversation_history } }));
  assert.deepEqual(upstream.calls[0]?.json.messages[2], { thinking_blocks: [block], role: "assistant", content: "Hi" });
});
