/** A failing upstream: one proper end on each transport, the next message is answered, and no connection is left open. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode } from "../../server/protocol/errors.ts";
import { onEveryTransport, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { startFaultyUpstream } from "../support/faulty-upstream.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import { turns } from "../support/turns.ts";
import { chatProvider, responsesProvider } from "../support/upstream-conversation.ts";
import { CHAT_COMPLETIONS, RESPONSES } from "../support/upstream-replies.ts";
import { jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";
import { answerOf, FAULTS, joined } from "../support/wire-faults.ts";

/** For the first chunk and for each after it: far longer than anything here takes. */
const LIMIT_MS = 20_000;

for (const api of STREAMED_APIS) {
  const kind = api.contentType === "text/event-stream" ? "events" : "frames";
  const faults = FAULTS.filter(({ only = kind }) => only === kind);
  for (const [index, fault] of faults.entries()) {
    const { name, answer, end, tries = 1, hasBegun = false } = fault;
    // In turns, for what leaves the run is the same on all.
    const transport = TRANSPORTS[index % TRANSPORTS.length] ?? "json";
    test(`${api.name} upstream that ${name}: one ${end} over ${transport}, and the next message is answered`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const limits = { firstChunkMs: LIMIT_MS, idleMs: LIMIT_MS };
      const server = await startServer(t, { provider: await api.provider(upstream, limits) });
      const good = answerOf(api);
      const heal = () => upstream.answer((socket) => socket.end(joined(good.ok, good.start, good.rest)));

      heal();
      const first = await send.sse(t, server, { message: "Hi" });
      assert.ok(first.last.type === "done");
      const { state, data: answered } = first.last;

      const before = upstream.requests;
      const faulted = new Promise<void>((resolve) => {
        upstream.answer((socket) => {
          void answer(socket, good);
          resolve();
        });
      });
      const clock = end === "provider_timeout" ? stopClock(t) : undefined;
      const sent = send[transport](t, server, { message: "And?", state });
      if (clock !== undefined) {
        await within(faulted, "the request");
        // What has been said by then comes as well; nothing that comes halfway makes the limit a longer one.
        for (const half of [LIMIT_MS / 2, LIMIT_MS / 2]) {
          await turns();
          clock.tick(half);
        }
      }
      const { last, events } = await within(sent, "the end of the run");
      if (clock !== undefined) {
        assert.match(server.log.join("\n"), hasBegun ? /stopped sending in the middle/ : /did not answer/);
      }
      const said = events.map((event) => (event.type === "token" ? event.data : "")).join("");
      assert.ok(answered.startsWith(said), said);
      assert.equal(last.type === "error" ? last.code : last.type, end);
      assert.doesNotMatch(last.data, /127\.0\.0\.1|HTTP\/|HPE_|ECONN|sk-/);
      assert.equal(upstream.requests - before, tries);
      if (last.type === "error" && transport !== "json") assert.deepEqual(last.state, state);

      heal();
      const { state: next = state } = last;
      const again = await send.sse(t, server, { message: "And now?", state: next });
      assert.equal(again.last.data, answered);
      await upstream.allClosed();
    });
  }
}

const secret = { error: { message: "sk-secret is wrong at /srv/proxy.py", type: "x" } };

/** What the three transports say of a code, in the status of the JSON form. */
const STATUSES: [status: number, code: ErrorCode, reply: UpstreamReply][] = [
  [400, "invalid_request", jsonReply(400, secret)],
  [502, "provider_auth", jsonReply(403, secret)],
  [502, "provider_error", jsonReply(404, secret)],
  [502, "provider_rate_limited", jsonReply(429, secret, { "retry-after": "30" })],
  [502, "provider_error", { headers: { "content-type": "text/html" }, body: ["<h1>sk-secret</h1>"] }],
  [502, "provider_truncated", RESPONSES.cut("Half")],
  [504, "provider_timeout", { headless: true, end: "stall" }],
  [
    409,
    "conversation_expired",
    jsonReply(404, { error: { code: "previous_response_not_found", message: "sk-secret" } }),
  ],
];

for (const [status, code, reply] of STATUSES) {
  test(`one ${code} on each transport, as ${status} of the JSON form, says nothing of the upstream's words`, async (t) => {
    const setup = async () => {
      const upstream = await startUpstream(reply);
      t.after(() => upstream.close());
      const env = {
        ...RESPONSES.env(upstream.url),
        PARLEY_FIRST_CHUNK_SECONDS: code === "provider_timeout" ? "0.1" : "60",
      };
      return { agent: { model: RESPONSES.model }, env };
    };
    const { json, sse, socket } = await onEveryTransport(t, setup, { message: "Hi" });
    assert.equal(json.status, status);
    assert.equal(sse.status, 200);
    for (const { last, events } of [json, sse, socket]) {
      assert.equal(last.type === "error" && last.code, code);
      assert.doesNotMatch(JSON.stringify(events), /secret|srv|127\.0\.0\.1|stack/);
    }
  });
}

test("visitors of a server with keys read no vendor's name and no cause that is the operator's; the log has both", async (t) => {
  const upstream = await startUpstream(jsonReply(401, secret));
  t.after(() => upstream.close());
  const env = { ...RESPONSES.env(upstream.url), PARLEY_API_KEY: "a-key-of-a-test-that-is-long" };
  const server = await startServer(t, { agent: { model: RESPONSES.model }, env });
  const answer = await post(
    server,
    { message: "Hi", stream: false },
    { headers: { authorization: `Bearer ${env.PARLEY_API_KEY}` } },
  );
  const { error } = await answer.json();
  assert.equal(error.code, "provider_auth");
  assert.equal(error.message, "The assistant is not set up correctly. Please tell the owner of this site.");
  assert.match(server.log.join("\n"), /provider_auth: OpenAI refused the API key.*status=401/);
});

const APIS = {
  openai: { api: RESPONSES, provider: responsesProvider },
  litellm: { api: CHAT_COMPLETIONS, provider: chatProvider },
};

for (const [name, { api, provider }] of Object.entries(APIS)) {
  test(`${name} upstream that cannot be reached: one provider_error on each transport`, async (t) => {
    const gone = await startUpstream();
    await gone.close();
    // Its tries wait for no time.
    const { json } = await onEveryTransport(t, () => ({ provider: provider(gone) }), { message: "Hi" });
    assert.equal(json.status, 502);
    assert.equal(json.last.type === "error" && json.last.code, "provider_error");
  });

  for (const transport of TRANSPORTS) {
    test(`${name}: a client killed on ${transport} closes the upstream connection`, async (t) => {
      const upstream = await startUpstream(api.stall("Half"));
      t.after(() => upstream.close());
      const server = await startServer(t, { agent: { model: api.model }, env: api.env(upstream.url) });
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
    const server = await startServer(t, { agent: { model: api.model }, env: api.env(upstream.url) });
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
  for (const level of ["debug", "info"]) {
    upstream.reply(jsonReply(401, said));
    const env = { ...RESPONSES.env(upstream.url), PARLEY_LOG_LEVEL: level };
    const server = await startServer(t, { agent: { model: RESPONSES.model }, env });
    await post(server, { message: "Hi", stream: false });
    const log = server.log.join("\n");
    assert.match(log, /provider_auth: OpenAI refused the API key/);
    assert.equal(log.includes("Ticket 4711"), level === "debug");
    assert.doesNotMatch(log, /sk-of-a-test/);
  }
});

/** Starts a run on the transport and returns what kills its client. */
async function begin(
  t: Cleanup,
  server: Awaited<ReturnType<typeof startServer>>,
  transport: (typeof TRANSPORTS)[number],
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
