/** Pictures in tool results: what clients, states and models get. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { toolResult } from "../../server/parley-agent.ts";
import type { ConversationState, FinishedToolCall, HistoryMessage } from "../../server/protocol/chat.ts";
import { onEveryTransport, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { attachment, RED_PIXEL } from "../support/files.ts";
import { call, say, type Turn } from "../support/scripted-provider.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const MEBIBYTE = 1024 * 1024;
const RED = RED_PIXEL.toString("base64");
const PNG = { data: RED, mimeType: "image/png" } as const;

/** A PNG of this size. */
const png = (bytes: number) => {
  const { data } = attachment("image/png", { bytes });
  return { data: String(data), mimeType: "image/png" } as const;
};

const drawing = (execute: () => unknown, more: object = {}): ServerOptions => ({
  turns: [[call("c1", "draw")], [say("Drawn.")], [say("Still there.")], [say("And now.")]] satisfies Turn[],
  agent: { tools: [define("draw", execute, more)] },
});

const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("base64url");
const omitted = () => ({
  type: "omitted",
  omitted: { sha256: digestOf(RED_PIXEL), mime_type: "image/png", bytes: RED_PIXEL.length },
});

const resultIn = (events: readonly { type: string }[]): FinishedToolCall => {
  const found = events.find(({ type }) => type === "tool_result") as { data: FinishedToolCall } | undefined;
  return found?.data ?? assert.fail();
};

const pictureIn = (state: ConversationState | undefined) =>
  state?.conversation_history?.find(({ role }) => role === "tool")?.content;

test("a picture is in the result's event on every transport, in the state, and before the model, now and later", async (t) => {
  const data = new Uint8Array([0, ...RED_PIXEL]).subarray(1);
  const made = () => toolResult({ text: "A dot", images: [{ data, mimeType: "image/png" }], json: { size: 1 } });
  const { json, sse } = await onEveryTransport(t, () => drawing(made), { message: "Draw" });
  const result = resultIn(sse.events);
  assert.deepEqual(
    [result.output, result.status, result.images_omitted],
    ['A dot\n{"size":1}', "completed", undefined],
  );
  assert.deepEqual(result.images, [{ mime_type: "image/png", data: RED }]);
  assert.deepEqual((json.toolCalls as FinishedToolCall[])[0]?.images, result.images);
  const server = await startServer(t, drawing(made));
  const { last } = await send.sse(t, server, { message: "Draw" });
  assert.deepEqual(pictureIn(last.state), [
    { type: "text", text: 'A dot\n{"size":1}' },
    {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${RED}` },
      omitted: { sha256: digestOf(RED_PIXEL), mime_type: "image/png", bytes: RED_PIXEL.length },
    },
  ]);
  await send.sse(t, server, { message: "Is it there?", state: last.state });
  for (const { messages } of server.model.asked.slice(1)) assert.ok(JSON.stringify(messages).includes(RED));
});

test("clients get at most 4 pictures, of 1 MiB together, and how many more there are; the model gets all", async (t) => {
  const images = [png(600_000), png(600_000), PNG, PNG, png(400_000), PNG, PNG];
  for (const transport of TRANSPORTS) {
    const server = await startServer(
      t,
      drawing(() => toolResult({ images })),
    );
    const { events, toolCalls = [] } = await send[transport](t, server, { message: "Draw" });
    const { images: shown = [], images_omitted } =
      transport === "json" ? (toolCalls[0] as FinishedToolCall) : resultIn(events);
    assert.deepEqual(
      shown.map(({ data }) => data.length),
      [800_000, RED.length, RED.length, png(400_000).data.length],
    );
    assert.equal(images_omitted, 3);
    assert.equal(server.model.asked[1]?.messages.at(-1)?.content?.length, 7);
  }
  const one = await startServer(
    t,
    drawing(() => toolResult({ text: "Large", images: [png(MEBIBYTE + 1)] })),
  );
  const { images: none, images_omitted } = resultIn((await send.sse(t, one, { message: "Draw" })).events);
  assert.deepEqual([none, images_omitted], [[], 1]);
});

const NO_RESULTS: [what: string, result: unknown, sentence: RegExp][] = [
  ["bytes of no picture", { images: [{ ...PNG, data: btoa("<svg>") }] }, /images\[0\] is no PNG picture/],
  ["bytes of another type", { images: [PNG, { ...PNG, mimeType: "image/gif" }] }, /images\[1\] is no GIF picture/],
  [
    "a type that is none",
    { images: [{ ...PNG, mimeType: "image/svg+xml" }] },
    /type of images\[0\] must be one of image/,
  ],
  ["a PDF", { images: [{ ...PNG, mimeType: "application/pdf" }] }, /type of images\[0\] must be/],
  ["a data: URL", { images: [{ ...PNG, data: `data:image/png;base64,${RED}` }] }, /data of images\[0\] must be bytes/],
  ["no list of images", { images: PNG }, /images must be an array/],
  ["a text that is none", { text: 5 }, /text of toolResult must be a string/],
];

for (const [what, result, sentence] of NO_RESULTS) {
  test(`a result with ${what} has failed: the model and the log read why`, async (t) => {
    const server = await startServer(
      t,
      drawing(() => toolResult(result as never)),
    );
    const { events, last } = await send.sse(t, server, { message: "Draw" });
    const { output, status, images } = resultIn(events);
    assert.deepEqual([output, status, images], ["The tool failed.", "failed", undefined]);
    assert.match(JSON.stringify(server.model.asked[1]?.messages), sentence);
    assert.match(server.log.join(""), sentence);
    assert.equal(last.data, "Drawn.");
  });
}

for (const expose of ["title", "none"] as const) {
  test(`pictures of a tool with expose: "${expose}" are in no byte that a client gets, and the model keeps them`, async (t) => {
    const options = drawing(() => toolResult({ text: "secret", images: [PNG] }), { expose, title: "Draws" });
    for (const transport of TRANSPORTS) {
      const server = await startServer(t, options);
      const outcome = await send[transport](t, server, { message: "Draw" });
      const told = JSON.stringify([outcome.events, outcome.last, outcome.toolCalls]);
      assert.ok(!told.includes(RED.slice(0, 40)) && !/images|secret/.test(told), told);
      await send[transport](t, server, { message: "Is it there?", state: outcome.last.state });
      assert.ok(JSON.stringify(server.model.asked[2]?.messages).includes(RED));
    }
  });
}

test("pictures of tools count in what a state may hold of files, and a client may leave them out", async (t) => {
  const large = png(5 * MEBIBYTE);
  const turns: Turn[] = [
    ...[1, 2].flatMap((at): Turn[] => [[call(`c${at}`, "draw")], [say("Drawn.")]]),
    [say("I remember.")],
  ];
  const env = { PARLEY_STATE_SECRET: "a secret" };
  const server = await startServer(t, { ...drawing(() => toolResult({ images: [large] })), turns, env });
  const first = await send.json(t, server, { message: "Draw" });
  const second = await send.json(t, server, { message: "And again", state: first.last.state });
  const results = second.last.state?.conversation_history?.filter(({ role }) => role === "tool") ?? [];
  const gone = "[a picture (PNG, 5.2 MB) was in this result earlier and is no longer included]";
  assert.deepEqual(results[0]?.content, [{ type: "text", text: gone }]);
  const [picture = assert.fail()] = (results[1]?.content ?? []) as { type: string; omitted: object }[];
  assert.equal(picture.type, "image_url");
  const state = JSON.parse(JSON.stringify(second.last.state));
  const [kept] = state.conversation_history.filter(({ role }: HistoryMessage) => role === "tool").slice(1);
  kept.content = [{ type: "omitted", omitted: picture.omitted }];
  const third = await send.json(t, server, { message: "What was it?", state });
  assert.equal(third.last.data, "I remember.");
  const asked = JSON.stringify(server.model.asked[4]?.messages);
  assert.ok(asked.includes(gone) && asked.includes('"type":"omitted"'));
  assert.ok(!asked.includes(large.data));
});

test("a picture that is too large for what a history may hold leaves the state, and the conversation goes on", async (t) => {
  const large = png(200_000);
  const env = { PARLEY_MAX_HISTORY_BYTES: "100000" };
  const server = await startServer(t, { ...drawing(() => toolResult({ images: [large] })), env });
  const { last, toolCalls } = await send.json(t, server, { message: "Draw" });
  assert.equal(Object(toolCalls?.[0]).images?.length, 1);
  const second = await send.json(t, server, { message: "What was it?", state: last.state });
  assert.equal(second.last.data, "Still there.");
  assert.ok(JSON.stringify(server.model.asked[1]?.messages).includes(large.data));
  assert.match(JSON.stringify(server.model.asked[2]?.messages), /picture \(PNG, 200 kB\) .*no longer included/);
});

test("a file that is too large for what a history may hold leaves the state, too", async (t) => {
  const env = { PARLEY_MAX_HISTORY_BYTES: "100000" };
  const server = await startServer(t, { turns: [[say("Seen.")], [say("I remember.")]], env });
  const attachments = [{ type: "image", mime_type: "image/png", name: "a.png", data: png(200_000).data }];
  const { last } = await send.json(t, server, { message: "See", attachments } as never);
  const second = await send.json(t, server, { message: "What was it?", state: last.state });
  assert.equal(second.last.data, "I remember.");
});

test("a field that toolResult does not have is a failed result that names the one that was meant", async (t) => {
  const made = [{ image: [PNG] }, { text: "A dot", pictures: [PNG] }, { content: "A dot" }] as object[];
  const server = await startServer(t, {
    turns: [made.map((_one, n) => call(`c${n}`, "draw", { n })), [say("Drawn.")]],
    agent: { tools: [define("draw", ({ n }: { n: number }) => toolResult(made[n] as never))] },
  });
  await send.json(t, server, { message: "Draw" });
  const log = server.log.join("");
  assert.match(log, /image is not a field of toolResult\. Did you mean images\?/);
  assert.match(log, /pictures is not a field of toolResult\. Did you mean images\?/);
  assert.match(log, /content is not a field of toolResult\. The fields are text, images, json, sources\./);
});

const FROM_CLIENT: [what: string, content: unknown, status: number][] = [
  ["a picture", [{ type: "image_url", image_url: { url: `data:image/png;base64,${RED}` } }], 200],
  ["a text and an omitted picture", [{ type: "text", text: "a" }, omitted()], 200],
  [
    "a PDF file",
    [{ type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } }],
    400,
  ],
  ["a picture with an address", [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }], 400],
  ["a text file", [{ type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,YQ==" } }], 400],
];

for (const [what, content, status] of FROM_CLIENT) {
  test(`a history of a client whose tool result has ${what} is ${status}`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine.")]] });
    const conversation_history = [
      { role: "user", content: "Draw" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "draw", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content },
      { role: "assistant", content: "Drawn." },
    ];
    const answer = await post(server, { message: "Hi", stream: false, state: { conversation_history } });
    assert.equal(answer.status, status, await answer.text());
  });
}

// Hosted agents.

const hosted = (...events: unknown[]): ServerOptions => ({
  agent: {
    model: undefined,
    async *run() {
      yield* events;
    },
  } as never,
});
const started = { type: "tool_call", data: { id: "c1", tool: "draw" } };
const ended = (images: unknown) => ({ type: "tool_result", data: { id: "c1", output: "A dot", images } });

test("a run says its tools' pictures in tool_result, and its states have none of them", async (t) => {
  const images = [{ mime_type: "image/png", data: RED_PIXEL }, ...Array(4).fill({ mime_type: "image/png", data: RED })];
  const server = await startServer(t, hosted(started, ended(images), "Drawn."));
  const { events, last } = await send.sse(t, server, { message: "Draw" });
  const result = resultIn(events);
  assert.deepEqual([result.output, result.status, result.images_omitted], ["A dot", "completed", 1]);
  assert.deepEqual(result.images, Array(4).fill({ mime_type: "image/png", data: RED }));
  assert.ok(!JSON.stringify(last.state).includes(RED.slice(0, 40)));
  assert.match(JSON.stringify(last.state), /A dot.*a picture \(PNG, 1 kB\) was in this result.*no longer included/);
  assert.equal((await send.sse(t, server, { message: "And?", state: last.state })).last.type, "done");
});

test("a run whose tool_result has a picture that is none has a failed result, and the log says why", async (t) => {
  const server = await startServer(t, hosted(started, ended([{ mime_type: "image/png", data: "aGk=" }]), "Drawn."));
  const { events, last } = await send.sse(t, server, { message: "Draw" });
  const { output, status, images } = resultIn(events);
  assert.deepEqual([output, status, images, last.data], ["The tool failed.", "failed", undefined, "Drawn."]);
  assert.match(server.log.join(""), /images\[0\] is no PNG picture/);
});

test("toolTexts hide the pictures of tools that run elsewhere, too", async (t) => {
  const toolTexts = { draw: { title: "Draws", expose: "title" } };
  const { agent } = hosted(started, ended([{ mime_type: "image/png", data: RED }]), "Drawn.");
  const server = await startServer(t, { agent: { ...agent, toolTexts } as never });
  const told = JSON.stringify(await send.sse(t, server, { message: "Draw" }));
  assert.ok(!told.includes(RED.slice(0, 40)) && !told.includes('"images'));
});
