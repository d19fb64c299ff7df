/**
 * Every provider against somebody else's idea of its API, in its strict mode and with its faults: what our own
 * scripts cannot show wrong. One script serves them all.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { textContent } from "../../server/providers/history.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { CLAUDE } from "../support/bedrock.ts";
import { serve, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";

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
    // With thinking, since strict mode then demands the thinking of a tool loop back.
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
    // The fake does not know Vertex AI's own path.
    env: (url) => ({ VERTEX_ACCESS_TOKEN: "mock", VERTEX_BASE_URL: `${url}/v1` }),
  },
  ollama: { model: "ollama/qwen3:8b", env: (url) => ({ OLLAMA_BASE_URL: `${url}/v1` }) },
  litellm: { model: "litellm/gpt-5.2", env: (url) => ({ LITELLM_BASE_URL: `${url}/v1` }) },
  compatible: { model: "compatible/qwen3", env: (url) => ({ COMPATIBLE_BASE_URL: `${url}/v1` }) },
};

/** aimock's faults, and the code that each must have; always on, so that every retry meets it too. */
const FAULTS = [
  [{ rateLimitRate: 1 }, "provider_rate_limited"],
  [{ malformedRate: 1 }, "provider_error"],
  [{ disconnectRate: 1 }, "provider_error"],
] as const;

const mock = new LLMock({ port: 0, strict: true });

before(async () => {
  const call = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });
  mock.onMessage("hello", { content: "Hello from the fake.", reasoning: "A greeting." });
  mock.addFixture({
    match: { userMessage: "weather", hasToolResult: false },
    response: { reasoning: "Two cities.", toolCalls: [call("Lima"), call("Oslo")] },
  });
  mock.addFixture({
    // A continued response brings only the tools' answers: there is no user message to match.
    match: { hasToolResult: true },
    response: { content: "Mild in Lima, cold in Oslo." },
  });
  mock.addFixture({
    match: { userMessage: "limit" },
    response: { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 30 },
  });
  mock.addFixture({
    match: { userMessage: "cut" },
    response: { content: "This answer is cut in the middle of its text." },
    truncateAfterChunks: 4,
    chunkSize: 5,
    // Between two chunks, so that the first is read before the cut.
    latency: 20,
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

  test(`aimock as ${name}: 429 brings its Retry-After, and a stream that it cuts is truncated`, async () => {
    const limited = failureOf(await ask(open(await provider(), { message: "limit" })));
    assert.equal(limited.code, "provider_rate_limited");
    assert.equal(limited.retryAfter, 30);
    const cut = failureOf(await ask(open(await provider(), { message: "cut" })));
    assert.equal(cut.code, "provider_truncated");
  });
}

test("aimock's faults are one proper error each, whatever the provider", async () => {
  for (const [fault, code] of FAULTS) {
    mock.setChaos(fault);
    // All at once, because each tries again before it gives up.
    const failures = Object.entries(PROVIDERS).map(async ([name, { model, env, settings }]) => {
      const provider = await serve(model, env(mock.url), settings);
      return [name, failureOf(await ask(open(provider, { message: "hello" }))).code];
    });
    const expected = Object.keys(PROVIDERS).map((name) => [name, code]);
    const codes = await Promise.all(failures);
    mock.clearChaos();
    assert.deepEqual(codes, expected, JSON.stringify(fault));
  }
});
