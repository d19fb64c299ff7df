/** The processor time that a hosted agent can cause, which must stay in proportion to the bytes that it sends. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { agUi } from "../../server/hosted/remote.ts";
import { json, send } from "../support/chat-transports.ts";
import { PROCESS_MS } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

/** Processor time of this process in milliseconds, independent of other load on the machine. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The most processor time between two responses of /health until the work is done. */
async function longestPause(server: TestServer, work: Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const before = cpuMs();
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
    longest = Math.max(longest, cpuMs() - before);
  }
  await over;
  return longest;
}

const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, n) => make(n));
const delta = (count: number, operation: object) => ({ type: "STATE_DELTA", delta: many(count, () => operation) });
const snapshot = (state: unknown) => ({ type: "STATE_SNAPSHOT", snapshot: state });
const FINISHED = { type: "RUN_FINISHED" };

/** Events that would cost far more than their size, where they are limited, and the logged reason. */
const HOSTILE: [name: string, events: () => object[], logged: RegExp][] = [
  [
    "250,000 operations in one event of 10 MB",
    () => [snapshot([]), delta(250_000, { op: "add", path: "/0", value: 1 })],
    /it has 250000 operations, and at most 10000/,
  ],
  [
    "operations at the front of a long list",
    () => [snapshot(many(1_000_000, () => 1)), ...many(5, () => delta(9_000, { op: "add", path: "/0", value: 1 }))],
    /it moves more than 67108864 items/,
  ],
  [
    "a list whose head goes to its end, again and again",
    () => [snapshot(many(1_000_000, () => 1)), delta(9_000, { op: "move", from: "/0", path: "/-" })],
    /it moves more than/,
  ],
  [
    "copies that are refused",
    () => [
      snapshot({ a: "x".repeat(4_000_000) }),
      ...many(1_000, () => delta(1, { op: "copy", from: "/a", path: "/b" })),
    ],
    /it copies or compares more than 1048576/,
  ],
  [
    "copies of copies",
    () => [snapshot({ a: [1, 2, 3] }), delta(9_000, { op: "copy", from: "/a", path: "/a/-" })],
    /it copies or compares more than/,
  ],
  [
    "comparisons with a large object",
    () => {
      const large = Object.fromEntries(many(100_000, (n) => [`k${n}`, 1]));
      return [snapshot(large), ...many(200, () => delta(1, { op: "test", path: "", value: {} }))];
    },
    /it copies or compares more than/,
  ],
  [
    "long paths",
    () => {
      const deep = JSON.parse(`${'{"a":'.repeat(500)}1${"}".repeat(500)}`);
      return [snapshot(deep), delta(10_000, { op: "replace", path: "/a".repeat(500), value: 1 })];
    },
    /its paths have more than 100000 steps/,
  ],
  [
    "5,000 questions",
    () => [
      ...many(5_000, (n) => ({ type: "TOOL_CALL_CHUNK", toolCallId: `c${n}`, toolCallName: "look", delta: "{}" })),
      {
        ...FINISHED,
        outcome: { type: "interrupt", interrupts: many(5_000, (n) => ({ id: `i${n}`, toolCallId: `c${n}` })) },
      },
    ],
    /asks about more than 16 calls in one answer\. .*PARLEY_MAX_TOOL_CALLS/,
  ],
];

for (const [name, events, logged] of HOSTILE) {
  test(`a remote agent that sends ${name} stops nobody, and its answer fails with a reason in the log`, async (t) => {
    const body = [...events(), FINISHED].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    const remote = createServer((req, res) => {
      req.resume();
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(body);
    });
    const run = agUi(await listen(t, remote));
    const server = await startServer(t, { agent: { model: undefined, run } as never });
    const answer = send.sse(t, server, { message: "Hi" });
    const pause = await longestPause(server, answer);
    assert.equal((await answer).last.type, "error");
    assert.match(server.log.join(""), logged);
    assert.ok(pause < 1_000, `${pause} ms`);
  });
}

const call = (id: string) => ({ type: "tool_call", data: { id, tool: "look", arguments: {} } });
const result = (id: string) => ({ type: "tool_result", data: { id, output: "found" } });
const STEPS = 8_000;
const ids = many(STEPS, (n) => `c${n}`);

/** Answers of many steps of equal cost, and further options of the agent. */
const LONG: [name: string, items: () => unknown[], more?: object][] = [
  [
    "texts and calls, which onAnswer reads",
    () => ids.flatMap((id) => ["xxxxxxxxxx", call(id), result(id)]),
    { onAnswer: () => {} },
  ],
  [
    "messages and calls of LangGraph",
    () =>
      ids.flatMap((id) => [
        [
          "messages",
          [
            {
              type: "AIMessageChunk",
              id: `m${id}`,
              content: "",
              tool_call_chunks: [{ index: 0, id, name: "look", args: "{}" }],
            },
            {},
          ],
        ],
        ["messages", [{ type: "tool", tool_call_id: id, content: "found" }, {}]],
      ]),
  ],
];

for (const [name, items, more] of LONG) {
  test(`an answer of ${STEPS} ${name} costs what so many short ones cost`, async (t) => {
    const agent = { model: undefined, run: () => [...items(), "Done."].values(), ...more };
    const server = await startServer(t, { agent } as unknown as ServerOptions);
    const before = cpuMs();
    // A long time limit: only processor time is measured, which does not depend on other load.
    const { last, toolCalls } = await json(t, server, { message: "Hi" }, { signal: AbortSignal.timeout(PROCESS_MS) });
    const ms = cpuMs() - before;
    assert.deepEqual([last.data, toolCalls?.length], ["Done.", STEPS]);
    assert.ok(ms < 5_000, `${ms} ms`);
  });
}
