import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationState, HistoryMessage } from "../../server/protocol/chat.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { ask, chatProvider, failureOf, open, said } from "../support/upstream-conversation.ts";
import { fixture, jsonReply, startUpstream } from "../support/upstream-server.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
};

const stream = (name: string) => ({ body: [fixture(`chat-completions/${name}`)] });
const text = () => stream("text-and-usage");

function history(state: ConversationState): HistoryMessage[] {
  assert.ok("conversation_history" in state);
  return state.conversation_history as HistoryMessage[];
}

test("a text answer streams, brings its usage, and makes a history", async () => {
  await using upstream = await startUpstream(text());
  const conversation = open(chatProvider(upstream));
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "text", delta: "Hel" },
    { type: "text", delta: "lo 👋" },
    { type: "end", finish: "stop", usage: { input_tokens: 19, output_tokens: 10 } },
  ]);
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello 👋" },
    ],
  });
});

test("the request: system first, tools without $schema, usage asked for, the model's name unchanged", async () => {
  await using upstream = await startUpstream(text());
  const provider = chatProvider(upstream, { model: "anthropic/claude-sonnet-4-5" });
  await ask(open(provider, { tools: [WEATHER] }));
  assert.equal(upstream.calls[0]?.path, "/v1/chat/completions");
  const { name, description } = WEATHER;
  assert.deepEqual(upstream.calls[0]?.json, {
    model: "anthropic/claude-sonnet-4-5",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
    tools: [{ type: "function", function: { name, description, parameters: { type: "object" } } }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("no instructions, no system message; no tools, no tools field", async () => {
  await using upstream = await startUpstream(text());
  await ask(open(chatProvider(upstream), { instructions: "" }));
  assert.deepEqual(upstream.calls[0]?.json.messages, [{ role: "user", content: "Hi" }]);
  assert.equal("tools" in (upstream.calls[0]?.json ?? {}), false);
});

test("attachments travel as image_url and file parts with data URLs", async () => {
  await using upstream = await startUpstream(text());
  await ask(
    open(chatProvider(upstream), {
      message: "What is this?",
      attachments: IMAGE_AND_PDF,
    }),
  );
  assert.deepEqual(upstream.calls[0]?.json.messages[1].content, [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } },
    {
      type: "file",
      file: { filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
    },
  ]);
});

test("parallel calls whose pieces are interleaved by index come whole, in order, and are answered", async () => {
  await using upstream = await startUpstream(stream("two-parallel-calls"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "call", call: { id: "call_a", name: "get_weather", arguments: '{"city":"Lima"}' } },
    { type: "call", call: { id: "call_b", name: "get_time", arguments: '{"city":"Oslo"}' } },
    { type: "end", finish: "stop" },
  ]);
  conversation.answer([
    { id: "call_b", name: "get_time", output: "clock broken", failed: true },
    { id: "call_a", name: "get_weather", output: "mild", failed: false },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(2), [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_a",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Lima"}' },
        },
        {
          id: "call_b",
          type: "function",
          function: { name: "get_time", arguments: '{"city":"Oslo"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call_b", content: "Error: clock broken" },
    { role: "tool", tool_call_id: "call_a", content: "mild" },
  ]);
});

test("a result that begins with the word Error is no failure unless the tool has failed", async () => {
  await using upstream = await startUpstream(stream("two-parallel-calls"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  await ask(conversation);
  conversation.answer([
    { id: "call_a", name: "get_weather", output: "Error: is the name of the album", failed: false },
    { id: "call_b", name: "get_time", output: "clock broken", failed: true },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(3), [
    { role: "tool", tool_call_id: "call_a", content: "Error: is the name of the album" },
    { role: "tool", tool_call_id: "call_b", content: "Error: clock broken" },
  ]);
  const { conversation_history: history = [] } = conversation.state();
  assert.deepEqual(
    history.flatMap((message) => (message.role === "tool" ? [message.is_error ?? false] : [])),
    [false, true],
  );
});

test("[DONE] without a finish_reason is a cut answer, and the history stays as it was", async () => {
  await using upstream = await startUpstream(stream("cut-before-finish"));
  const past: HistoryMessage[] = [
    { role: "user", content: "Before" },
    { role: "assistant", content: "Yes" },
  ];
  const conversation = open(chatProvider(upstream), { state: { conversation_history: past } });
  const turn = await ask(conversation);
  assert.equal(said(turn), "Half an answer");
  assert.equal(failureOf(turn).code, "provider_truncated");
  assert.deepEqual(conversation.state(), { conversation_history: past });
});

test("an error object inside the stream is an error in our words, after what was said before it", async () => {
  await using upstream = await startUpstream(stream("openrouter-error-in-stream"));
  const turn = await ask(open(chatProvider(upstream)));
  assert.equal(said(turn), "Once ");
  assert.equal(failureOf(turn).code, "provider_error");
  assert.doesNotMatch(failureOf(turn).detail, /secret/);
  assert.equal(upstream.calls.length, 1);
});

test("stream_options is given up after one 400 that names it, and the provider remembers", async () => {
  const refusal = jsonReply(400, { error: { message: "Unrecognized field: stream_options" } });
  await using upstream = await startUpstream(refusal, text(), text());
  const provider = chatProvider(upstream);
  assert.equal(said(await ask(open(provider))), "Hello 👋");
  assert.equal(said(await ask(open(provider))), "Hello 👋");
  assert.deepEqual(
    upstream.calls.map((call) => "stream_options" in call.json),
    [true, false, false],
  );
});

test("user messages in a row are sent as one, while the state keeps them apart", async () => {
  const past: HistoryMessage[] = [{ role: "user", content: "First" }];
  await using upstream = await startUpstream(text());
  const conversation = open(chatProvider(upstream), {
    state: { conversation_history: past },
    attachments: [
      {
        type: "image",
        name: "a.gif",
        mime_type: "image/gif",
        url: "data:image/gif;base64,R0lGODlh",
      },
    ],
  });
  await ask(conversation);
  assert.deepEqual(upstream.calls[0]?.json.messages.slice(1), [
    {
      role: "user",
      content: [
        { type: "text", text: "First" },
        { type: "text", text: "Hi" },
        { type: "image_url", image_url: { url: "data:image/gif;base64,R0lGODlh" } },
      ],
    },
  ]);
  assert.equal(history(conversation.state()).length, 3);
  assert.deepEqual(past, [{ role: "user", content: "First" }]);
});
