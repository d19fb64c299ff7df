/** `/v1/models` and `/v1/chat/completions` for OpenAI's clients. doors.test.ts tests what all doors share. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenAI } from "openai";
import type { RunInput } from "../../server/agent/run-function.ts";
import type { ToolContext } from "../../server/agent/tool-definition.ts";
import type { StateKind } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { DEADLINE_MS, gate } from "../support/deadline.ts";
import { DOOR_ENV, KEY, readChunks } from "../support/doors.ts";
import { attachment } from "../support/files.ts";
import { call, end, fail, hang, say, think, wait } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";
import { chatProvider } from "../support/upstream-conversation.ts";
import { RESPONSES } from "../support/upstream-replies.ts";
import { eventStream, fixture, startUpstream } from "../support/upstream-server.ts";

const start = (t: Cleanup, { env, ...options }: ServerOptions = {}): Promise<TestServer> =>
  startServer(t, { ...options, env: { ...DOOR_ENV, ...env } });

interface Sent {
  messages?: unknown;
  stream?: unknown;
  [field: string]: unknown;
}

async function post({ url }: TestServer, body: Sent, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "any", messages: [HI], ...body }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** Sends a request to a new server, which responds with one JSON body. */
async function ask(t: Cleanup, options: ServerOptions, body: Sent = {}, headers: Record<string, string> = {}) {
  const server = await start(t, { turns: [[say("Fine.")]], ...options });
  const { text, ...answer } = await post(server, body, headers);
  return { server, ...answer, body: JSON.parse(text) };
}

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const HI = user("Hi");

test("a whole answer is one chat.completion of the agent's id", async (t) => {
  const usage = {
    ...{ input_tokens: 10, output_tokens: 4 },
    ...{ cached_input_tokens: 6, cache_write_tokens: 2, reasoning_tokens: 3 },
  };
  const turns = [[think("Hm."), say("Fine."), end("stop", usage)]];
  const { body, headers } = await ask(t, { turns, agent: { id: "acme" } });
  const { id, created, ...rest } = body;
  assert.equal(id, `chatcmpl-${headers.get("x-run-id")}`);
  assert.ok(Math.abs(created - Date.now() / 1000) < 60 && Number.isInteger(created));
  const message = { role: "assistant", content: "Fine.", refusal: null, reasoning_content: "Hm." };
  assert.deepEqual(rest, {
    object: "chat.completion",
    model: "acme",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
      prompt_tokens_details: { cached_tokens: 6, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 3 },
    },
  });
});

test("a stream has the role first, a status for each tool, a blank line between turns, and usage last only if asked", async (t) => {
  const turns = () => [
    [think("Look."), say("Let me look."), call("a", "weather")],
    [think(""), think("Sunny."), say("\n"), say("Sunny."), end("stop", { input_tokens: 2, output_tokens: 1 })],
  ];
  const weather = define("weather", (_args, { progress }: ToolContext) => progress("Asking a satellite"), {
    title: { de: "Wetter", en: "Weather" },
  });
  for (const isAsked of [true, false]) {
    const server = await start(t, { turns: turns(), agent: { tools: [weather] } });
    const { text } = await post(server, { stream: true, stream_options: { include_usage: isAsked } });
    const chunks = readChunks(text);
    for (const chunk of chunks) {
      const { id, object, created, model } = chunk as never as Record<string, unknown>;
      assert.match(String(id), /^chatcmpl-[\w-]{16,}$/);
      assert.deepEqual([object, typeof created, model], ["chat.completion.chunk", "number", "Acme Support"]);
    }
    const status = (description: string, done: boolean) => ({ type: "status", data: { description, done } });
    const delta = (more: object) => [{ index: 0, delta: more, finish_reason: null }];
    const expected: object[] = [
      { choices: delta({ role: "assistant", content: "" }) },
      { choices: delta({ reasoning_content: "Look." }) },
      { choices: delta({ content: "Let me look." }) },
      { choices: [], event: status("Weather", false) },
      { choices: [], event: status("Asking a satellite", false) },
      { choices: [], event: status("Weather", true) },
      { choices: delta({ reasoning_content: "\n\nSunny." }) },
      { choices: delta({ content: "\n\nSunny." }) },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      ...(isAsked ? [{ choices: [], usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 } }] : []),
    ];
    const shown = chunks.map(({ choices, event, usage }) => ({
      choices,
      ...(event === undefined ? {} : { event }),
      ...(usage === undefined ? {} : { usage }),
    }));
    assert.deepEqual(shown, expected);
    assert.doesNotMatch(text, /tool_calls/);
  }
});

test("in a whole answer the texts of all turns stand with a blank line between, and so do the thoughts", async (t) => {
  const turns = [
    [think("Look."), say("Let me look."), call("a", "echo", { text: "x" })],
    [think("\nSo."), say("\n"), say("It is x.")],
  ];
  const { body } = await ask(t, { turns, agent: { tools: [echo] } });
  const { content, reasoning_content } = body.choices[0].message;
  assert.deepEqual([content, reasoning_content], ["Let me look.\n\nIt is x.", "Look.\n\nSo."]);
});

test("a whole answer says what its stream says, also where a turn, or a thought, has nothing but line ends", async (t) => {
  const turns = () => [
    [think("\n"), say("\n"), call("a", "echo", { text: "x" })],
    [think(" \nSo."), think("\n"), say("It"), say(" is x.\n"), call("b", "echo", { text: "y" })],
    [think("\n"), say(" \n"), say("And y.")],
  ];
  const server = await start(t, { turns: [...turns(), ...turns()], agent: { tools: [echo] } });
  const whole = JSON.parse((await post(server, {})).text).choices[0].message;
  const deltas = readChunks((await post(server, { stream: true })).text).map(({ choices }) => choices[0]?.delta ?? {});
  assert.ok(deltas.every(({ reasoning_content }) => reasoning_content !== ""));
  for (const [field, text] of [
    ["content", "\nIt is x.\n\n\nAnd y."],
    ["reasoning_content", "So.\n"],
  ] as const) {
    assert.deepEqual([whole[field], deltas.map((delta) => delta[field] ?? "").join("")], [text, text]);
  }
});

test("what its closing tag alone shows to be a thought is no part of a whole answer", async (t) => {
  const reply = ["I plan.", " So:</think>\n\nThe answer."].map((content) => ({ choices: [{ delta: { content } }] }));
  const end = { choices: [{ delta: {}, finish_reason: "stop" }] };
  await using upstream = await startUpstream({ body: [...reply, end].map((chunk) => eventStream(chunk)) });
  const { body } = await ask(t, { provider: await chatProvider(upstream) });
  const { content, reasoning_content } = body.choices[0].message;
  assert.deepEqual([content, reasoning_content], ["The answer.", "I plan. So:"]);
});

test("what waits for approval ends the answer in words, behind what was said", async (t) => {
  const pay = define("pay", () => "", { needsApproval: true, approvalText: () => "Pay 5 €?" });
  const turns = [[say("One moment."), call("a", "pay"), call("b", "pay")]];
  const { body } = await ask(t, { turns, agent: { tools: [pay] } });
  assert.equal(
    body.choices[0].message.content,
    "One moment.\n\nPay 5 €?\n\nPay 5 €?\n\nIt was not done: a person has to approve it, which is not possible here.",
  );
});

test("a question of an agent that is written elsewhere ends the answer as it is", async (t) => {
  const data = { id: "a", tool: "ask", arguments: "{}", text: "Which colour?", question: true };
  async function* run() {
    yield { type: "tool_approval", data };
  }
  const { text } = await post(await start(t, { agent: { model: undefined, run } as never }), {});
  assert.equal(JSON.parse(text).choices[0].message.content, "Which colour?");
});

test("a silent stream is kept open by comments", async (t) => {
  const { opened, open } = gate();
  const server = await start(t, { turns: [[wait(opened), say("Late")]], env: { PARLEY_KEEP_ALIVE_SECONDS: "0.02" } });
  const answer = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [HI], stream: true }),
  });
  let text = "";
  for await (const piece of answer.body ?? []) {
    text += Buffer.from(piece).toString();
    if (text.startsWith(": keep-alive\n\n")) open();
  }
  assert.equal(
    readChunks(text).some(({ choices }) => choices[0]?.delta?.content === "Late"),
    true,
  );
});

const CLOSED = "Nothing is served here unless PARLEY_OPENAI_API is on.";

test("while the door is closed, its addresses name the setting, and with it the start needs a key for programs", async (t) => {
  const env = { PARLEY_OPENAI_API: "off" };
  const server = await start(t, { turns: [], env });
  for (const [method, path] of [
    ["GET", "/v1/models"],
    ["POST", "/v1/chat/completions"],
  ] as const) {
    const answer = await fetch(server.url + path, { method, headers: { authorization: `Bearer ${KEY}` } });
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code], [404, "not_found"]);
    assert.ok(error.message.startsWith(CLOSED));
  }
  await assert.rejects(start(t, { env: { PARLEY_API_KEY: undefined, PARLEY_CHAT_KEY: "chat-key" } }), {
    name: "ConfigError",
    message: /PARLEY_OPENAI_API is on, which needs PARLEY_API_KEY/,
  });
});

test("the list of models is the agent, for keys of programs alone", async (t) => {
  const keys = { PARLEY_CHAT_KEY: "chat-key", PARLEY_WIDGET_KEY: "widget-key" };
  const server = await start(t, { agent: { id: "acme", agent: "Concierge" }, env: keys });
  for (const [key, status] of [
    [KEY, 200],
    ["chat-key", 403],
    ["widget-key", 403],
    ["x", 401],
    ["", 401],
  ] as const) {
    const headers = { authorization: `Bearer ${key}`, origin: server.url };
    const answer = await fetch(`${server.url}/v1/models`, { headers });
    const { data, error } = JSON.parse(await answer.text());
    assert.equal(answer.status, status, key);
    if (status !== 200) {
      assert.ok(["authentication_error", "permission_error"].includes(error.type));
      continue;
    }
    const [{ created, ...model }] = data;
    assert.ok(Number.isInteger(created));
    assert.deepEqual(model, { id: "acme", object: "model", owned_by: "parley", name: "Concierge" });
  }
  for (const key of ["chat-key", "widget-key"]) {
    const { status } = await post(server, {}, { authorization: `Bearer ${key}`, origin: server.url });
    assert.equal(status, 403);
  }
});

test("every error has OpenAI's shape, before and behind the parsing of the message, and in a stream", async (t) => {
  const env = { PARLEY_MAX_BODY_BYTES: "1000", PARLEY_RATE_PER_KEY: "4" };
  const server = await start(t, { turns: [[fail(new ApiError("provider_auth", "No entry."))]], env });
  const request = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...init.headers };
    const answer = await fetch(server.url + path, { method: "POST", body: "{}", ...init, headers });
    const { error } = JSON.parse(await answer.text());
    const { message, ...rest } = error;
    assert.equal(typeof message, "string");
    return { status: answer.status, ...rest };
  };
  const chat = "/v1/chat/completions";
  const row = (status: number, type: string, code: string, param: string | null = null) => ({
    status,
    type,
    code,
    param,
  });
  const invalid = "invalid_request_error";
  const image = { messages: [user([{ type: "image_url", image_url: { url: "https://x.example/a.png" } }])] };
  const failing = { messages: [HI] };
  assert.deepEqual(
    [
      await request("/v1/embeddings"),
      await request(chat, { method: "GET", body: null }),
      await request(chat, { headers: { authorization: "Bearer x" } }),
      await request(chat, { headers: { "content-type": "text/plain" } }),
      await request(chat, { body: "x".repeat(2000) }),
      await request(chat, { body: JSON.stringify(image) }),
      await request(chat, { body: JSON.stringify(failing) }),
      await request(chat, { body: JSON.stringify(failing) }),
    ],
    [
      row(404, invalid, "not_found"),
      row(405, invalid, "method_not_allowed"),
      row(401, "authentication_error", "unauthorized"),
      row(415, invalid, "unsupported_media_type"),
      row(413, invalid, "request_too_large"),
      row(400, invalid, "invalid_request", "messages[0].content[0].image_url.url"),
      row(502, "server_error", "provider_auth"),
      row(429, "rate_limit_error", "rate_limited"),
    ],
  );
  const streaming = await start(t, { turns: [[say("A"), fail(new ApiError("provider_error", "Broken."))]] });
  const { status, text } = await post(streaming, { stream: true });
  const last = readChunks(text).at(-1);
  assert.deepEqual(
    [status, last],
    [200, { error: { message: "Broken.", type: "server_error", param: null, code: "provider_error" } }],
  );
});

test("a full server says so in OpenAI's shape, with the time to wait", async (t) => {
  const env = { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "0" };
  const server = await start(t, { turns: [[hang]], env });
  const asked = server.model.nextAsked();
  const first = post(server, {}).catch(() => {});
  await asked;
  const { status, headers, text } = await post(server, {});
  const { error } = JSON.parse(text);
  assert.deepEqual([status, error.type, error.code], [503, "server_error", "overloaded"]);
  assert.ok(Number(headers.get("retry-after")) > 0);
  await server.close();
  await first;
});

test("a failure that may not be tried again says so to clients that go by the status", async (t) => {
  const turns = [[call("a", "echo", { text: "x" })], [fail(new ApiError("provider_error", "Broken."))]];
  const { status, headers } = await ask(t, { turns, agent: { tools: [echo] } });
  assert.deepEqual([status, headers.get("x-should-retry")], [502, "false"]);
  const other = await ask(t, { turns: [[fail(new ApiError("provider_error", "Broken."))]] });
  assert.equal(other.headers.get("x-should-retry"), null);
});

const SYSTEM = [
  { role: "system", content: "Be short." },
  { role: "developer", content: [{ type: "text", text: "Rhyme." }] },
];

test("texts of user and assistant are the conversation, instructions stand below the agent's, and all else is named", async (t) => {
  const toolCalls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
  const messages = [
    SYSTEM[0],
    assistant("Welcome!"),
    user([
      { type: "text", text: "Two" },
      { type: "text", text: "lines" },
    ]),
    { ...assistant(null), tool_calls: toolCalls, refusal: null, annotations: [] },
    { role: "tool", tool_call_id: "a", content: "42" },
    {
      ...assistant([{ type: "text", text: "It is" }, { type: "refusal", refusal: "42." }, { type: "output_audio" }]),
      name: "Bo",
    },
    user(" "),
    user("Half \ud800 a pair"),
    SYSTEM[1],
  ];
  const decided = {
    temperature: 1,
    tools: [],
    stop: null,
    user: "u-1",
    response_format: { type: "text" },
    "no header: x": 1,
  };
  const agent = { instructions: "Be kind." };
  const { server, body, headers } = await ask(t, { agent }, { messages, ...decided, n: 1, modalities: ["text"] });
  assert.equal(body.choices[0].message.content, "Fine.");
  const [asked] = server.model.asked;
  assert.equal(asked?.start.setup.instructions, "Be kind.\n\nBe short.\n\nRhyme.");
  assert.deepEqual(asked?.sent, [
    assistant("Welcome!"),
    user("Two\nlines"),
    assistant("It is\n42."),
    user("Half \ufffd a pair"),
  ]);
  assert.equal(
    headers.get("x-parley-ignored"),
    "temperature, tools, user, response_format, messages.tool_calls, messages.tool_call_id, messages.tool, messages.name, messages.content",
  );
});

test("an agent that is written elsewhere gets the history as the messages before, and no instructions, which are named", async (t) => {
  const run = ({ messages, state, ctx }: RunInput) =>
    JSON.stringify([messages, state, ctx.metadata, ctx.run.transport]);
  const before = [user("My dog is Rex."), assistant("Noted.")];
  const sent = { messages: [...SYSTEM, ...before, HI], metadata: { shop: "uk" } };
  const { body, headers } = await ask(
    t,
    { agent: { model: undefined, run } as never, turns: undefined as never },
    sent,
  );
  const got = JSON.parse(body.choices[0].message.content);
  assert.deepEqual(got, [[...before, HI], null, { shop: "uk" }, "openai"]);
  assert.equal(headers.get("x-parley-ignored"), "messages.system, messages.developer");
});

test("each request is a conversation of its own, of the user that authenticate names and of none that the body does", async (t) => {
  const seen: unknown[] = [];
  const agent = {
    onMessage: ({ message }: { message: string }, ctx: ToolContext) => {
      seen.push([message, ctx.user?.id, ctx.conversation]);
    },
  };
  const authenticate = ({ token }: { token: string | undefined }) => (token === undefined ? undefined : { id: token });
  const server = await start(t, { agent, turns: [[say("A")], [say("B")]], authenticate });
  const messages = [user("Before"), assistant("A"), user("Now")];
  await post(server, { messages, user: "mallory" }, { "x-user-token": "ada" });
  await post(server, { messages, user: "mallory" });
  const [first, second] = seen as [string, string | undefined, string][];
  assert.deepEqual(
    [first?.slice(0, 2), second?.slice(0, 2)],
    [
      ["Now", "ada"],
      ["Now", undefined],
    ],
  );
  assert.notEqual(first?.[2], second?.[2]);
});

const [PNG, GIF, PDF] = (["image/png", "image/gif", "application/pdf"] as const).map((type) =>
  String(attachment(type).data),
) as [string, string, string];
const url = (mediaType: string, data: string) => `data:${mediaType};base64,${data}`;
const picture = (address: string) => ({ type: "image_url", image_url: { url: address, detail: "low" } });
const file = (file_data: unknown, filename?: string) => ({ type: "file", file: { file_data, filename } });

test("pictures and files come as data: URLs, in the last message and before it", async (t) => {
  const notes = url("text/plain;charset=utf-8", Buffer.from("Milk").toString("base64"));
  const messages = [
    user([{ type: "text", text: "See" }, picture(url("image/png", PNG))]),
    assistant("A dot."),
    user([file(url("application/pdf", PDF), "a/plan.pdf"), file(notes, "list.txt")]),
  ];
  const accepts = ["image/png", "application/pdf", "text/plain"] as const;
  const { server, body } = await ask(t, { agent: { accepts: [...accepts] } }, { messages });
  assert.equal(body.choices?.[0].message.content, "Fine.");
  assert.deepEqual(server.model.asked[0]?.sent, [
    user([
      { type: "text", text: "See" },
      { type: "image_url", image_url: { url: url("image/png", PNG) } },
    ]),
    assistant("A dot."),
    user([
      { type: "file", file: { filename: "plan.pdf", file_data: url("application/pdf", PDF) } },
      { type: "text", text: "list.txt\n```\nMilk\n```" },
    ]),
  ]);
});

const at = "messages[0].content";
const REFUSED: [name: string, body: Sent, status: number, param: string | null][] = [
  ["no messages", { messages: undefined }, 400, "messages"],
  ["an empty list", { messages: [] }, 400, "messages"],
  ["a conversation that the assistant ends", { messages: [HI, assistant("Hello")] }, 400, "messages"],
  ["a message that is none", { messages: [null, HI] }, 400, "messages[0]"],
  ["an unknown role", { messages: [{ role: "god", content: "x" }, HI] }, 400, "messages[0].role"],
  ["content that is none", { messages: [user(5)] }, 400, at],
  ["an empty message", { messages: [user("")] }, 400, at],
  ["sound", { messages: [user([{ type: "input_audio", input_audio: {} }])] }, 400, `${at}[0]`],
  [
    "a file's id",
    { messages: [user([{ type: "file", file: { file_id: "file-1" } }])] },
    400,
    `${at}[0].file.file_data`,
  ],
  ["bare base64", { messages: [user([file(PDF)])] }, 400, `${at}[0].file.file_data`],
  ["an address", { messages: [user([picture("https://x.example/a.png")])] }, 400, `${at}[0].image_url.url`],
  ["an address before", { messages: [user([picture("http://x/")]), HI] }, 400, `${at}[0].image_url.url`],
  [
    "bytes that are something else",
    { messages: [user([picture(url("image/png", GIF))])] },
    415,
    `${at}[0].image_url.url`,
  ],
  ["a type that nobody takes", { messages: [user([file(url("video/mp4", PNG))])] }, 415, `${at}[0].file.file_data`],
  ["no base64", { messages: [user([picture("data:image/png;base64,a-b")])] }, 400, `${at}[0].image_url.url`],
  [
    "a file for the system",
    { messages: [{ role: "system", content: [picture(url("image/png", PNG))] }, HI] },
    400,
    `${at}[0]`,
  ],
  ["too many files", { messages: [user(Array(11).fill(picture(url("image/png", PNG))))] }, 400, at],
  ["a stream that is no boolean", { stream: "yes" }, 400, "stream"],
  ["two answers", { n: 2 }, 400, "n"],
  ["speech", { modalities: ["text", "audio"] }, 400, "modalities"],
  ["a voice", { audio: { voice: "alloy" } }, 400, "audio"],
  ["metadata that is no text", { metadata: { a: 1 } }, 400, "metadata.a"],
];

for (const [name, body, status, param] of REFUSED) {
  test(`what cannot be answered is refused and names the field: ${name}`, async (t) => {
    const answer = await ask(t, {}, body);
    assert.deepEqual([answer.status, answer.body.error.param], [status, param]);
    assert.equal(answer.server.model.asked.length, 0);
  });
}

test("a long history is refused by the limits of histories, and a large one is read in a thread", async (t) => {
  const server = await start(t, { turns: [[say("Read")]], env: { PARLEY_MAX_HISTORY_ITEMS: "3" } });
  const long = await post(server, { messages: [HI, assistant("A"), HI, assistant("B"), HI] });
  assert.equal(long.status, 413);
  assert.match(JSON.parse(long.text).error.message, /^messages holds 4 messages and parts; at most 3 are allowed\./);
  const text = "x".repeat(400_000);
  const large = await post(server, { messages: [user(text), assistant("Long."), HI] });
  assert.equal(JSON.parse(large.text).choices[0].message.content, "Read");
  assert.deepEqual(server.model.asked[0]?.sent, [user(text), assistant("Long."), HI]);
});

test("an Idempotency-Key may be any text of 255 characters, names the run of its key alone, and is no run that others find", async (t) => {
  const { opened, open } = gate();
  const turns = [[say("One"), wait(opened)], [say("Two")]];
  const server = await start(t, { turns, env: { PARLEY_API_KEY: `${KEY},a-second-key-of-programs` } });
  const name = { "idempotency-key": "é ".repeat(127) };
  const asked = server.model.nextAsked();
  const first = post(server, { stream: true }, name);
  await asked;
  const again = post(server, { stream: true }, name);
  const taken = await post(server, { stream: true, messages: [user("Bye")] }, name);
  assert.equal(taken.status, 400);
  assert.deepEqual(JSON.parse(taken.text).error, {
    message: "This Idempotency-Key belongs to another message. Use a new one for each message.",
    ...{ type: "invalid_request_error", param: null, code: "invalid_request" },
  });
  const other = await post(server, { stream: true }, { ...name, authorization: "Bearer a-second-key-of-programs" });
  assert.match(other.text, /Two/);
  open();
  const [one, same] = await Promise.all([first, again]);
  assert.match(one.text, /One/);
  assert.equal(one.headers.get("x-run-id"), same.headers.get("x-run-id"));
  assert.equal(server.model.asked.length, 2);
  const tooLong = await post(server, {}, { "idempotency-key": "x".repeat(256) });
  assert.equal(tooLong.status, 400);
});

const KINDS: StateKind[] = ["conversation_history", "previous_response_id"];

for (const stateKind of KINDS) {
  test(`${stateKind}: tools see the history that the client has brought`, async (t) => {
    const turns = [[call("a", "echo", { text: "Rex?" })], [say("Your dog.")]];
    const messages = [user("My dog is Rex."), assistant("Noted."), user("Who is Rex?")];
    const { server, body } = await ask(t, { agent: { tools: [echo] }, turns, stateKind }, { messages });
    assert.equal(body.choices[0].message.content, "Your dog.");
    assert.deepEqual([server.model.asked[0]?.sent, server.model.asked[0]?.previousId], [messages, undefined]);
  });
}

test("OpenAI, which stores conversations, gets the history as input, and goes on within the run by its own id", async (t) => {
  const replies = ["reasoning-and-two-calls", "text"].map((name) => ({ body: [fixture(`responses/${name}`)] }));
  await using upstream = await startUpstream(...replies);
  const agent = { model: RESPONSES.model, tools: [define("get_weather", () => "sunny")] };
  const messages = [user("My dog is Rex."), assistant("Noted."), user("Who is Rex?")];
  const env = RESPONSES.env(upstream.url);
  const { body } = await ask(t, { agent, env, turns: undefined as never }, { messages });
  assert.equal(body.choices[0].message.content, "Grüß Gott 👋!");
  const [first, second] = upstream.calls.map(({ json }) => json);
  assert.deepEqual(first.input, [
    { role: "user", content: [{ type: "input_text", text: "My dog is Rex." }] },
    { role: "assistant", content: "Noted." },
    { role: "user", content: [{ type: "input_text", text: "Who is Rex?" }] },
  ]);
  assert.ok(!("previous_response_id" in first));
  assert.equal(second.previous_response_id, "resp_tools1");
});

test("log and metrics name the door", async (t) => {
  const { server } = await ask(t, {});
  const entry = server.log.map((line) => JSON.parse(line)).find(({ msg }) => msg === "run");
  assert.equal(entry?.transport, "openai");
  const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } });
  assert.match(await metrics.text(), /parley_runs_total\{transport="openai",end="stop"\} 1/);
});

test("the package openai lists the agent, streams, counts, runs its own tools loop, and throws its own errors", async (t) => {
  const usage = end("stop", { input_tokens: 3, output_tokens: 2 });
  const turns = [
    [say("Hello")],
    [think("Hm."), say("Let me look."), call("a", "echo", { text: "x" })],
    [say("It is x."), usage],
    [say("Without tools of yours.")],
    [fail(new ApiError("provider_auth", "No entry."))],
    [say("A"), fail(new ApiError("provider_error", "Broken."))],
  ];
  const server = await start(t, { turns, agent: { tools: [echo] } });
  const client = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1` });
  const messages = [HI] as [{ role: "user"; content: string }];
  const { data } = await client.models.list();
  const model = data[0]?.id ?? "";
  assert.equal(model, "Acme Support");

  const whole = await client.chat.completions.create({ model, messages });
  assert.equal(whole.choices[0]?.message.content, "Hello");

  const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
  const final = await stream.finalChatCompletion();
  assert.deepEqual([final.choices[0]?.message.content, final.usage?.total_tokens], ["Let me look.\n\nIt is x.", 5]);

  let calls = 0;
  const parameters = { type: "object", properties: {} };
  const own = {
    type: "function" as const,
    function: { name: "own", parameters, parse: JSON.parse, function: () => ++calls },
  };
  const runner = client.chat.completions.runTools({ model, messages, tools: [own as never], stream: true });
  assert.deepEqual([await runner.finalContent(), calls], ["Without tools of yours.", 0]);

  // Not retried: a second request would get the next turn.
  await assert.rejects(client.chat.completions.create({ model, messages }), {
    status: 502,
    code: "provider_auth",
    type: "server_error",
    message: "502 No entry.",
  });
  await assert.rejects(client.chat.completions.stream({ model, messages }).finalContent(), { message: "Broken." });
  await assert.rejects(new OpenAI({ apiKey: "x", baseURL: `${server.url}/v1` }).models.list(), { status: 401 });
});
