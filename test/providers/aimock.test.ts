/** Against somebody else's idea of both APIs: what our own scripts cannot show wrong. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { resolveProvider } from "../../server/providers/index.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { assertFaultsAreErrors } from "../support/aimock-chaos.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";

const mock = new LLMock({ port: 0 });
let providers: Map<string, Provider>;

before(async () => {
  mock.onMessage("hello", { content: "Hello from the fake.", reasoning: "A greeting." });
  mock.addFixture({
    match: { userMessage: "weather", hasToolResult: false },
    response: {
      toolCalls: [
        { name: "get_weather", arguments: '{"city":"Lima"}' },
        { name: "get_weather", arguments: '{"city":"Oslo"}' },
      ],
    },
  });
  mock.addFixture({
    // A continued response brings only the tools' answers: there is no user message to match.
    match: { hasToolResult: true },
    response: { content: "Mild in Lima, cold in Oslo." },
  });
  mock.addFixture({
    match: { userMessage: "limit" },
    response: { error: { message: "slow down" }, status: 429, retryAfter: 30 },
  });
  mock.addFixture({
    match: { userMessage: "cut" },
    response: { content: "This answer is cut in the middle of its text." },
    truncateAfterChunks: 2,
    chunkSize: 5,
    // Between two chunks, so that the first is read before the cut.
    latency: 20,
  });
  await mock.start();
  const env = {
    OPENAI_API_KEY: "mock",
    OPENAI_BASE_URL: `${mock.url}/v1`,
    LITELLM_BASE_URL: `${mock.url}/v1`,
  };
  const times = { firstChunk: 20_000, idle: 20_000 };
  const loadPackage = (name: string) => import(name);
  providers = new Map();
  for (const model of ["openai/gpt-5.2", "litellm/gpt-5.2"]) {
    providers.set(model, await resolveProvider(model, { env, times, settings: {}, loadPackage }));
  }
});

after(() => mock.stop());

function provider(model: string): Provider {
  const found = providers.get(model);
  assert.ok(found);
  return found;
}

const TOOL = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

for (const model of ["openai/gpt-5.2", "litellm/gpt-5.2"]) {
  test(`${model}: text, thinking and the end`, async () => {
    const turn = await ask(open(provider(model), { message: "hello" }));
    assert.equal(turn.error, undefined);
    assert.equal(said(turn), "Hello from the fake.");
    assert.equal(said(turn, "thinking"), "A greeting.");
    const end = turn.events.at(-1);
    assert.ok(end?.type === "end" && end.finish === "stop");
    assert.equal(typeof end.usage?.output_tokens, "number");
  });

  test(`${model}: two calls, their answers, and a second message that continues`, async () => {
    const conversation = open(provider(model), { message: "weather", tools: [TOOL] });
    const { events } = await ask(conversation);
    const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
    assert.deepEqual(
      calls.map((call) => JSON.parse(call.arguments)),
      [{ city: "Lima" }, { city: "Oslo" }],
    );
    conversation.answer(calls.map(({ id, name }) => ({ id, name, output: "ok", failed: false })));
    assert.equal(said(await ask(conversation)), "Mild in Lima, cold in Oslo.");
    const state = conversation.state();
    assert.equal(Object.keys(state).length, 1);
    const next = await ask(open(provider(model), { message: "hello", tools: [TOOL], state }));
    assert.equal(said(next), "Hello from the fake.");
  });

  test(`${model}: 429 brings its Retry-After`, async () => {
    const failure = failureOf(await ask(open(provider(model), { message: "limit" })));
    assert.equal(failure.code, "provider_rate_limited");
    assert.equal(failure.retryAfter, 30);
  });

  test(`${model}: a stream that the fake cuts is truncated`, async () => {
    const failure = failureOf(await ask(open(provider(model), { message: "cut" })));
    assert.equal(failure.code, "provider_truncated");
  });
}

for (const model of ["openai/gpt-5.2", "litellm/gpt-5.2"]) {
  test(`${model}: the fake's faults are one proper error each`, async () => {
    await assertFaultsAreErrors(mock, provider(model));
  });
}
