import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { ask, chatProvider, open, responsesProvider } from "../support/upstream-conversation.ts";
import { fixture, jsonReply, startUpstream } from "../support/upstream-server.ts";

const SETTINGS = {
  reasoningEffort: "low",
  temperature: 0.5,
  maxOutputTokens: 300,
  extraBody: { service_tier: "flex" },
} as const;

test("an agent's model settings go to the Responses API under its own names", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/text")] });
  const model = "gpt-5.2";
  await ask(open(responsesProvider(upstream, { model, settings: SETTINGS })));
  const { reasoning, temperature, max_output_tokens, service_tier, stream } = upstream.calls[0]?.json ?? {};
  assert.deepEqual(
    { reasoning, temperature, max_output_tokens, service_tier, stream },
    {
      reasoning: { summary: "auto", effort: "low" },
      temperature: 0.5,
      max_output_tokens: 300,
      service_tier: "flex",
      stream: true,
    },
  );
});

test("a model that refuses reasoning summaries is still told the effort that the agent asks for", async () => {
  const refusal = { error: { message: "Unsupported parameter", param: "reasoning.summary" } };
  await using upstream = await startUpstream(jsonReply(400, refusal), {
    body: [fixture("responses/text")],
  });
  const settings = { reasoningEffort: "high" } as const;
  const { error } = await ask(open(responsesProvider(upstream, { model: "gpt-5.2", settings })));
  assert.equal(error, undefined);
  assert.deepEqual(upstream.calls[1]?.json.reasoning, { effort: "high" });
});

test("an agent's model settings go to Chat Completions under its own names", async () => {
  await using upstream = await startUpstream({
    body: [fixture("chat-completions/text-and-usage")],
  });
  await ask(open(chatProvider(upstream, { settings: SETTINGS })));
  const { reasoning_effort, temperature, max_tokens, service_tier, stream } = upstream.calls[0]?.json ?? {};
  assert.deepEqual(
    { reasoning_effort, temperature, max_tokens, service_tier, stream },
    {
      reasoning_effort: "low",
      temperature: 0.5,
      max_tokens: 300,
      service_tier: "flex",
      stream: true,
    },
  );
});

for (const [field, value, sentence] of [
  ["reasoningEffort", "max", "reasoningEffort must be one of none, minimal, low, medium, high, xhigh."],
  ["temperature", 3, "temperature must be a number from 0 to 2."],
  ["maxOutputTokens", 0.5, "maxOutputTokens must be a whole number above 0."],
  ["extraBody", "x", "extraBody must be an object."],
  ["store", "no", "store must be true or false."],
] as const) {
  test(`an agent with a wrong ${field} is refused with what would be right`, () => {
    const agent = { name: "A", model: "demo", [field]: value };
    assert.throws(() => checkAgent(agent), { name: "ConfigError", message: sentence });
  });
}
