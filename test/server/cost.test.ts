/** Costs of answers by the agent's prices, and token counts of unfinished answers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentDefinition } from "../../server/agent/define.ts";
import type { RunRecord } from "../../server/agent/run-record.ts";
import type { Usage } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { onEveryTransport, post, send } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { onceCalled } from "../support/once-called.ts";
import { call, cut, end, fail, hang, type Step, say, think, wait } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { echo } from "../support/test-tools.ts";
import { eventStream, jsonReply, startUpstream } from "../support/upstream-server.ts";

const PRICES = { "openai/gpt-5.2": { input: 2, output: 10, cachedInput: 0.5, cacheWrite: 4 } };

const WRONG: [prices: unknown, message: RegExp][] = [
  [7, /^prices must be an object with the price of each model, such as \{ "openai\/gpt-5\.2": \{ input/],
  [{}, /^prices must be an object/],
  [[], /^prices must be an object/],
  [{ demo: 3 }, /^prices\["demo"\] must be an object with USD for a million tokens, such as/],
  [{ demo: { input: 1 } }, /^prices\["demo"\]\.output must be a number from 0: USD for a million tokens\.$/],
  [{ demo: { input: "1", output: 1 } }, /^prices\["demo"\]\.input must be a number from 0/],
  [{ demo: { input: -1, output: 1 } }, /^prices\["demo"\]\.input must be a number from 0/],
  [{ demo: { input: 1, output: Number.NaN } }, /^prices\["demo"\]\.output must be a number from 0/],
  [{ demo: { input: 1, output: 1, cacheWrite: null } }, /^prices\["demo"\]\.cacheWrite must be a number from 0/],
  [
    { demo: { input: 1, output: 1, cachedInputs: 1 } },
    /^prices\["demo"\]\.cachedInputs is not a field of a price\. Did you mean cachedInput\?$/,
  ],
  [
    { demo: { input: 1, output: 1, perRequest: 1 } },
    /\.perRequest is not a field of a price\. The fields are input, output, cachedInput, cacheWrite\.$/,
  ],
  [
    { "gpt-5.2": { input: 1, output: 1 } },
    /^prices has none for "demo", but one for "gpt-5\.2", which is no model of this agent\./,
  ],
];

for (const [prices, message] of WRONG) {
  test(`prices that are ${JSON.stringify(prices)} stop the start`, async (t) => {
    const started = startServer(t, { agent: { prices } as Partial<AgentDefinition>, turns: [] });
    await assert.rejects(started, { name: "ConfigError", message });
  });
}

test("a table of prices may have more models than its agent", async (t) => {
  const prices = { ...PRICES, demo: { input: 1, output: 1 } };
  const server = await startServer(t, { agent: { prices }, turns: [] });
  assert.doesNotMatch(server.log.join(""), /prices/);
});

test("the start says which models of the agent have no price", async (t) => {
  const model = "openai/gpt-5.2" as const;
  const agent = { model, fallbacks: ["openai/gpt-5-mini", "openai/gpt-5-nano"], prices: PRICES } as const;
  const server = await startServer(t, { agent: agent as never, turns: [] });
  const sentence = /prices has none for \\"openai\/gpt-5-mini\\" and \\"openai\/gpt-5-nano\\"/;
  assert.equal(server.log.filter((record) => sentence.test(record)).length, 1);
});

/** The records of one run: of the hook and of the log. */
async function recordsOf(t: Parameters<typeof startServer>[0], options: ServerOptions) {
  const { hook: onRunEnd, next } = onceCalled<RunRecord>();
  const server = await startServer(t, { ...options, agent: { ...options.agent, onRunEnd } });
  const log = () => server.log.map((text) => JSON.parse(text)).find(({ msg }) => msg === "run");
  return { server, next, log };
}

async function metric(server: TestServer, name: string): Promise<string[]> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith(`${name}{`));
}

const used = (input_tokens: number, output_tokens: number, more: Partial<Usage> = {}): Usage => {
  return { input_tokens, output_tokens, ...more };
};

const COSTS: [what: string, prices: AgentDefinition["prices"], usage: Usage, cost: number][] = [
  ["input and output", PRICES, used(1000, 100), 0.003],
  ["what a cache gave", PRICES, used(1000, 100, { cached_input_tokens: 800 }), 0.0018],
  ["what was written into a cache", PRICES, used(1000, 100, { cache_write_tokens: 500 }), 0.004],
  ["thoughts, which are output", PRICES, used(1000, 100, { reasoning_tokens: 90 }), 0.003],
  [
    "a cache without a price of its own",
    { "openai/gpt-5.2": { input: 2, output: 10 } },
    used(1000, 100, { cached_input_tokens: 800, cache_write_tokens: 100 }),
    0.003,
  ],
  ["sums that binary fractions do not have", { "openai/gpt-5.2": { input: 0.1, output: 0.2 } }, used(1, 1), 3e-7],
];

for (const [what, prices = {}, usage, cost] of COSTS) {
  test(`the cost counts ${what}`, async (t) => {
    const turns = [[say("Yes."), end("stop", usage)]];
    const { server, next, log } = await recordsOf(t, { agent: { model: "openai/gpt-5.2", prices }, turns });
    await send.json(t, server, { message: "Hi" });
    assert.equal((await next()).cost, cost);
    assert.equal(log().cost, cost);
    assert.deepEqual(await metric(server, "parley_cost_usd_total"), [
      `parley_cost_usd_total{model="openai/gpt-5.2"} ${cost}`,
    ]);
  });
}

test("clients get no cost, on any transport", async (t) => {
  const turns = [[say("Yes."), end("stop", used(7, 3))]];
  const agent = { model: "openai/gpt-5.2", prices: PRICES } as const;
  const { json, sse, socket } = await onEveryTransport(t, () => ({ agent, turns }), { message: "Hi" });
  assert.doesNotMatch(JSON.stringify([json.events, sse.events, socket.events]), /cost|price|estimated/);
});

test("each turn is priced by the model that answered it, and its tokens are counted under its name", async (t) => {
  const reply = (delta: object, usage: object) => {
    const choices = [{ index: 0, delta, finish_reason: "stop" }];
    return { body: [eventStream({ choices }, { choices: [], usage }, "[DONE]")] };
  };
  const called = { index: 0, id: "c1", function: { name: "echo", arguments: '{"text":"a"}' } };
  const overloaded = jsonReply(503, { error: { message: "no" } }, { "x-should-retry": "false" });
  await using first = await startUpstream(
    reply({ tool_calls: [called] }, { prompt_tokens: 1000, completion_tokens: 100 }),
    overloaded,
  );
  await using second = await startUpstream(reply({ content: "Yes." }, { prompt_tokens: 2000, completion_tokens: 10 }));
  const prices = { "litellm/first": { input: 1, output: 10 }, "compatible/second": { input: 0.1, output: 1 } };
  const { server, next } = await recordsOf(t, {
    agent: { model: "litellm/first", fallbacks: ["compatible/second"], tools: [echo], prices },
    env: { LITELLM_BASE_URL: first.url, COMPATIBLE_BASE_URL: second.url },
  });
  const { last } = await send.json(t, server, { message: "Hi" });
  const record = await next();
  assert.deepEqual(last.type === "done" && [last.usage, last.model], [used(3000, 110), "compatible/second"]);
  assert.deepEqual([record.model, record.cost], ["compatible/second", 0.00221]);
  assert.deepEqual(await metric(server, "parley_cost_usd_total"), [
    'parley_cost_usd_total{model="litellm/first"} 0.002',
    'parley_cost_usd_total{model="compatible/second"} 0.00021',
  ]);
  assert.deepEqual(await metric(server, "parley_tokens_total"), [
    'parley_tokens_total{direction="input",model="litellm/first"} 1000',
    'parley_tokens_total{direction="output",model="litellm/first"} 100',
    'parley_tokens_total{direction="input",model="compatible/second"} 2000',
    'parley_tokens_total{direction="output",model="compatible/second"} 10',
  ]);
});

test("an agent with run has a price under that name, and a model of the AI SDK under its provider and id", async (t) => {
  async function* run() {
    yield "Yes.";
    yield { type: "usage", data: used(1000, 100) };
  }
  const stream = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue({ type: "text-delta", id: "1", delta: "Yes." });
        const usage = { inputTokens: { total: 1000 }, outputTokens: { total: 100 } };
        controller.enqueue({ type: "finish", finishReason: { unified: "stop" }, usage });
        controller.close();
      },
    });
  const about = { specificationVersion: "v3", provider: "acme.chat", modelId: "m-1" };
  const model = { ...about, doStream: async () => ({ stream: stream() }) };
  const price = { input: 1, output: 10 };
  for (const agent of [
    { model: undefined, run, prices: { run: price } },
    { model, prices: { "acme.chat/m-1": price } },
  ]) {
    const { server, next } = await recordsOf(t, { agent: agent as never });
    await send.json(t, server, { message: "Hi" });
    assert.equal((await next()).cost, 0.002);
  }
});

const UNKNOWN: [what: string, options: ServerOptions][] = [
  ["an agent without prices", { turns: [[say("Yes."), end("stop", used(7, 3))]] }],
  [
    "an answer of a model that does not count",
    { agent: { model: "openai/gpt-5.2", prices: PRICES }, turns: [[say("Yes.")]] },
  ],
  [
    "an answer in which a model without a price had a part",
    {
      agent: { model: "openai/gpt-5.2", prices: PRICES, tools: [echo] },
      turns: [
        [call("c1", "echo", { text: "a" }), end("stop", used(7, 3))],
        [{ type: "model", model: "litellm/other" }, say("Yes."), end("stop", used(7, 3))],
      ],
    },
  ],
];

for (const [what, options] of UNKNOWN) {
  test(`the cost of ${what} is not known`, async (t) => {
    const { server, next, log } = await recordsOf(t, options);
    await send.json(t, server, { message: "Hi" });
    assert.equal((await next()).cost, undefined);
    assert.equal("cost" in log(), false);
  });
}

test("a message that is refused before the model is asked costs nothing", async (t) => {
  const agent = { model: "openai/gpt-5.2", prices: PRICES, onMessage: () => ({ refuse: "No." }) } as const;
  const { server, next } = await recordsOf(t, { agent, turns: [] });
  await send.json(t, server, { message: "Hi" });
  const { usage, cost } = await next();
  assert.deepEqual([usage, cost], [undefined, 0]);
});

// Token counts of unfinished answers.

const AGENT = { model: "openai/gpt-5.2", prices: PRICES, instructions: "x".repeat(400) } as const;
const MESSAGE = "y".repeat(40);
const SAID: Step[] = [think("t".repeat(20)), say("z".repeat(20))];
/** At four characters per token: the instructions, the message, and the text so far. */
const GUESSED = { input_tokens: 110, output_tokens: 10, estimated: true };

/** The record of a run that is stopped after its first piece of text. */
async function stopped(t: Parameters<typeof startServer>[0], options: ServerOptions, message: object = {}) {
  const { server, next, log } = await recordsOf(t, options);
  const client = await connect(t, server.socketUrl);
  client.send({ message: MESSAGE, ...message });
  await client.until("token");
  client.send({ type: "stop" });
  const last = (await client.until("done")).at(-1);
  assert.ok(last?.type === "done");
  return { server, record: await next(), entry: log(), last };
}

test("a stopped answer is counted by its characters: in the record, the log and the metrics, but not for clients", async (t) => {
  const { server, record, entry, last } = await stopped(t, { agent: AGENT, turns: [[...SAID, hang]] });
  assert.deepEqual([record.finishReason, record.usage, record.cost], ["stopped", GUESSED, 0.00032]);
  assert.deepEqual([entry.input_tokens, entry.output_tokens, entry.estimated, entry.cost], [110, 10, true, 0.00032]);
  assert.equal("usage" in last, false);
  assert.deepEqual(await metric(server, "parley_tokens_total"), [
    'parley_tokens_total{direction="input",model="openai/gpt-5.2",estimated="true"} 110',
    'parley_tokens_total{direction="output",model="openai/gpt-5.2",estimated="true"} 10',
  ]);
  assert.deepEqual(await metric(server, "parley_cost_usd_total"), [
    'parley_cost_usd_total{model="openai/gpt-5.2",estimated="true"} 0.00032',
  ]);
});

test("after a turn that was counted, a stopped one takes at least what that one left; clients get what was counted", async (t) => {
  const counted = used(1000, 100, { cached_input_tokens: 7 });
  const turns = [
    [call("c1", "echo", { text: "a" }), end("stop", counted)],
    [say("abcd"), hang],
  ];
  const { record, last } = await stopped(t, { agent: { ...AGENT, tools: [echo] }, turns });
  assert.deepEqual(record.usage, { ...used(2100, 101, { cached_input_tokens: 7 }), estimated: true });
  assert.deepEqual(last.usage, counted);
});

test("what tools have returned and what was said before counts as input, files do not", async (t) => {
  const png = `iVBORw0KGgo${"A".repeat(40_001)}`;
  const attachments = [{ type: "image", name: "a.png", mime_type: "image/png", data: png }];
  const history = [
    { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }] },
    { role: "assistant", content: "b".repeat(4000) },
  ];
  const turns = [[call("c1", "echo", { text: "c".repeat(4000) })], [say("abcd"), hang]];
  const agent = { ...AGENT, tools: [echo] };
  const message = { attachments, state: { conversation_history: history } };
  const { record } = await stopped(t, { agent, turns }, message);
  const { input_tokens: input = 0, output_tokens: output } = record.usage ?? {};
  // The earlier answer, the call's arguments and its result have 1,000 tokens each; the tool's schema adds some.
  assert.ok(input > 3110 && input < 3300, String(input));
  assert.equal(output, 1);
});

test("a turn that failed in its middle is counted, one that was refused is not", async (t) => {
  const refused = fail(new ApiError("provider_overloaded", "Too busy."));
  const { server, next, log } = await recordsOf(t, { agent: AGENT, turns: [[...SAID, cut], [refused]] });
  await send.sse(t, server, { message: MESSAGE });
  const record = await next();
  assert.deepEqual([record.error?.code, record.usage, record.cost], ["provider_truncated", GUESSED, 0.00032]);
  assert.equal(log().estimated, true);
  await send.sse(t, server, { message: MESSAGE });
  const { error, usage, cost } = await next();
  assert.deepEqual([error?.code, usage, cost], ["provider_overloaded", undefined, 0]);
});

test("an answer whose client has gone is counted, and so is a request that was not answered yet", async (t) => {
  const { server, next } = await recordsOf(t, { agent: AGENT, turns: [[...SAID, hang], [hang]] });
  const gone = new AbortController();
  const answer = await post(server, { message: MESSAGE, stream: true }, { signal: gone.signal });
  const reader = answer.body?.getReader();
  let text = "";
  while (!text.includes('"token"')) text += new TextDecoder().decode((await reader?.read())?.value);
  gone.abort();
  assert.deepEqual((await next()).usage, GUESSED);
  const client = await connect(t, server.socketUrl);
  const asked = server.model.nextAsked();
  client.send({ message: MESSAGE });
  await asked;
  client.send({ type: "stop" });
  assert.deepEqual((await next()).usage, { ...GUESSED, output_tokens: 0 });
});

test("of a stopped answer of Claude the input was counted, with what a cache gave", async (t) => {
  const counted = { input_tokens: 21, cache_read_input_tokens: 1800, cache_creation_input_tokens: 188 };
  const delta = { type: "text_delta", text: "z".repeat(40) };
  const body = eventStream(
    { type: "message_start", message: { usage: { ...counted, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta },
  );
  await using upstream = await startUpstream({ body: [body], end: "stall" });
  const { record, last } = await stopped(t, {
    agent: { model: "anthropic/claude-sonnet-5" },
    env: { ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, "") },
  });
  const cache = { cached_input_tokens: 1800, cache_write_tokens: 188 };
  assert.deepEqual(record.usage, { ...used(2009, 10, cache), estimated: true });
  assert.equal("usage" in last, false);
});

test("what an agent that is written elsewhere has reported before it fails counts, and what it has said", async (t) => {
  async function* run() {
    yield { type: "usage", data: used(1000, 2, { reasoning_tokens: 1 }) };
    yield "z".repeat(40);
    throw new Error("out of order");
  }
  const { server, next } = await recordsOf(t, { agent: { model: undefined, run } as never });
  await send.sse(t, server, { message: MESSAGE });
  assert.deepEqual((await next()).usage, { ...used(1000, 10, { reasoning_tokens: 1 }), estimated: true });
});

test("an answer whose model ignores the end of its run is counted", async (t) => {
  const held = gate();
  t.after(() => held.open());
  const clock = stopClock(t);
  const { server, next } = await recordsOf(t, { agent: AGENT, turns: [[...SAID, wait(held.opened)]], deaf: true });
  const client = await connect(t, server.socketUrl);
  client.send({ message: MESSAGE });
  await client.until("token");
  client.send({ type: "stop" });
  await server.model.asked[0]?.aborted;
  clock.tick(1000);
  await client.until("error");
  assert.deepEqual((await next()).usage, GUESSED);
});
