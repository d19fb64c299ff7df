/** The log: one record per request and per run, with facts but without the texts of conversations. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Environment, readSettings } from "../../server/config/settings.ts";
import { describeFailure } from "../../server/observe/describe-failure.ts";
import { createLog } from "../../server/observe/log.ts";
import type { RunEntry, RunStart } from "../../server/observe/run-observer.ts";
import { ApiError, toApiError } from "../../server/protocol/errors.ts";
import { UpstreamFailure, UpstreamGarbage, UpstreamRefusal } from "../../server/providers/failures.ts";
import { post, send } from "../support/chat-transports.ts";
import { call, end, fail, hang, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const JSON_LINES = { PARLEY_LOG: "json" };
const SHORT_ID = /^[0-9a-f]{8}$/;

type Line = Record<string, string | number>;

/** All records of one kind, read after the server has closed. */
async function lines(server: TestServer, msg: string): Promise<Line[]> {
  await server.close();
  const all = server.log.map((line): Line => JSON.parse(line));
  return all.filter((line) => line.msg === msg);
}

/** Removes times, which differ on each run, after checking that they are whole milliseconds. */
function withoutTimes({ time, ms, queue_ms, first_token_ms, ...rest }: Line): Line {
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  for (const value of [ms, queue_ms, first_token_ms]) {
    assert.ok(value === undefined || Number.isInteger(value), `${value} ms`);
  }
  return rest;
}

const echo = {
  name: "echo",
  description: "Says it again.",
  parameters: { type: "object", properties: {} },
  execute: () => "private tool output",
};

for (const transport of ["json", "sse", "ws"] as const) {
  test(`a run over ${transport} is one line: its end, tokens, times, turns and tools, and none of its words`, async (t) => {
    const server = await startServer(t, {
      agent: { tools: [echo] },
      env: JSON_LINES,
      turns: [
        [call("call_1", "echo", { secret: "private argument" }), end()],
        [say("private answer"), end("stop", { input_tokens: 7, output_tokens: 3 })],
      ],
    });
    const how = transport === "ws" ? "socket" : transport;
    const { last } = await send[how](t, server, { message: "private message" });
    const [run, ...more] = await lines(server, "run");
    assert.deepEqual(more, []);
    assert.ok(run);
    const { request_id, run_id, conversation, ...rest } = withoutTimes(run);
    assert.match(String(run_id), SHORT_ID);
    assert.equal(conversation, last.state?.conversation);
    assert.equal(typeof run.first_token_ms, "number");
    assert.deepEqual(rest, {
      level: "info",
      msg: "run",
      model: "demo",
      transport,
      key: "none",
      end: "stop",
      input_tokens: 7,
      output_tokens: 3,
      turns: 2,
      tools: 1,
    });
    const [request] = await lines(server, "request");
    assert.equal(request?.request_id, request_id, "the request that brought the message");
    assert.doesNotMatch(server.log.join("\n"), /private/);
  });
}

test("a request is one line with its route, not its path, and the bytes that were sent", async (t) => {
  const server = await startServer(t, { env: JSON_LINES, turns: [] });
  const headers = { "x-request-id": "id-1" };
  await fetch(`${server.url}/health?token=private`, { headers });
  await fetch(`${server.url}/api/chat/runs/private-run-name-1`, { headers });
  await fetch(`${server.url}/private/place`, { headers });
  const requests = await lines(server, "request");
  for (const { bytes, ms } of requests)
    assert.ok(Number(bytes) > 100 && Number.isInteger(ms), `${bytes} bytes, ${ms} ms`);
  assert.deepEqual(
    requests.map((line) => [line.level, line.request_id, line.method, line.route, line.status]),
    [
      ["info", "id-1", "GET", "/health", 200],
      ["info", "id-1", "GET", "/api/chat/runs/{id}", 404],
      ["info", "id-1", "GET", "unmatched", 404],
    ],
  );
  assert.doesNotMatch(server.log.join("\n"), /private/);
});

test("a request that was refused says why, and quotes nothing of it", async (t) => {
  const keys = {
    PARLEY_API_KEY: "api-key",
    PARLEY_CHAT_KEY: "chat-key",
    PARLEY_ALLOWED_ORIGINS: "https://shop.example",
  };
  const server = await startServer(t, { env: { ...JSON_LINES, ...keys }, turns: [] });
  const refused: [headers: Record<string, string>, error: string][] = [
    [{}, "unauthorized: no key"],
    [{ authorization: "Bearer wrong" }, "unauthorized: unknown key"],
    [{ authorization: "Bearer chat-key" }, "forbidden: a chat key does not open this address for this origin"],
    [
      { authorization: "Bearer api-key", origin: "https://evil.example" },
      "forbidden: the page's origin is not allowed",
    ],
    [{ authorization: "Bearer api-key", "content-type": "text/plain" }, "unsupported_media_type"],
  ];
  for (const [headers] of refused) await (await fetch(`${server.url}/api/chat`, { method: "POST", headers })).text();
  const requests = await lines(server, "request");
  assert.deepEqual(
    requests.map(({ error }) => error),
    refused.map(([, error]) => error),
  );
  assert.doesNotMatch(server.log.join("\n"), /evil|api-key/);
});

test("a socket is one line when it closes, with the id that its client was given", async (t) => {
  const server = await startServer(t, { env: JSON_LINES, turns: [[say("Hi")]] });
  const client = await connect(t, server.socketUrl, { headers: { "x-request-id": "socket-1" } });
  await client.run({ message: "Hi" });
  client.socket.close();
  await client.closed;
  const [line, ...more] = await lines(server, "request");
  assert.deepEqual(more, []);
  assert.deepEqual([line?.method, line?.route, line?.status, line?.request_id], ["WS", "/ws/chat", 101, "socket-1"]);
});

/** Errors that quote a visitor's text, wherever a provider can put it. */
const QUOTING: [failure: Error, facts: string][] = [
  [
    new UpstreamRefusal(
      400,
      new Headers({ "x-request-id": "req_7" }),
      JSON.stringify({ error: { message: "cannot read: private words", type: "invalid_request_error", code: "bad" } }),
    ),
    "UpstreamRefusal status=400 code=bad type=invalid_request_error request=req_7",
  ],
  [
    new UpstreamRefusal(500, new Headers(), JSON.stringify({ error: { code: "private words" } })),
    "UpstreamRefusal status=500",
  ],
  [new UpstreamRefusal(502, new Headers(), "<p>private words</p>"), "UpstreamRefusal status=502"],
  [
    new UpstreamFailure({ error: { message: "private words", type: "overloaded_error" } }),
    "UpstreamFailure type=overloaded_error",
  ],
  [
    new UpstreamGarbage("an event is not JSON", { cause: new SyntaxError("'private words'") }),
    "UpstreamGarbage\n  cause: SyntaxError",
  ],
  [Object.assign(new Error("private words"), { code: "ECONNRESET" }), "Error code=ECONNRESET"],
];

test("a run that failed is a warning with the code; of the provider's failure the log has facts, and its words only at the level debug", async (t) => {
  for (const [cause, facts] of QUOTING) {
    const error = new ApiError("provider_overloaded", "Too busy.", { cause });
    for (const PARLEY_LOG_LEVEL of ["info", "debug"]) {
      const env = { ...JSON_LINES, PARLEY_LOG_LEVEL };
      const server = await startServer(t, { env, turns: [[fail(error)]] });
      await post(server, { message: "Hi", stream: false });
      const [run] = await lines(server, "run");
      assert.deepEqual([run?.level, run?.end], ["warn", "provider_overloaded"]);
      const [failure] = await lines(server, "failure");
      assert.deepEqual([failure?.level, failure?.run_id], ["warn", run?.run_id]);
      if (PARLEY_LOG_LEVEL === "info") {
        // Removes the places: these errors are thrown in this file, like those of the agent's author.
        const told = String(failure?.error).replace(/ at \S+:\d+:\d+$/gm, "");
        assert.equal(told, `provider_overloaded: Too busy.\n  cause: ${facts}`);
        assert.doesNotMatch(server.log.join("\n"), /private/);
      } else if (!facts.endsWith("status=500")) {
        assert.match(String(failure?.error), /Too busy\.\n.*private words/s);
      }
    }
  }
});

test("a bug is logged with its stack, and so is its cause", () => {
  const { log, records } = ownLog("json");
  log.failure(new Error("a bug", { cause: new TypeError("of a part") }));
  log.failure(toApiError(new TypeError("of a handler")));
  const texts = records.map((record) => JSON.parse(record).error);
  assert.match(texts[0], /Error: a bug\n +at .*cause: TypeError: of a part\n +at /s);
  assert.match(texts[1], /internal: .*cause: TypeError: of a handler\n +at /s);
});

test("of another's failure the log has the first place in the author's code, and no line of its message", () => {
  const [message, frames] = [
    "private\n    at /private/words:1:1",
    "    at step (node:internal:1:1)\n    at /srv/agent.js:7:3",
  ];
  for (const [said, rest] of [
    [message, frames],
    ["", "    at <anonymous>\n    at async run (file:///srv/agent.js:7:3)\n    at /srv/other.js:1:1"],
    ["\n".repeat(100_000), frames],
  ]) {
    const cause = Object.assign(new Error(said), { stack: `Error: ${said}\n${rest}` });
    const begin = performance.now();
    const told = describeFailure(new ApiError("provider_error", "Down.", { cause }), false, String);
    assert.ok(performance.now() - begin < 1_000);
    assert.equal(told, "provider_error: Down.\n  cause: Error at /srv/agent.js:7:3");
  }
});

test("of each cause the log has the beginning, without a part of a secret", () => {
  const { log, records } = ownLog("json");
  log.hide(["hidden-key"]);
  for (const thrown of [{ list: Array(100).fill("x".repeat(100)) }, `${"x".repeat(3995)}hidden-key`])
    log.failure(thrown);
  for (const record of records) {
    assert.ok(record.length < 4500, `${record.length}`);
    assert.doesNotMatch(record, /hidde/);
  }
});

test("no part of a secret is left where another is in it or overlaps it, whichever was told first", () => {
  for (const secrets of [
    ["secret", "secret-of-shop", "shop-and-more", "abcabc"],
    ["abcabc", "shop-and-more", "secret-of-shop", "secret"],
  ]) {
    const { log, records } = ownLog("json");
    log.hide(secrets);
    log.notice("a secret-of-shop, a secret-of-shop-and-more, a secret, secretsecret, abcabcabc");
    assert.equal(JSON.parse(records[0] ?? "").text, "a [key], a [key], a [key], [key][key], [key]");
    assert.equal(log.strike(""), "");
  }
});

test("a run whose client has gone says so", async (t) => {
  const server = await startServer(t, { env: JSON_LINES, turns: [[say("A"), hang]] });
  const stop = new AbortController();
  const answer = await post(server, { message: "Hi", stream: true }, { signal: stop.signal });
  await answer.body?.getReader().read();
  stop.abort();
  await server.model.asked[0]?.aborted;
  const [run] = await lines(server, "run");
  assert.deepEqual([run?.level, run?.end], ["info", "gone"]);
});

test("PARLEY_LOG_LEVEL=debug adds a line for each model request and tool call; error leaves only bugs", async (t) => {
  const counts: Record<string, number[]> = {};
  for (const PARLEY_LOG_LEVEL of ["debug", "info", "warn", "error"]) {
    const server = await startServer(t, {
      agent: { tools: [echo] },
      env: { ...JSON_LINES, PARLEY_LOG_LEVEL },
      turns: [[call("call_1", "echo")], [fail(new TypeError("a bug"))]],
    });
    await post(server, { message: "Hi", stream: false });
    const kinds = ["model", "tool", "request", "run", "failure"];
    counts[PARLEY_LOG_LEVEL] = [];
    for (const kind of kinds) counts[PARLEY_LOG_LEVEL].push((await lines(server, kind)).length);
  }
  assert.deepEqual(counts, {
    debug: [2, 1, 1, 1, 1],
    info: [0, 0, 1, 1, 1],
    // Includes the request, because its status was 500.
    warn: [0, 0, 1, 1, 1],
    error: [0, 0, 0, 0, 1],
  });
});

test("PARLEY_LOG=off writes nothing", async (t) => {
  const server = await startServer(t, { env: { PARLEY_LOG: "off" }, turns: [[say("Hi")]] });
  await post(server, { message: "Hi", stream: false });
  await server.close();
  assert.deepEqual(server.log, []);
});

const HOSTILE = 'a\nb\r\x1b[31mc\x00\x7f\x9bd\u2028e\u2029"f hidden-key';

const START: RunStart = {
  runId: HOSTILE,
  requestId: HOSTILE,
  conversation: HOSTILE,
  transport: "sse",
  isStreamed: true,
  key: "none",
  user: undefined,
  metadata: {},
  message: HOSTILE,
  attachments: [],
  startedAt: new Date(0),
  askedAt: 0,
  trace: {},
  agent: "Acme",
  model: "demo",
};

/** A log with this environment, and the records that it writes. */
function ownLog(format: "json" | "pretty", env: Environment = {}) {
  const records: string[] = [];
  const settings = readSettings({ PARLEY_LOG: format, PARLEY_LOG_LEVEL: "debug", ...env });
  const log = createLog(settings, (record) => records.push(record));
  return { log, records };
}

function runEntry(entry: Partial<RunEntry>): RunEntry {
  const about = { start: START, model: "demo", end: "stop", failed: false, ms: 4210, queueMs: 0, turns: 1 } as const;
  const unknown = {
    firstTokenMs: undefined,
    providerRequestId: undefined,
    last: undefined,
    usage: undefined,
    cost: undefined,
  };
  const said = { message: (entry.start ?? START).message, answer: "", said: "", openCalls: [] };
  return { ...about, ...unknown, ...said, toolCalls: entry.tools?.length ?? 0, tools: [], ...entry };
}

for (const format of ["json", "pretty"] as const) {
  test(`nothing from outside can begin a line, colour it or forge a field, and no secret is written: ${format}`, () => {
    const { log, records } = ownLog(format);
    log.hide(["hidden-key", "7"]);
    const step = { start: START, kind: "tool", name: HOSTILE, outcome: HOSTILE, ms: 7 } as const;
    const request = { requestId: HOSTILE, method: HOSTILE, route: HOSTILE, error: HOSTILE };
    log.request({ ...request, status: 404, ms: 7, bytes: 7 });
    log.run(runEntry({ model: HOSTILE, tools: [step], providerRequestId: HOSTILE }));
    log.step(step);
    log.notice(HOSTILE);
    log.warning(HOSTILE);
    log.failure(new ApiError("provider_error", HOSTILE), START);
    log.failure(new Error(HOSTILE));
    assert.equal(records.length, 7);
    for (const record of records) {
      assert.ok(record.endsWith("\n"));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
      assert.doesNotMatch(record.slice(0, -1), /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]|\n(?! )/);
      assert.doesNotMatch(record, /hidden-key/);
      if (format === "json") {
        assert.doesNotMatch(record.slice(0, -1), /\n/);
        for (const field of Object.keys(JSON.parse(record))) assert.ok(FIELDS.has(field), field);
      }
    }
  });
}

/** All fields documented in docs/api.md. */
const FIELDS = new Set(
  `time level msg request_id run_id method route status ms bytes model transport key end queue_ms first_token_ms
  input_tokens output_tokens conversation turns tools provider_request_id name outcome error text`.split(/\s+/),
);

const WEATHER = { ...START, runId: "9b1d04c7-secret", message: "What is the\nweather in Paris today? ".repeat(3) };
const TOOLS = [
  { start: WEATHER, kind: "tool", name: "get_weather", outcome: "completed", ms: 120 },
  { start: WEATHER, kind: "tool", name: "look_up", outcome: "failed", ms: 3 },
] as const;

const PRETTY: [what: string, entry: Partial<RunEntry>, env: Environment, line: string][] = [
  [
    "the first words of the question, the tools, the model, the tokens and the seconds",
    { start: WEATHER, tools: TOOLS, model: "openai/gpt-5.2", usage: { input_tokens: 912, output_tokens: 240 } },
    {},
    '"What is the weather in Paris today? What is the weather in…"  ✓ get_weather 120 ms  ✗ look_up 3 ms  openai/gpt-5.2  1152 tokens  4.2 s',
  ],
  ["on another address no words", { start: WEATHER }, { HOST: "0.0.0.0" }, "run 9b1d04c7  demo  4.2 s"],
  ["with a key no words", { start: WEATHER }, { PARLEY_CHAT_KEY: "a-key" }, "run 9b1d04c7  demo  4.2 s"],
  ["behind a proxy no words", { start: WEATHER }, { PARLEY_TRUSTED_PROXIES: "::1" }, "run 9b1d04c7  demo  4.2 s"],
  ["its name where no words were sent", { start: { ...WEATHER, message: "" } }, {}, "run 9b1d04c7  demo  4.2 s"],
  [
    "how it ended, unless it was answered",
    { start: { ...WEATHER, message: "Hi" }, end: "gone" },
    { HOST: "::1" },
    '"Hi"  demo  4.2 s  gone',
  ],
  [
    "why it failed",
    { start: { ...WEATHER, message: "Hi" }, end: "provider_timeout", failed: true },
    { HOST: "localhost" },
    '"Hi"  demo  4.2 s  ✗ provider_timeout',
  ],
];

for (const [what, entry, env, line] of PRETTY) {
  test(`on a terminal a run is one line: ${what}`, () => {
    const { log, records } = ownLog("pretty", env);
    log.run(runEntry(entry));
    assert.equal(records.length, 1);
    assert.match(records[0] ?? "", /^\d\d:\d\d:\d\d /);
    assert.equal(records[0]?.slice(9), `${line}\n`);
  });
}

test("on a terminal requests are shown only if they were refused", () => {
  const { log, records } = ownLog("pretty");
  const request = { requestId: "id-1", method: "GET", ms: 3, bytes: 100 };
  log.request({ ...request, route: "/", status: 200 });
  log.request({ ...request, route: "unmatched", status: 404, error: "not_found" });
  assert.deepEqual(
    records.map((record) => record.slice(9)),
    ["GET unmatched 404  not_found  3 ms  id-1\n"],
  );
});
