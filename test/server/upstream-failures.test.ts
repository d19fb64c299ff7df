/** A failing upstream: one proper error on each transport, and never a connection that is left open. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { onEveryTransport, post } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { eventStream, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const APIS = { openai: RESPONSES, litellm: CHAT_COMPLETIONS };

interface Failure {
  name: string;
  reply: UpstreamReply;
  status: number;
  code: ErrorCode;
  env?: Record<string, string>;
  /** Only one of the two APIs has this failure. */
  only?: keyof typeof APIS;
}

const secret = { error: { message: "sk-secret is wrong at /srv/proxy.py", type: "x" } };
const QUICK = { PARLEY_FIRST_CHUNK_SECONDS: "0.1" };

const FAILURES: Failure[] = [
  { name: "400", reply: jsonReply(400, secret), status: 400, code: "invalid_request" },
  { name: "401", reply: jsonReply(401, secret), status: 502, code: "provider_auth" },
  { name: "403", reply: jsonReply(403, secret), status: 502, code: "provider_auth" },
  { name: "404", reply: jsonReply(404, secret), status: 502, code: "provider_error" },
  {
    name: "429 with a long Retry-After",
    reply: jsonReply(429, secret, { "retry-after": "30" }),
    status: 502,
    code: "provider_rate_limited",
  },
  {
    name: "500 that forbids a retry",
    reply: jsonReply(500, secret, { "x-should-retry": "false" }),
    status: 502,
    code: "provider_error",
  },
  {
    name: "a page of HTML",
    reply: { headers: { "content-type": "text/html" }, body: ["<h1>sk-secret</h1>"] },
    status: 502,
    code: "provider_error",
  },
  {
    name: "a redirect",
    reply: { status: 302, headers: { location: "http://127.0.0.1:9/sk-secret" } },
    status: 502,
    code: "provider_error",
  },
  {
    name: "data that is no JSON",
    reply: { body: ["data: {sk-secret\n\n"] },
    status: 502,
    code: "provider_error",
  },
  { name: "an empty stream", reply: { body: [] }, status: 502, code: "provider_truncated" },
  {
    name: "silence before the first byte",
    reply: { headless: true, end: "stall" },
    env: QUICK,
    status: 504,
    code: "provider_timeout",
  },
  {
    name: "an expired conversation",
    reply: jsonReply(404, { error: { code: "previous_response_not_found", message: "sk-secret" } }),
    status: 409,
    code: "conversation_expired",
    only: "openai",
  },
  {
    name: "response.failed in the stream",
    reply: {
      body: [eventStream({ type: "response.failed", response: { id: "r", error: secret.error } })],
    },
    status: 502,
    code: "provider_error",
    only: "openai",
  },
  {
    name: "an error object in the stream",
    reply: { body: [eventStream(secret)] },
    status: 502,
    code: "provider_error",
    only: "litellm",
  },
];

for (const [name, api] of Object.entries(APIS)) {
  const cases: Failure[] = [
    ...FAILURES.filter(({ only = name }) => only === name),
    {
      name: "a stream that ends in the middle",
      reply: api.cut("Half"),
      status: 502,
      code: "provider_truncated",
    },
    {
      name: "a connection that is reset in the middle",
      reply: { ...api.cut("Half"), end: "cut" },
      status: 502,
      code: "provider_truncated",
    },
    {
      name: "silence in the middle",
      reply: api.stall("Half"),
      // The first piece takes the time that it needs.
      env: { PARLEY_IDLE_SECONDS: "0.1" },
      status: 504,
      code: "provider_timeout",
    },
  ];
  for (const { name: failure, reply, status, code, env = {} } of cases) {
    test(`${name} upstream with ${failure}: one ${code} on each transport`, async (t) => {
      const setup = async () => {
        const upstream = await startUpstream(reply);
        t.after(() => upstream.close());
        return { agent: { model: api.model }, env: { ...api.env(upstream.url), ...env } };
      };
      const { json, sse, socket } = await onEveryTransport(t, setup, { message: "Hi" });
      assert.equal(json.status, status);
      assert.equal(sse.status, 200);
      for (const { last, events } of [json, sse, socket]) {
        assert.ok(last.type === "error");
        assert.equal(last.code, code);
        assert.doesNotMatch(JSON.stringify(events), /secret|srv|127\.0\.0\.1|stack/);
      }
    });
  }

  test(`${name} upstream that cannot be reached: one provider_error on each transport`, async (t) => {
    const env = api.env(`http://127.0.0.1:${await closedPort()}/v1`);
    const setup = () => ({ agent: { model: api.model }, env });
    const { json } = await onEveryTransport(t, setup, { message: "Hi" });
    assert.equal(json.status, 502);
    assert.equal(json.last.type === "error" && json.last.code, "provider_error");
  });

  for (const transport of ["json", "sse", "socket"] as const) {
    test(`${name}: a client killed on ${transport} closes the upstream connection`, async (t) => {
      const upstream = await startUpstream(api.stall("Half"));
      t.after(() => upstream.close());
      const env = api.env(upstream.url);
      const server = await startServer(t, { agent: { model: api.model }, env });
      const called = upstream.nextCall();
      const kill = await begin(t, server, transport);
      const { closed } = await called;
      kill();
      assert.equal(await within(closed, "the end of the connection"), "aborted");
    });
  }

  test(`${name}: stop and clear close the upstream connection`, async (t) => {
    const upstream = await startUpstream(api.stall("Half"), api.stall("Half"));
    t.after(() => upstream.close());
    const env = api.env(upstream.url);
    const server = await startServer(t, { agent: { model: api.model }, env });
    const client = await connect(t, server.socketUrl);
    for (const type of ["stop", "clear"]) {
      client.send({ message: "Hi" });
      await client.until("token");
      client.send({ type });
      await client.until("done", "cleared");
      const closed = upstream.calls.at(-1)?.closed;
      assert.ok(closed);
      assert.equal(await within(closed, "the end of the connection"), "aborted");
    }
  });
}

test("at the level debug the log has what the provider said of a failure, without the server's keys", async (t) => {
  const said = { error: { message: "Incorrect API key provided: sk-of-a-test. Ticket 4711" } };
  const upstream = await startUpstream(jsonReply(401, said));
  t.after(() => upstream.close());
  const env = { ...RESPONSES.env(upstream.url), PARLEY_LOG_LEVEL: "debug" };
  const server = await startServer(t, { agent: { model: RESPONSES.model }, env });
  await post(server, { message: "Hi", stream: false });
  const log = server.log.join("\n");
  assert.match(log, /provider_auth.*\n.*Ticket 4711/);
  assert.doesNotMatch(log, /sk-of-a-test/);
});

/** Starts a run on the transport and returns what kills its client. */
async function begin(
  t: Cleanup,
  server: Awaited<ReturnType<typeof startServer>>,
  transport: "json" | "sse" | "socket",
): Promise<() => void> {
  if (transport === "socket") {
    const client = await connect(t, server.socketUrl);
    client.send({ message: "Hi" });
    await client.until("token");
    return () => client.socket.terminate();
  }
  const leaving = new AbortController();
  const body = { message: "Hi", stream: transport === "sse" };
  const answer = post(server, body, { signal: leaving.signal });
  if (transport === "sse") await (await answer).body?.getReader().read();
  answer.catch(() => {});
  return () => leaving.abort();
}

/** A port that nothing listens on: below those that a system gives to who asks for any, so that no other test gets it either. */
async function closedPort(): Promise<number> {
  const port = 10_000 + Math.floor(Math.random() * 20_000);
  const server = createServer().listen(port, "127.0.0.1");
  const isFree = await once(server, "listening").then(
    () => true,
    () => false,
  );
  if (!isFree) return closedPort();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
