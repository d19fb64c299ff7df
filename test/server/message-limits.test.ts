/** How large the parts of one message may be: each limit by its setting, over REST and socket alike. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChatMessage, post, send } from "../support/chat-transports.ts";
import { call, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const LIMITS = {
  PARLEY_MAX_MESSAGE_CHARS: "10",
  PARLEY_MAX_HISTORY_ITEMS: "4",
  PARLEY_MAX_HISTORY_BYTES: "200",
  PARLEY_MAX_JSON_DEPTH: "8",
};

const user = (content: unknown) => ({ role: "user", content });
const texts = (count: number) => Array.from({ length: count }, () => ({ type: "text", text: "a" }));
const past = (...history: unknown[]) => ({ conversation_history: history });
const answered = (extra: object) => [user("Hi"), { role: "assistant", content: "Yes", ...extra }];

function nested(depth: number): unknown {
  let value: unknown = "end";
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

/** Each figure just within its limit, and just beyond it. */
const CASES: [name: string, within: ChatMessage, beyond: ChatMessage, param: string][] = [
  ["the text", { message: "a".repeat(10) }, { message: "a".repeat(11) }, "/message"],
  [
    "the number of messages",
    { message: "Hi", state: past(user("1"), user("2"), user("3"), user("4")) },
    { message: "Hi", state: past(user("1"), user("2"), user("3"), user("4"), user("5")) },
    "/state/conversation_history",
  ],
  [
    "the number of parts in a message",
    { message: "Hi", state: past(user(texts(3))) },
    { message: "Hi", state: past(user(texts(4))) },
    "/state/conversation_history",
  ],
  [
    "the bytes of the history",
    { message: "Hi", state: past(user("a".repeat(180))) },
    // Characters of two bytes each: fewer than the limit, were they counted as characters.
    { message: "Hi", state: past(user("é".repeat(100))) },
    "/state/conversation_history",
  ],
  [
    "the values of a history",
    { message: "Hi", state: past(...answered({ extra: Array(300).fill(1) })) },
    { message: "Hi", state: past(...answered({ extra: Array(500).fill(1) })) },
    "/state/conversation_history",
  ],
];

for (const [name, within, beyond, param] of CASES) {
  test(`${name} may reach its limit, and beyond it is 413 request_too_large`, async (t) => {
    const server = await startServer(t, { turns: [[say("Fine")], [say("Fine")]], env: LIMITS });
    for (const transport of ["json", "socket"] as const) {
      const { last } = await send[transport](t, server, within);
      assert.equal(last.data, "Fine", JSON.stringify(last));
    }
    const answer = await post(server, { ...beyond, stream: true });
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code], [413, "request_too_large"]);
    assert.equal(error.param, param);
    const { last } = await send.socket(t, server, beyond);
    assert.ok(last.type === "error");
    assert.deepEqual([last.code, last.data], ["request_too_large", error.message]);
    assert.equal(server.model.asked.length, 2);
  });
}

test("the nesting may reach its limit, and beyond it is 400", async (t) => {
  const server = await startServer(t, { turns: [[say("Fine")]], env: LIMITS });
  // The body itself is the first level.
  const answer = await post(server, { message: "Hi", stream: false, x: nested(7) });
  assert.equal(answer.status, 200);
  const refused = await post(server, { message: "Hi", stream: false, x: nested(8) });
  const { error } = JSON.parse(await refused.text());
  assert.deepEqual([refused.status, error.code], [400, "invalid_request"]);
  assert.match(error.message, /8 levels/);
});

test("calls beyond those of one turn are not carried out, and the model is told", async (t) => {
  let carriedOut = 0;
  const counter = {
    name: "count",
    description: "Counts",
    parameters: { type: "object" },
    execute: () => `${++carriedOut}`,
  };
  const server = await startServer(t, {
    turns: [["a", "b", "c"].map((id) => call(id, "count", "{}")), [say("Done")]],
    agent: { tools: [counter] },
    env: { PARLEY_MAX_TOOL_CALLS: "2", PARLEY_MAX_TOOL_OUTPUT_CHARS: "40" },
  });
  const { events } = await send.sse(t, server, { message: "Go" });
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  const statusOf = new Map(results.map(({ id, status }) => [id, status]));
  assert.deepEqual(
    ["a", "b", "c"].map((id) => statusOf.get(id)),
    ["completed", "completed", "failed"],
  );
  assert.equal(carriedOut, 2);
  const told = server.model.asked[1]?.messages.at(-1);
  assert.equal(told?.content, "Not carried out: one turn may make 2 too\n[cut: 40 more characters]");
});

test("a message may hold 500,000 values, and one more is 413", async (t) => {
  const server = await startServer(t, { turns: [[say("Counted")]] });
  const ask = async (values: number) => {
    // The object, its two commas, the array, and a comma between the values of that.
    const filler = Array(values - 3)
      .fill("1")
      .join();
    const answer = await post(server, `{"message":"Hi","stream":false,"more":[${filler}]}`);
    return [answer.status, JSON.parse(await answer.text()).error?.code];
  };
  assert.deepEqual(await ask(500_000), [200, undefined]);
  assert.deepEqual(await ask(500_001), [413, "request_too_large"]);
});
