/** Token usage: each API and framework has its own fields, which clients get in one form. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Usage } from "../../server/protocol/chat.ts";
import { PROVIDER_ROWS } from "../../server/providers/index.ts";
import { frames } from "../support/bedrock.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { mastra } from "../support/hosted-streams.ts";
import { call, end, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { eventStream, fixture, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

/** Token counts as clients read them: input, output, cached, cache writes, reasoning. */
type Count = number | undefined;
type Counts = readonly [input: number, output: number, cached?: Count, written?: Count, reasoning?: Count];

const FIELDS = [
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
] as const satisfies readonly (keyof Usage)[];

const usageOf = (counts: Counts): Usage =>
  Object.fromEntries(FIELDS.flatMap((name, index) => (counts[index] === undefined ? [] : [[name, counts[index]]]))) as
    // biome-ignore lint/suspicious/noExplicitAny: the first two are always there.
    any;

type Env = (url: string) => Record<string, string>;

interface Wire {
  model: string;
  env: Env;
  /** An answer with this usage. */
  reply(usage: object): UpstreamReply;
}

const chat = (usage: object): UpstreamReply => {
  const choices = [{ index: 0, delta: { content: "Yes." }, finish_reason: "stop" }];
  return { body: [eventStream({ choices }, { choices: [], usage }, "[DONE]")] };
};
const ROOT = (url: string) => url.replace(/\/v1$/, "");

const WIRES = {
  openai: {
    model: RESPONSES.model,
    env: RESPONSES.env,
    reply: (usage) => {
      const response = { id: "resp_1", status: "completed", output: [], usage };
      const said = { type: "response.output_text.delta", item_id: "msg_1", delta: "Yes." };
      return { body: [eventStream(said, { type: "response.completed", response })] };
    },
  },
  litellm: { model: CHAT_COMPLETIONS.model, env: CHAT_COMPLETIONS.env, reply: chat },
  anthropic: {
    model: "anthropic/claude-sonnet-5",
    env: (url) => ({ ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: ROOT(url) }),
    reply: (usage) => {
      const said = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Yes." } };
      return {
        body: [
          eventStream(
            { type: "message_start", message: { usage: { ...usage, output_tokens: 1 } } },
            { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
            said,
            { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
            { type: "message_stop" },
          ),
        ],
      };
    },
  },
  gemini: {
    model: "gemini/gemini-3-flash-preview",
    env: (url) => ({ GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: url }),
    reply: chat,
  },
  vertex: {
    model: "vertex/gemini-2.5-flash",
    env: (url) => ({ VERTEX_ACCESS_TOKEN: "ya29-test", GOOGLE_CLOUD_PROJECT: "p", VERTEX_BASE_URL: url }),
    reply: chat,
  },
  ollama: { model: "ollama/qwen3:8b", env: (url) => ({ OLLAMA_BASE_URL: url }), reply: chat },
  bedrock: {
    model: "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    env: (url) => ({ AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "a-key", BEDROCK_BASE_URL: ROOT(url) }),
    reply: (usage) =>
      frames(
        { messageStart: { role: "assistant" } },
        { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "Yes." } } },
        { messageStop: { stopReason: "end_turn" } },
        { metadata: { usage } },
      ),
  },
  compatible: { model: "compatible/qwen3-8b", env: (url) => ({ COMPATIBLE_BASE_URL: url }), reply: chat },
} satisfies Record<string, Wire>;

/** Usage reported by an API, from its documentation or recorded, and what clients read. */
const REPORTS: [wire: keyof typeof WIRES, what: string, reported: object, read: Counts][] = [
  [
    "openai",
    "Responses",
    {
      ...{ input_tokens: 81, input_tokens_details: { cached_tokens: 64 } },
      ...{ output_tokens: 1035, output_tokens_details: { reasoning_tokens: 832 }, total_tokens: 1116 },
    },
    [81, 1035, 64, undefined, 832],
  ],
  [
    "openai",
    "writes to the cache, of models that charge for them",
    { input_tokens: 90, input_tokens_details: { cached_tokens: 0, cache_write_tokens: 64 }, output_tokens: 3 },
    [90, 3, 0, 64],
  ],
  [
    "anthropic",
    "what a cache gave and took stands beside the input",
    {
      ...{ input_tokens: 21, cache_creation_input_tokens: 188, cache_read_input_tokens: 1800 },
      ...{ output_tokens: 393, output_tokens_details: { thinking_tokens: 300 } },
    },
    [2009, 393, 1800, 188, 300],
  ],
  ["anthropic", "no cache", { input_tokens: 25, output_tokens: 15 }, [25, 15]],
  [
    "bedrock",
    "what a cache gave and took stands beside the input, and in the total",
    { inputTokens: 13, outputTokens: 10, totalTokens: 29, cacheReadInputTokens: 5, cacheWriteInputTokens: 1 },
    [19, 10, 5, 1],
  ],
  ["bedrock", "no cache", { inputTokens: 40, outputTokens: 33, totalTokens: 73 }, [40, 33]],
  [
    "gemini",
    "thoughts count in the total alone",
    { prompt_tokens: 4220, completion_tokens: 20, total_tokens: 4300, prompt_tokens_details: { cached_tokens: 4096 } },
    [4220, 80, 4096],
  ],
  [
    "vertex",
    "thoughts stand beside the output",
    {
      ...{ prompt_tokens: 10, completion_tokens: 12, total_tokens: 80 },
      ...{ completion_tokens_details: { reasoning_tokens: 58 }, extra_properties: { google: {} } },
    },
    [10, 70, undefined, undefined, 58],
  ],
  [
    "litellm",
    "Claude behind LiteLLM",
    {
      ...{ prompt_tokens: 2009, completion_tokens: 393, total_tokens: 2402 },
      ...{ prompt_tokens_details: { cached_tokens: 1800 }, completion_tokens_details: { reasoning_tokens: 300 } },
      ...{ cache_creation_input_tokens: 188, cache_read_input_tokens: 1800 },
    },
    [2009, 393, 1800, 188, 300],
  ],
  ["ollama", "two counts", { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }, [9, 3]],
  [
    "compatible",
    "DeepSeek",
    {
      ...{ prompt_tokens: 320, completion_tokens: 180, total_tokens: 500, prompt_cache_hit_tokens: 256 },
      ...{ prompt_cache_miss_tokens: 64, completion_tokens_details: { reasoning_tokens: 90 } },
    },
    [320, 180, 256, undefined, 90],
  ],
  [
    "compatible",
    "OpenRouter",
    {
      ...{ prompt_tokens: 194, completion_tokens: 2, total_tokens: 196, cost: 0.95 },
      prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 100, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 1 },
    },
    [194, 2, 10, 100, 1],
  ],
  [
    "compatible",
    "Moonshot",
    { prompt_tokens: 19, completion_tokens: 21, total_tokens: 40, cached_tokens: 10 },
    [19, 21, 10],
  ],
  [
    "compatible",
    "Qwen, with a cache that was written to",
    {
      ...{ prompt_tokens: 1200, completion_tokens: 5, total_tokens: 1205 },
      prompt_tokens_details: { cached_tokens: 0, cache_creation_input_tokens: 1100 },
    },
    [1200, 5, 0, 1100],
  ],
  [
    "compatible",
    "xAI, whose thoughts stand beside the output",
    {
      ...{ prompt_tokens: 32, completion_tokens: 9, total_tokens: 135 },
      ...{ prompt_tokens_details: { cached_tokens: 6 }, completion_tokens_details: { reasoning_tokens: 94 } },
    },
    [32, 103, 6, undefined, 94],
  ],
  [
    "compatible",
    "Perplexity",
    { prompt_tokens: 33, completion_tokens: 900, reasoning_tokens: 700 },
    [33, 900, undefined, undefined, 700],
  ],
  [
    "compatible",
    "details without numbers",
    {
      prompt_tokens: 9,
      completion_tokens: 3,
      prompt_tokens_details: null,
      completion_tokens_details: { reasoning_tokens: null },
    },
    [9, 3],
  ],
];

for (const [name, what, reported, read] of REPORTS) {
  test(`${name}: ${what}`, async (t) => {
    const { model, env, reply } = WIRES[name];
    await using upstream = await startUpstream(reply(reported));
    const server = await startServer(t, { agent: { model }, env: env(upstream.url) });
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.deepEqual(last.type === "done" && last.usage, usageOf(read), JSON.stringify(last));
  });
}

test("each provider has a row, but for the demo, which counts words", () => {
  const tried = new Set<string>(REPORTS.map(([name]) => name));
  assert.deepEqual(Object.keys(PROVIDER_ROWS).sort(), [...tried, "demo"].sort());
});

test("Anthropic's recorded answer from a cache", async (t) => {
  const { model, env } = WIRES.anthropic;
  await using upstream = await startUpstream({ body: [fixture("anthropic/cached")] });
  const server = await startServer(t, { agent: { model }, env: env(upstream.url) });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.deepEqual(last.type === "done" && last.usage, usageOf([2003, 6, 1800, 200]));
});

/** Usage at the end of an answer, from packages of the AI SDK. */
const FINISHES: [what: string, version: string, finish: object, read: Counts][] = [
  [
    "v2: OpenAI's package",
    "v2",
    { usage: { inputTokens: 81, outputTokens: 1035, totalTokens: 1116, reasoningTokens: 832, cachedInputTokens: 64 } },
    [81, 1035, 64, undefined, 832],
  ],
  [
    "v2: Anthropic's package, which counts what a cache gave apart",
    "v2",
    {
      usage: { inputTokens: 2000, outputTokens: 393, totalTokens: 2393, cachedInputTokens: 1800 },
      providerMetadata: { anthropic: { usage: {}, cacheCreationInputTokens: 188 } },
    },
    [3988, 393, 1800, 188],
  ],
  [
    "v2: Bedrock's package, which does so, too",
    "v2",
    {
      usage: { inputTokens: 13, outputTokens: 10, totalTokens: 29, cachedInputTokens: 5 },
      providerMetadata: { bedrock: { usage: { cacheWriteInputTokens: 1 } } },
    },
    [19, 10, 5, 1],
  ],
  [
    "v2: Google's package, which counts thoughts in the total alone",
    "v2",
    { usage: { inputTokens: 20, outputTokens: 5, totalTokens: 32, reasoningTokens: 7, cachedInputTokens: undefined } },
    [20, 12, undefined, undefined, 7],
  ],
  ...["v3", "v4"].map((version): [string, string, object, Counts] => [
    `${version}: counts in objects`,
    version,
    {
      usage: {
        inputTokens: { total: 2009, noCache: 21, cacheRead: 1800, cacheWrite: 188 },
        outputTokens: { total: 393, text: 93, reasoning: 300 },
      },
    },
    [2009, 393, 1800, 188, 300],
  ]),
  [
    "v3: details that are not known",
    "v3",
    { usage: { inputTokens: { total: 7, cacheRead: undefined }, outputTokens: { total: 3, reasoning: undefined } } },
    [7, 3],
  ],
];

for (const [what, specificationVersion, finish, read] of FINISHES) {
  test(`a model of the AI SDK: ${what}`, async (t) => {
    const finishReason = specificationVersion === "v2" ? "stop" : { unified: "stop" };
    const model = {
      specificationVersion,
      provider: "acme.chat",
      modelId: "m-1",
      doStream: async () => ({
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: "text-start", id: "1" });
            controller.enqueue({ type: "text-delta", id: "1", delta: "Yes." });
            controller.enqueue({ type: "finish", finishReason, ...finish });
            controller.close();
          },
        }),
      }),
    } as never;
    const { last } = await send.json(t, await startServer(t, { agent: { model } }), { message: "Hi" });
    assert.deepEqual(last.type === "done" && last.usage, usageOf(read), JSON.stringify(last));
  });
}

const GRAPH = { langgraph_node: "agent", checkpoint_ns: "" };
const piece = (usage_metadata: object) => [
  "messages",
  [{ id: "m1", type: "AIMessageChunk", content: "Yes.", concat() {}, usage_metadata }, GRAPH],
];
const responseDone = (usage: object) => ({
  type: "raw_model_stream_event",
  data: { type: "response_done", response: { output: [], usage } },
});

/** Usage reported by frameworks; two reports add up. */
const HOSTED: [framework: string, items: (which: 0 | 1) => unknown[], read: Counts][] = [
  [
    "its own events",
    (which) => [
      "Yes.",
      {
        type: "usage",
        data: [
          { input_tokens: 3, output_tokens: 2, cached_input_tokens: 1 },
          { input_tokens: 30, output_tokens: 20, cache_write_tokens: 4, reasoning_tokens: 5 },
        ][which],
      },
    ],
    [33, 22, 1, 4, 5],
  ],
  [
    "AI SDK 5",
    () => [
      { type: "text-delta", id: "t", text: "Yes." },
      {
        type: "finish",
        finishReason: "stop",
        totalUsage: { inputTokens: 10, outputTokens: 2, totalTokens: 15, reasoningTokens: 3, cachedInputTokens: 4 },
      },
    ],
    [20, 10, 8, undefined, 6],
  ],
  [
    "AI SDK 6 and 7",
    () => [
      { type: "text-delta", id: "t", text: "Yes." },
      {
        type: "finish",
        finishReason: "stop",
        totalUsage: {
          ...{ inputTokens: 10, outputTokens: 5, totalTokens: 15 },
          inputTokenDetails: { noCacheTokens: 3, cacheReadTokens: 5, cacheWriteTokens: 2 },
          outputTokenDetails: { textTokens: 4, reasoningTokens: 1 },
        },
      },
    ],
    [20, 10, 10, 4, 2],
  ],
  [
    "OpenAI Agents SDK",
    () => [
      { type: "raw_model_stream_event", data: { type: "output_text_delta", delta: "Yes." } },
      responseDone({
        ...{ inputTokens: 10, outputTokens: 5, totalTokens: 15 },
        ...{ inputTokensDetails: { cached_tokens: 4 }, outputTokensDetails: [{ reasoning_tokens: 3 }] },
      }),
    ],
    [20, 10, 8, undefined, 6],
  ],
  [
    "LangGraph",
    () => [
      piece({
        ...{ input_tokens: 10, output_tokens: 5, total_tokens: 15 },
        ...{ input_token_details: { cache_read: 4, cache_creation: 2 }, output_token_details: { reasoning: 3 } },
      }),
    ],
    [20, 10, 8, 4, 6],
  ],
  [
    "Mastra",
    () => [
      mastra("text-delta", { id: "t", text: "Yes." }),
      mastra("finish", {
        stepResult: { reason: "stop" },
        output: {
          usage: {
            ...{ inputTokens: 10, outputTokens: 5, totalTokens: 15 },
            ...{ reasoningTokens: 3, cachedInputTokens: 4, cacheCreationInputTokens: 2 },
          },
        },
      }),
    ],
    [20, 10, 8, 4, 6],
  ],
  [
    "AG-UI",
    () => [
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Yes." },
      {
        type: "RUN_FINISHED",
        usage: [
          {
            model: "a",
            inputTokens: 6,
            outputTokens: 2,
            totalTokens: 8,
            cachedInputTokens: 4,
            cacheWriteInputTokens: 2,
          },
          { model: "b", inputTokens: 4, outputTokens: 3, totalTokens: 7, reasoningTokens: 3 },
        ],
      },
    ],
    [20, 10, 8, 4, 6],
  ],
];

for (const [framework, items, read] of HOSTED) {
  test(`an agent that is written elsewhere: ${framework}`, async (t) => {
    async function* run() {
      yield* items(0);
      yield* items(1);
    }
    const agent = { model: undefined, run } as never;
    const { last } = await send.json(t, await startServer(t, { agent }), { message: "Hi" });
    assert.deepEqual(last.type === "done" && last.usage, usageOf(read), JSON.stringify(last));
  });
}

test("turns add up, and a count is absent only if no turn has it", async (t) => {
  const turns = () => [
    [call("c1", "echo", { text: "a" }), end("stop", usageOf([10, 1, 4]))],
    [say("Done"), end("stop", usageOf([20, 2, 5, undefined, 1]))],
  ];
  const outcomes = await onEveryTransport(t, () => ({ turns: turns(), agent: { tools: [echo] } }), { message: "Hi" });
  for (const { last } of Object.values(outcomes)) {
    assert.deepEqual(last.type === "done" && last.usage, usageOf([30, 3, 9, undefined, 1]));
  }
});

test("the log has every count that was reported, and none that was not", async (t) => {
  const turns = [[say("Done"), end("stop", usageOf([20, 2, 5, undefined, 1]))]];
  const server = await startServer(t, { turns });
  await send.json(t, server, { message: "Hi" });
  const record = server.log.map((text) => JSON.parse(text)).find(({ msg }) => msg === "run");
  assert.deepEqual(
    FIELDS.map((name) => record[name]),
    [20, 2, 5, undefined, 1],
  );
});
