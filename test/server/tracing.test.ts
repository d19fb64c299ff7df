/** What an OpenTelemetry collector receives about runs: a tree of spans with known attributes, without contents. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import * as openTelemetry from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import type { RunStart } from "../../server/observe/run-observer.ts";
import { createTracing } from "../../server/observe/tracing.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { fieldOf, post } from "../support/chat-transports.ts";
import { call, end, fail, hang, type Step, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { define, throwing } from "../support/test-tools.ts";

const { SpanKind, SpanStatusCode, trace } = openTelemetry;
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";
const HEADERS = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` };
const RUN: RunStart = {
  runId: "run",
  requestId: "request",
  conversation: "conversation",
  transport: "sse",
  isStreamed: true,
  key: "none",
  user: undefined,
  metadata: {},
  message: "private message",
  attachments: [],
  startedAt: new Date(0),
  askedAt: 0,
  trace: HEADERS,
  agent: "Acme",
  model: "demo",
};

const exporter = new InMemorySpanExporter();
const sdk = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

const outOfOrder = throwing(new Error("out of order"));
const SPAN = Object.getPrototypeOf(sdk.getTracer("test").startSpan("one"));

after(() => {
  for (const part of [trace, openTelemetry.context, openTelemetry.propagation]) part.disable();
});

test("without an SDK no run is traced, whatever its request says", async () => {
  const tracing = createTracing(openTelemetry);
  assert.equal(tracing.begin(RUN), undefined);
  assert.equal(tracing.begin({ ...RUN, trace: {} }), undefined);
  await tracing.close();
});

test("an SDK that comes and goes while the server runs takes the runs in between, and without it no span is begun", (t) => {
  const tracing = createTracing(openTelemetry);
  const { mock } = t.mock.method(trace, "getTracer");
  assert.equal(tracing.begin(RUN), undefined);
  assert.equal(mock.callCount(), 0);
  sdk.register();
  const spans = tracing.begin(RUN);
  assert.ok(spans?.end !== undefined);
  spans.end(undefined);
  trace.disable();
  assert.equal(tracing.begin(RUN), undefined);
  assert.equal(mock.callCount(), 1);
});

const parameters = { type: "object", properties: {}, additionalProperties: false };

const TOOLS = [
  {
    name: "look_up",
    description: "Has a span of its own.",
    parameters: { type: "object", properties: {} },
    async execute() {
      await Promise.resolve();
      trace.getTracer("of a tool").startSpan("query").end();
      return "private output";
    },
  },
  {
    name: "breaks",
    description: "Throws.",
    parameters,
    execute() {
      throw new RangeError("private reason");
    },
  },
  {
    name: "hangs",
    description: "Is slow.",
    parameters,
    timeoutMs: 1,
    execute: () => new Promise<never>(() => {}),
  },
];

function start(t: TestContext, turns: Step[][], options: { deaf?: boolean } = {}): Promise<TestServer> {
  exporter.reset();
  sdk.register();
  const agent = { agent: "Concierge", model: "bedrock/nova", tools: TOOLS };
  return startServer(t, { agent, turns, openTelemetry, ...options });
}

/** The spans by name, read after the server has closed; asserts that none contains texts of users. */
async function spansOf(server: TestServer): Promise<Map<string, ReadableSpan[]>> {
  await server.close();
  const spans = exporter.getFinishedSpans();
  const told = spans.map(({ name, attributes, events, status }) => [name, attributes, events, status]);
  assert.doesNotMatch(JSON.stringify(told), /private/);
  const byName = new Map<string, ReadableSpan[]>();
  for (const span of spans) byName.set(span.name, [...(byName.get(span.name) ?? []), span]);
  return byName;
}

const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;

const MODEL = { "gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": "nova" };

for (const transport of ["json", "sse", "ws"] as const) {
  test(`a run over ${transport} is a tree of spans in the trace of its request, and a tool's own spans are in it`, async (t) => {
    const counts = { input_tokens: 7, output_tokens: 3 };
    const usage = { ...counts, cached_input_tokens: 4, cache_write_tokens: 1, reasoning_tokens: 2 };
    const server = await start(t, [
      [call("call_1", "look_up", { secret: "private argument" }), end("stop", usage)],
      [say("private answer"), end("length", usage)],
    ]);
    const message = "private message";
    if (transport === "ws") {
      const client = await connect(t, server.socketUrl, { headers: HEADERS });
      await client.run({ message });
    } else {
      const stream = transport === "sse";
      await (await post(server, { message, stream }, { headers: HEADERS })).text();
    }
    const spans = await spansOf(server);
    const [run] = spans.get("invoke_agent Concierge") ?? [];
    const [first, second] = spans.get("chat nova") ?? [];
    const [tool] = spans.get("execute_tool look_up") ?? [];
    const [query] = spans.get("query") ?? [];
    assert.equal([...spans.values()].flat().length, 5);
    for (const span of [run, first, second, tool, query]) {
      assert.equal(span?.spanContext().traceId, TRACE_ID);
      assert.equal(span?.status.code, SpanStatusCode.UNSET);
    }
    assert.deepEqual(
      [run, first, second, tool, query].map((span) => span?.parentSpanContext?.spanId),
      [PARENT_ID, idOf(run), idOf(run), idOf(run), idOf(tool)],
    );
    assert.deepEqual(
      [run, first, tool].map((span) => span?.kind),
      [SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL],
    );
    const ids = ["gen_ai.conversation.id", "parley.run.id", "parley.request.id"];
    const about = Object.fromEntries(Object.entries(run?.attributes ?? {}).filter(([name]) => !ids.includes(name)));
    const [conversation, runId, requestId] = ids.map((name) => run?.attributes[name]);
    assert.match(String(conversation), /^[\w-]{36}$/);
    assert.match(`${runId} ${requestId}`, /^[0-9a-f]{8} [0-9a-f]{32}$/);
    assert.deepEqual(about, {
      ...MODEL,
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "Concierge",
      "gen_ai.response.finish_reasons": ["length"],
      "gen_ai.usage.input_tokens": 14,
      "gen_ai.usage.output_tokens": 6,
      "gen_ai.usage.cache_read.input_tokens": 8,
      "gen_ai.usage.cache_write.input_tokens": 2,
      "gen_ai.usage.reasoning.output_tokens": 4,
      "parley.transport": transport,
    });
    assert.deepEqual(second?.attributes, {
      ...MODEL,
      "gen_ai.operation.name": "chat",
      "gen_ai.response.finish_reasons": ["length"],
      "gen_ai.usage.input_tokens": 7,
      "gen_ai.usage.output_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 4,
      "gen_ai.usage.cache_write.input_tokens": 1,
      "gen_ai.usage.reasoning.output_tokens": 2,
    });
    assert.deepEqual(tool?.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "look_up",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": "call_1",
    });
  });
}

test("a run without a traceparent, or with one that is none, begins a trace", async (t) => {
  const server = await start(t, [[say("A")], [say("B")]]);
  for (const headers of [{}, { traceparent: "00-private-01" }]) {
    await post(server, { message: "Hi", stream: false }, { headers });
  }
  const runs = (await spansOf(server)).get("invoke_agent Concierge") ?? [];
  assert.deepEqual(fieldOf(runs, "parentSpanContext"), [undefined, undefined]);
  assert.equal(new Set(runs.map((span) => span.spanContext().traceId)).size, 2);
});

test("what fails is told by the kind of its failure", async (t) => {
  const server = await start(t, [
    [
      call("call_1", "breaks"),
      call("call_2", "hangs"),
      call("call_3", "breaks", { private: true }),
      call("call_4", "private_name_that_the_model_made_up"),
    ],
    [fail(new ApiError("provider_overloaded", "Busy.", { cause: new Error("private") }))],
  ]);
  await post(server, { message: "Hi", stream: false });
  const spans = await spansOf(server);
  const failures = [...spans.values()].flat().flatMap(({ name, attributes, status }) => {
    const type = attributes["error.type"];
    return type === undefined ? [] : [`${name}: ${type} ${status.code === SpanStatusCode.ERROR}`];
  });
  assert.deepEqual(failures.sort(), [
    "chat nova: provider_overloaded true",
    "execute_tool breaks: RangeError true",
    "execute_tool breaks: invalid_arguments true",
    "execute_tool hangs: timeout true",
    "invoke_agent Concierge: provider_overloaded true",
  ]);
});

const LEAVING: [how: string, deaf: boolean, errorType: string | undefined][] = [
  ["is no error", false, undefined],
  ["is one of a model that does not stop", true, "provider_timeout"],
];

for (const [how, deaf, errorType] of LEAVING) {
  test(`a run whose client has left ends all of its spans, and ${how}`, async (t) => {
    const server = await start(t, [[say("A"), hang]], { deaf });
    const stop = new AbortController();
    const answer = await post(server, { message: "Hi", stream: true }, { signal: stop.signal });
    await answer.body?.getReader().read();
    stop.abort();
    await server.model.asked[0]?.aborted;
    const spans = await spansOf(server);
    assert.deepEqual([...spans.keys()], ["chat nova", "invoke_agent Concierge"]);
    const [chat] = spans.get("chat nova") ?? [];
    assert.equal(chat?.attributes["parley.aborted"], true);
    assert.equal(chat?.status.code, SpanStatusCode.UNSET);
    const [run] = spans.get("invoke_agent Concierge") ?? [];
    assert.equal(run?.attributes["error.type"], errorType);
    assert.equal(run?.attributes["parley.aborted"], errorType === undefined ? true : undefined);
  });
}

test("a model that stands in for another is named by its own span", async (t) => {
  const asked: Step = { type: "model", model: "gemini/flash" };
  const server = await start(t, [[asked, say("A")]]);
  await post(server, { message: "Hi", stream: false });
  const spans = await spansOf(server);
  for (const name of ["chat flash", "invoke_agent Concierge"]) {
    const [span] = spans.get(name) ?? [];
    assert.equal(span?.attributes["gen_ai.provider.name"], "gcp.gemini");
    assert.equal(span?.attributes["gen_ai.request.model"], "flash");
  }
});

/** Methods in which an OpenTelemetry SDK may throw: when a run starts, when a span starts, changes or ends. */
const BREAKING: [what: string, breaks: (t: TestContext) => void][] = [
  ["getTracer", (t) => void t.mock.method(trace, "getTracer", outOfOrder)],
  ...(["setAttribute", "setAttributes", "end", "spanContext"] as const).map((method): (typeof BREAKING)[number] => [
    `${method} of a span`,
    (t) => void t.mock.method(SPAN, method, outOfOrder),
  ]),
  ["context.with", (t) => void t.mock.method(openTelemetry.context, "with", outOfOrder)],
];

for (const [what, breaks] of BREAKING) {
  test(`an SDK that throws in ${what} costs no answer, no record and no count of a run, and the log says why`, async (t) => {
    sdk.register();
    t.after(() => trace.disable());
    let calls = 0;
    const server = await startServer(t, {
      openTelemetry,
      turns: [[call("c1", "look")], [say("Done."), end("stop", { input_tokens: 1, output_tokens: 1 })]],
      agent: { tools: [define("look", () => ++calls)] },
    });
    breaks(t);
    const answer = await (await post(server, { message: "Hi", stream: false })).json();
    assert.deepEqual([answer.response, answer.tool_calls?.[0].output, calls], ["Done.", "1", 1]);
    assert.match(server.log.join(""), /out of order/);
    assert.equal(server.log.filter((record) => record.includes('"msg":"run"')).length, 1);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /\nparley_runs_running 0\n[\s\S]*parley_runs_total\{[^}]*\} 1\n/);
  });
}
