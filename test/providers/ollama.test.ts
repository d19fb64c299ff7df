/** Ollama's OpenAI-compatible API: what goes up, what comes out of its streams, and how it fails. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { FOREIGN_HISTORY, historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

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

test("ollama: it takes JPEG, PNG and WebP images, and one travels as a data URL", async () => {
  await using upstream = await startUpstream(ok());
  const provider = await ollama(upstream, {}, "llava");
  assert.deepEqual(provider.mediaTypes, ["image/jpeg", "image/png", "image/webp"]);
  const attachments = [
    {
      type: "image",
      name: "a.png",
      mime_type: "image/png",
      url: "data:image/png;base64,iVBORw0=",
    } as const,
  ];
  await ask(open(provider, { attachments }));
  assert.deepEqual(upstream.calls[0]?.json.messages[1].content, [
    { type: "text", text: "Hi" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } },
  ]);
});

test("ollama: another model's history is sent without its PDF, its GIF and its extra fields", async () => {
  await using upstream = await startUpstream(ok());
  const state = { conversation_history: FOREIGN_HISTORY };
  await ask(open(await ollama(upstream), { state }));
  const [, user, assistant] = upstream.calls[0]?.json.messages ?? [];
  assert.deepEqual(user.content, [
    { type: "text", text: "Weather here?" },
    { type: "text", text: "[an image (GIF) was attached here, which this model cannot read]" },
    { type: "text", text: "[map.pdf (PDF) was attached here, which this model cannot read]" },
  ]);
  assert.deepEqual(Object.keys(assistant), ["role", "content", "tool_calls"]);
  assert.deepEqual(Object.keys(assistant.tool_calls[0]), ["id", "type", "function"]);
});

test("ollama: arguments that are no JSON object are wrapped, for it parses them as one", async () => {
  const call = (id: string, written: string) => ({
    id,
    type: "function" as const,
    function: { name: "get_weather", arguments: written },
  });
  const history = [
    { role: "user" as const, content: "Weather?" },
    { role: "assistant" as const, content: null, tool_calls: [call("a", "[1]"), call("b", "{")] },
    { role: "tool" as const, tool_call_id: "a", content: "x" },
    { role: "tool" as const, tool_call_id: "b", content: "x" },
  ];
  await using upstream = await startUpstream(ok());
  await ask(open(await ollama(upstream), { state: { conversation_history: history } }));
  const calls: { function: { arguments: string } }[] = upstream.calls[0]?.json.messages[2].tool_calls;
  assert.deepEqual(
    calls.map((sent) => JSON.parse(sent.function.arguments)),
    [{ unparsed_arguments: "[1]" }, { unparsed_arguments: "{" }],
  );
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
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const provider = await serve("ollama/qwen3:8b", {
    OLLAMA_BASE_URL: `http://127.0.0.1:${port}/v1`,
  });
  const failure = failureOf(await ask(open(provider)));
  assert.deepEqual([failure.code, failure.retryable], ["provider_error", true]);
  assert.equal(failure.detail, "Ollama could not be reached: is it running?");
});

test("ollama: a stream without its end is truncated, and an error inside it is an error", async () => {
  const begun = { choices: [{ index: 0, delta: { content: "Half" }, finish_reason: null }] };
  await using upstream = await startUpstream(
    { body: [`data: ${JSON.stringify(begun)}\n\n`] },
    {
      body: [
        `data: ${JSON.stringify(begun)}\n\n`,
        'data: {"error":{"message":"llama runner process has terminated","type":"api_error"}}\n\n',
      ],
    },
  );
  const provider = await ollama(upstream);
  assert.equal(failureOf(await ask(open(provider))).code, "provider_truncated");
  const broken = await ask(open(provider));
  assert.equal(said(broken), "Half");
  assert.equal(failureOf(broken).code, "provider_error");
});
