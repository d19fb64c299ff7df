/** Runs that were started at one worker, read, ended and asked for again at the other one. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { newRun, openLine } from "../support/run-lines.ts";
import { EventReader, startWorkers, textOf, type Workers } from "../support/workers.ts";

/** One server for all tests that need no settings of their own. */
const workers = startWorkers({ after } as Pick<TestContext, "after">);

/** Its workers, with lines that no test has used. */
async function fresh(): Promise<Workers> {
  const started = await workers;
  const [here, there] = started.lines;
  return { ...started, lines: [await started.line(here.pid), await started.line(there.pid)] };
}

const HOLD = { message: "Please hold", stream: true };

test("a run that was left at one worker is read on at the other, over SSE and the socket, without a gap or a double", async (t) => {
  const { lines, line } = await fresh();
  const [here, there] = lines;
  const run = newRun();
  const first = new EventReader(await here.chat({ ...HOLD, run }));
  const seen = await first.until("tool_call");
  first.cut();
  const after = seen.at(-1)?.id ?? 0;
  const headers = { "last-event-id": String(after) };
  const stream = new EventReader(await there.ask(`/api/chat/runs/${run}`, { headers }));
  const socket = await (await line(there.pid)).socket(t);
  socket.send({ type: "resume", run, after: 0 });
  await here.release();
  const rest = await stream.until("done");
  const all = [...seen, ...rest];
  assert.deepEqual(
    all.map(({ id }) => id),
    all.map((_event, at) => at + 1),
  );
  assert.match(JSON.stringify(all.at(-1)), new RegExp(`held by ${here.pid}`));
  assert.deepEqual(await socket.until("done"), all);
  assert.equal(await stream.next(), undefined, "the stream ends with its run");
  // The conversation goes on at this worker, from the state of that run.
  const next = await socket.run({ message: "Hello" });
  assert.match(JSON.stringify(next.at(-1)), /Please hold/);
});

test("a message that is sent again at the other worker is answered once, and another one under its name is refused", async () => {
  const { lines, line } = await fresh();
  const [here, there] = lines;
  const run = newRun();
  const first = new EventReader(await here.chat({ ...HOLD, run }));
  await first.until("tool_call");
  const again = new EventReader(await there.chat({ ...HOLD, run }));
  const asJson = (await line(there.pid)).chat({ ...HOLD, run, stream: false });
  const other = await (await line(there.pid)).chat({ message: "Hello", stream: true, run });
  assert.equal(other.statusCode, 400);
  assert.match(await textOf(other), /belongs to another message/);
  await here.release();
  const end = await first.until("done");
  assert.deepEqual((await again.until("done")).slice(-end.length), end);
  assert.match(JSON.parse(await textOf(await asJson)).response, new RegExp(`held by ${here.pid}`));
});

test("sendings of one message at both workers in the same moment begin one run", async (t) => {
  const server = await fresh();
  // Each worker has a call to let end then, also when chance leads all others to one of them.
  for (const line of server.lines) {
    await new EventReader(await line.chat({ ...HOLD, run: newRun() })).until("tool_call");
  }
  const sent = Array.from({ length: 6 }, newRun).map(async (run) => {
    const sendings = Array.from({ length: 4 }, () => openLine.sse(t, server, { ...HOLD, run }));
    return Promise.all(sendings);
  });
  const runs = await Promise.all(sent);
  // Two runs would not be held by the same process, or tell different times.
  const heard = await Promise.all(
    runs.flat().map(async (line) => {
      while ((await line.next()).type !== "tool_call");
    }),
  );
  assert.equal(heard.length, 24);
  for (const line of server.lines) await line.release();
  for (const readers of runs) {
    const ends = await Promise.all(readers.map((reader) => reader.rest()));
    for (const end of ends) assert.deepEqual(end, ends[0]);
  }
});

test("cancel, stop and clear reach a run of the other worker", async (t) => {
  const { lines, line } = await fresh();
  const [here, there] = lines;
  const begin = async () => {
    const run = newRun();
    const reader = new EventReader(await (await line(here.pid)).chat({ ...HOLD, run }));
    await reader.until("tool_call");
    return { run, reader };
  };
  const cancel = { method: "POST" };
  const cancelled = await begin();
  const answer = await there.ask(`/api/chat/runs/${cancelled.run}/cancel`, cancel);
  assert.deepEqual(JSON.parse(await textOf(answer)), { status: "cancelled" });
  assert.match(JSON.stringify((await cancelled.reader.until("done")).at(-1)), /"stopped"/);

  // A message that is still on its way, to either.
  for (const worker of [here, there]) {
    const run = newRun();
    const early = await (await line(there.pid)).status(`/api/chat/runs/${run}/cancel`, cancel);
    assert.equal(early, 404);
    const reader = new EventReader(await (await line(worker.pid)).chat({ message: "Hello", stream: true, run }));
    const all = await reader.until("done");
    assert.match(JSON.stringify(all), /^\[\{"type":"done","data":"",.*"stopped"/);
  }

  const stopped = await begin();
  const socket = await (await line(there.pid)).socket(t);
  socket.send({ type: "resume", run: stopped.run, after: 0 });
  await socket.until("tool_call");
  socket.send({ type: "stop" });
  assert.match(JSON.stringify((await socket.until("done")).at(-1)), /"stopped"/);
  await stopped.reader.until("done");

  const cleared = await begin();
  socket.send({ type: "resume", run: cleared.run, after: 0 });
  await socket.until("tool_call");
  socket.send({ type: "clear" });
  await socket.until("cleared");
  assert.equal(await cleared.reader.next().then((event) => event?.type), undefined);
  assert.equal(await there.status(`/api/chat/runs/${cleared.run}`), 404);
});

test("a run of the other worker keeps its rules: the key, the place in it, and its end", async (t) => {
  const env = { PARLEY_API_KEY: "key-one,key-two" };
  const { lines } = await startWorkers(t, { env });
  const [here, there] = lines;
  const keyOf = (key: string, more = {}) => ({ authorization: `Bearer ${key}`, ...more });
  const run = newRun();
  const message = { message: "Hello", stream: true, run };
  const whole = await new EventReader(await here.chat(message, keyOf("key-one"))).until("done");
  const last = whole.length;
  const path = `/api/chat/runs/${run}`;
  const status = (headers: Record<string, string>) => there.status(path, { headers });
  assert.equal(await status(keyOf("key-two")), 404);
  assert.equal(await status(keyOf("key-one", { "last-event-id": String(last) })), 204);
  assert.equal(await status(keyOf("key-one", { "last-event-id": String(last + 1) })), 400);
  assert.equal(await status(keyOf("key-one", { "last-event-id": String(last - 1) })), 200);
  assert.equal(await there.status(`${path}-not`, { headers: keyOf("key-one") }), 404);
});
