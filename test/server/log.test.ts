/** What the operator reads: one line per request and per run, with facts and without words of anybody. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createLog, type LogFormat } from "../../server/log.ts";
import { toApiError } from "../../server/protocol/api-error.ts";
import { UpstreamGarbage } from "../../server/providers/failures/failures.ts";
import { ProviderError } from "../../server/providers/failures/provider-error.ts";
import { UpstreamFailure, UpstreamRefusal } from "../../server/providers/upstream/refusal.ts";
import { post, send } from "../support/chat-transports.ts";
import { call, end, fail, hang, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

const JSON_LINES = { PARLEY_LOG: "json" };
const SHORT_ID = /^[0-9a-f]{8}$/;

type Line = Record<string, string | number>;

/** The lines of one kind, once the server has closed and nothing more is written. */
async function lines(server: TestServer, msg: string): Promise<Line[]> {
  await server.close();
  const all = server.log.map((line): Line => JSON.parse(line));
  return all.filter((line) => line.msg === msg);
}

/** Times differ each time; that they are whole milliseconds does not. */
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
    await send[how](t, server, { message: "private message" });
    const [run, ...more] = await lines(server, "run");
    assert.deepEqual(more, []);
    assert.ok(run);
    const { request_id, run_id, ...rest } = withoutTimes(run);
    assert.match(String(run_id), SHORT_ID);
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
  for (const { bytes } of requests) assert.ok(Number(bytes) > 100, `${bytes} bytes`);
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

/** Refusals and failures that quote what a visitor wrote, wherever a provider can put it. */
const QUOTING: [failure: Error, facts: string][] = [
  [
    new UpstreamRefusal(
      400,
      new Headers({ "x-request-id": "req_7" }),
      JSON.stringify({
        error: {
          message: "cannot read: private words",
          type: "invalid_request_error",
          code: "bad",
        },
      }),
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
    const error = new ProviderError("provider_overloaded", "Too busy.", { cause });
    for (const PARLEY_LOG_LEVEL of ["info", "debug"]) {
      const env = { ...JSON_LINES, PARLEY_LOG_LEVEL };
      const server = await startServer(t, { env, turns: [[fail(error)]] });
      await post(server, { message: "Hi", stream: false });
      const [run] = await lines(server, "run");
      assert.deepEqual([run?.level, run?.end], ["warn", "provider_overloaded"]);
      const [failure] = await lines(server, "failure");
      assert.deepEqual([failure?.level, failure?.run_id], ["warn", run?.run_id]);
      if (PARLEY_LOG_LEVEL === "info") {
        assert.equal(failure?.error, `provider_overloaded: Too busy.\n  cause: ${facts}`);
        assert.doesNotMatch(server.log.join("\n"), /private/);
      } else if (!facts.endsWith("status=500")) {
        assert.match(String(failure?.error), /Too busy\.\n.*private words/s);
      }
    }
  }
});

test("a bug is told with its stack, and so is what it came from", () => {
  const written: string[] = [];
  const log = createLog((line) => written.push(line), []);
  log.failure(new Error("a bug", { cause: new TypeError("of a part") }));
  log.failure(toApiError(new TypeError("of a handler")));
  assert.match(written[0] ?? "", /Error: a bug\n +at .*cause: TypeError: of a part\n +at /s);
  assert.match(written[1] ?? "", /internal: .*cause: TypeError: of a handler\n +at /s);
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
    // The request was answered with 500.
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

const HOSTILE = 'a\nb\r\x1b[31mc\x00\x7f\x9bd\u2028e\u2029"f';

for (const format of ["json", "pretty"] satisfies LogFormat[]) {
  test(`nothing from outside can begin a line, colour it or forge a field: ${format}`, () => {
    const written: string[] = [];
    const log = createLog((line) => written.push(line), ["hidden-key"], { format, level: "debug" });
    const hostile = `${HOSTILE} hidden-key`;
    const ids = { requestId: hostile, runId: hostile };
    log.request({ ...ids, method: hostile, route: hostile, status: 200, ms: 1, bytes: 1 });
    log.step({ ...ids, kind: "tool", name: hostile, outcome: hostile, ms: 1 });
    log.notice(hostile);
    log.warning(hostile);
    log.failure(new ProviderError("provider_error", hostile), ids);
    assert.equal(written.length, 5);
    for (const line of written) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
      assert.doesNotMatch(line, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]|\n(?! )/);
      assert.doesNotMatch(line, /hidden-key/);
      if (format === "json") {
        assert.doesNotMatch(line, /\n/);
        const known = ["bytes", "error", "level", "method", "ms", "msg", "name", "outcome"];
        const all = [...known, "request_id", "route", "run_id", "status", "text", "time"];
        for (const field of Object.keys(JSON.parse(line))) assert.ok(all.includes(field), field);
      }
    }
  });
}
