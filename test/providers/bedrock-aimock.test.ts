/** Against somebody else's idea of ConverseStream: what our own frames cannot show wrong. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { resolveProvider } from "../../server/providers/index.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { assertFaultsAreErrors } from "../support/aimock-chaos.ts";
import { CLAUDE } from "../support/bedrock.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";

const mock = new LLMock({ port: 0 });
let provider: Provider;

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
    match: { userMessage: "weather", hasToolResult: true },
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
    latency: 20,
  });
  await mock.start();
  const env = {
    AWS_REGION: "us-east-1",
    AWS_BEARER_TOKEN_BEDROCK: "x",
    BEDROCK_BASE_URL: mock.url,
  };
  provider = await resolveProvider(`bedrock/${CLAUDE}`, {
    env,
    times: { firstChunk: 20_000, idle: 20_000 },
    settings: {},
    loadPackage: (name) => import(name),
  });
});

after(() => mock.stop());

const TOOL = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

test("text, thinking and the end", async () => {
  const turn = await ask(open(provider, { message: "hello" }));
  assert.equal(turn.error, undefined);
  assert.equal(said(turn), "Hello from the fake.");
  assert.equal(said(turn, "thinking"), "A greeting.");
  const end = turn.events.at(-1);
  assert.ok(end?.type === "end" && end.finish === "stop");
  assert.equal(typeof end.usage?.output_tokens, "number");
});

test("two calls, their answers, and a second message that continues", async () => {
  const conversation = open(provider, { message: "weather", tools: [TOOL] });
  const { events } = await ask(conversation);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(
    calls.map((call) => JSON.parse(call.arguments)),
    [{ city: "Lima" }, { city: "Oslo" }],
  );
  conversation.answer(calls.map(({ id, name }) => ({ id, name, output: "ok", failed: false })));
  assert.equal(said(await ask(conversation)), "Mild in Lima, cold in Oslo.");
  const state = conversation.state();
  const next = await ask(open(provider, { message: "hello", tools: [TOOL], state }));
  assert.equal(said(next), "Hello from the fake.");
});

test("429 brings its Retry-After, and a stream that the fake cuts is truncated", async () => {
  const limited = failureOf(await ask(open(provider, { message: "limit" })));
  assert.equal(limited.code, "provider_rate_limited");
  assert.equal(limited.retryAfter, 30);
  const cut = failureOf(await ask(open(provider, { message: "cut" })));
  assert.equal(cut.code, "provider_truncated");
});

test("its faults are one proper error each", async () => {
  await assertFaultsAreErrors(mock, provider);
});
