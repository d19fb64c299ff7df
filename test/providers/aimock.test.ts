/**
 * Every provider against an independent fake of its API in strict mode, which can find mistakes that our own scripts share. One
 * script serves all providers.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { textContent } from "../../server/providers/history.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { CLAUDE } from "../support/bedrock.ts";
import { serve, WEATHER } from "../support/chat-servers.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";

interface Row {
  model: string;
  settings?: ModelSettings;
  env(url: string): Record<string, string>;
}

const PROVIDERS: Readonly<Record<string, Row>> = {
  openai: { model: "openai/gpt-5.2", env: (url) => ({ OPENAI_API_KEY: "mock", OPENAI_BASE_URL: `${url}/v1` }) },
  "openai, store: false": {
    model: "openai/gpt-5.2",
    settings: { store: false },
    env: (url) => ({ OPENAI_API_KEY: "mock", OPENAI_BASE_URL: `${url}/v1` }),
  },
  anthropic: {
    model: "anthropic/claude-sonnet-4-5",
    // With thinking, because strict mode then requires the thinking in a tool loop to be sent back.
    settings: { reasoningEffort: "medium" },
    env: (url) => ({ ANTHROPIC_API_KEY: "mock", ANTHROPIC_BASE_URL: url }),
  },
  gemini: {
    model: "gemini/gemini-2.5-flash",
    env: (url) => ({ GEMINI_API_KEY: "mock", GEMINI_BASE_URL: `${url}/v1beta/openai/` }),
  },
  bedrock: {
    model: `bedrock/${CLAUDE}`,
    env: (url) => ({ AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "mock", BEDROCK_BASE_URL: url }),
  },
  vertex: {
    model: "vertex/gemini-2.5-flash",
    // The fake lacks Vertex AI's own path.
    env: (url) => ({ VERTEX_ACCESS_TOKEN: "mock", VERTEX_BASE_URL: `${url}/v1` }),
  },
  ollama: { model: "ollama/qwen3:8b", env: (url) => ({ OLLAMA_BASE_URL: `${url}/v1` }) },
  litellm: { model: "litellm/gpt-5.2", env: (url) => ({ LITELLM_BASE_URL: `${url}/v1` }) },
  compatible: { model: "compatible/qwen3", env: (url) => ({ COMPATIBLE_BASE_URL: `${url}/v1` }) },
};

const mock = new LLMock({ port: 0, strict: true });

before(async () => {
  const call = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });
  mock.onMessage("hello", { content: "Hello from the fake.", reasoning: "A greeting." });
  mock.addFixture({
    match: { userMessage: "weather", hasToolResult: false },
    response: { reasoning: "Two cities.", toolCalls: [call("Lima"), call("Oslo")] },
  });
  mock.addFixture({
    // A continued response only receives tool results: there is no user message to match.
    match: { hasToolResult: true },
    response: { content: "Mild in Lima, cold in Oslo." },
  });
  await mock.start();
});

after(() => mock.stop());

for (const [name, { model, env, settings }] of Object.entries(PROVIDERS)) {
  const provider = () => serve(model, env(mock.url), settings);

  test(`aimock as ${name}: text, thinking, and the end with its usage`, async () => {
    const turn = await ask(open(await provider(), { message: "hello" }));
    assert.equal(turn.error, undefined);
    assert.equal(said(turn), "Hello from the fake.");
    assert.equal(said(turn, "thinking"), "A greeting.");
    const end = turn.events.at(-1);
    assert.ok(end?.type === "end" && end.finish === "stop");
    assert.equal(typeof end.usage?.output_tokens, "number");
  });

  test(`aimock as ${name}: two calls, their answers, and a second message that continues`, async () => {
    const served = await provider();
    const conversation = open(served, { message: "weather", tools: [WEATHER] });
    const first = await ask(conversation);
    assert.equal(said(first, "thinking"), "Two cities.");
    const calls = first.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
    assert.deepEqual(
      calls.map((call) => JSON.parse(call.arguments)),
      [{ city: "Lima" }, { city: "Oslo" }],
    );
    conversation.answer(calls.map(({ id, name }) => ({ id, name, content: textContent("ok"), failed: false })));
    assert.equal(said(await ask(conversation)), "Mild in Lima, cold in Oslo.");
    const state = conversation.state();
    assert.deepEqual(Object.keys(state), [served.stateKind]);
    const next = await ask(open(await provider(), { message: "hello", tools: [WEATHER], state }));
    assert.equal(said(next), "Hello from the fake.");
  });
}
