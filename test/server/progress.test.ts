/** Progress messages of running tools, and steps of tools that run elsewhere. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { RunEvent } from "../../server/agent/run-function.ts";
import type { RunRecord, ToolContext } from "../../server/parley-agent.ts";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { onEveryTransport, send } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { randomFrom } from "../support/random.ts";
import { call, say } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const called = () => [[call("c1", "scan")], [say("Done")]];

const textsOf = (events: readonly StreamEvent[]) =>
  events.flatMap((event) => (event.type === "tool_progress" ? [event.data.text] : []));

/** Calls, results and progress, each as one short text. */
const rowsOf = (events: readonly StreamEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type === "tool_call") return [`${event.data.parent ?? ""}>${event.data.id}`];
    if (event.type === "tool_progress") return [`${event.data.id}:${event.data.text}`];
    if (event.type === "tool_result") return [`${event.data.id}=${event.data.status}`];
    return [];
  });

test("of what a tool says at once clients get the last, what it says last comes before its result, and JSON has none", async (t) => {
  const scan = define("scan", async (_args, { progress }) => {
    for (const page of [1, 2, 3]) progress(`Page ${page}`);
    await turns(20);
    progress("Page 4");
    return "scanned";
  });
  const setup = () => ({ turns: called(), agent: { tools: [scan] } });
  const { sse, json } = await onEveryTransport(t, setup, { message: "Hi" });
  assert.deepEqual(rowsOf(sse.events), [">c1", "c1:Page 3", "c1:Page 4", "c1=completed"]);
  assert.doesNotMatch(JSON.stringify(json), /Page/);
});

test("clients get at most four texts of a call in a second", async (t) => {
  let ms = 0;
  const scan = define("scan", async (_args, { progress }) => {
    const startedAt = performance.now();
    for (let page = 1; page <= 60; page++) {
      progress(`Page ${page}`);
      await delay(10);
    }
    ms = performance.now() - startedAt;
  });
  const server = await startServer(t, { turns: called(), agent: { tools: [scan] } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const texts = textsOf(events);
  assert.equal(texts.at(-1), "Page 60");
  // One at the beginning, one every 250 ms, and the last one.
  assert.ok(texts.length >= 3 && texts.length <= 2 + ms / 250, `${texts.length} in ${ms} ms`);
});

const bytesOf = (events: readonly StreamEvent[]) => {
  const progress = events.filter(({ type }) => type === "tool_progress");
  return progress.reduce((bytes, event) => bytes + JSON.stringify(event).length, 0);
};

test("the more an answer has said so the rarer its texts come, but the last one of each step comes", async (t) => {
  const ids = Array.from({ length: 200 }, (_, step) => `s${step}`);
  const server = await serve(t, async function* () {
    yield* [began("c1"), ...ids.map((id) => began(id, "c1"))];
    const startedAt = performance.now();
    for (let page = 0; performance.now() - startedAt < 3_000; page++) {
      for (const id of ids) yield said(id, `${page} `.padEnd(300, "x"));
      await delay(50);
    }
    yield* [...ids.map((id) => said(id, `${id} is ready`)), ended("c1"), "Done"];
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.ok(bytesOf(events) < 512 * 1024, `${bytesOf(events)} bytes`);
  const last = new Map(
    events.flatMap((event) => (event.type === "tool_progress" ? [[event.data.id, event.data.text]] : [])),
  );
  assert.deepEqual(
    [...last.values()],
    ids.map((id) => `${id} is ready`),
  );
});

test("the texts of all turns of an answer count, and a call that begins to speak waits for no other one", async (t) => {
  const scan = define("scan", async (_args, { progress }) => {
    progress("Page 1");
    await turns(20);
    progress("Page 2");
  });
  const first = define("first", async (_args, { progress }) => {
    progress("One");
    await turns(20);
    progress("Two");
    await delay(900);
  });
  const second = define("second", async (_args, { progress }) => {
    await delay(100);
    progress("At once");
    await delay(300);
    progress("Later");
  });
  const scans = Array.from({ length: 9 }, (_, turn) =>
    Array.from({ length: 16 }, (_, n) => call(`t${turn}c${n}`, "scan")),
  );
  const server = await startServer(t, {
    turns: [...scans, [call("x", "first"), call("y", "second")], [say("Done")]],
    agent: { tools: [scan, first, second], maxTurns: 20 },
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const rows = [">x", ">y", "x:One", "y:At once", "y:Later", "y=completed", "x:Two", "x=completed"];
  assert.deepEqual(rowsOf(events).slice(-rows.length), rows);
});

test("a text is one plain line of 300 characters, and an empty one or the same once more says nothing", async (t) => {
  const scan = define("scan", async (_args, { progress }) => {
    for (const text of [" One\n\u202etwo\u0007 ", "", " ", "One two", "x".repeat(400)]) {
      progress(text);
      await turns(20);
    }
  });
  const server = await startServer(t, { turns: called(), agent: { tools: [scan] } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(textsOf(events), ["One two", `${"x".repeat(299)}…`]);
});

test("what is no text fails the call, and what is said after the end of a call is not heard", async (t) => {
  const late = gate();
  const scan = define("scan", (_args, { progress, callId }) => {
    if (callId === "c2") return progress(4 as never);
    setImmediate(() => {
      progress("Too late");
      late.open();
    });
    return "scanned";
  });
  const more = [[call("c1", "scan")], [call("c2", "scan")], [say("Done")]];
  const server = await startServer(t, { turns: more, agent: { tools: [scan] } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  await late.opened;
  assert.deepEqual(rowsOf(events), [">c1", "c1=completed", ">c2", "c2=failed"]);
});

for (const expose of ["title", "none"]) {
  test(`a tool with expose: "${expose}" says nothing of what it does`, async (t) => {
    const execute = (_args: unknown, { progress }: ToolContext) => progress("Reading the secret");
    const scan = define("scan", execute, { title: "Scan", expose });
    const server = await startServer(t, { turns: called(), agent: { tools: [scan] } });
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.equal(last.data, "Done");
    assert.doesNotMatch(JSON.stringify(events), /secret|tool_progress/);
  });
}

test("a tool says what it does while an answer is withheld from its reader", async (t) => {
  const scan = define("scan", (_args, { progress }) => progress("Page 1"));
  const agent = { tools: [scan], onAnswer: () => ({ refuse: "No." }) };
  const server = await startServer(t, { turns: called(), agent });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(rowsOf(events), [">c1", "c1:Page 1", "c1=completed"]);
});

const serve = (t: Cleanup, run: () => unknown, agent: object = {}) =>
  startServer(t, { agent: { model: undefined, run, ...agent } as never });

const began = (id: string, parent?: string): RunEvent => ({
  type: "tool_call",
  data: { id, tool: `tool_${id}`, ...(parent && { parent }) },
});
const said = (id: string, text: string): RunEvent => ({ type: "tool_progress", data: { id, text } });
const ended = (id: string): RunEvent => ({ type: "tool_result", data: { id, output: `of ${id}` } });

test("steps stand below their call in every form but the state, and what has no result ends before it", async (t) => {
  const records: RunRecord[] = [];
  const setup = () => ({
    agent: {
      model: undefined,
      *run() {
        yield* [began("c1"), began("s1", "c1"), said("s1", "Looking"), began("s2", "s1"), ended("s2")];
        yield* [began("s3", "c1"), ended("c1"), "Done"];
      },
      onRunEnd: (record: RunRecord) => void records.push(record),
    } as never,
  });
  const { sse, json } = await onEveryTransport(t, setup, { message: "Hi" });
  const rows = [
    ">c1",
    "c1>s1",
    "s1:Looking",
    "s1>s2",
    "s2=completed",
    "c1>s3",
    "s1=failed",
    "s3=failed",
    "c1=completed",
  ];
  assert.deepEqual(rowsOf(sse.events), rows);
  const calls = json.toolCalls?.map((call) => [Object(call).id, Object(call).parent]);
  assert.deepEqual(calls, [
    ["c1", undefined],
    ["s1", "c1"],
    ["s2", "s1"],
    ["s3", "c1"],
  ]);
  assert.doesNotMatch(JSON.stringify(sse.last), /s1|Looking/);
  const [record] = records;
  assert.deepEqual(
    record?.toolCalls.map(({ id, parent }) => [id, parent]),
    [
      ["s2", "s1"],
      ["s1", "c1"],
      ["s3", "c1"],
      ["c1", undefined],
    ],
  );
});

const times = (log: readonly string[], words: string) => log.filter((record) => record.includes(words)).length;

test("a step of a call that is over, or that is not known, begins nothing, which the log says once", async (t) => {
  const server = await serve(t, function* () {
    yield* [began("c1"), ended("c1"), began("s1", "c1"), said("s1", "Looking"), ended("s1"), began("s2", "c9"), "Done"];
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(rowsOf(events), [">c1", "c1=completed"]);
  assert.equal(times(server.log, "no call that runs"), 1);
});

test("a call with the id of a step before it is not shown, which the log says once", async (t) => {
  const server = await serve(t, function* () {
    yield* [began("c1"), began("s1", "c1"), ended("s1"), ended("c1")];
    yield* [began("s1"), ended("s1"), began("s1"), "Done"];
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(rowsOf(events), [">c1", "c1>s1", "s1=completed", "c1=completed"]);
  assert.equal(times(server.log, "the id of a step"), 1);
  assert.equal(times(server.log, "tool_s1"), 1);
});

test("of failed steps that are not shown the log says once that there are any, and of a shown one that it failed", async (t) => {
  const parts = Array.from({ length: 203 }, (_, n) => ({
    ...{ type: "dynamic-tool", toolName: `tool_${n}`, toolCallId: `s${n}`, input: {} },
    ...(n < 199 ? { state: "output-available", output: n } : { state: "output-error", errorText: "out of order" }),
  }));
  const server = await serve(t, function* () {
    yield { type: "tool-call", toolCallId: "c1", toolName: "ask_desk", input: {} };
    yield { type: "tool-result", toolCallId: "c1", output: { role: "assistant", parts } };
    yield "Done";
  });
  await send.sse(t, server, { message: "Hi" });
  assert.equal(times(server.log, '"tool_199\\" failed'), 1);
  assert.equal(times(server.log, "out of order"), 2);
});

test("a call has at most 200 steps, three levels deep, and the log says once of which tool there are more", async (t) => {
  const server = await serve(t, function* () {
    yield* [began("c1"), began("l1", "c1"), began("l2", "l1"), began("l3", "l2"), began("l4", "l3")];
    for (let step = 0; step < 300; step++) yield began(`s${step}`, "c1");
    yield* [ended("c1"), "Done"];
  });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const ids = events.flatMap(({ type, data }) => (type === "tool_call" ? [data.id] : []));
  assert.equal(ids.length, 1 + 200);
  assert.ok(ids.includes("l3") && !ids.includes("l4"));
  assert.equal(times(server.log, "more than 200 steps"), 1);
  assert.equal(times(server.log, 'The tool \\"tool_c1\\" made'), 1);
});

test("what a call hides, its steps and what they say hide, too", async (t) => {
  const toolTexts = { tool_c1: { title: "Searching", expose: "title" }, tool_c2: { expose: "none" } };
  const run = function* () {
    for (const id of ["c1", "c2", "c3"]) {
      yield* [began(id), said(id, `${id} works`), began(`s${id}`, id), said(`s${id}`, `${id} works`), ended(`s${id}`)];
      yield ended(id);
    }
    yield "Done";
  };
  const server = await serve(t, run, { toolTexts });
  const { events } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(rowsOf(events), [
    ...[">c1", "c1=completed"],
    ...[">c3", "c3:c3 works", "c3>sc3", "sc3:c3 works", "sc3=completed", "c3=completed"],
  ]);
});

test("whatever an agent reports in whatever order, each call and step ends once, inside of what it belongs to", async (t) => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = randomFrom(seed);
    const pick = (count: number) => Math.floor(random() * count);
    const list = Array.from({ length: 30 }, (): RunEvent => {
      const id = `n${pick(8)}`;
      const kind = pick(4);
      if (kind === 0) return began(id);
      if (kind === 1) return began(id, `n${pick(8)}`);
      return kind === 2 ? said(id, `text ${pick(3)}`) : ended(id);
    });
    const server = await serve(t, () => [...list, "Done"].values());
    const { events } = await send.sse(t, server, { message: "Hi" });
    const open = new Map<string, string | undefined>();
    const known = new Set<string>();
    for (const event of events) {
      if (event.type === "tool_call") {
        const { id, parent } = event.data;
        assert.ok(!known.has(id) && (parent === undefined || open.has(parent)), `seed ${seed}: ${id} begins`);
        known.add(id);
        open.set(id, parent);
      } else if (event.type === "tool_progress") assert.ok(open.has(event.data.id), `seed ${seed}: progress`);
      else if (event.type === "tool_result") {
        const { id, parent } = event.data;
        assert.ok(open.has(id) && open.get(id) === parent, `seed ${seed}: ${id} ends`);
        assert.ok(![...open.values()].includes(id), `seed ${seed}: a step of ${id} runs`);
        open.delete(id);
      }
    }
    assert.equal(open.size, 0, `seed ${seed}: ${[...open.keys()]} did not end`);
    assert.equal(events.at(-1)?.type, "done");
  }
});
