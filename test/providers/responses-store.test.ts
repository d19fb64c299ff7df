/** OpenAI with `store: false`: the client keeps the conversation. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHistory } from "../../server/agent/check-history.ts";
import type { ConversationState } from "../../server/protocol/chat.ts";
import type { ConversationStart, Provider } from "../../server/providers/provider.ts";
import { onEveryTransport } from "../support/chat-transports.ts";
import { ask, failureOf, open, responsesProvider, said } from "../support/upstream-conversation.ts";
import { eventStream, fixture, jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const calls = () => ({ body: [fixture("responses/encrypted-reasoning-and-calls")] });
const text = () => ({ body: [fixture("responses/encrypted-reasoning-and-text")] });

function stateless(upstream: UpstreamServer, model = "gpt-5.2"): Provider {
  return responsesProvider(upstream, { model, settings: { store: false } });
}

const ANSWERS = [
  { id: "call_Lima", name: "get_weather", output: "mild", failed: false },
  { id: "call_Oslo", name: "get_weather", output: "no such city", failed: true },
];

/** One whole message with its two tool calls; the state as a client would send it back. */
async function toolLoop(upstream: UpstreamServer, provider: Provider): Promise<ConversationState> {
  upstream.reply(calls(), text());
  const conversation = open(provider, { message: "Lima and Oslo?", tools: [WEATHER] });
  assert.equal((await ask(conversation)).error, undefined);
  conversation.answer(ANSWERS);
  assert.equal((await ask(conversation)).error, undefined);
  const state: ConversationState = JSON.parse(JSON.stringify(conversation.state()));
  assert.ok("conversation_history" in state);
  checkHistory(state.conversation_history, { maxHistoryItems: 100, maxHistoryBytes: 100_000 });
  return state;
}

/** What must go upstream for that message: in the model's order, without ids, each text in its phase. */
const SENT_AGAIN = [
  { role: "user", content: [{ type: "input_text", text: "Lima and Oslo?" }] },
  {
    type: "reasoning",
    summary: [{ type: "summary_text", text: "**Planning**" }],
    encrypted_content: "gAAAA-first",
  },
  { role: "assistant", content: "Let me look.", phase: "commentary" },
  { type: "reasoning", summary: [], encrypted_content: "gAAAA-second" },
  ...["Lima", "Oslo"].map((city) => ({
    type: "function_call",
    call_id: `call_${city}`,
    name: "get_weather",
    arguments: `{"city":"${city}"}`,
  })),
  { type: "function_call_output", call_id: "call_Lima", output: "mild" },
  { type: "function_call_output", call_id: "call_Oslo", output: "Error: no such city" },
];

test("nothing is stored: the request says so, asks for encrypted reasoning and names no response", async () => {
  await using upstream = await startUpstream(text());
  const provider = stateless(upstream);
  assert.equal(provider.stateKind, "conversation_history");
  await ask(open(provider, { tools: [WEATHER] }));
  assert.deepEqual(upstream.calls[0]?.json, {
    model: "gpt-5.2",
    instructions: "Be brief.",
    input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    tools: [{ type: "function", ...WEATHER, strict: false }],
    include: ["reasoning.encrypted_content"],
    reasoning: { summary: "auto" },
    store: false,
    stream: true,
  });
});

test("in a tool loop the reasoning goes back encrypted and in the model's order", async () => {
  await using upstream = await startUpstream();
  await toolLoop(upstream, stateless(upstream));
  assert.deepEqual(upstream.calls[1]?.json.input, SENT_AGAIN);
});

test("the next message brings the whole conversation, after it was stored as JSON", async () => {
  await using upstream = await startUpstream();
  const provider = stateless(upstream);
  const state = await toolLoop(upstream, provider);
  upstream.reply(text());
  const next = open(provider, { state, message: "Sure?" });
  assert.equal((await ask(next)).error, undefined);
  assert.deepEqual(upstream.calls[2]?.json.input, [
    ...SENT_AGAIN,
    { type: "reasoning", summary: [], encrypted_content: "gAAAA-third" },
    { role: "assistant", content: "Mild in Lima, cold in Oslo.", phase: "final_answer" },
    { role: "user", content: [{ type: "input_text", text: "Sure?" }] },
  ]);
});

test("images and PDFs travel in this API's form, now and in later messages", async () => {
  await using upstream = await startUpstream(text(), text());
  const provider = stateless(upstream);
  const attachments: ConversationStart["attachments"] = [
    { type: "image", name: "a.png", mime_type: "image/png", url: "data:image/png;base64,iVBORw0=" },
    {
      type: "file",
      name: "b.pdf",
      mime_type: "application/pdf",
      url: "data:application/pdf;base64,JVBERi0=",
    },
  ];
  const first = open(provider, { message: "", attachments });
  await ask(first);
  await ask(open(provider, { state: first.state(), message: "And now?" }));
  const content = [
    { type: "input_image", image_url: "data:image/png;base64,iVBORw0=", detail: "auto" },
    { type: "input_file", filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
  ];
  assert.deepEqual(upstream.calls[0]?.json.input, [{ role: "user", content }]);
  assert.deepEqual(upstream.calls[1]?.json.input[0], { role: "user", content });
});

test("an answer without reasoning leaves a plain message, and a model without it is not asked", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/text")] });
  const conversation = open(stateless(upstream, "gpt-4o"));
  await ask(conversation);
  assert.equal(upstream.calls[0]?.json.include, undefined);
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Grüß Gott 👋!" },
    ],
  });
});

test("reasoning that cannot be decrypted any more is left out, once, and the conversation goes on", async () => {
  await using upstream = await startUpstream();
  const provider = stateless(upstream);
  const state = await toolLoop(upstream, provider);
  const refusal = jsonReply(400, { error: { code: "invalid_encrypted_content" } });
  upstream.reply(refusal, text(), refusal, refusal);
  assert.equal((await ask(open(provider, { state }))).error, undefined);
  const types = (call: number) =>
    upstream.calls[call]?.json.input.map((item: { type?: string }) => item.type ?? "message");
  assert.equal(types(2).filter((type: string) => type === "reasoning").length, 3);
  assert.deepEqual(
    types(3),
    types(2).filter((type: string) => type !== "reasoning"),
  );
  assert.equal(failureOf(await ask(open(provider, { state }))).code, "invalid_request");
  assert.equal(upstream.calls.length, 6);
});

test("an answer that only the final snapshot brings is said and kept", async () => {
  const output = [{ type: "message", content: [{ type: "output_text", text: "All at once." }] }];
  const response = { id: "resp_1", status: "completed", output };
  await using upstream = await startUpstream({
    body: [eventStream({ type: "response.completed", response })],
  });
  const conversation = open(stateless(upstream));
  assert.equal(said(await ask(conversation)), "All at once.");
  const state = conversation.state();
  assert.ok("conversation_history" in state);
  assert.equal(state.conversation_history.at(-1)?.content, "All at once.");
});

test("a stream that is cut changes nothing of the state", async () => {
  const whole = fixture("responses/encrypted-reasoning-and-text");
  const body = whole.slice(0, whole.indexOf("event: response.completed"));
  await using upstream = await startUpstream({ body: [body] });
  const conversation = open(stateless(upstream));
  assert.equal(failureOf(await ask(conversation)).code, "provider_truncated");
  assert.deepEqual(conversation.state(), {});
});

test("the end of a run counts the tokens of all its requests, on every transport", async (t) => {
  const upstreams: UpstreamServer[] = [];
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
  const { sse } = await onEveryTransport(
    t,
    async () => {
      const upstream = await startUpstream(calls(), text());
      upstreams.push(upstream);
      const tools = [{ ...WEATHER, execute: () => "mild" }];
      return {
        agent: { model: "openai/gpt-5.2", store: false, tools },
        env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url },
      };
    },
    { message: "Lima and Oslo?" },
  );
  assert.ok(sse.last.type === "done");
  assert.deepEqual(sse.last.usage, { input_tokens: 70 + 120, output_tokens: 40 + 12 });
  for (const { calls: sent } of upstreams) {
    assert.deepEqual(
      sent.map(({ json }) => json.store),
      [false, false],
    );
  }
});
