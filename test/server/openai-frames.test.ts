/**
 * What the Chat Completions door has said to OpenAI's package, kept in test/fixtures/doors: it says the same today, and a package that
 * is newer understands it. Written by: FRAMES=write node --import tsx --test test/server/openai-frames.test.ts
 */

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { OpenAI } from "openai";
import type { ChatCompletionMessageParam as Message } from "openai/resources/chat/completions";
import { ApiError } from "../../server/protocol/errors.ts";
import { DOOR_ENV, KEY } from "../support/doors.ts";
import { type FramesOptions, framesOf, keepFrames, playFrames, recordFrames } from "../support/golden-frames.ts";
import { call, end, fail, say, think } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";

const FRAMES: FramesOptions = {
  nameOf: ({ method, url }: IncomingMessage) => `${method} ${url}`,
  steady: (answer) => answer.replace(/chatcmpl-[\w-]+/g, "chatcmpl-ID").replace(/("created":)\d+/g, "$10"),
  kept: ["x-parley-ignored", "x-should-retry"],
};

interface OwnDelta {
  content?: string | null;
  reasoning_content?: string;
}

/** What the client does: it lists the models, asks for a whole answer and a stream, and hears what waits, and two failures. */
async function converse(url: string): Promise<Record<string, unknown>> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY });
  const asked = (content: string) => ({ model: "agent", messages: [{ role: "user", content }] satisfies Message[] });
  const models = await client.models.list();
  const whole = await client.chat.completions.create({ ...asked("Hello."), temperature: 1, user: "u1" });
  const stream = client.chat.completions.stream({ ...asked("Look."), stream_options: { include_usage: true } });
  let thoughts = "";
  const statuses: unknown[] = [];
  for await (const chunk of stream) {
    thoughts += (chunk.choices[0]?.delta as OwnDelta | undefined)?.reasoning_content ?? "";
    if ("event" in chunk) statuses.push((chunk.event as { data: unknown }).data);
  }
  const streamed = await stream.finalChatCompletion();
  const waits = await client.chat.completions.create(asked("Pay."));
  let calls = 0;
  const own = { name: "own", description: "", parameters: { type: "object" }, function: () => String(++calls) };
  const tools = [{ type: "function" as const, function: own }];
  const loop = await client.chat.completions.runTools({ ...asked("Now."), tools, stream: true }).finalContent();
  const refused = await client.chat.completions.create(asked("Fail.")).catch(({ status, code }) => [status, code]);
  const broken = client.chat.completions.stream(asked("Break."));
  const cut = await broken.done().catch(({ message }) => message);
  return {
    models: models.data.map(({ id, object }) => [id, object]),
    whole: whole.choices.map(({ message: { content, role }, finish_reason }) => [role, content, finish_reason]),
    streamed: streamed.choices.map(({ message: { content, role }, finish_reason }) => [role, content, finish_reason]),
    thoughts,
    statuses,
    usage: [whole.usage?.total_tokens, streamed.usage?.total_tokens],
    waits: waits.choices[0]?.message.content,
    loop: [loop, calls],
    refused,
    cut,
  };
}

const HEARD = {
  models: [["agent", "model"]],
  whole: [["assistant", "Hello.", "stop"]],
  streamed: [["assistant", "Let me look.\n\nIt is x.", "length"]],
  thoughts: "Hm.",
  statuses: [
    { description: "echo", done: false },
    { description: "echo", done: true },
  ],
  usage: [5, 7],
  waits: "Pay 5 euros?\n\nIt was not done: a person has to approve it, which is not possible here.",
  loop: ["Without your tools.", 0],
  refused: [502, "provider_auth"],
  cut: "No more.",
};

test("the door says what it has said before", async (t) => {
  const pay = define("pay", () => "", { needsApproval: true, approvalText: () => "Pay 5 euros?" });
  const turns = [
    [say("Hello."), end("stop", { input_tokens: 3, output_tokens: 2 })],
    [think("Hm."), say("Let me look."), call("a", "echo", { text: "x" })],
    [say("It is x."), end("length", { input_tokens: 4, output_tokens: 3, cached_input_tokens: 1 })],
    [call("b", "pay")],
    [say("Without your tools.")],
    [fail(new ApiError("provider_auth", "No entry."))],
    [say("Half"), fail(new ApiError("provider_error", "No more."))],
  ];
  const { port } = await startServer(t, { env: DOOR_ENV, agent: { id: "agent", tools: [echo, pay] }, turns });
  const { said, url } = await recordFrames(t, port, FRAMES);
  assert.deepEqual(await converse(url), HEARD);
  keepFrames("openai", said);
  assert.deepEqual(said, framesOf("openai"));
});

test("the client understands what the door has said before", async (t) => {
  assert.deepEqual(await converse(await playFrames(t, "openai", FRAMES)), HEARD);
});
