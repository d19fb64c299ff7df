/** What each generation of Claude makes of an agent's settings, after Anthropic's pages on thinking and effort. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../../server/config/settings.ts";
import { ConfigError } from "../../server/errors.ts";
import { resolveProvider } from "../../server/providers/index.ts";
import type { ModelSettings } from "../../server/providers/provider.ts";
import { claude, stream } from "../support/anthropic.ts";
import { ask, open } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const VISIBLE = { type: "adaptive", display: "summarized" };

async function sent(model: string, settings: ModelSettings) {
  await using upstream = await startUpstream(stream("text"));
  const { error } = await ask(open(claude(upstream, { model, settings })));
  assert.equal(error, undefined);
  const { json, headers } = upstream.calls[0] ?? assert.fail("nothing was sent");
  return { ...json, version: headers["anthropic-version"] };
}

/** `[model, effort, thinking, output_config.effort]` */
const THINKING = [
  ["claude-opus-5-5", undefined, VISIBLE, undefined],
  ["claude-opus-5-5", "xhigh", VISIBLE, "xhigh"],
  ["claude-fable-5-1", "minimal", VISIBLE, "low"],
  ["claude-mythos-preview", undefined, VISIBLE, undefined],
  ["claude-sonnet-5-5", "none", { type: "between_tools" }, undefined],
  ["claude-sonnet-5", "none", { type: "disabled" }, undefined],
  ["claude-haiku-5-5", "none", { type: "disabled" }, undefined],
  ["claude-opus-4-7", undefined, undefined, undefined],
  ["claude-opus-4-7", "high", VISIBLE, "high"],
  ["claude-sonnet-4-6", undefined, undefined, undefined],
  ["claude-sonnet-4-6", "medium", VISIBLE, "medium"],
  ["claude-sonnet-4-6", "none", undefined, undefined],
  ["claude-opus-4-5-20251101", "high", { type: "enabled", budget_tokens: 8192 }, undefined],
  ["claude-sonnet-4-20250514", "minimal", { type: "enabled", budget_tokens: 1024 }, undefined],
  // Versions are two numbers: 4.10 is newer than 4.9.
  ["claude-opus-4-10", "xhigh", VISIBLE, "xhigh"],
  ["claude-opus-4-10-20270101", undefined, undefined, undefined],
  ["claude-3-7-sonnet-20250219", "xhigh", { type: "enabled", budget_tokens: 12_288 }, undefined],
  ["claude-haiku-4-5", undefined, undefined, undefined],
  ["claude-haiku-4-5", "none", undefined, undefined],
  ["claude-3-5-haiku-latest", "none", undefined, undefined],
  ["a-gateways-own-name", undefined, undefined, undefined],
  ["a-gateways-own-name", "high", VISIBLE, "high"],
] as const;

for (const [model, effort, thinking, sentEffort] of THINKING) {
  test(`anthropic/${model} with reasoningEffort ${effort} thinks as its generation can`, async () => {
    const body = await sent(model, effort === undefined ? {} : { reasoningEffort: effort });
    assert.deepEqual(body.thinking, thinking);
    assert.equal(body.output_config?.effort, sentEffort);
    assert.equal("temperature" in body, false);
  });
}

for (const [model, limit] of [
  ["claude-opus-5-5", 64_000],
  ["claude-sonnet-4-6", 64_000],
  ["claude-haiku-4-5-20251001", 32_000],
  ["claude-opus-4-10", 64_000],
  ["claude-opus-4-1", 16_384],
  ["claude-3-7-sonnet-20250219", 16_384],
  ["claude-3-5-sonnet-20241022", 8192],
  ["claude-3-haiku-20240307", 4096],
  ["a-gateways-own-name", 16_384],
] as const) {
  test(`anthropic/${model} writes at most ${limit} tokens unless told otherwise`, async () => {
    assert.equal((await sent(model, {})).max_tokens, limit);
    assert.equal((await sent(model, { maxOutputTokens: 300 })).max_tokens, 300);
  });
}

test("anthropic: a small limit leaves thinking its smallest budget and the answer the rest", async () => {
  const settings = { reasoningEffort: "high", maxOutputTokens: 1200 } as const;
  const { thinking, max_tokens } = await sent("claude-sonnet-4-5", settings);
  assert.deepEqual([thinking.budget_tokens, max_tokens], [1024, 1200]);
});

test("anthropic: temperature goes by the API version that still takes it, all else by the new one", async () => {
  const body = await sent("claude-sonnet-4-6", { temperature: 0.5 });
  assert.deepEqual([body.temperature, body.version], [0.5, "2023-06-01"]);
  assert.equal((await sent("claude-sonnet-4-6", {})).version, "2026-10-21");
  const extraBody = { top_k: 5 };
  assert.equal((await sent("claude-sonnet-4-6", { extraBody })).version, "2023-06-01");
});

test("anthropic: extraBody is merged last", async () => {
  const extraBody = { thinking: VISIBLE, metadata: { user_id: "u" }, max_tokens: 7 };
  const { thinking, metadata, max_tokens } = await sent("claude-sonnet-4-6", { extraBody });
  assert.deepEqual({ thinking, metadata, max_tokens }, extraBody);
});

for (const [model, settings, sentence] of [
  ["claude-opus-5-5", { reasoningEffort: "none" }, /always thinks.*"low"/],
  ["claude-fable-5", { reasoningEffort: "none" }, /always thinks/],
  ["claude-opus-4-6", { reasoningEffort: "xhigh" }, /takes no reasoningEffort "xhigh"/],
  ["claude-3-5-haiku-latest", { reasoningEffort: "low" }, /cannot think: remove reasoningEffort/],
  ["claude-sonnet-4-5", { reasoningEffort: "low", maxOutputTokens: 1024 }, /maxOutputTokens must/],
  ["claude-opus-4-7", { temperature: 1 }, /takes no temperature/],
  ["claude-opus-4-10", { temperature: 1 }, /takes no temperature/],
  ["claude-sonnet-4-5", { temperature: 1.5 }, /temperature must be a number from 0 to 1/],
  ["claude-sonnet-4-5", { temperature: 1, reasoningEffort: "low" }, /while it thinks/],
] as const) {
  test(`anthropic/${model} is not started with ${JSON.stringify(settings)}`, async () => {
    const env = { ANTHROPIC_API_KEY: "sk" };
    await assert.rejects(
      () => resolve(model, env, settings),
      (error: unknown) => error instanceof ConfigError && sentence.test(error.message),
    );
  });
}

function resolve(
  model: string,
  env: Record<string, string>,
  settings: ModelSettings = {},
  loadPackage: (name: string) => Promise<unknown> = (name) => import(name),
) {
  const options = { settings: readSettings(env), modelSettings: settings, loadPackage };
  return resolveProvider(`anthropic/${model}`, options);
}

test("anthropic: the row takes key and base URL from its variables, and loads the package only then", async () => {
  await using upstream = await startUpstream(stream("text"));
  const env = { ANTHROPIC_API_KEY: "sk-row", ANTHROPIC_BASE_URL: upstream.url.slice(0, -3) };
  const provider = await resolve("claude-sonnet-4-5", env);
  assert.equal(provider.id, "anthropic");
  assert.equal(provider.stateKind, "conversation_history");
  assert.ok(provider.mediaTypes.includes("application/pdf"));
  await ask(open(provider));
  assert.equal(upstream.calls[0]?.headers["x-api-key"], "sk-row");
  assert.equal(upstream.calls[0]?.path, "/v1/messages");
});

test("anthropic: a missing key names its variable, before the package is asked for", async () => {
  const loadPackage = () => assert.fail("the package was loaded");
  await assert.rejects(() => resolve("claude-opus-5-5", {}, {}, loadPackage), /ANTHROPIC_API_KEY/);
});

test("anthropic: a package that is not installed stops the start with the loader's own sentence", async () => {
  const missing = new ConfigError("npm install @anthropic-ai/sdk");
  const env = { ANTHROPIC_API_KEY: "sk" };
  const loadPackage = () => Promise.reject(missing);
  await assert.rejects(() => resolve("claude-opus-5-5", env, {}, loadPackage), missing);
});

test("anthropic: a model that is about to be retired prints no warning", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  await sent("claude-sonnet-4-5", { reasoningEffort: "low" });
  await sent("claude-opus-4-6", {
    extraBody: { thinking: { type: "enabled", budget_tokens: 2048 } },
  });
  assert.equal(warn.mock.callCount(), 0);
});
