/** Against somebody else's idea of the Messages API, in its strict mode. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { resolveProvider } from "../../server/providers/index.ts";
import type { ModelSettings, Provider } from "../../server/providers/provider.ts";
import { assertFaultsAreErrors } from "../support/aimock-chaos.ts";
import { WEATHER } from "../support/anthropic.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";

const mock = new LLMock({ port: 0, strict: true });

before(async () => {
  mock.onMessage("hello", { content: "Hello from the fake.", reasoning: "A greeting." });
  mock.addFixture({
    match: { userMessage: "weather", hasToolResult: false },
    response: {
      reasoning: "Two cities.",
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
    response: {
      error: { message: "slow down", type: "rate_limit_error" },
      status: 429,
      retryAfter: 30,
    },
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

function provider(settings: ModelSettings = {}): Promise<Provider> {
  return resolveProvider("anthropic/claude-sonnet-4-5", {
    env: { ANTHROPIC_API_KEY: "mock", ANTHROPIC_BASE_URL: mock.url },
    times: { firstChunk: 20_000, idle: 20_000 },
    settings,
    loadPackage: (name) => import(name),
  });
}

test("anthropic by aimock: text, thinking and the end", async () => {
  const turn = await ask(open(await provider(), { message: "hello" }));
  assert.equal(turn.error, undefined);
  assert.equal(said(turn), "Hello from the fake.");
  assert.equal(said(turn, "thinking"), "A greeting.");
  const end = turn.events.at(-1);
  assert.ok(end?.type === "end" && end.finish === "stop");
  assert.equal(typeof end.usage?.output_tokens, "number");
});

test("anthropic by aimock: a tool loop whose thinking strict mode demands back, and a message that continues", async () => {
  const thinking = await provider({ reasoningEffort: "medium" });
  const conversation = open(thinking, { message: "weather", tools: [WEATHER] });
  const { events } = await ask(conversation);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.deepEqual(
    calls.map((call) => JSON.parse(call.arguments)),
    [{ city: "Lima" }, { city: "Oslo" }],
  );
  conversation.answer(calls.map(({ id, name }) => ({ id, name, output: "ok", failed: false })));
  const answer = await ask(conversation);
  assert.equal(answer.error, undefined);
  assert.equal(said(answer), "Mild in Lima, cold in Oslo.");
  const state = conversation.state();
  const next = await ask(open(thinking, { message: "hello", tools: [WEATHER], state }));
  assert.equal(said(next), "Hello from the fake.");
});

test("anthropic by aimock: 429 brings its Retry-After", async () => {
  const failure = failureOf(await ask(open(await provider(), { message: "limit" })));
  assert.equal(failure.code, "provider_rate_limited");
  assert.equal(failure.retryAfter, 30);
});

test("anthropic by aimock: a stream that the fake cuts is truncated", async () => {
  const failure = failureOf(await ask(open(await provider(), { message: "cut" })));
  assert.equal(failure.code, "provider_truncated");
});

test("anthropic by aimock: its faults are one proper error each", async () => {
  await assertFaultsAreErrors(mock, await provider());
});
