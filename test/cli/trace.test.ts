/** `parley dev --trace`: a file with the requests to models and their responses, without secrets. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createParser } from "eventsource-parser";
import { findSecrets } from "../../server/config/secrets.ts";
import { projectSecret, TraceFile } from "../../server/dev/folder.ts";
import { strikeAcross, traced } from "../../server/dev/trace-values.ts";
import { CLAUDE, fixtureFrames, stream } from "../support/bedrock.ts";
import { post } from "../support/chat-transports.ts";
import { type CommandOptions, startDev } from "../support/command.ts";
import { attachment } from "../support/files.ts";
import { codeBlocks, readMarkdown } from "../support/markdown-file.ts";
import { connect } from "../support/socket-client.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { eventStream, fixture, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

/** Keys of all kinds, one of which has a character that JSON escapes. */
const SECRETS = {
  OPENAI_API_KEY: "sk-openai-hush",
  ANTHROPIC_API_KEY: "sk-ant-hush",
  COMPATIBLE_API_KEY: "compatible-hush",
  GEMINI_API_KEY: "gemini-hush",
  VERTEX_ACCESS_TOKEN: "vertex-hush",
  AWS_BEARER_TOKEN_BEDROCK: "bedrock-hush",
  SHOP_PASSWORD: 'shop-"hush',
};

/** The environment for every provider at this address. */
const envOf = (url: string) => ({
  ...SECRETS,
  AWS_REGION: "us-east-1",
  OPENAI_BASE_URL: url,
  COMPATIBLE_BASE_URL: url,
  GEMINI_BASE_URL: url,
  VERTEX_BASE_URL: url,
  ANTHROPIC_BASE_URL: url.replace(/\/v1$/, ""),
  BEDROCK_BASE_URL: url.replace(/\/v1$/, ""),
});

/** The module sets a variable itself, like a package that reads another file. */
const agentOf = (model: string, more = "") => {
  const own = JSON.stringify(`own-hush-${model.length}`);
  return `process.env.OWN_TOKEN = ${own};
export default { name: "Mine", model: ${model}, instructions: "Be brief, " + ${own} + Object.values(${JSON.stringify(SECRETS)}).join(" ")${more} };`;
};

/** The block of docs/trace.md that begins with this text. */
const block = (begins: string) =>
  codeBlocks(readMarkdown("docs/trace.md")).find(({ text }) => text.startsWith(begins))?.text ?? "";

// biome-ignore lint/suspicious/noExplicitAny: a test reads into it and fails where it is wrong.
type Line = any;

async function trace(t: TestContext, agent: string, { env = {}, ...options }: CommandOptions = {}) {
  const folder = temporaryProject(t, { "agent.js": agent });
  const dev = await startDev(t, folder, { args: ["--trace"], cwd: folder, env, ...options });
  const text = (name = "trace.jsonl") => readFileSync(join(folder, ".parley", name), "utf8");
  let loads = 0;
  return {
    ...dev,
    folder,
    text,
    lines: (): Line[] =>
      text()
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    async load(other: string) {
      dev.write("agent.js", other);
      loads += 1;
      await dev.command.printed("stderr", new RegExp(`(?:reloaded in[^]*){${loads}}`));
    },
    ask: async (more = {}) => (await post(dev, { message: "Hi", stream: false, ...more })).json(),
    told: (pattern: RegExp) => dev.command.printed("stderr", pattern),
  };
}

const PNG = attachment("image/png", { bytes: 3000 });
const DIGEST = `[image/png, 3000 bytes, sha256 ${createHash("sha256")
  .update(Buffer.from(String(PNG.data), "base64"))
  .digest("hex")}]`;

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** The expected content of the trace for this JSON text. */
function expected(json: string): unknown {
  const secrets = Object.values(SECRETS).flatMap((secret) => [inJson(inJson(secret)), inJson(secret)]);
  const withDigest = json.replaceAll(String(PNG.data), DIGEST).replace(/own-hush-\d+/, "[key]");
  return JSON.parse(secrets.reduce((text, secret) => text.replaceAll(secret, "[key]"), withDigest));
}

function dataOf(events: string): unknown[] {
  const found: unknown[] = [];
  createParser({ onEvent: ({ data }) => found.push(data === "[DONE]" ? data : JSON.parse(data)) }).feed(events);
  return found;
}

const sse = (name: string): [UpstreamReply, unknown[]] => [{ body: [fixture(name)] }, dataOf(fixture(name))];

const PROVIDERS: [provider: string, model: string, path: string, answer: [UpstreamReply, unknown[]]][] = [
  ["openai", "gpt-5.2", "/v1/responses", sse("responses/text")],
  ["compatible", "qwen3", "/v1/chat/completions", sse("chat-completions/text-and-usage")],
  ["anthropic", "claude-sonnet-4-5", "/v1/messages", sse("anthropic/text")],
  ["gemini", "gemini-2.5-flash", "/v1/chat/completions", sse("gemini/text")],
  ["vertex", "gemini-2.5-flash", "/v1/chat/completions", sse("gemini/text")],
  [
    "bedrock",
    CLAUDE,
    `/model/${encodeURIComponent(CLAUDE)}/converse-stream`,
    [stream("text"), fixtureFrames("text").map((frame) => Object.values(frame)[0])],
  ],
];

test("each provider's request is one line with its body as it was sent and its events as they came, and no key stands in the file", async (t) => {
  await using upstream = await startUpstream();
  const { ask, lines, load, told, text, folder } = await trace(t, agentOf('"demo"'), { env: envOf(upstream.url) });
  for (const [index, [provider, model, path, [reply, events]]] of PROVIDERS.entries()) {
    await load(agentOf(JSON.stringify(`${provider}/${model}`)));
    const cookie = { "set-cookie": "session=hush", "x-request-id": "req-1" };
    upstream.reply({ ...reply, headers: { ...reply.headers, ...cookie } });
    const message = `Arguments: ${JSON.stringify({ password: SECRETS.SHOP_PASSWORD })}`;
    const { state } = await ask({ message, attachments: [PNG] });
    assert.ok(state, provider);
    const line = lines()[index];
    const call = upstream.calls[index];
    assert.equal(line.provider, provider);
    assert.equal(line.model.split("/").at(-1), model);
    assert.deepEqual([line.turn, line.attempt, line.end], [1, 1, "complete"]);
    assert.equal(line.request.method, "POST");
    assert.equal(decodeURIComponent(new URL(line.request.url).pathname), decodeURIComponent(path));
    assert.deepEqual(line.request.body, expected(call?.body ?? ""), provider);
    assert.deepEqual(
      line.answer.events.map(({ data }: Line) => data),
      events,
      provider,
    );
    assert.deepEqual([line.answer.status, line.answer.headers["x-request-id"]], [200, "req-1"]);
    assert.equal(line.request.headers[provider === "anthropic" ? "x-api-key" : "authorization"], "[key]");
    assert.ok(line.ms >= line.first_ms && line.first_ms >= line.answer.events[0].ms, provider);
    await told(new RegExp(`→ ${provider}/.*  \\.parley/trace\\.jsonl:${index + 1}\\n`));
  }
  assert.equal(new Set(lines().map(({ run }) => run)).size, PROVIDERS.length);
  const fieldsOf = ({ request, answer, ...line }: Line) => [line, request, answer, answer.events[0]].map(Object.keys);
  assert.deepEqual(fieldsOf(lines()[0]), fieldsOf(JSON.parse(block('{\n  "time"'))), "as it is documented");
  assert.doesNotMatch(text(), /hush/);
  assert.equal(text().includes(DIGEST), true);
  assert.equal(statSync(join(folder, ".parley/trace.jsonl")).mode & 0o777, 0o600);
});

test("a model object's line has the options of its call and the parts that came, and the demo's what a model would be asked", async (t) => {
  const object = `{ specificationVersion: "v3", provider: "acme.chat", modelId: "m-1", async doStream() {
    const parts = [
      { type: "raw", rawValue: "…" }, { type: "text-start", id: "1" }, { type: "text-start", id: "2" },
      { type: "text-delta", id: "1", delta: "So: sk-open" }, { type: "text-delta", id: "2", delta: "Or " }, { type: "text-delta", id: "1", delta: "ai-hush!" },
      { type: "text-end", id: "1" }, { type: "text-end", id: "2" },
      { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } } },
    ];
    return { stream: ReadableStream.from(parts), response: { headers: { "x-request-id": "req-1" } } };
  } }`;
  const more =
    ', temperature: 0.5, providerOptions: { acme: { apiKey: "of the code", bytes: new Uint8Array(4), self: globalThis } }';
  const { ask, lines, load, text } = await trace(t, agentOf(object, more), { env: SECRETS });
  await ask({ attachments: [PNG] });
  await load(agentOf('"demo"'));
  await ask({ message: "Think about it" });
  const [own, demo] = lines();
  assert.deepEqual(
    [own.provider, own.model, own.end, own.answer.headers],
    ["acme.chat", "m-1", "complete", { "x-request-id": "req-1" }],
  );
  const { prompt, temperature, providerOptions, abortSignal } = own.request.body;
  assert.deepEqual([temperature, abortSignal], [0.5, undefined]);
  assert.equal(providerOptions.acme.apiKey, "[key]");
  assert.match(providerOptions.acme.bytes, /^\[file, 4 bytes, sha256 df3f6198/);
  assert.equal(prompt[1].content.find((part: Line) => part.type === "file").data, DIGEST);
  const deltas = own.answer.events.map(({ data }: Line) => data.delta).filter(Boolean);
  assert.deepEqual(deltas, ["So: [key]", "Or ", "!"], "in pieces, too");
  assert.deepEqual(demo.request.body.messages, [{ role: "user", content: "Think about it" }]);
  assert.deepEqual(demo.answer.events.map(({ data }: Line) => data.type).slice(-1), ["end"]);
  assert.doesNotMatch(text(), /hush/);
});

const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });

test("of an answer of more than 8 MB the beginning and the last ten events are kept, without secrets", async (t) => {
  const object = `{ specificationVersion: "v3", provider: "acme.chat", modelId: "m-1", async doStream() {
    const parts = [
      ...Array(30).fill({ type: "source", url: "x".repeat(1_000_000) }),
      { type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "sk-open" }, { type: "text-delta", id: "1", delta: "ai-hush!" },
      { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } } },
    ];
    return { stream: ReadableStream.from(parts) };
  } }`;
  const { ask, lines, text } = await trace(t, agentOf(object), { env: SECRETS });
  assert.equal((await ask()).response, "sk-openai-hush!");
  const { events, events_left_out } = lines()[0].answer;
  assert.deepEqual(
    events.map(({ data }: Line) => data.delta ?? data.type),
    [...Array(8 + 6).fill("source"), "text-start", "[key]", "!", "finish"],
  );
  assert.deepEqual([events.at(-1).data.usage.inputTokens, events_left_out], [{ total: 7 }, 16]);
  assert.doesNotMatch(text(), /hush/);
});

test("a refusal, a retry, a fallback model and the turn after the tools are lines of their own", async (t) => {
  await using upstream = await startUpstream();
  const names = ["get_weather", "get_time", "list_rooms"];
  const tool = (name: string) =>
    `{ name: "${name}", description: "One.", parameters: { type: "object" }, execute: () => "Mild." }`;
  const more = `, fallbacks: ["anthropic/claude-sonnet-4-5"], tools: [${names.map(tool).join(", ")}]`;
  const agent = agentOf('"compatible/qwen3"', more);
  const { ask, lines, text, told, folder } = await trace(t, agent, { env: envOf(upstream.url) });
  upstream.reply(
    jsonReply(503, { error: { message: `busy, ${SECRETS.COMPATIBLE_API_KEY}` } }),
    { status: 401, headers: { "content-type": "text/html" }, body: ["<h1>Who are you?</h1>"] },
    { body: [fixture("anthropic/parallel-tools")] },
    { body: [fixture("anthropic/text")] },
  );
  assert.equal((await ask()).response, "Hello 👋");
  const facts = lines().map(({ turn, attempt, provider, end, answer: { status, body } }) => [
    turn,
    attempt,
    provider,
    end,
    status,
    body,
  ]);
  assert.deepEqual(facts, [
    [1, 1, "compatible", "failed", 503, { error: { message: "busy, [key]" } }],
    [1, 2, "compatible", "failed", 401, "<h1>Who are you?</h1>"],
    [1, 3, "anthropic", "complete", 200, undefined],
    [2, 1, "anthropic", "complete", 200, undefined],
  ]);
  assert.match(lines()[0].error, /^provider_\w+: .*\n {2}cause: UpstreamRefusal status=503: busy, \[key\]$/);
  const commands = block("sed -n").replace("17p", "3p");
  const { status, stdout } = spawnSync("bash", ["-ec", commands], { cwd: folder, encoding: "utf8" });
  if (status === 127) t.diagnostic("jq is not installed: the documented commands were not run");
  else assert.match(stdout, /"tools": \[[\s\S]*\nprovider_\w+: [\s\S]*"turn":2,"attempt":1,"model":"claude.*\n$/);
  const results = lines()[3].request.body.messages.at(-1).content;
  assert.deepEqual(
    results.map(({ content }: Line) => content),
    ["Mild.", "Mild.", "Mild."],
  );
  assert.doesNotMatch(text(), /hush/);
  await told(
    /→ compatible\/qwen3 {2}\d+ ms {2}✗ 503 {2}\S+:1\n[\s\S]*✗ 401 {2}\S+:2\n[\s\S]*→ anthropic\/\S+ {2}\d+ ms {2}\S+:3\n[\s\S]*✓ get_weather/,
  );
});

test("an answer that is cut, stopped or left is a line with what came of it, and so is a model that is not there", async (t) => {
  await using upstream = await startUpstream();
  const env = { ...envOf(upstream.url), GEMINI_BASE_URL: "http://127.0.0.1:1/v1", PARLEY_DRAIN_SECONDS: "0" };
  const { ask, lines, load, socketUrl, url, command } = await trace(t, agentOf('"compatible/qwen3"'), { env });
  const begun = { body: [eventStream(chunk("Hel"))] };
  upstream.reply(
    { ...begun, end: "cut" },
    { ...begun, end: "stall" },
    { ...begun, end: "stall" },
    { ...begun, end: "stall" },
  );
  assert.equal((await ask()).error.code, "provider_truncated");
  const client = await connect(t, socketUrl);
  client.send({ message: "Hi" });
  await client.until("token");
  client.send({ type: "stop" });
  await client.until("done");
  const leaving = new AbortController();
  const left = await post({ url }, { message: "Hi", stream: true }, { signal: leaving.signal });
  await left.body?.getReader().read();
  leaving.abort();
  await upstream.calls[2]?.closed;
  await load(agentOf('"gemini/gemini-2.5-flash"'));
  assert.equal((await ask()).error.code, "provider_error");
  await load(agentOf('"compatible/qwen3"'));
  client.send({ message: "Hi" });
  await client.until("token");
  command.kill("SIGTERM");
  assert.equal((await command.end()).code, 0);
  const facts = lines().map(({ end, reason, answer }) => [end, reason, answer?.events.length]);
  assert.deepEqual(facts, [
    ["failed", undefined, 1],
    ["aborted", "stopped", 1],
    ["aborted", "gone", 1],
    ...Array(3).fill(["failed", undefined, undefined]),
    ["aborted", "shutting_down", 1],
  ]);
  assert.match(lines()[0].error, /^provider_truncated: /);
  assert.match(lines()[3].error, /ECONNREFUSED/);
});

test("of an agent that is written elsewhere it says once that its requests are not Parley's", async (t) => {
  const own = 'export default { name: "Mine", run: () => "Hello." };';
  await using upstream = await startUpstream({ body: [fixture("chat-completions/text-and-usage")] });
  const env = envOf(upstream.url);
  const model = agentOf('"compatible/qwen3"');
  const { ask, command, load, told, text, lines } = await trace(t, own, { env });
  const said = () => command.stderr.split("their requests are not Parley's").length - 1;
  assert.deepEqual([said(), (await ask()).response, said(), text()], [1, "Hello.", 1, ""]);
  await load(model);
  await ask();
  await told(/→ compatible\/qwen3/);
  await load(own);
  assert.deepEqual([(await ask()).response, said(), lines().length], ["Hello.", 1, 1]);

  const later = await trace(t, model, { env });
  await later.told(/Each request to a model and its answer go to \.parley\/trace\.jsonl/);
  assert.doesNotMatch(later.command.stderr, /not Parley's/);
  await later.load(own);
  await later.ask();
  await later.told(/their requests are not Parley's/);
});

test("on a full disk it says once that it cannot write, no line is cut, and the agent goes on answering", async (t) => {
  const reply = { body: [fixture("chat-completions/text-and-usage")] };
  await using upstream = await startUpstream(reply, reply, reply, reply);
  const options = { env: envOf(upstream.url), maxFileKilobytes: 64 };
  const { ask, command, lines, told } = await trace(t, agentOf('"compatible/qwen3"'), options);
  const large = "large ".repeat(12_000);
  for (const message of ["Hi", large, large, "Hi"]) assert.equal((await ask({ message })).response, "Hello 👋");
  await told(/jsonl:2\n/);
  assert.equal(lines().length, 2);
  assert.match(
    command.stderr,
    /warning: --trace could not write a request \(EFBIG.*\)\. The agent goes on answering\. Later requests are written if possible\.\n/,
  );
  assert.equal(command.stderr.split("could not write").length, 2);
});

test("the file counts its lines whoever wrote them, is its owner's alone, and begins anew beside one older file at 50 MB", (t) => {
  const folder = temporaryProject(t, {});
  const path = join(folder, ".parley/trace.jsonl");
  const older = join(folder, ".parley/trace.1.jsonl");
  mkdirSync(join(folder, ".parley"));
  writeFileSync(path, "{}\n{}\n{", { mode: 0o644 });
  const file = new TraceFile(folder);
  assert.deepEqual([file.append("{}"), file.append("{}"), statSync(path).mode & 0o777], [4, 5, 0o600]);
  appendFileSync(path, "{}\n");
  assert.equal(file.append("{}"), 7);
  assert.equal(readFileSync(path, "utf8"), "{}\n{}\n{\n{}\n{}\n{}\n{}\n");
  rmSync(join(folder, ".parley"), { recursive: true });
  assert.deepEqual([file.append("{}"), existsSync(join(folder, ".parley/.gitignore"))], [1, true]);
  const megabyte = `${"x".repeat(999_999)}\n`;
  for (const round of [1, 2]) {
    writeFileSync(path, megabyte.repeat(50).slice(round));
    assert.equal(file.append(""), 51, "the last byte is used");
    if (round === 2) assert.equal(file.append("{}"), 1);
    else assert.equal(file.append("{}{}"), 1);
    assert.ok(statSync(older).size <= 50_000_000);
  }
  assert.throws(() => file.append(megabyte.repeat(50)), /one request takes 50000001 bytes/);
  assert.equal(readFileSync(path, "utf8"), "{}\n");
});

test("what is a link, or no file, gets neither a line nor the secret, and its mode stays", (t) => {
  const folder = temporaryProject(t, { "of-others.txt": "mine\n" });
  const other = join(folder, "of-others.txt");
  chmodSync(other, 0o640);
  mkdirSync(join(folder, ".parley"));
  const path = join(folder, ".parley/trace.jsonl");
  const file = new TraceFile(folder);
  for (const replace of [
    () => symlinkSync(other, path),
    () => symlinkSync(join(folder, "new.txt"), path),
    () => mkdirSync(path),
    () => spawnSync("mkfifo", [path]),
  ]) {
    rmSync(path, { recursive: true });
    replace();
    assert.throws(() => file.append("{}"));
    const why =
      /^--trace cannot write \.parley\/trace\.jsonl .*\. Make \.parley a folder and trace\.jsonl a file, neither a link, that you may write to, or leave --trace out\.$/;
    assert.throws(() => new TraceFile(folder), { name: "ConfigError", message: why });
  }
  symlinkSync(other, join(folder, ".parley/secret"));
  assert.notEqual(projectSecret(folder), projectSecret(folder), "of this start alone");
  rmSync(join(folder, ".parley"), { recursive: true });
  mkdirSync(join(folder, "elsewhere"));
  symlinkSync("elsewhere", join(folder, ".parley"));
  assert.throws(() => new TraceFile(folder));
  assert.notEqual(projectSecret(folder), projectSecret(folder));
  assert.deepEqual(readdirSync(folder).sort(), [".parley", "elsewhere", "of-others.txt"]);
  assert.deepEqual(readdirSync(join(folder, "elsewhere")), []);
  assert.deepEqual([readFileSync(other, "utf8"), statSync(other).mode & 0o777], ["mine\n", 0o640]);
});

test("only what is a file is kept by its digest, and what no JSON can hold is named", () => {
  const keep = (value: unknown) => traced(value, (text) => text.replaceAll("hush", "[key]"));
  const encrypted = Buffer.alloc(3000, "E").toString("base64");
  const pixels = String(PNG.data);
  const rows: [value: unknown, kept: unknown][] = [
    [encrypted, encrypted],
    [`data:text/plain;base64,${encrypted}`, /^data:text\/plain;base64,\[file, 3000 bytes, sha256 [0-9a-f]{64}\]$/],
    [pixels, DIGEST],
    [pixels.slice(0, 400), pixels.slice(0, 400)],
    [
      { hush: ["hush", 7n, null, undefined], token: "the", key: "C", max_tokens: 7, signature: "c2ln", password: null },
      {
        "[key]": ["[key]", "7", null, undefined],
        token: "the",
        key: "C",
        max_tokens: 7,
        signature: "c2ln",
        password: null,
      },
    ],
    ...[
      "Authorization",
      "api_key",
      "apiKey",
      "authorization_token",
      "private_key",
      "refresh_token",
      "subscriptionKey",
    ].map((name): [unknown, unknown] => [{ servers: [{ [name]: "x" }] }, { servers: [{ [name]: "[key]" }] }]),
    ...[["x"], 5, { value: "x" }, new Uint8Array(4)].map((value): [unknown, unknown] => [
      { password: value, api_key: value },
      { password: "[key]", api_key: "[key]" },
    ]),
    [
      { properties: { issue_key: { type: "string" }, api_key: "x" } },
      { properties: { issue_key: { type: "string" }, api_key: "[key]" } },
    ],
    [
      { headers: { "X-Acme-Key": "x", Cookie: ["x"], accept: "y" }, extraHeaders: { Signature: "x" } },
      { headers: { "X-Acme-Key": "[key]", Cookie: "[key]", accept: "y" }, extraHeaders: { Signature: "[key]" } },
    ],
    [
      { server_url: "https://me:x@mcp.example/sse?token=x&x", imageURL: new URL("https://a.example/?sig=x") },
      { server_url: "https://[key]@mcp.example/sse?token=[key]&[key]", imageURL: "https://a.example/?sig=[key]" },
    ],
    [{ text: "https://shop.example/?q=shoes" }, { text: "https://shop.example/?q=shoes" }],
    [new RangeError("hush"), { name: "RangeError", message: "[key]" }],
    [
      {
        get field() {
          throw new Error();
        },
      },
      "[cannot be read]",
    ],
  ];
  for (const [value, kept] of rows) {
    if (kept instanceof RegExp) assert.match(String(keep(value)), kept);
    else assert.deepEqual(keep(value), kept);
  }
  const ring: { a?: object; b?: object } = {};
  ring.a = ring.b = ring;
  assert.deepEqual(keep(ring), { a: "[circular]", b: "[circular]" });
  const same = { of: "both" };
  assert.deepEqual(keep([same, same]), [same, same]);
  let shared: unknown = "leaf";
  for (let level = 0; level < 90; level++) shared = { a: shared, b: [shared] };
  const text = JSON.stringify(keep(shared));
  assert.match(text, /"leaf".*"\[too much\]"/);
  assert.ok(text.length < 20_000_000, `${text.length}`);
});

const delta = (index: number, content: string) => ({ choices: [{ index, delta: { content } }] });
const call = (...calls: [index: number, text: string][]) => ({
  id: "chunk-1",
  choices: [
    { index: 0, delta: { tool_calls: calls.map(([index, text]) => ({ index, function: { arguments: text } })) } },
  ],
});
const contentOf = (index: number, text: string) => ({ type: "content_contentOfdelta", index, delta: { text } });
const item = (item_id: string, text: string, number: number) => ({
  type: "delta",
  item_id,
  delta: text,
  sequence_number: number,
});

const PIECES: [what: string, events: unknown[], struck: unknown[]][] = [
  [
    "one part, twice",
    [delta(0, "a "), delta(0, "hu"), delta(0, "s"), delta(0, "h, h"), delta(0, "ush."), delta(0, "hush")],
    [delta(0, "a "), delta(0, "[key]"), delta(0, ""), delta(0, ", [key]"), delta(0, "."), delta(0, "[key]")],
  ],
  [
    "two choices in turn",
    [delta(0, "hu"), delta(1, "x"), delta(0, "sh")],
    [delta(0, "[key]"), delta(1, "x"), delta(0, "")],
  ],
  [
    "calls that change their places in the list",
    [call([0, "x"], [1, "hu"]), call([1, "sh"])],
    [call([0, "x"], [1, "[key]"]), call([1, ""])],
  ],
  [
    "two blocks in turn",
    [contentOf(0, "hu"), contentOf(1, "hu"), contentOf(0, "sh"), contentOf(1, "sh")],
    [contentOf(0, "[key]"), contentOf(1, "[key]"), contentOf(0, ""), contentOf(1, "")],
  ],
  [
    "two items in turn",
    [item("a", "hu", 1), item("b", "x", 2), item("a", "sh", 3)],
    [item("a", "[key]", 1), item("b", "x", 2), item("a", "", 3)],
  ],
];

for (const [what, events, struck] of PIECES) {
  test(`a secret that a model says in pieces is struck where it stands: ${what}`, () => {
    const kept = structuredClone(events).map((data) => ({ data }));
    strikeAcross(kept, (text) => findSecrets(text, ["hush"]));
    assert.deepEqual(
      kept.map(({ data }) => data),
      struck,
    );
  });
}
