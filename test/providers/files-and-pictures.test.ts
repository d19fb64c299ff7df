/** What each provider's API gets of text files and of pictures in tool results, also from a client's history. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { HistoryMessage, HistoryToolCall, ImagePart, ToolContent } from "../../server/protocol/chat.ts";
import type { AiSdkLanguageModel } from "../../server/providers/ai-sdk/language-model.ts";
import { createModelObject } from "../../server/providers/ai-sdk/provider.ts";
import { textContent } from "../../server/providers/history.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { stream as claudeStream } from "../support/anthropic.ts";
import { bedrock, stream as bedrockStream } from "../support/bedrock.ts";
import { stream } from "../support/chat-servers.ts";
import { SENT_TEXT_FILE, TEXT_FILE } from "../support/files.ts";
import { PROVIDERS_WITH_HISTORY, type ProviderRow } from "../support/providers-with-history.ts";
import { ask, INSTANT_CLOCK, open, PATIENT, responsesProvider } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

type Row = Pick<ProviderRow, "name" | "provider" | "text">;

const ROWS: Row[] = [
  ...PROVIDERS_WITH_HISTORY,
  {
    name: "openai",
    provider: responsesProvider,
    text: stream("responses/text"),
  },
];

/** An AI SDK model that answers "Hi", and its requests. */
function modelObject(about: Partial<AiSdkLanguageModel> = {}): { provider: Provider; asked: object[] } {
  const asked: object[] = [];
  const parts = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Hi" },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: "stop", usage: {} },
  ];
  const model: AiSdkLanguageModel = {
    specificationVersion: "v3",
    provider: "acme.chat",
    modelId: "m-1",
    async doStream({ prompt }: { prompt: object }) {
      asked.push(prompt);
      const start = (controller: ReadableStreamDefaultController) => {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      };
      return { stream: new ReadableStream({ start }) };
    },
    ...about,
  };
  const setup = { mediaTypes: ALL_MEDIA_TYPES, modelSettings: {}, limits: PATIENT, clock: INSTANT_CLOCK };
  return { provider: createModelObject(model, setup), asked };
}

/** All strings in a value. */
function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/** Sends two messages, the first with a text file, and checks the requests. */
async function tryTextFile(provider: Provider, asked: () => readonly object[]): Promise<void> {
  const first = open(provider, { message: "Read this", attachments: [TEXT_FILE] });
  assert.equal((await ask(first)).error, undefined);
  const state = JSON.parse(JSON.stringify(first.state()));
  assert.equal((await ask(open(provider, { message: "And now?", state }))).error, undefined);
  const [one, two] = asked().map(stringsIn);
  assert.equal(one?.filter((text) => text.includes(SENT_TEXT_FILE)).length, 1);
  assert.doesNotMatch(JSON.stringify(asked()), /text\/markdown|base64|data:/);
  // An API that stores the conversation already has the file.
  const isKept = state.previous_response_id !== undefined;
  assert.equal(two?.filter((text) => text.includes(SENT_TEXT_FILE)).length, isKept ? 0 : 1);
}

for (const { name, provider, text } of ROWS) {
  test(`${name}: a text file is sent as a text, fenced below its name, and again with the history`, async () => {
    await using upstream = await startUpstream(text, text);
    await tryTextFile(await provider(upstream), () => upstream.calls.map(({ json }) => json));
  });
}

test("a model of the AI SDK gets a text file as a text, fenced below its name, and again with the history", async () => {
  const { provider, asked } = modelObject();
  await tryTextFile(provider, () => asked);
});

test("a server of Chat Completions gets a message without pictures as one text, which every server takes", async () => {
  const row = ROWS.find(({ name }) => name === "litellm") ?? assert.fail();
  await using upstream = await startUpstream(row.text);
  await ask(open(await row.provider(upstream), { message: "Read this", attachments: [TEXT_FILE] }));
  const [{ content } = assert.fail()] = upstream.calls[0]?.json.messages.slice(-1) ?? [];
  assert.equal(content, `Read this\n\n${SENT_TEXT_FILE}`);
});

// Pictures in the results of two calls of one turn: the first result has two, the second only a text.

const [RED, WEBP]: [string, string] = ["iVBORw0KGgoAAAANSUhEUg==", "UklGRgAAAABXRUJQ"];
const picture = (type: string, data: string): ImagePart => ({
  type: "image_url",
  image_url: { url: `data:${type};base64,${data}` },
});
const PICTURES = [picture("image/png", RED), picture("image/webp", WEBP)];
const TOOLS = ["get_weather", "get_time"].map((name) => ({
  name,
  description: "For a test.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
}));
const RESULTS: ToolContent[][] = [[...textContent("Two charts"), ...PICTURES], textContent("None")];

// biome-ignore lint/suspicious/noExplicitAny: each API has a body of its own.
type Body = any;

/** The part of each API's request with the two results, without ids. */
const SENT: Record<string, (body: Body) => unknown> = {
  openai: ({ input }) =>
    input.flatMap(({ type, output }: Body) => (type === "function_call_output" ? [output] : [])).slice(0, 2),
  anthropic: ({ messages }) =>
    messages
      .at(-1)
      .content.slice(0, 2)
      .map(({ content }: Body) => content),
  bedrock: ({ messages }) =>
    messages
      .at(-1)
      .content.slice(0, 2)
      .map(({ toolResult }: Body) => toolResult.content),
  chat: ({ messages }) => {
    const sent = messages.slice(messages.findIndex(({ role }: Body) => role === "tool"));
    return sent
      .map(({ role, content }: Body) => [role, content])
      .filter(([role]: Body, at: number) => role === "user" || at < 2);
  },
};

const dataUrl = (type: string, data: string) => `data:${type};base64,${data}`;
const inputImage = (type: string, data: string) => ({
  type: "input_image",
  image_url: dataUrl(type, data),
  detail: "auto",
});
const claudeImage = (media_type: string, data: string) => ({
  type: "image",
  source: { type: "base64", media_type, data },
});

const EXPECTED: Record<string, unknown> = {
  openai: [
    [{ type: "input_text", text: "Two charts" }, inputImage("image/png", RED), inputImage("image/webp", WEBP)],
    "None",
  ],
  anthropic: [
    [{ type: "text", text: "Two charts" }, claudeImage("image/png", RED), claudeImage("image/webp", WEBP)],
    "None",
  ],
  bedrock: [
    [
      { text: "Two charts" },
      { image: { format: "png", source: { bytes: RED } } },
      { image: { format: "webp", source: { bytes: WEBP } } },
    ],
    [{ text: "None" }],
  ],
  chat: [
    ["tool", "Two charts"],
    ["tool", "None"],
    ["user", [{ type: "text", text: "[From the result of NAME:]" }, ...PICTURES]],
  ],
};

/** Makes the model call tools and answers them; returns the requests with the results, and later with the history. */
async function tryPictures(provider: Provider): Promise<string> {
  const first = open(provider, { tools: TOOLS });
  const { events, error } = await ask(first);
  assert.equal(error, undefined);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call] : []));
  assert.ok(calls.length >= 2);
  first.answer(
    calls.map(({ id, name }, at) => ({ id, name, content: RESULTS[at === 0 ? 0 : 1] ?? [], failed: false })),
  );
  assert.equal((await ask(first)).error, undefined);
  const state = JSON.parse(JSON.stringify(first.state()));
  assert.equal((await ask(open(provider, { tools: TOOLS, message: "And?", state }))).error, undefined);
  return calls[0]?.name ?? "";
}

const CALLS: Record<string, UpstreamReply> = {
  litellm: stream("chat-completions/two-parallel-calls"),
  compatible: stream("chat-completions/two-parallel-calls"),
  gemini: stream("gemini/parallel-calls"),
  vertex: stream("gemini/parallel-calls"),
  ollama: stream("ollama/parallel-calls"),
  anthropic: claudeStream("parallel-tools"),
  bedrock: bedrockStream("two-parallel-calls"),
  openai: stream("responses/reasoning-and-two-calls"),
  "openai, store: false": stream("responses/reasoning-and-two-calls"),
};

for (const { name, provider, text } of ROWS) {
  test(`${name}: pictures in a tool's result are sent as the API takes them, and again with the history`, async () => {
    await using upstream = await startUpstream(CALLS[name] ?? assert.fail(name), text, text);
    const tool = await tryPictures(await provider(upstream));
    const api = Object.keys(SENT).find((one) => name.startsWith(one)) ?? "chat";
    const [, withResults, later] = upstream.calls.map(({ json }) => json);
    const expected = JSON.parse(JSON.stringify(EXPECTED[api]).replace("NAME", tool));
    assert.deepEqual(SENT[api]?.(withResults), expected);
    const isKept = later.previous_response_id !== undefined;
    assert.equal(JSON.stringify(later).includes(RED), !isKept);
  });
}

for (const [provider, specificationVersion, sent] of [
  ["anthropic.messages", "v2", { type: "media", mediaType: "image/png", data: RED }],
  ["google.generative-ai", "v3", { type: "image-data", mediaType: "image/png", data: RED }],
  ["openai.responses", "v4", { type: "file", mediaType: "image/png", data: { type: "data", data: RED } }],
  ["acme.chat", "v3", undefined],
] as const) {
  test(`a model of ${provider}, specification ${specificationVersion}, gets pictures ${sent ? "in the result" : "after it"}`, async () => {
    const { provider: model, asked } = modelObject({ provider, specificationVersion });
    const call: HistoryToolCall = { id: "c1", type: "function", function: { name: "chart", arguments: "{}" } };
    const conversation_history: HistoryMessage[] = [
      { role: "user", content: "Draw it" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: [...textContent("A chart"), picture("image/png", RED)] },
      { role: "assistant", content: "Here it is." },
    ];
    const { error } = await ask(open(model, { message: "Thanks", state: { conversation_history } }));
    assert.equal(error, undefined);
    const text = { type: "text", text: "A chart" };
    const prompt = (asked[0] as Body[]).slice(3, -2).map(({ role, content }) => [role, content]);
    const file = { type: "file", mediaType: "image/png", data: RED };
    const inside = { type: "content", value: [text, sent] };
    const output = sent ? inside : { type: "text", value: "A chart" };
    const result = ["tool", [{ type: "tool-result", toolCallId: "c1", toolName: "chart", output }]];
    const after = [
      ["assistant", [{ type: "text", text: "The pictures follow." }]],
      ["user", [{ type: "text", text: "[From the result of chart:]" }, file]],
    ];
    assert.deepEqual(prompt, sent ? [result] : [result, ...after]);
  });
}

test("a model on Bedrock of which it is not known that it takes pictures in results gets them after these", async () => {
  await using upstream = await startUpstream(
    CALLS.bedrock ?? assert.fail(),
    bedrockStream("text"),
    bedrockStream("text"),
  );
  await tryPictures(await bedrock(upstream, { model: "mistral.mistral-large-3" }));
  const [first, second, _third, ...after] = upstream.calls.at(1)?.json.messages.at(-1).content ?? [];
  assert.deepEqual(
    [first, second].map(({ toolResult }: Body) => toolResult.content),
    [[{ text: "Two charts" }], [{ text: "None" }]],
  );
  assert.deepEqual(after, [
    { text: "[From the result of get_weather:]" },
    { image: { format: "png", source: { bytes: RED } } },
    { image: { format: "webp", source: { bytes: WEBP } } },
  ]);
});

test("a server that wants an answer between results and user gets one before the pictures", async () => {
  const refusal = jsonReply(400, { error: { message: "Unexpected role 'user' after role 'tool'" } });
  const litellm = ROWS.find(({ name }) => name === "litellm") ?? assert.fail();
  await using upstream = await startUpstream(CALLS.litellm ?? assert.fail(), refusal, litellm.text, litellm.text);
  await tryPictures(await litellm.provider(upstream));
  const { messages } = upstream.calls[2]?.json ?? {};
  assert.deepEqual(
    messages.slice(-2).map(({ role }: Body) => role),
    ["assistant", "user"],
  );
});
