/** The connection to a model, common to all APIs: invalid responses, limits, retries, aborts, and connection reuse. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { ModelEvent, RetryClock } from "../../server/providers/provider.ts";
import { gate, turns, within } from "../support/deadline.ts";
import { collectGarbage } from "../support/garbage.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import {
  ask,
  askOnce,
  chatProvider,
  failureOf,
  INSTANT_CLOCK,
  leave,
  open,
  PATIENT,
  said,
} from "../support/upstream-conversation.ts";
import { eventStream, jsonReply, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

const chunk = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const answer = () => ({ body: [eventStream(chunk("ok", "stop"), "[DONE]")] });

for (const api of STREAMED_APIS) {
  const headers = { "content-type": api.contentType };
  const whole = api.bytes(api.fixtures.text);
  const begin = whole.subarray(0, api.startOf(whole));
  const text = (): UpstreamReply => ({ headers, body: [whole] });

  for (const [what, reply, sentence] of [
    ["200 with a page of HTML", { headers: { "content-type": "text/html" }, body: ["<html>nginx</html>"] }, /base URL/],
    ["200 with any JSON", jsonReply(200, { output: {} }), /base URL/],
    ["a compressed stream", { headers: { ...headers, "content-encoding": "gzip" }, body: [whole] }, /compress/],
    ["a redirect", { status: 307, headers: { location: "http://127.0.0.1:9/" } }, /redirect/],
  ] as const) {
    test(`${api.name}: ${what} is no answer: the operator reads of the base URL, and it is not tried again`, async () => {
      await using upstream = await startUpstream(reply);
      const failure = failureOf(await ask(open(await api.provider(upstream, PATIENT))));
      assert.equal(failure.code, "provider_error");
      assert.equal(failure.retryable, false);
      assert.match(failure.detail, sentence);
      assert.doesNotMatch(failure.detail, /nginx|http:/);
      assert.equal(upstream.calls.length, 1);
    });
  }

  test(`${api.name}: the limit on silence counts bytes: one event may take longer than it`, async (t) => {
    const clock = stopClock(t);
    const rest = whole.subarray(begin.length);
    const pieces = [0, 1, 2].flatMap((part) => [
      () => clock.tick(400),
      rest.subarray(part * 20, part === 2 ? undefined : part * 20 + 20),
    ]);
    await using upstream = await startUpstream({ headers, body: [begin, ...pieces] });
    const provider = await api.provider(upstream, { firstChunkMs: 20_000, idleMs: 600 });
    assert.equal((await ask(open(provider))).error, undefined);
  });

  test(`${api.name}: after the model's last word the upstream may stay silent, or send comments: the answer ends as done`, async (t) => {
    const clock = stopClock(t);
    const comments = api.contentType === "text/event-stream" ? [": busy\n\n", "data:\n\n"] : [];
    const finished = whole.subarray(0, api.finishOf(whole));
    const pause = () => clock.tick(1_000);
    const silent: UpstreamReply = { headers, body: [finished, pause, ...comments, pause], end: "stall" };
    await using upstream = await startUpstream(text(), silent);
    const provider = await api.provider(upstream, PATIENT);
    const good = await ask(open(provider));
    const turn = await within(ask(open(provider)), "the end of the turn");
    assert.equal(turn.error, undefined);
    assert.equal(said(turn), said(good));
    assert.equal(turn.events.at(-1)?.type, "end");
    assert.equal(await upstream.calls[1]?.closed, "aborted");
  });

  test(`${api.name}: the usage may come a moment after the model's last word`, async (t) => {
    const clock = stopClock(t);
    const split = api.finishOf(whole);
    const late = [whole.subarray(0, split), () => clock.tick(1_500), whole.subarray(split)];
    await using upstream = await startUpstream(text(), { headers, body: late });
    const provider = await api.provider(upstream, PATIENT);
    const [{ events: quick }, { events }] = [await ask(open(provider)), await ask(open(provider))];
    assert.deepEqual(events, quick);
  });

  for (const [when, reply] of [
    ["before the head of the answer", { headless: true, end: "stall" }],
    ["between head and first byte", { headers, end: "stall" }],
    ["in the middle of the stream", { headers, body: [begin], end: "stall" }],
  ] as const) {
    test(`${api.name}: an abort ${when} closes the connection, also after garbage collections`, async () => {
      await using upstream = await startUpstream(reply);
      const abort = new AbortController();
      const turn = ask(open(await api.provider(upstream, PATIENT)), abort.signal);
      const call = await upstream.nextCall();
      await collectGarbage();
      const reason = Object.freeze(new Error("stopped"));
      abort.abort(reason);
      assert.equal((await within(turn, "the end of the turn")).error, reason);
      assert.equal(await within(call.closed, "the end of the connection"), "aborted");
    });
  }

  test(`${api.name}: an aborted signal sends nothing`, async () => {
    await using upstream = await startUpstream(text());
    await ask(open(await api.provider(upstream, PATIENT)), AbortSignal.abort());
    assert.equal(upstream.calls.length, 0);
  });

  test(`${api.name}: leaving the answer closes the connection; a finished answer keeps it for the next`, async () => {
    await using upstream = await startUpstream(text(), text(), { headers, body: [begin], end: "stall" });
    const provider = await api.provider(upstream, PATIENT);
    for (let request = 0; request < 2; request++) {
      assert.equal((await ask(open(provider))).error, undefined);
      assert.equal(await upstream.calls[request]?.closed, "complete");
      // Waits until the client has read the end of the response.
      await turns();
    }
    const [first, second] = upstream.calls;
    assert.equal(first?.port, second?.port);
    assert.equal(first?.headers["accept-encoding"], "identity");
    assert.equal(Number(first?.headers["content-length"]), Buffer.byteLength(first?.body ?? ""));
    await leave(open(provider));
    assert.equal(await upstream.calls[2]?.closed, "aborted");
  });

  for (const [when, reply] of [
    ["before the head", { headless: true, end: "cut" }],
    ["between head and first event", { headers, end: "cut" }],
  ] as const) {
    test(`${api.name}: a request whose connection is cut ${when} is not sent again, which might be paid for twice`, async () => {
      await using upstream = await startUpstream(reply, text());
      const failure = failureOf(await ask(open(await api.provider(upstream, PATIENT))));
      assert.equal(failure.code, "provider_error");
      assert.equal(failure.retryable, true);
      assert.match(failure.detail, /could not be reached/);
      assert.equal(upstream.calls.length, 1);
    });
  }

  test(`${api.name}: the same holds for a connection that has served before`, async () => {
    await using upstream = await startUpstream(text(), { headless: true, end: "cut" }, text());
    const provider = await api.provider(upstream, PATIENT);
    assert.equal((await ask(open(provider))).error, undefined);
    await upstream.calls[0]?.closed;
    await turns();
    assert.equal(failureOf(await ask(open(provider))).code, "provider_error");
    const [first, second] = upstream.calls;
    assert.equal(first?.port, second?.port);
    assert.equal(upstream.calls.length, 2);
  });

  test(`${api.name}: a connection that the upstream closed between two requests is replaced`, async () => {
    await using upstream = await startUpstream(text(), text());
    const provider = await api.provider(upstream, PATIENT);
    assert.equal((await ask(open(provider))).error, undefined);
    await upstream.calls[0]?.closed;
    await upstream.endConnections();
    assert.equal((await ask(open(provider))).error, undefined);
    const [first, second] = upstream.calls;
    assert.notEqual(first?.port, second?.port);
  });

  test(`${api.name}: a large file arrives whole`, async () => {
    await using upstream = await startUpstream(text());
    const data = "QUJD".repeat(400_000);
    const url = `data:image/png;base64,${data}`;
    const file = { type: "image", name: "a.png", mime_type: "image/png", url } as const;
    const provider = await api.provider(upstream, PATIENT);
    assert.equal((await ask(open(provider, { attachments: [file] }))).error, undefined);
    const [{ body, headers: sent } = assert.fail("no request")] = upstream.calls;
    assert.ok(body.includes(data));
    assert.equal(Number(sent["content-length"]), Buffer.byteLength(body));
  });
}

/** Frames that are not messages of any API: valid SSE, or known from servers and proxies. */
const IDLE_FRAMES = [
  "data:",
  "data: \ndata:",
  "data: null",
  "data: ping",
  ": busy\ndata: keep-alive",
  "event: heartbeat\ndata: busy",
  'event: heartbeat\ndata: "busy"',
  'event: tool.progress\ndata: {"tool":"x","error":"slow"}',
  "event: metrics\ndata: [1]",
  "event: ping",
  "id: 7",
  "retry: 5",
];

for (const api of STREAMED_APIS.filter(({ contentType }) => contentType === "text/event-stream")) {
  test(`${api.name}: frames that are no messages change nothing, and before the first one another try is possible`, async () => {
    const whole = api.bytes(api.fixtures.calls).toString();
    const idle = IDLE_FRAMES.map((frame) => `${frame}\n\n`).join("");
    const mixed = whole.replaceAll("\n\n", `\n\n${idle}`);
    const overloaded = eventStream({ error: { code: "server_is_overloaded", message: "busy" } });
    await using upstream = await startUpstream({ body: [whole] }, { body: [idle, overloaded] }, { body: [mixed] });
    const provider = await api.provider(upstream, PATIENT);
    const [good, other] = [await ask(open(provider)), await ask(open(provider))];
    assert.equal(other.error, undefined);
    assert.deepEqual(other.events, good.events);
    assert.equal(upstream.calls.length, 3);
  });
}

for (const headers of [{ "content-type": "application/json" }, { "content-type": "" }]) {
  test(`a JSON body under ${JSON.stringify(headers)} is the error that it holds, and else no answer, however it is cut`, async () => {
    const error = JSON.stringify({ error: { message: "slow down", code: "rate_limit_exceeded" } });
    for (const [body, code] of [
      [error, "provider_rate_limited"],
      ['{"data": "event: x"}', "provider_error"],
      ["data", "provider_error"],
      ["", "provider_error"],
    ] as const) {
      const reply = { headers, body: [body.slice(0, 1), body.slice(1)].filter((piece) => piece !== "") };
      assert.equal(failureOf(await askOnce(chatProvider, reply)).code, code, body);
    }
  });
}

test("the time that a slow client takes is not the upstream's silence", async (t) => {
  const clock = stopClock(t);
  await using upstream = await startUpstream({ body: [eventStream(chunk("Half")), eventStream(chunk("", "stop"))] });
  const conversation = open(chatProvider(upstream, { limits: { firstChunkMs: 20_000, idleMs: 250 } }));
  let text = "";
  for await (const batch of conversation.ask(new AbortController().signal)) {
    clock.tick(1000);
    await turns();
    text += batch.map((event) => (event.type === "text" ? event.delta : "")).join("");
  }
  assert.equal(text, "Half");
});

test("an abort while the client takes its time closes the connection, and nothing more is said", async () => {
  await using upstream = await startUpstream({ body: [eventStream(chunk("Half"))], end: "stall" });
  const abort = new AbortController();
  const batches = open(chatProvider(upstream)).ask(abort.signal)[Symbol.asyncIterator]();
  await batches.next();
  abort.abort(new Error("left"));
  assert.equal(await upstream.calls[0]?.closed, "aborted");
  await assert.rejects(batches.next(), /left/);
});

/** A clock that records the requested waiting times. */
function notingClock(waits: number[]): RetryClock {
  return { ...INSTANT_CLOCK, wait: async (ms) => void waits.push(ms) };
}

test("an address where nobody listens is tried three times, and then could not be reached", async () => {
  const upstream = await startUpstream();
  await upstream.close();
  const waits: number[] = [];
  const failure = failureOf(await ask(open(chatProvider(upstream, { clock: notingClock(waits) }))));
  assert.equal(failure.code, "provider_error");
  assert.match(failure.detail, /could not be reached/);
  assert.doesNotMatch(failure.detail, /127\.0\.0\.1|ECONN/);
  assert.deepEqual(waits, [250, 500]);
});

test("an abort while waiting for the next try ends the wait, and there is no next try", async () => {
  const abort = new AbortController();
  await using upstream = await startUpstream({ status: 503 }, answer());
  const waits: number[] = [];
  const clock: RetryClock = {
    ...INSTANT_CLOCK,
    wait: async (ms, signal) => {
      waits.push(ms);
      abort.abort();
      signal.throwIfAborted();
    },
  };
  await ask(open(chatProvider(upstream, { clock })), abort.signal);
  assert.deepEqual(waits, [250]);
  assert.equal(upstream.calls.length, 1);
});

test("after the last event a stream may end by itself, so that its connection can be used again", async (t) => {
  // The stream has a moment to end, which must not pass before the test ends it.
  stopClock(t);
  const end = gate();
  await using upstream = await startUpstream({ body: [...answer().body, end.opened] });
  assert.equal(said(await ask(open(chatProvider(upstream)))), "ok");
  // Enough turns for the upstream to notice a dropped connection.
  await turns();
  end.open();
  assert.equal(await upstream.calls[0]?.closed, "complete");
});

test("a stream that does not end after its last event is closed", async () => {
  await using upstream = await startUpstream({ ...answer(), end: "stall" });
  assert.equal(said(await ask(open(chatProvider(upstream)))), "ok");
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

for (const [what, line] of [
  ["a broken JSON line", 'data: {"choices":[{"del\n\n'],
  ["JSON that is no object", "data: [1]\n\n"],
] as const) {
  test(`${what} is an error in our words, after what stands before it in the same packet`, async () => {
    const turn = await askOnce(chatProvider, { body: [eventStream(chunk("Half")) + line] });
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, "provider_error");
    assert.match(failureOf(turn).detail, /could not be read/);
  });
}

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/** An event in its own HTTP chunk, as most servers send it. */
function httpChunk(content: string, finish: string | null = null): string {
  const data = eventStream(chunk(content, finish));
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

/** A conversation with a model whose bytes the test writes. */
async function rawModel(t: TestContext) {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const connected = once(server, "connection") as Promise<[Socket]>;
  const conversation = open(chatProvider({ url: `http://127.0.0.1:${address.port}/v1` }));
  const batches = conversation.ask(new AbortController().signal)[Symbol.asyncIterator]();
  const first = batches.next();
  const [socket] = await within(connected, "the request");
  t.after(async () => {
    await batches.return(undefined);
    socket.destroy();
    server.close();
  });
  await once(socket, "data");
  return { batches, first, socket };
}

const textsOf = ({ value }: IteratorResult<ModelEvent[]>) =>
  (value as ModelEvent[]).flatMap((event) => (event.type === "text" ? [event.delta] : []));

test("what an upstream sends in one packet is one batch, also where each event is an HTTP chunk of its own", async (t) => {
  const { batches, first, socket } = await rawModel(t);
  socket.write(HEAD + httpChunk("first"));
  assert.deepEqual(textsOf(await within(first, "the first event")), ["first"]);
  const words = Array.from({ length: 20 }, (_, index) => `word ${index}`);
  const rest = batches.next();
  socket.write(`${words.map((word) => httpChunk(word)).join("")}${httpChunk("", "stop")}0\r\n\r\n`);
  assert.deepEqual(textsOf(await within(rest, "the rest")), words);
});

test("what arrives while the client takes its time is one batch", async (t) => {
  const { batches, first, socket } = await rawModel(t);
  socket.write(HEAD + httpChunk("a"));
  assert.deepEqual(textsOf(await within(first, "the first event")), ["a"]);
  socket.write(httpChunk("b"));
  await turns();
  socket.write(`${httpChunk("c")}${httpChunk("", "stop")}0\r\n\r\n`);
  await turns();
  assert.deepEqual(textsOf(await within(batches.next(), "the rest")), ["b", "c"]);
});
