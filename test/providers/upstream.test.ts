import assert from "node:assert/strict";
import { before, test } from "node:test";
import { gate, within } from "../support/deadline.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, chatProvider, failureOf, open, responsesProvider, said } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream } from "../support/upstream-server.ts";

// Loaded with the first request otherwise, which would count towards the short time limits below.
before(() => import("openai"));

const chunk = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const answer = () => ({ body: [eventStream(chunk("ok", "stop"), "[DONE]")] });

test("200 with an HTML page is an error that points at the base URL, not an empty answer", async () => {
  const headers = { "content-type": "text/html" };
  await using upstream = await startUpstream({ headers, body: ["<html>Welcome to nginx</html>"] });
  const failure = failureOf(await ask(open(chatProvider(upstream))));
  assert.equal(failure.code, "provider_error");
  assert.match(failure.message, /base URL/);
  assert.doesNotMatch(failure.message, /nginx|http/);
  assert.equal(upstream.calls.length, 1);
});

test("200 with a JSON error is that error; 200 with any other JSON is a wrong address", async () => {
  const headers = { "content-type": "application/json" };
  const error = { error: { message: "slow down", code: "rate_limit_exceeded" } };
  await using upstream = await startUpstream(
    { headers, body: [JSON.stringify(error)] },
    { headers, body: ['{"choices":[]}'] },
  );
  const codes = [];
  for (let run = 0; run < 2; run++) {
    codes.push(failureOf(await ask(open(chatProvider(upstream)))).code);
  }
  assert.deepEqual(codes, ["provider_rate_limited", "provider_error"]);
});

test("a redirect is not followed: the key and the prompt stay where they were sent", async () => {
  await using other = await startUpstream(answer());
  await using upstream = await startUpstream({ status: 307, headers: { location: other.url } });
  const failure = failureOf(await ask(open(chatProvider(upstream))));
  assert.match(failure.message, /redirect/);
  assert.equal(other.calls.length, 0);
});

test("nothing at all within the first-chunk time is provider_timeout, and the connection is closed", async (t) => {
  await using upstream = await startUpstream({ headless: true, end: "stall" });
  const clock = stopClock(t);
  const called = upstream.nextCall();
  const asking = ask(open(chatProvider(upstream, { times: { firstChunk: 80, idle: 20_000 } })));
  const { closed } = await called;
  clock.tick(80);
  const failure = failureOf(await within(asking, "the time-out"));
  assert.equal(failure.code, "provider_timeout");
  assert.match(failure.message, /did not answer within 0\.1 seconds/);
  assert.equal(await closed, "aborted");
  assert.equal(upstream.calls.length, 1);
});

test("headers without a body count as nothing: the package's own time-out would be over by then", async (t) => {
  const clock = stopClock(t);
  const head = gate();
  await using upstream = await startUpstream({ body: [head.open], end: "stall" });
  const called = upstream.nextCall();
  const asking = ask(open(responsesProvider(upstream, { times: { firstChunk: 80, idle: 20_000 } })));
  await within(head.opened, "the head");
  clock.tick(80);
  assert.equal(failureOf(await within(asking, "the time-out")).code, "provider_timeout");
  assert.equal(await (await called).closed, "aborted");
});

test("a stream that falls silent for the idle time is provider_timeout, after what it said", async () => {
  await using upstream = await startUpstream({ body: [eventStream(chunk("Half"))], end: "stall" });
  const times = { firstChunk: 20_000, idle: 80 };
  const turn = await ask(open(chatProvider(upstream, { times })));
  assert.equal(said(turn), "Half");
  assert.equal(failureOf(turn).code, "provider_timeout");
  assert.match(failureOf(turn).message, /stopped sending/);
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

test("comments keep a thinking upstream alive beyond the idle time", async (t) => {
  const clock = stopClock(t);
  const body = Array.from({ length: 3 }, () => [": thinking\n\n", () => clock.tick(200)]).flat();
  await using upstream = await startUpstream({ body: [...body, ...answer().body] });
  const turn = await ask(open(chatProvider(upstream, { times: { firstChunk: 20_000, idle: 250 } })));
  assert.equal(turn.error, undefined);
});

test("a connection that is cut before the first event is tried again, three times in all", async () => {
  await using upstream = await startUpstream(
    { headless: true, end: "cut" },
    { body: [": hello\n\n"], end: "cut" },
    answer(),
  );
  assert.equal(said(await ask(open(chatProvider(upstream)))), "ok");
  assert.equal(upstream.calls.length, 3);
  upstream.reply({ end: "cut" }, { end: "cut" }, { end: "cut" }, answer());
  const failure = failureOf(await ask(open(chatProvider(upstream))));
  assert.equal(failure.code, "provider_error");
  assert.match(failure.message, /could not be reached/);
  assert.equal(upstream.calls.length, 6);
});

test("a connection that is cut after the first event is provider_truncated, and not tried again", async () => {
  await using upstream = await startUpstream({ body: [eventStream(chunk("Half"))], end: "cut" }, answer());
  const turn = await ask(open(chatProvider(upstream)));
  assert.equal(said(turn), "Half");
  assert.equal(failureOf(turn).code, "provider_truncated");
  assert.equal(upstream.calls.length, 1);
});

test("an address where nobody listens could not be reached", async () => {
  const upstream = await startUpstream();
  await upstream.close();
  const failure = failureOf(await ask(open(chatProvider(upstream))));
  assert.equal(failure.code, "provider_error");
  assert.match(failure.message, /could not be reached/);
  assert.doesNotMatch(failure.message, /127\.0\.0\.1|ECONN/);
});

for (const [what, line] of [
  ["a broken JSON line", 'data: {"choices":[{"del\n\n'],
  ["JSON that is no object", "data: [1]\n\n"],
] as const) {
  test(`${what} is an error in our words`, async () => {
    await using upstream = await startUpstream({ body: [eventStream(chunk("Half")), line] });
    const turn = await ask(open(chatProvider(upstream)));
    assert.equal(said(turn), "Half");
    assert.equal(failureOf(turn).code, "provider_error");
    assert.match(failureOf(turn).message, /could not be read/);
  });
}

test("a line without end is given up at 16 MiB, and the connection is closed", async () => {
  const megabyte = "x".repeat(1024 * 1024);
  await using upstream = await startUpstream({
    body: ["data: ", ...Array.from({ length: 17 }, () => megabyte)],
    end: "stall",
  });
  assert.equal(failureOf(await ask(open(chatProvider(upstream)))).code, "provider_error");
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

test("a stream without end is given up at 64 MiB, and the connection is closed", async () => {
  const comment = `: ${"x".repeat(4 * 1024 * 1024)}\n\n`;
  await using upstream = await startUpstream({ body: Array(17).fill(comment), end: "stall" });
  assert.equal(failureOf(await ask(open(chatProvider(upstream)))).code, "provider_error");
  assert.equal(await upstream.calls[0]?.closed, "aborted");
});

test("UTF-8 that is split between two chunks is put together", async () => {
  const bytes = Buffer.from(eventStream(chunk("👋", "stop")));
  const at = bytes.indexOf(0xf0) + 2;
  await using upstream = await startUpstream({ body: [bytes.subarray(0, at), bytes.subarray(at)] });
  assert.equal(said(await ask(open(chatProvider(upstream)))), "👋");
});
