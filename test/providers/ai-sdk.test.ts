/** Scripted models of the AI SDK. The real packages: npm run test:models. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import { readSettings } from "../../server/config/settings.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { AssistantMessage, HistoryMessage } from "../../server/protocol/chat.ts";
import type { AiSdkLanguageModel } from "../../server/providers/ai-sdk/language-model.ts";
import { createModelObject, type ModelObjectSetup } from "../../server/providers/ai-sdk/provider.ts";
import { textContent } from "../../server/providers/history.ts";
import { resolveModels } from "../../server/providers/index.ts";
import { historyOf, WEATHER } from "../support/chat-servers.ts";
import { turns } from "../support/deadline.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, failureOf, INSTANT_CLOCK, open, PATIENT, said } from "../support/upstream-conversation.ts";

/** The response to a request: parts, after which the stream ends, stalls or breaks; or an error of `doStream`. */
type Answer = readonly object[] | { parts: readonly object[]; end: "stall" | Error } | Error;

interface Scripted extends AiSdkLanguageModel {
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the options of its request.
  readonly asked: any[];
}

function scripted(answers: readonly Answer[], about: Partial<AiSdkLanguageModel> = {}): Scripted {
  const script = [...answers];
  const asked: object[] = [];
  return {
    specificationVersion: "v3",
    provider: "acme.chat",
    modelId: "m-1",
    asked,
    async doStream(options: object) {
      asked.push(options);
      const answer = script.shift() ?? new Error("the test scripted no answer");
      if (answer instanceof Error) throw answer;
      const { parts, end } = "parts" in answer ? answer : { parts: answer, end: undefined };
      const stream = new ReadableStream(
        {
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            if (end === undefined) controller.close();
          },
          async pull(controller) {
            // Delayed, because an error discards unread parts.
            if (end instanceof Error) controller.error(await nextTick(end));
            else await new Promise(() => {});
          },
        },
        { highWaterMark: parts.length },
      );
      return { stream };
    },
    ...about,
  };
}

const SETUP: ModelObjectSetup = {
  mediaTypes: ALL_MEDIA_TYPES,
  modelSettings: {},
  limits: PATIENT,
  clock: INSTANT_CLOCK,
};

const text = (delta: string, id = "1") => [
  { type: "text-start", id },
  { type: "text-delta", id, delta },
  { type: "text-end", id },
];
const finish = (unified: string, raw?: string) => ({
  type: "finish",
  finishReason: { unified, raw },
  usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } },
});
const STOP = finish("stop");
const named = (name: string, fields: object = {}) =>
  Object.assign(new Error("the words of a package"), { name }, fields);

const answerOf = (answer: Answer, start = {}, setup = SETUP) =>
  ask(open(createModelObject(scripted([answer, answer, answer]), setup), start));

const NO_MODELS: [model: unknown, sentence: RegExp][] = [
  [Object.assign(() => {}, { languageModel() {} }), /^model is a function.*call it with a name/],
  [{}, /^model must be a string, such as .* or a language model of the AI SDK/],
  [7, /^model must be a string/],
  ["", /^model is missing/],
  [
    scripted([], { specificationVersion: "v1" as "v2" }),
    /^model is .* specification v1, .* v2, v3, v4\. Update its package/,
  ],
  [scripted([], { specificationVersion: "v5" as "v4" }), /specification v5.*package for AI SDK 7\.$/],
  [{ specificationVersion: "v3", provider: "a", modelId: "b", doGenerate() {} }, /^model has no doStream/],
  [{ specificationVersion: "v3", doStream() {} }, /^model is .* without provider or modelId/],
];

test("what is no model of the AI SDK is refused with what to do", () => {
  for (const [model, message] of NO_MODELS) {
    assert.throws(() => checkAgent({ name: "A", model }), { name: "ConfigError", message });
  }
  const model = scripted([]);
  const refused = (agent: object, message: RegExp) =>
    assert.throws(() => checkAgent({ name: "A", ...agent }), { message });
  refused({ model: "demo", fallbacks: [{}] }, /^fallbacks\[0\] must be a string/);
  refused({ model, fallbacks: [model] }, /^fallbacks\[0\] repeats "acme\.chat\/m-1"/);
  refused({ model, accepts: ["text/html"] }, /^accepts names "text\/html"/);
  refused({ model, providerOptions: { anthropic: 1 } }, /^providerOptions must be an object with an object for each/);
});

test("settings that would do nothing stop the start, and the others reach the package", async () => {
  const resolve = ({ models, settings: modelSettings, accepts }: ReturnType<typeof checkAgent>) =>
    resolveModels(models, { settings: readSettings({}), modelSettings, accepts, loadPackage: (name) => import(name) });
  const agent = (fields: Partial<AgentDefinition>) => resolve(checkAgent({ name: "A", ...fields }));
  const refused = (fields: Partial<AgentDefinition>, message: RegExp) => assert.rejects(agent(fields), { message });
  for (const fields of [
    { extraBody: {} },
    { store: false },
    { hostedTools: ["web_search" as const] },
    { reasoningEffort: "low" as const },
  ]) {
    await refused({ model: scripted([]), ...fields }, /has no effect on acme\.chat\/m-1, a model of the AI SDK/);
  }
  await refused({ model: "demo", providerOptions: {} }, /^providerOptions has no effect on demo .* of the AI SDK\.$/);
  const model = scripted([[...text("Hi"), STOP]], { specificationVersion: "v4" });
  const settings = {
    temperature: 1,
    maxOutputTokens: 9,
    reasoningEffort: "low" as const,
    providerOptions: { acme: { a: 1 } },
  };
  await ask(open(await agent({ model, ...settings }), { tools: [WEATHER] }));
  const { prompt: _prompt, abortSignal: _signal, ...options } = model.asked[0];
  const { name, description, parameters } = WEATHER;
  assert.deepEqual(options, {
    temperature: 1,
    maxOutputTokens: 9,
    reasoning: "low",
    providerOptions: { acme: { a: 1 } },
    includeRawChunks: true,
    tools: [{ type: "function", name, description, inputSchema: parameters }],
    toolChoice: { type: "auto" },
  });
  const mixed = await agent({ model, fallbacks: ["demo"], providerOptions: {}, accepts: ["image/png"] });
  assert.deepEqual([mixed.mediaTypes, mixed.models], [["image/png"], ["acme.chat/m-1", "demo"]]);
});

test("clients see the models and the files that they take", async (t) => {
  const model = scripted([]);
  const server = await startServer(t, { agent: { model, fallbacks: ["demo"], accepts: ["image/png"] } });
  const info = JSON.parse(await (await fetch(`${server.url}/api/info`)).text());
  assert.deepEqual([info.models, info.attachments.media_types], [["acme.chat/m-1", "demo"], ["image/png"]]);
});

const FAILURES: [what: string, answer: Answer, code: string, detail?: RegExp][] = [
  ["a missing key", named("AI_LoadAPIKeyError"), "provider_auth", /is not set up: the words of a package/],
  ["what the package does not take", named("AI_UnsupportedFunctionalityError"), "invalid_request"],
  ["a refusal", named("AI_APICallError", { statusCode: 403, responseBody: "{}" }), "provider_auth"],
  ["a refusal of a gateway", named("GatewayRateLimitError", { statusCode: 429 }), "provider_rate_limited"],
  [
    "no connection",
    named("AI_APICallError", { cause: named("Error", { code: "ECONNREFUSED" }) }),
    "provider_error",
    /reached/,
  ],
  ["an answer that is none", named("AI_APICallError", { statusCode: 200 }), "provider_error", /could not be read/],
  [
    "data that is no JSON",
    [{ type: "error", error: named("AI_JSONParseError") }, ...text("Hi"), STOP],
    "provider_error",
    /read/,
  ],
  ["a failure in words", [...text("Hi"), { type: "error", error: "no" }], "provider_error"],
  [
    "a failure as an object",
    [{ type: "error", error: { type: "overloaded_error", message: "no" } }],
    "provider_overloaded",
  ],
  ["a stream that breaks", { parts: text("Hi"), end: new TypeError("terminated") }, "provider_truncated"],
  ["a stream without an end", text("Hi"), "provider_truncated"],
  ["an end that nobody knows", [...text("Hi"), finish("interrupted")], "provider_truncated", /ended as "interrupted"/],
  ["an end that no server has named", [...text("Hi"), finish("other")], "provider_truncated", /ended as "other"/],
  ...["abort", "network_error", "insufficient_system_resource"].map((raw): (typeof FAILURES)[number] => {
    return [raw, [...text("Hi"), finish("other", raw)], "provider_truncated", new RegExp(`as "other: ${raw}"`)];
  }),
  ["another call that is none", [finish("other", "malformed_function_call")], "provider_error", /tool call|read/],
  ["a call that is none", [finish("error", "MALFORMED_FUNCTION_CALL")], "provider_error", /malformed tool call|read/],
  [
    "calls that could not be read",
    [{ type: "error", error: named("AI_TypeValidationError") }, finish("tool-calls")],
    "provider_error",
  ],
];

test("every failure of a package has a code and a sentence for the operator", async () => {
  for (const [what, answer, code, detail = /^acme\.chat |^The package of acme\.chat |^The model /] of FAILURES) {
    const failure = failureOf(await answerOf(answer));
    assert.equal(failure.code, code, what);
    assert.match(failure.detail, detail, what);
  }
});

test("whatever a server calls its end, the answer is whole", async () => {
  for (const raw of ["eos_token", "eos", "end_turn", "stop_sequence", "STOP", "complete", "model_length"]) {
    const turn = await answerOf([...text("Hi"), finish("other", raw)]);
    const end = turn.events.at(-1);
    const known = raw === "model_length" ? "length" : "stop";
    assert.deepEqual([said(turn), turn.error, end?.type === "end" && end.finish], ["Hi", undefined, known], raw);
  }
});

test("a part of a kind that the package does not know costs nothing else", async () => {
  const unknown = { type: "error", error: named("AI_TypeValidationError") };
  const turn = await answerOf([unknown, ...text("Hi"), { type: "of tomorrow" }, STOP]);
  assert.equal(said(turn), "Hi");
  assert.equal(turn.error, undefined);
});

test("the time limits hold before and inside an answer, and the package's request is aborted", async () => {
  const signals: AbortSignal[] = [];
  const silent = {
    doStream({ abortSignal }: { abortSignal: AbortSignal }) {
      signals.push(abortSignal);
      return new Promise<never>(() => {});
    },
  };
  const limits = { firstChunkMs: 20, idleMs: 20 };
  const first = await ask(open(createModelObject(scripted([], silent), { ...SETUP, limits })));
  assert.equal(failureOf(first).code, "provider_timeout");
  assert.equal(signals[0]?.aborted, true);
  const idle = await answerOf({ parts: text("Hi"), end: "stall" }, {}, { ...SETUP, limits });
  assert.match(failureOf(idle).detail, /^acme\.chat stopped sending in the middle/);
});

test("a ping of the API, which is no part, shows that an answer goes on", async (t) => {
  const clock = stopClock(t);
  const stream = new TransformStream<object, object>();
  const writer = stream.writable.getWriter();
  const model = scripted([], { doStream: async () => ({ stream: stream.readable }) });
  const turn = ask(open(createModelObject(model, SETUP)));
  for (const part of [...text("Hi"), { type: "raw", rawValue: {} }, { type: "ping" }, { type: "raw" }, STOP]) {
    await writer.write(part);
    await turns();
    clock.tick(PATIENT.idleMs - 1);
  }
  assert.equal(said(await turn), "Hi");
  assert.equal((await turn).error, undefined);
});

const NOTED: Answer = [
  { type: "reasoning-start", id: "r", providerMetadata: { acme: { kind: "deep" } } },
  { type: "reasoning-delta", id: "r", delta: "One." },
  { type: "reasoning-end", id: "r", providerMetadata: { acme: { signature: "s1" } } },
  ...text("First."),
  { type: "tool-input-start", id: "c1", toolName: "get_weather" },
  { type: "tool-input-delta", id: "c1", delta: '{"city":"Lima"}' },
  {
    type: "tool-call",
    toolCallId: "c1",
    toolName: "get_weather",
    input: '{"city":"Lima"}',
    providerMetadata: { acme: { sign: 1 } },
  },
  ...text("Second."),
  { type: "tool-call", toolCallId: "c1", toolName: "get_weather", input: "{}" },
  finish("tool-calls"),
];

/** The content that is sent back for such an answer, in the model's order. */
const GOES_BACK = [
  { type: "reasoning", text: "One.", providerOptions: { acme: { kind: "deep", signature: "s1" } } },
  { type: "text", text: "First." },
  {
    type: "tool-call",
    toolCallId: "c1",
    toolName: "get_weather",
    input: { city: "Lima" },
    providerOptions: { acme: { sign: 1 } },
  },
  { type: "text", text: "Second." },
  { type: "tool-call", toolName: "get_weather", input: {} },
];

async function noted(): Promise<HistoryMessage[]> {
  const conversation = open(createModelObject(scripted([NOTED, [...text("Mild."), STOP]]), SETUP), {
    tools: [WEATHER],
  });
  const turn = await ask(conversation);
  assert.equal(said(turn), "First.\n\nSecond.");
  const calls = turn.events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.equal(new Set(calls.map(({ id }) => id)).size, 2, "two calls never have the same id");
  conversation.answer(calls.map(({ id, name }, at) => ({ id, name, content: textContent("mild"), failed: at === 1 })));
  assert.equal(said(await ask(conversation)), "Mild.");
  return historyOf(conversation.state());
}

/** The second message of the prompt, which is the answer. */
async function promptFor(history: HistoryMessage[], about = {}, answers: Answer[] = [[...text("Hi"), STOP]]) {
  const model = scripted(answers, about);
  const turn = await ask(open(createModelObject(model, SETUP), { state: { conversation_history: history } }));
  assert.equal(turn.error, undefined);
  return model.asked.map(({ prompt }) => prompt.slice(1));
}

test("an answer goes back in its order, with all that its model has noted, and results of tools with it", async () => {
  const history = await noted();
  const [[user, answer, results, ...rest]] = await promptFor(history);
  const second = answer.content[4].toolCallId;
  assert.deepEqual(answer.content, [...GOES_BACK.slice(0, 4), { ...GOES_BACK[4], toolCallId: second }]);
  assert.deepEqual(user, { role: "user", content: [{ type: "text", text: "Hi" }] });
  const result = { type: "tool-result", toolName: "get_weather" };
  assert.deepEqual(results.content, [
    { ...result, toolCallId: "c1", output: { type: "text", value: "mild" } },
    { ...result, toolCallId: second, output: { type: "error-text", value: "Error: mild" } },
  ]);
  assert.deepEqual(
    rest.map(({ role }: { role: string }) => role),
    ["assistant", "user"],
  );
});

const PLAIN = ["text", "tool-call", "tool-call"];
const typesIn = (prompts: { content: { type: string }[] }[][]) =>
  prompts.map((prompt) => prompt[1]?.content.map(({ type }) => type));

test("what another provider has noted, and what was altered, does not go back; text and calls do", async () => {
  const history = await noted();
  assert.deepEqual(typesIn(await promptFor(history, { provider: "other.chat" })), [PLAIN]);
  const [, answer] = history as [HistoryMessage, AssistantMessage];
  // biome-ignore lint/suspicious/noExplicitAny: the test alters what it has just read.
  const { parts } = answer.answer_parts as any;
  for (const altered of [
    parts.slice(0, 3),
    [...parts, parts[2]],
    [...parts].reverse(),
    "parts",
    [{ type: "text", span: [0, 99] }],
  ]) {
    const changed = history.with(1, { ...answer, answer_parts: { provider: "acme.chat", parts: altered } });
    assert.deepEqual(typesIn(await promptFor(changed)), [PLAIN], JSON.stringify(altered));
  }
});

/** The parts of that answer as stored by the build of commit 8fef9bc5, byte for byte. */
const FORMER = `{"provider":"acme.chat","parts":[{"type":"reasoning","text":"One.","notes":{"acme":{"kind":"deep","signature":"s1"}}},{"type":"text","span":[0,6]},{"type":"call","notes":{"acme":{"sign":1}}},{"type":"text","span":[8,15]},{"type":"call"}]}`;

test("the prompt is the same, byte for byte, from a state of an earlier build", async () => {
  const history = await noted();
  const { answer_parts, ...answer } = history[1] as AssistantMessage;
  assert.ok(answer_parts !== undefined);
  const former = history.with(1, { ...answer, ai_sdk: JSON.parse(FORMER) } as AssistantMessage);
  const prompts = await promptFor(history);
  assert.deepEqual(typesIn(prompts), [GOES_BACK.map(({ type }) => type)]);
  assert.equal(JSON.stringify(await promptFor(former)), JSON.stringify(prompts));
});

test("thinking that the API refuses to take back is left out of a second try", async () => {
  const refusal = named("AI_APICallError", {
    statusCode: 400,
    responseBody: JSON.stringify({
      error: { message: "messages.1.content.0: Invalid `signature` in `thinking` block" },
    }),
  });
  const prompts = await promptFor(await noted(), {}, [refusal, [...text("Hi"), STOP]]);
  assert.deepEqual(typesIn(prompts), [GOES_BACK.map(({ type }) => type), GOES_BACK.slice(1).map(({ type }) => type)]);
});

test("a history of other models fits: ids, names, lost tools, files that are not taken, and an answer that never came", async () => {
  const call = { id: "functions.x:1", type: "function" as const, function: { name: "über", arguments: "{" } };
  const url = "data:image/png;base64,iVBORw0K";
  const model = scripted([[...text("Hi"), STOP]], { provider: "mistral.chat" });
  const conversation_history: HistoryMessage[] = [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: call.id, content: "" },
    { role: "user", content: [{ type: "image_url", image_url: { url } }] },
  ];
  await ask(open(createModelObject(model, { ...SETUP, mediaTypes: [] }), { state: { conversation_history } }));
  const { prompt, tools } = model.asked[0];
  assert.deepEqual(prompt.slice(1), [
    { role: "user", content: [{ type: "text", text: "(no text)" }] },
    {
      role: "assistant",
      content: [{ type: "tool-call", toolCallId: "call00000", toolName: "_ber", input: { unparsed_arguments: "{" } }],
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "call00000",
          toolName: "_ber",
          output: { type: "text", value: "(no output)" },
        },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "The answer was interrupted here." }] },
    {
      role: "user",
      content: [
        { type: "text", text: "[an image (PNG) was attached here, which this model cannot read]" },
        { type: "text", text: "Hi" },
      ],
    },
  ]);
  assert.deepEqual(
    tools.map(({ name }: { name: string }) => name),
    ["_ber"],
  );
});

test("a tool that the provider runs is shown, and is no call of ours", async () => {
  const call = {
    type: "tool-call",
    toolCallId: "h",
    toolName: "web_search",
    input: '{"query":"x"}',
    providerExecuted: true,
  };
  const result = { type: "tool-result", toolCallId: "h", toolName: "web_search", result: [{ url: "u" }] };
  const turn = await answerOf([call, { ...result, preliminary: true }, result, ...text("Found."), STOP]);
  const [begun, ended] = turn.events;
  assert.deepEqual(begun, { type: "hosted_call", call: { id: "h", name: "web_search", arguments: '{"query":"x"}' } });
  assert.ok(ended?.type === "hosted_result");
  assert.deepEqual(ended.answer, { id: "h", name: "web_search", content: textContent('[{"url":"u"}]'), failed: false });
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "stop", usage: { input_tokens: 7, output_tokens: 3 } });
});
