/**
 * Models of the real AI SDK packages, in each version of their specification, with simulated APIs: npm run test:models.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { LLMock } from "@copilotkit/aimock";
import type { Usage } from "../../server/protocol/chat.ts";
import type { AiSdkLanguageModel } from "../../server/providers/ai-sdk/language-model.ts";
import { type Outcome, send, stateOf, typesOf } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";
import { eventStream, fixture, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const folder = temporaryProject({ after } as Cleanup, { "load.mjs": "export const load = (name) => import(name);\n" });
for (const name of ["package.json", "package-lock.json"]) cpSync(join("test/models", name), join(folder, name));
const npmCi = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
await twice(() => execFileSync("npm", npmCi, { cwd: folder }));
symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));
const { load } = await import(pathToFileURL(join(folder, "load.mjs")).href);

type Version = AiSdkLanguageModel["specificationVersion"];
const isNewNode = Number(process.versions.node.split(".")[0]) >= 22;
/** Packages of version 4 need a newer Node. */
const VERSIONS: readonly Version[] = isNewNode ? ["v2", "v3", "v4"] : ["v2", "v3"];

/** Names of a version's packages: only those of version 3 have their own names in the lock file. */
const packageOf = (api: string, version: Version) => (version === "v3" ? `@ai-sdk/${api}` : `${api}-${version}`);

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF = Buffer.from("%PDF-1.4 a file").toString("base64");
const FILES = [
  { type: "image", name: "a.png", mime_type: "image/png", data: PNG },
  { type: "file", name: "b.pdf", mime_type: "application/pdf", data: PDF },
];

interface Api {
  // biome-ignore lint/suspicious/noExplicitAny: the module of a package.
  make(module: any, baseURL: string): AiSdkLanguageModel;
  /** Path of the API. */
  path: string;
  /** Two responses: thinking with a tool call, and an answer. */
  replies: [string, string];
  /** The files that it accepts. */
  files(version: Version): object[];
  /** Name of the field with a request's messages. */
  field: string;
  /** The messages in the second message's request. */
  sent(version: Version): unknown[];
}

const gemini = (parts: object[], end: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...end }],
  usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 32 },
});
const GEMINI_STOP = { finishReason: "STOP" };
const geminiResult = (id: string) => ({
  functionResponse: { id, name: "get_weather", response: { name: "get_weather", content: "sunny" } },
});

const chatChunk = (delta: object, finish_reason: string | null = null) => ({
  id: "1",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
  ...(finish_reason === null ? {} : { usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } }),
});
const CHAT_TEXT = eventStream(chatChunk({ content: "Hel" }), chatChunk({ content: "lo 👋" }, "stop"), "[DONE]");
const chatCall = (id: string) => ({
  id,
  type: "function",
  function: { name: "get_weather", arguments: '{"city":"Lima"}' },
});

const APIS: Record<string, Api> = {
  anthropic: {
    make: (module, baseURL) => module.createAnthropic({ apiKey: "mock", baseURL })("claude-sonnet-4-5"),
    path: "/v1",
    replies: [fixture("anthropic/thinking-and-tool"), fixture("anthropic/text")],
    files: () => FILES,
    field: "messages",
    sent: () => [
      { role: "user", content: [{ type: "text", text: "How is the weather?" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "The user wants the weather.", signature: "EpACCkYIBRgCKkD" },
          { type: "text", text: "Okay, let me check." },
          { type: "tool_use", id: "1", name: "get_weather", input: { city: "San Francisco" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "sunny" }] },
      { role: "assistant", content: [{ type: "text", text: "Hello 👋" }] },
      {
        role: "user",
        content: [
          { type: "text", text: "And now?" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: PDF },
            title: "b.pdf",
          },
        ],
      },
    ],
  },
  google: {
    make: (module, baseURL) => module.createGoogleGenerativeAI({ apiKey: "mock", baseURL })("gemini-3-flash-preview"),
    path: "/v1beta",
    replies: [
      eventStream(
        gemini([{ text: "The user wants the weather.", thought: true }]),
        gemini(
          [
            { functionCall: { name: "get_weather", args: { city: "Lima" } }, thoughtSignature: "c2lnbmF0dXJl" },
            { functionCall: { name: "get_weather", args: { city: "Oslo" } } },
          ],
          GEMINI_STOP,
        ),
      ),
      eventStream(
        gemini([{ text: "Hel" }]),
        gemini([{ text: "lo 👋" }]),
        gemini([{ text: "", thoughtSignature: "bGFzdA==" }], GEMINI_STOP),
      ),
    ],
    files: () => FILES,
    field: "contents",
    sent: () => [
      { role: "user", parts: [{ text: "How is the weather?" }] },
      {
        role: "model",
        parts: [
          { text: "The user wants the weather.", thought: true },
          {
            functionCall: { id: "1", name: "get_weather", args: { city: "Lima" } },
            thoughtSignature: "c2lnbmF0dXJl",
          },
          { functionCall: { id: "2", name: "get_weather", args: { city: "Oslo" } } },
        ],
      },
      { role: "user", parts: [geminiResult("1"), geminiResult("2")] },
      { role: "model", parts: [{ text: "Hello 👋", thoughtSignature: "bGFzdA==" }] },
      {
        role: "user",
        parts: [
          { text: "And now?" },
          { inlineData: { mimeType: "image/png", data: PNG } },
          { inlineData: { mimeType: "application/pdf", data: PDF } },
        ],
      },
    ],
  },
  mistral: {
    make: (module, baseURL) => module.createMistral({ apiKey: "mock", baseURL })("magistral-medium-latest"),
    path: "/v1",
    replies: [fixture("chat-completions/mistral-thinking-and-call"), CHAT_TEXT],
    // The package of version 2 sends no data URL for a PDF.
    files: (version) => (version === "v2" ? FILES.slice(0, 1) : FILES),
    field: "messages",
    sent: (version) => [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "How is the weather?" }] },
      {
        role: "assistant",
        // The package of version 2 would put the thinking into the text.
        content:
          version === "v2"
            ? "Let me look."
            : [
                {
                  type: "thinking",
                  thinking: [{ type: "text", text: "The user wants the weather." }],
                  closed: true,
                },
                { type: "text", text: "Let me look." },
              ],
        tool_calls: [chatCall("1")],
      },
      { role: "tool", name: "get_weather", tool_call_id: "1", content: "sunny" },
      { role: "assistant", content: "Hello 👋" },
      {
        role: "user",
        content: [
          { type: "text", text: "And now?" },
          { type: "image_url", image_url: `data:image/png;base64,${PNG}` },
          ...(version === "v2" ? [] : [{ type: "document_url", document_url: `data:application/pdf;base64,${PDF}` }]),
        ],
      },
    ],
  },
  "openai-compatible": {
    make: (module, baseURL) => module.createOpenAICompatible({ name: "deepseek", apiKey: "mock", baseURL })("deepseek"),
    path: "/v1",
    replies: [fixture("chat-completions/deepseek-reasoning-and-call"), CHAT_TEXT],
    files: () => FILES.slice(0, 1),
    field: "messages",
    sent: () => [
      { role: "system", content: "Be brief." },
      { role: "user", content: "How is the weather?" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "The user wants the weather.",
        tool_calls: [chatCall("1")],
      },
      { role: "tool", tool_call_id: "1", content: "sunny" },
      { role: "assistant", content: "Hello 👋" },
      {
        role: "user",
        content: [
          { type: "text", text: "And now?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
    ],
  },
};

const WEATHER = {
  name: "get_weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  execute: () => "sunny",
};

const QUESTION = { message: "How is the weather?" };

/** A server whose model calls an API with these responses. */
async function played(t: Cleanup, name: string, version: Version, replies: UpstreamReply[], agent = {}, env = {}) {
  const api = APIS[name] as Api;
  const upstream = await startUpstream(...replies);
  t.after(() => upstream.close());
  const model = api.make(await load(packageOf(name, version)), upstream.url.replace("/v1", api.path));
  assert.equal(model.specificationVersion, version);
  const options = { agent: { model, instructions: "Be brief.", tools: [WEATHER], ...agent }, env };
  return { upstream, server: await startServer(t, options), model };
}

/** Replaces ids of calls by their numbers: some APIs have none, and the package makes them up. */
function numbered(messages: unknown[], events: Outcome["events"]): unknown[] {
  const ids = events.flatMap((event) => (event.type === "tool_call" ? [event.data.id] : []));
  const text = ids.reduce((json, id, index) => json.replaceAll(`"${id}"`, `"${index + 1}"`), JSON.stringify(messages));
  return JSON.parse(text.replaceAll('{\\"city\\": ', '{\\"city\\":'));
}

for (const [name, api] of Object.entries(APIS)) {
  for (const version of VERSIONS) {
    test(`@ai-sdk/${name}, ${version}: after a tool and in a second message the API gets back all that it gave`, async (t) => {
      const [calls, text] = api.replies;
      const replies = [calls, text, text].map((body) => ({ body: [body] }));
      const { upstream, server, model } = await played(t, name, version, replies);
      const first = await send.sse(t, server, QUESTION);
      assert.ok(first.last.type === "done", JSON.stringify(first.last));
      assert.equal(first.last.data, "Hello 👋");
      assert.ok((first.last.usage?.output_tokens ?? 0) > 0);
      const thought = first.events.flatMap((event) => (event.type === "thinking" ? [event.data] : []));
      assert.equal(thought.join(""), "The user wants the weather.");
      assert.deepEqual(
        [...new Set(typesOf(first.events))].filter((type) => type !== "token"),
        ["thinking", "tool_call", "tool_result", "done"],
      );
      const last = await send.sse(t, server, {
        message: "And now?",
        state: stateOf(first.last),
        attachments: api.files(version),
      });
      assert.equal(last.last.type, "done", JSON.stringify(last.last));
      const [, second, third] = upstream.calls.map(({ json }) => json[api.field]);
      const expected = api.sent(version);
      assert.deepEqual(numbered(third, first.events), expected);
      assert.deepEqual(numbered(second, first.events), expected.slice(0, -2));
      const run = server.log.map((record) => JSON.parse(record)).find(({ msg }) => msg === "run");
      assert.equal(run.model, `${model.provider}/${model.modelId}`);
    });
  }
}

const anthropicError = (status: number, type: string, message: string, headers = {}) =>
  jsonReply(status, { type: "error", error: { type, message } }, headers);

/** Cut off before the arguments of a call, for which packages use "{}". */
const CUT_CALL = eventStream(
  {
    type: "message_start",
    message: { id: "1", model: "m", role: "assistant", content: [], usage: { input_tokens: 9, output_tokens: 1 } },
  },
  {
    type: "content_block_start",
    index: 0,
    content_block: { type: "tool_use", id: "toolu_1", name: "get_weather", input: {} },
  },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "max_tokens" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
);

interface Fault {
  reply: UpstreamReply;
  /** Error code, or finish reason. */
  end: string;
  retryAfter?: string;
  /** The result for version 2, if its package hides the fault. */
  v2?: string;
}

const FAULTS: Record<string, Record<string, Fault>> = {
  anthropic: {
    "a limit of rate with its wait": {
      reply: anthropicError(429, "rate_limit_error", "slow down", { "retry-after": "30" }),
      end: "provider_rate_limited",
      retryAfter: "30",
    },
    "a wrong key": { reply: anthropicError(401, "authentication_error", "invalid x-api-key"), end: "provider_auth" },
    "an account without credit": {
      reply: anthropicError(400, "invalid_request_error", "Your credit balance is too low"),
      end: "provider_rate_limited",
    },
    "a conversation that is too long": {
      reply: anthropicError(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
      end: "context_too_long",
    },
    "an overload inside the stream": { reply: { body: [fixture("anthropic/overloaded")] }, end: "provider_overloaded" },
    "a stream without an end": { reply: { body: [fixture("anthropic/cut")] }, end: "provider_truncated" },
    "a redirect": { reply: { status: 307, headers: { location: "/elsewhere" } }, end: "provider_error" },
    "a page in place of a stream": {
      reply: { headers: { "content-type": "text/html" }, body: ["<h1>Hi</h1>"] },
      end: "provider_error",
    },
    "a call that the token limit cut": { reply: { body: [CUT_CALL] }, end: "length" },
    "an answer that is withheld": { reply: { body: [fixture("anthropic/refusal")] }, end: "content_filter" },
  },
  google: {
    "a limit of rate whose wait is in the body": {
      reply: jsonReply(429, {
        error: { code: 429, message: "quota", status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "7s" }] },
      }),
      end: "provider_rate_limited",
      retryAfter: "7",
    },
    "a wrong key": {
      reply: jsonReply(400, { error: { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT" } }),
      end: "provider_auth",
    },
    "a stream without an end": { reply: { body: [eventStream(gemini([{ text: "Hel" }]))] }, end: "provider_truncated" },
    "a call that is none": {
      reply: { body: [eventStream(gemini([], { finishReason: "MALFORMED_FUNCTION_CALL" }))] },
      end: "provider_error",
      v2: "provider_truncated",
    },
    "an answer that is withheld": {
      reply: { body: [eventStream(gemini([], { finishReason: "SAFETY" }))] },
      end: "content_filter",
    },
  },
  mistral: {
    "a stream without an end": {
      reply: { body: [eventStream(chatChunk({ content: "Hel" }))] },
      end: "provider_truncated",
    },
    "the token limit": {
      reply: { body: [eventStream(chatChunk({ content: "Hel" }, "length"), "[DONE]")] },
      end: "length",
    },
  },
  "openai-compatible": {
    "a stream without an end": {
      reply: { body: [eventStream(chatChunk({ content: "Hel" }))] },
      end: "provider_truncated",
    },
    "an error inside the stream": {
      reply: { body: [eventStream(chatChunk({ content: "Hel" }), { error: { message: "no", type: "server_error" } })] },
      end: "provider_error",
    },
  },
};

for (const [name, faults] of Object.entries(FAULTS)) {
  for (const version of VERSIONS) {
    test(`@ai-sdk/${name}, ${version}: what goes wrong has the same codes as with a model by its name`, async (t) => {
      for (const [what, { reply, end, retryAfter, v2 = end }] of Object.entries(faults)) {
        // Repeated for faults that are retried.
        const { server } = await played(t, name, version, [reply, reply, reply]);
        const { last, headers } = await send.json(t, server, QUESTION);
        const actual = last.type === "done" ? last.finish_reason : last.code;
        assert.equal(actual, version === "v2" ? v2 : end, `${what}: ${JSON.stringify(last)} ${server.log}`);
        if (retryAfter !== undefined) assert.equal(headers.get("retry-after"), retryAfter, what);
      }
    });
  }
}

for (const version of VERSIONS) {
  test(`@ai-sdk/anthropic, ${version}: stop closes the connection to the API, and the conversation goes on`, async (t) => {
    const begun = fixture("anthropic/text").split("event: content_block_stop")[0] ?? "";
    const text: UpstreamReply = { body: [fixture("anthropic/text")] };
    const { upstream, server } = await played(t, "anthropic", version, [{ body: [begun], end: "stall" }, text]);
    const client = await connect(t, server.socketUrl);
    client.send({ message: "Hi" });
    assert.equal((await client.next()).type, "token");
    client.send({ type: "stop" });
    const done = (await client.until("done", "error")).at(-1);
    assert.ok(done?.type === "done" && done.finish_reason === "stopped");
    assert.equal(await upstream.calls[0]?.closed, "aborted");
    const next = await send.sse(t, server, { message: "Go on", state: stateOf(done) });
    assert.equal(next.last.data, "Hello 👋");
  });

  test(`@ai-sdk/anthropic, ${version}: an overload is tried again, and then the fallback answers, be it an object or a name`, async (t) => {
    const overloaded = anthropicError(529, "overloaded_error", "Overloaded", { "retry-after": "0" });
    const again = await played(t, "anthropic", version, [overloaded, { body: [fixture("anthropic/text")] }]);
    assert.equal((await send.sse(t, again.server, QUESTION)).last.data, "Hello 👋");
    const refused = anthropicError(401, "authentication_error", "no");
    const other = await played(t, "openai-compatible", version, [{ body: [CHAT_TEXT] }]);
    const first = await played(t, "anthropic", version, [refused], { fallbacks: [other.model] });
    const { last } = await send.sse(t, first.server, QUESTION);
    assert.ok(last.type === "done", JSON.stringify(last));
    assert.deepEqual([last.data, last.model], ["Hello 👋", "deepseek.chat/deepseek"]);
    const env = { COMPATIBLE_BASE_URL: other.upstream.url };
    other.upstream.reply({ body: [CHAT_TEXT] });
    const named = await played(t, "anthropic", version, [refused], { fallbacks: ["compatible/deepseek"] }, env);
    assert.equal((await send.sse(t, named.server, QUESTION)).last.data, "Hello 👋");
  });
}

const mock = new LLMock({ port: 0, strict: true });
mock.onMessage("hello", { content: "Hello from the fake.", reasoning: "A greeting." });
const call = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });
mock.addFixture({
  match: { userMessage: "weather", hasToolResult: false },
  response: { reasoning: "Two cities.", toolCalls: [call("Lima"), call("Oslo")] },
});
mock.addFixture({ match: { hasToolResult: true }, response: { content: "Mild in Lima, cold in Oslo." } });
await mock.start();
after(() => mock.stop());

for (const version of VERSIONS) {
  test(`${version}: an API that others play takes the requests of every package`, async (t) => {
    // Not as Google, because the fake ends calls with a finish reason that Google lacks.
    for (const [name, api] of Object.entries(APIS).filter(([other]) => other !== "google")) {
      const model = api.make(await load(packageOf(name, version)), `${mock.url}${api.path}`);
      const server = await startServer(t, { agent: { model, tools: [WEATHER] } });
      const { events, last } = await send.sse(t, server, { message: "weather" });
      assert.equal(last.data, "Mild in Lima, cold in Oslo.", name);
      assert.equal(typesOf(events).filter((type) => type === "tool_result").length, 2, name);
      assert.ok(last.type === "done");
      const next = await send.sse(t, server, { message: "hello", state: stateOf(last) });
      assert.equal(next.last.data, "Hello from the fake.", name);
    }
  });
}

/** A cached answer as each API reports it, and the usage that all versions of its package must give. */
const COUNTED: [name: string, reply: string, usage: Usage][] = [
  [
    "anthropic",
    fixture("anthropic/cached"),
    { input_tokens: 2003, output_tokens: 6, cached_input_tokens: 1800, cache_write_tokens: 200 },
  ],
  [
    "google",
    eventStream({
      candidates: [{ content: { role: "model", parts: [{ text: "Hi" }] }, index: 0, ...GEMINI_STOP }],
      usageMetadata: {
        ...{ promptTokenCount: 20, cachedContentTokenCount: 8, candidatesTokenCount: 5, thoughtsTokenCount: 7 },
        totalTokenCount: 32,
      },
    }),
    { input_tokens: 20, output_tokens: 12, cached_input_tokens: 8, reasoning_tokens: 7 },
  ],
  [
    "openai-compatible",
    eventStream(
      chatChunk({ content: "Hi" }),
      {
        ...chatChunk({}, "stop"),
        usage: {
          ...{ prompt_tokens: 20, completion_tokens: 12, total_tokens: 32 },
          ...{ prompt_tokens_details: { cached_tokens: 8 }, completion_tokens_details: { reasoning_tokens: 7 } },
        },
      },
      "[DONE]",
    ),
    { input_tokens: 20, output_tokens: 12, cached_input_tokens: 8, reasoning_tokens: 7 },
  ],
];

for (const [name, reply, usage] of COUNTED) {
  for (const version of VERSIONS) {
    test(`@ai-sdk/${name}, ${version}: what a cache gave counts as input, and thoughts count as output`, async (t) => {
      const { server } = await played(t, name, version, [{ body: [reply] }]);
      const { last } = await send.json(t, server, QUESTION);
      assert.deepEqual(last.type === "done" && last.usage, usage, JSON.stringify(last));
    });
  }
}

const [, EXAMPLE = ""] =
  /```ts\n(import \{ anthropic \}.*?)```/s.exec(readFileSync("docs/ai-sdk-models.md", "utf8")) ?? [];

test("docs/ai-sdk-models.md: the agent answers behind the command", async (t) => {
  await using upstream = await startUpstream({ body: [fixture("anthropic/thinking")] });
  writeFileSync(join(folder, "agent.ts"), EXAMPLE);
  const env = { ANTHROPIC_API_KEY: "mock", ANTHROPIC_BASE_URL: upstream.url };
  const server = await start(t, [folder], { env });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type, "done", JSON.stringify(last));
  assert.deepEqual(upstream.calls[0]?.json.thinking, { type: "enabled", budget_tokens: 4096 });
});

test("the types of every package fit, in every version, and no others do", () => {
  const agents = ["anthropic", "google", "mistral", "openai-compatible"].flatMap((name, index) =>
    VERSIONS.map((version) => {
      const maker = ["createAnthropic", "createGoogleGenerativeAI", "createMistral", "createOpenAICompatible"][index];
      const options = name === "openai-compatible" ? '{ name: "x", baseURL: "http://x" }' : "{}";
      const local = `make${index}${version}`;
      return `import { ${maker} as ${local} } from "${packageOf(name, version)}";
defineAgent({ name: "A", model: ${local}(${options})("m"), fallbacks: [${local}(${options})("n"), "demo"] });`;
    }),
  );
  const wrong = `// @ts-expect-error: a provider is no model.
defineAgent({ name: "A", model: make0v3() });
// @ts-expect-error: an embedding model is none, either.
defineAgent({ name: "A", model: make2v3().textEmbeddingModel("m") });`;
  writeFileSync(join(folder, "types.ts"), ['import { defineAgent } from "parley-agent";', ...agents, wrong].join("\n"));
  const compilerOptions = {
    rootDir: "/",
    types: ["node"],
    typeRoots: [join(REPOSITORY, "node_modules/@types")],
    paths: { "parley-agent": [join(REPOSITORY, "server/parley-agent.ts")] },
  };
  const tsconfig = { extends: join(REPOSITORY, "tsconfig.json"), compilerOptions, include: ["*.ts"], exclude: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  execFileSync("node", [join(REPOSITORY, "node_modules/typescript/bin/tsc"), "-p", folder], {
    stdio: ["ignore", "inherit", "inherit"],
  });
});
