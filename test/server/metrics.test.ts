/** The metrics for Prometheus: a valid page whose numbers match what happened. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { post, send } from "../support/chat-transports.ts";
import { call, end, fail, hang, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { startServer, type TestServer } from "../support/start-server.ts";

interface Metric {
  type: string;
  samples: Map<string, number>;
}

/** Parses the text format as strictly as its specification, so that an invalid page fails here. */
function parseMetrics(text: string): Map<string, Metric> {
  assert.ok(text.endsWith("\n"));
  const metrics = new Map<string, Metric>();
  let name = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const [, helped] = /^# HELP ([a-zA-Z_:][\w:]*) \S.*$/.exec(line) ?? [];
    const [, typed, type = ""] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (helped !== undefined) {
      assert.ok(!metrics.has(helped), `${helped} stands twice`);
      name = helped;
    } else if (typed !== undefined) {
      assert.equal(typed, name);
      metrics.set(name, { type, samples: new Map() });
    } else {
      const sample = /^([a-zA-Z_:][\w:]*)((?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+\})?) (\S+)$/;
      const [, full = "", labels = "", value = ""] = sample.exec(line) ?? assert.fail(line);
      const metric = metrics.get(name) ?? assert.fail(`${line} has no TYPE`);
      const suffixes = metric.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      assert.ok(suffixes.includes(full.slice(name.length)) && full.startsWith(name), line);
      assert.ok(!metric.samples.has(full + labels), `${full}${labels} stands twice`);
      assert.ok(Number.isFinite(Number(value)), line);
      metric.samples.set(full + labels, Number(value));
      if (metric.type === "counter") assert.match(name, /_total$/);
    }
  }
  for (const [of, { type, samples }] of metrics) {
    if (type === "histogram") assertBuckets(of, samples);
  }
  return metrics;
}

/** Asserts that buckets are cumulative and that the last one counts all. */
function assertBuckets(name: string, samples: ReadonlyMap<string, number>): void {
  const last = new Map<string, number>();
  for (const [sample, value] of samples) {
    if (!sample.startsWith(`${name}_bucket`)) continue;
    const labels = sample
      .replace(/,?le="[^"]*"/, "")
      .replace("{}", "")
      .replace("_bucket", "_count");
    assert.ok(value >= (last.get(labels) ?? 0), sample);
    last.set(labels, value);
    if (sample.includes('le="+Inf"')) assert.equal(value, samples.get(labels), sample);
  }
  assert.ok(last.size > 0);
}

async function read(server: TestServer, key?: string) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const answer = await fetch(`${server.url}/metrics`, { headers });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const metrics = parseMetrics(await answer.text());
  return (sample: string) => {
    const [name = ""] = sample.split("{");
    const family = metrics.get(name) ?? metrics.get(name.replace(/_(?:bucket|sum|count)$/, ""));
    return family?.samples.get(sample);
  };
}

const echo = {
  name: "echo",
  description: "Says it again.",
  parameters: { type: "object", properties: {} },
  execute: () => "done",
};

test("runs, tokens, tools, requests and errors are counted as they happen", async (t) => {
  const counts = { input_tokens: 7, output_tokens: 3 };
  const usage = { ...counts, cached_input_tokens: 4, cache_write_tokens: 1, reasoning_tokens: 2 };
  const broken = fail(new ApiError("provider_overloaded", "Too busy."));
  const server = await startServer(t, {
    agent: { tools: [echo] },
    turns: [
      [call("call_1", "echo"), call("call_2", "made_up"), end()],
      [say("Fine"), end("stop", usage)],
      [say("Fine"), end("length", usage)],
      [broken],
      [broken],
    ],
  });
  await send.json(t, server, { message: "1" });
  await send.socket(t, server, { message: "2" });
  await send.sse(t, server, { message: "3" });
  await send.json(t, server, { message: "4" });
  const value = await read(server);
  const expected: Record<string, number> = {
    'parley_runs_total{transport="json",end="stop"}': 1,
    'parley_runs_total{transport="ws",end="length"}': 1,
    'parley_runs_total{transport="sse",end="provider_overloaded"}': 1,
    'parley_runs_total{transport="json",end="provider_overloaded"}': 1,
    'parley_errors_total{code="provider_overloaded"}': 2,
    'parley_tokens_total{direction="input",model="demo"}': 14,
    'parley_tokens_total{direction="output",model="demo"}': 6,
    'parley_token_details_total{detail="cached_input",model="demo"}': 8,
    'parley_token_details_total{detail="cache_write",model="demo"}': 2,
    'parley_token_details_total{detail="reasoning",model="demo"}': 4,
    parley_run_duration_seconds_count: 4,
    parley_run_first_token_seconds_count: 2,
    'parley_model_request_duration_seconds_count{outcome="stop"}': 2,
    'parley_model_request_duration_seconds_count{outcome="provider_overloaded"}': 2,
    'parley_tool_duration_seconds_count{tool="echo",status="completed"}': 1,
    'parley_tool_duration_seconds_count{tool="other",status="failed"}': 1,
    'parley_requests_total{method="POST",route="/api/chat",status="200"}': 2,
    'parley_requests_total{method="POST",route="/api/chat",status="502"}': 1,
    'parley_requests_total{method="WS",route="/ws/chat",status="101"}': 1,
    parley_runs_running: 0,
    parley_runs_queued: 0,
    parley_sockets_open: 0,
    'parley_info{model="demo"}': 1,
  };
  for (const [sample, wanted] of Object.entries(expected)) {
    assert.equal(value(sample), wanted, sample);
  }
  for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total"]) {
    assert.ok((value(name) ?? 0) > 0, name);
  }
  for (const part of ["mean", "p50", "p99", "max"]) {
    assert.ok((value(`nodejs_eventloop_lag_${part}_seconds`) ?? -1) >= 0, part);
  }
});

test("what runs, waits and is refused now can be seen", async (t) => {
  const server = await startServer(t, {
    env: { PARLEY_MAX_RUNS: "1", PARLEY_MAX_QUEUED_RUNS: "1", PARLEY_QUEUE_SECONDS: "60" },
    turns: [[say("A"), hang]],
  });
  const running = await connect(t, server.socketUrl);
  running.send({ message: "1" });
  await running.until("token");
  const waiting = await connect(t, server.socketUrl);
  waiting.send({ message: "2" });
  // Its error means that the message before it was queued.
  waiting.send({ message: "3" });
  await waiting.until("error");
  const refused = await connect(t, server.socketUrl);
  assert.equal((await refused.run({ message: "4" })).length, 1);
  const value = await read(server);
  assert.equal(value("parley_runs_running"), 1);
  assert.equal(value("parley_runs_queued"), 1);
  assert.equal(value("parley_sockets_open"), 3);
  assert.equal(value('parley_limited_total{limit="all_runs"}'), 1);
  assert.equal(value('parley_errors_total{code="overloaded"}'), 1);
  assert.equal(value('parley_errors_total{code="run_in_progress"}'), 1);
});

/** Client addresses behind a proxy, because loopback addresses are not counted. */
const from = (address: string) => ({ "x-forwarded-for": address });

test("each limit that refuses something counts under its own name", async (t) => {
  const env = {
    PARLEY_TRUSTED_PROXIES: "127.0.0.1",
    PARLEY_API_KEY: "right-key",
    PARLEY_WRONG_KEYS_PER_ADDRESS: "1",
    PARLEY_RATE_PER_ADDRESS: "2",
    PARLEY_MAX_SOCKETS: "2",
    PARLEY_MAX_SOCKETS_PER_ADDRESS: "1",
    PARLEY_MAX_RUNS: "2",
    PARLEY_MAX_RUNS_PER_ADDRESS: "1",
    PARLEY_MAX_QUEUED_RUNS: "0",
  };
  const server = await startServer(t, {
    env,
    turns: [
      [say("A"), hang],
      [say("A"), hang],
    ],
  });
  const key = (value: string, address: string) => ({ authorization: `Bearer ${value}`, ...from(address) });
  const ask = (headers: Record<string, string>) => post(server, { message: "Hi", stream: true }, { headers });

  await ask(key("wrong-key", "203.0.113.1"));
  assert.equal((await ask(key("wrong-key", "203.0.113.1"))).status, 429);

  const socketOf = (address: string) => connect(t, server.socketUrl, { headers: key("right-key", address) });
  for (const address of ["203.0.113.2", "203.0.113.3"]) {
    const running = await socketOf(address);
    running.send({ message: "Hi" });
    await running.until("token");
    if (address === "203.0.113.2") await (await socketOf(address)).until("error");
  }
  await assert.rejects(socketOf("203.0.113.4"), /503/);

  assert.equal((await ask(key("right-key", "203.0.113.2"))).status, 429);
  assert.equal((await ask(key("right-key", "203.0.113.2"))).status, 429);
  assert.equal((await ask(key("right-key", "203.0.113.4"))).status, 503);

  const value = await read(server, "right-key");
  for (const limit of ["wrong_keys", "sockets", "all_sockets", "runs", "messages", "all_runs"]) {
    assert.equal(value(`parley_limited_total{limit="${limit}"}`), 1, limit);
  }
});

test("who is refused by their key, or by their origin, is counted by code, in each transport", async (t) => {
  const env = {
    PARLEY_API_KEY: "api-key",
    PARLEY_CHAT_KEY: "chat-key",
    PARLEY_ALLOWED_ORIGINS: "https://shop.example",
  };
  const server = await startServer(t, { env, turns: [] });
  const evil = { authorization: "Bearer api-key", origin: "https://evil.example" };
  for (const [headers, status] of [
    [evil, 403],
    [{ authorization: "Bearer chat-key" }, 403],
    [{ authorization: "Bearer wrong" }, 401],
  ] as const) {
    assert.equal((await post(server, { message: "Hi" }, { headers })).status, status);
  }
  const socket = await connect(t, server.socketUrl, { headers: evil });
  assert.equal((await socket.run({ message: "Hi" })).at(-1)?.type, "error");
  const value = await read(server, "api-key");
  assert.equal(value('parley_errors_total{code="forbidden"}'), 3);
  assert.equal(value('parley_errors_total{code="unauthorized"}'), 1);
});

test("a page of another site cannot read /metrics of a server without keys", async (t) => {
  const server = await startServer(t, { turns: [] });
  const headers = { origin: "https://evil.example" };
  assert.equal((await fetch(`${server.url}/metrics`, { headers })).status, 403);
});

test("PARLEY_METRICS=off serves none, and chats go on", async (t) => {
  const server = await startServer(t, { env: { PARLEY_METRICS: "off" }, turns: [[say("Hi")]] });
  assert.equal((await fetch(`${server.url}/metrics`)).status, 404);
  assert.equal((await post(server, { message: "Hi", stream: false })).status, 200);
});

test("names that clients choose make no new series", async (t) => {
  const server = await startServer(t, { turns: [] });
  for (let at = 0; at < 20; at++) {
    await fetch(`${server.url}/odd-${at}`);
    await fetch(`${server.url}/api/chat/runs/odd-run-name-${at}`);
  }
  const text = await (await fetch(`${server.url}/metrics`)).text();
  assert.doesNotMatch(text, /odd/);
  assert.match(text, /parley_requests_total\{method="GET",route="unmatched",status="404"\} 20\n/);
});
