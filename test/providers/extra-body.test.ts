/** `extraBody`: what an author may put into each request, and what stops the start. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { bedrock, stream } from "../support/bedrock.ts";
import { ok, serve, WEATHER } from "../support/chat-servers.ts";
import { ask, open } from "../support/upstream-conversation.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const SEARCH = { type: "provider_search" };
const names = (tools: { name?: string; function?: { name: string }; type?: string }[]) =>
  tools.map(({ name, function: fn, type }) => name ?? fn?.name ?? type);

for (const [model, env, reply] of [
  ["openai/gpt-5.2", "OPENAI", { body: [fixture("responses/text")] }],
  ["litellm/m", "LITELLM", ok()],
  ["gemini/gemini-3-flash", "GEMINI", ok()],
  ["anthropic/claude-sonnet-5", "ANTHROPIC", { body: [fixture("anthropic/text")] }],
] as const) {
  const served = (url: string, settings: ModelSettings) =>
    serve(model, { [`${env}_BASE_URL`]: url, [`${env}_API_KEY`]: "k" }, settings);

  test(`${model}: tools of extraBody stand beside the agent's`, async () => {
    await using upstream = await startUpstream(reply);
    const provider = await served(upstream.url, { extraBody: { tools: [SEARCH] } });
    await ask(open(provider, { tools: [WEATHER] }));
    assert.deepEqual(names(upstream.calls[0]?.json.tools), ["get_weather", "provider_search"]);
  });

  test(`${model}: tools of extraBody are the only ones of an agent without tools`, async () => {
    await using upstream = await startUpstream(reply);
    await ask(open(await served(upstream.url, { extraBody: { tools: [SEARCH] } })));
    assert.deepEqual(upstream.calls[0]?.json.tools, [SEARCH]);
  });
}

async function sentTo(model: string, env: string, body: string, settings: ModelSettings) {
  await using upstream = await startUpstream({ body: [body] });
  const address = { [`${env}_BASE_URL`]: upstream.url, [`${env}_API_KEY`]: "k" };
  await ask(open(await serve(model, address, settings)));
  return upstream.calls[0]?.json;
}

test("OpenAI: what extraBody wants included is added, and its reasoning keeps the effort and the summary", async () => {
  const sent = await sentTo("openai/gpt-5.2", "OPENAI", fixture("responses/text"), {
    reasoningEffort: "high",
    store: false,
    hostedTools: [{ type: "web_search" }],
    extraBody: { include: ["message.output_text.logprobs"], reasoning: { summary: "detailed" } },
  });
  assert.deepEqual(sent.include, [
    "web_search_call.action.sources",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
  ]);
  assert.deepEqual(sent.reasoning, { summary: "detailed", effort: "high" });
});

test("Claude: a format in extraBody stands beside the effort, at Anthropic and on Bedrock", async () => {
  const format = { type: "json_schema", schema: {} };
  const settings = {
    reasoningEffort: "low",
    extraBody: { output_config: { format } },
  } as const;
  const body = fixture("anthropic/text");
  const sent = await sentTo("anthropic/claude-sonnet-5", "ANTHROPIC", body, settings);
  assert.deepEqual(sent.output_config, { effort: "low", format });
  await using upstream = await startUpstream(stream("text"));
  const model = "anthropic.claude-sonnet-5-v1:0";
  await ask(open(await bedrock(upstream, { model, settings })));
  const fields = upstream.calls[0]?.json.additionalModelRequestFields;
  assert.deepEqual(fields.output_config, { effort: "low", format });
});

for (const [field, sentence] of [
  ["model", "set model of the agent instead"],
  ["system", "set instructions of the agent instead"],
  ["instructions", "set instructions of the agent instead"],
  ["messages", "the messages are those of the conversation"],
  ["input", "the input is that of the conversation"],
  ["previous_response_id", "it is the state of the conversation"],
  ["conversation", "it would keep a state beside that of the conversation"],
  ["stream", "answers are always streamed"],
  ["n", "a message has one answer"],
] as const) {
  test(`extraBody.${field} stops the start`, async () => {
    const env = { COMPATIBLE_BASE_URL: "http://127.0.0.1:9/v1" };
    await assert.rejects(serve("compatible/m", env, { extraBody: { [field]: true } }), {
      name: "ConfigError",
      message: `extraBody.${field} cannot be set: ${sentence}.`,
    });
  });
}
