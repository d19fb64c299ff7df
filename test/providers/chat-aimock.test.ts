/** Gemini, Vertex AI and Ollama against somebody else's idea of Chat Completions, with its faults. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import type { Provider } from "../../server/providers/provider.ts";
import { assertFaultsAreErrors } from "../support/aimock-chaos.ts";
import { runTools, serve, WEATHER } from "../support/chat-servers.ts";
import { ask, open, said } from "../support/upstream-conversation.ts";

const mock = new LLMock({ port: 0 });

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
  await mock.start();
});

after(() => mock.stop());

const PROVIDERS: [string, () => Promise<Provider>][] = [
  [
    "gemini",
    () =>
      serve("gemini/gemini-2.5-flash", {
        GEMINI_API_KEY: "mock",
        GEMINI_BASE_URL: `${mock.url}/v1beta/openai/`,
      }),
  ],
  [
    "vertex",
    () =>
      serve("vertex/gemini-2.5-flash", {
        VERTEX_ACCESS_TOKEN: "mock",
        // The fake does not know Vertex AI's own path.
        VERTEX_BASE_URL: `${mock.url}/v1`,
      }),
  ],
  ["ollama", () => serve("ollama/qwen3:8b", { OLLAMA_BASE_URL: `${mock.url}/v1` })],
];

for (const [name, provider] of PROVIDERS) {
  test(`aimock as ${name}: text, thinking and the end`, async () => {
    const turn = await ask(open(await provider(), { message: "hello" }));
    assert.equal(turn.error, undefined);
    assert.equal(said(turn), "Hello from the fake.");
    assert.equal(said(turn, "thinking"), "A greeting.");
    const end = turn.events.at(-1);
    assert.ok(end?.type === "end" && end.finish === "stop");
    assert.equal(typeof end.usage?.output_tokens, "number");
  });

  test(`aimock as ${name}: two calls, their answers, and a second message that continues`, async () => {
    const conversation = open(await provider(), { message: "weather", tools: [WEATHER] });
    const [first, second] = await runTools(conversation);
    const calls = first.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
    assert.deepEqual(
      calls.map((call) => JSON.parse(call.arguments)),
      [{ city: "Lima" }, { city: "Oslo" }],
    );
    assert.equal(said(second), "Mild in Lima, cold in Oslo.");
    const state = conversation.state();
    const next = await ask(open(await provider(), { message: "hello", state }));
    assert.equal(said(next), "Hello from the fake.");
  });

  test(`aimock as ${name}: its faults are one proper error each`, async () => {
    await assertFaultsAreErrors(mock, await provider());
  });
}
