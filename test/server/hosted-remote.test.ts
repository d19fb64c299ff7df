/** Hosted agents over HTTP: `agUi` and `responses`. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { test } from "node:test";
import type { RunFunction } from "../../server/agent/run-function.ts";
import { PatchedDocument } from "../../server/hosted/json-patch.ts";
import { agUi, responses } from "../../server/hosted/remote.ts";
import { send, typesOf } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

type Answer = (res: ServerResponse, body: Record<string, unknown>, req: IncomingMessage) => void;

interface Remote {
  url: string;
  asked: { body: Record<string, unknown>; req: IncomingMessage }[];
}

async function remoteAgent(t: Cleanup, answer: Answer): Promise<Remote> {
  const asked: Remote["asked"] = [];
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    const body = JSON.parse(text);
    asked.push({ body, req });
    answer(res, body, req);
  });
  return { url: `${await listen(t, server)}/agent`, asked };
}

const dataOf = (...events: object[]) =>
  events.map((event) => `data: ${event === DONE ? "[DONE]" : JSON.stringify(event)}\n\n`).join("");

/** Responds with an event stream of these texts. */
const streamed =
  (...texts: string[]): Answer =>
  (res) =>
    void res.writeHead(200, { "content-type": "text/event-stream" }).end(texts.join(""));

const sse = (...events: object[]) => streamed(dataOf(...events));

/** Responds to each request with the next answer; the last one repeats. */
function inTurn(...answers: Answer[]): Answer {
  let asked = 0;
  return (...request) => answers[Math.min(asked++, answers.length - 1)]?.(...request);
}

const serve = (t: Cleanup, run: RunFunction, more: object = {}, rest: Partial<ServerOptions> = {}) =>
  startServer(t, { agent: { model: undefined, run, ...more } as never, ...rest });

const FINISHED = { type: "RUN_FINISHED", threadId: "t", runId: "r" };
const PDF = { type: "file", name: "a.pdf", mime_type: "application/pdf", data: "JVBERi0=" };
const REPORTED = { input_tokens: 3, output_tokens: 2, input_tokens_details: { cached_tokens: 1 }, total_tokens: 5 };
const COMPLETED = { type: "response.completed", response: { id: "r1", usage: REPORTED } };

test("an agent that speaks AG-UI gets the conversation and its own state with each message", async (t) => {
  const remote = await remoteAgent(
    t,
    sse(
      { type: "RUN_STARTED", threadId: "t", runId: "r" },
      { type: "STATE_SNAPSHOT", snapshot: { cart: ["a"], messages: [{ content: "note" }] } },
      {
        type: "STATE_DELTA",
        delta: [
          { op: "add", path: "/cart/-", value: "b" },
          { op: "add", path: "/n~1m", value: 1 },
        ],
      },
      { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "add" },
      { type: "TOOL_CALL_END", toolCallId: "c1" },
      { type: "TOOL_CALL_RESULT", toolCallId: "c1", messageId: "m", content: "added" },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: "It is in." },
      FINISHED,
    ),
  );
  const server = await serve(t, agUi(remote.url, { headers: { authorization: "Bearer key" } }), {
    accepts: ["application/pdf"],
  });
  const first = await send.sse(t, server, { message: "Add it" });
  assert.deepEqual(typesOf(first.events), ["tool_call", "tool_result", "token", "done"]);
  const attachments = [PDF];
  await send.json(t, server, { message: "And?", state: first.last.state, attachments });
  const [one, two] = remote.asked;
  assert.equal(one?.req.headers.authorization, "Bearer key");
  assert.deepEqual([one?.body.state, one?.body.tools, one?.body.threadId], [{}, [], first.last.state?.conversation]);
  assert.deepEqual(two?.body.state, { cart: ["a", "b"], messages: [{ content: "note" }], "n/m": 1 });
  assert.equal(two?.body.threadId, one?.body.threadId);
  const messages = two?.body.messages as { id: string; role: string; content: unknown }[];
  const document = { type: "document", source: { type: "data", value: "JVBERi0=", mimeType: "application/pdf" } };
  assert.deepEqual(
    messages.map(({ role, content }) => [role, content]),
    [
      ["user", "Add it"],
      ["assistant", "It is in."],
      ["user", [{ type: "text", text: "And?" }, document]],
    ],
  );
  assert.equal(new Set(messages.map(({ id }) => id)).size, 3);
});

test("an agent behind the Responses API shows its own tools, and gets the conversation each time", async (t) => {
  const remote = await remoteAgent(
    t,
    sse(
      { type: "response.created", response: { id: "r1" } },
      { type: "response.reasoning_summary_text.delta", delta: "Hm." },
      done({ type: "function_call", call_id: "c1", name: "look", arguments: '{"a":1}' }),
      done({ type: "function_call_output", call_id: "c1", output: "found" }),
      done({
        type: "mcp_call",
        id: "m1",
        name: "search",
        server_label: "s",
        arguments: "{}",
        output: "hits",
        error: null,
      }),
      done({ type: "mcp_call", id: "m2", name: "search", arguments: "{}", output: null, error: "secret" }),
      { type: "response.output_text.delta", item_id: "t", delta: "Here it is." },
      COMPLETED,
    ),
  );
  const server = await serve(t, responses(remote.url));
  const first = await send.sse(t, server, { message: "Hi" });
  const rows = first.events.flatMap((event) =>
    event.type === "tool_result" ? [[event.data.tool, event.data.output]] : [],
  );
  assert.deepEqual(rows, [
    ["look", "found"],
    ["search", "hits"],
    ["search", "The tool failed."],
  ]);
  assert.ok(first.last.type === "done");
  assert.deepEqual(
    [first.last.data, first.last.usage],
    ["Here it is.", { input_tokens: 3, output_tokens: 2, cached_input_tokens: 1 }],
  );
  await send.json(t, server, { message: "And?", state: first.last.state });
  assert.deepEqual(remote.asked[1]?.body, {
    input: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Here it is." },
      { role: "user", content: "And?" },
    ],
    stream: true,
  });
});

test("an agent that speaks AG-UI gets decisions as resume, with the calls, and edited arguments where it takes them", async (t) => {
  const responseSchema = { type: "object", properties: { approved: {}, editedArgs: {}, reason: {} } };
  const interrupts = ["c1", "c2"].map((toolCallId) => ({ id: `i-${toolCallId}`, toolCallId, responseSchema }));
  const calls = ["c0", "c1", "c2"].flatMap((toolCallId) => [
    { type: "TOOL_CALL_START", toolCallId, toolCallName: "refund" },
    { type: "TOOL_CALL_ARGS", toolCallId, delta: "{}" },
    { type: "TOOL_CALL_END", toolCallId },
  ]);
  const found = { type: "TOOL_CALL_RESULT", toolCallId: "c0", messageId: "m", content: "found" };
  const first = sse(...calls, found, { ...FINISHED, outcome: { type: "interrupt", interrupts } });
  const remote = await remoteAgent(t, inTurn(first, sse(FINISHED)));
  const server = await serve(t, agUi(remote.url), { accepts: ["application/pdf"] });
  const { last } = await send.sse(t, server, { message: "Refund" });
  const { state } = last;
  assert.deepEqual(last.type === "done" && last.approvals?.map(({ editable }) => editable), [true, true]);
  const approvals = [
    { id: "c2", approved: false, reason: "No" },
    { id: "c1", approved: true, arguments: '{"sum":4}' },
  ];
  await send.json(t, server, { approvals, state });
  const body = remote.asked[1]?.body as { messages: Record<string, unknown>[]; resume: unknown };
  assert.deepEqual(body.resume, [
    { interruptId: "i-c1", status: "resolved", payload: { approved: true, editedArgs: { sum: 4 } } },
    { interruptId: "i-c2", status: "resolved", payload: { approved: false, reason: "No" } },
  ]);
  const toolCalls = ["c0", "c1", "c2"].map((id) => {
    return { id, type: "function", function: { name: "refund", arguments: "{}" } };
  });
  assert.deepEqual(
    body.messages.map(({ id: _id, ...message }) => message),
    [
      { role: "user", content: "Refund" },
      { role: "assistant", toolCalls },
      { role: "tool", toolCallId: "c0", content: "found" },
    ],
  );
  const attachments = [PDF];
  await send.json(t, server, { message: "See this", attachments, state });
  // Decisions cannot contain files: the calls are declined first, then the message is sent.
  const [declined, closed] = remote.asked.slice(2).map((one) => one.body as typeof body);
  assert.deepEqual([declined?.resume].flat().length, 2);
  assert.deepEqual(
    [closed?.resume, closed?.messages.map(({ role }) => role)],
    [undefined, ["user", "assistant", "tool", "tool", "tool", "user"]],
  );
});

const CALLED = [
  { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "refund" },
  { type: "TOOL_CALL_END", toolCallId: "c1" },
];
const asks = (interrupt: object) => ({ ...FINISHED, outcome: { type: "interrupt", interrupts: [interrupt] } });
const graph = (id: string, value: unknown) => {
  return [{ type: "CUSTOM", name: "on_interrupt", value: JSON.stringify(value), rawEvent: { id, value } }, FINISHED];
};
const human = { action_requests: [{ name: "refund", args: {} }], review_configs: [] };
const strict = asks({ id: "i1", toolCallId: "c1", responseSchema: { type: "object", properties: { approved: {} } } });
const resume = (payload: unknown) => ({ resume: [{ interruptId: "i1", status: "resolved", payload }] });
const command = (value: unknown) => ({ forwardedProps: { command: { resume: value } } });

/** The agent's interrupt, the person's decision, and where the agent's request contains it. */
const ANSWERED: [name: string, asked: object[], answer: object, sent: object][] = [
  ["LangGraph", [...CALLED, ...graph("i1", { a: 1 })], { approved: true }, command({ i1: { approved: true } })],
  [
    "LangGraph, which is declined",
    [...CALLED, ...graph("i1", { a: 1 })],
    { approved: false, reason: "No" },
    command({ i1: { approved: false, reason: "No" } }),
  ],
  ["LangGraph without ids", graph("", { a: 1 }), { approved: true }, command({ approved: true })],
  [
    "LangGraph, which wants words",
    graph("i1", "Your name?"),
    { approved: true, reason: "Ada" },
    command({ i1: "Ada" }),
  ],
  ["LangGraph, which wants words, by a message", graph("i1", "Your name?"), { message: "Ada" }, command({ i1: "Ada" })],
  ["LangGraph, which wants words and gets a yes", graph("i1", "Your name?"), { approved: true }, command({ i1: "" })],
  [
    "an agent that wants words beside its only call",
    [...CALLED, asks({ id: "i1", message: "Fine?", responseSchema: { type: "string" } })],
    { message: "Yes" },
    resume("Yes"),
  ],
  [
    "LangGraph, which wants words and gets none",
    graph("i1", "Your name?"),
    { approved: false },
    command({ i1: { approved: false } }),
  ],
  [
    "LangChain's middleware in Python",
    [...CALLED, ...graph("i1", human)],
    { approved: true },
    command({ i1: { decisions: [{ type: "approve" }] } }),
  ],
  [
    "an agent that takes no reason",
    [...CALLED, strict],
    { approved: false, reason: "No" },
    resume({ approved: false }),
  ],
  [
    "CrewAI",
    [asks({ id: "i1", message: "Fine?", responseSchema: { type: "string" } })],
    { message: "Yes" },
    resume("Yes"),
  ],
  ["an agent that asks in general", [asks({ id: "i1", message: "2?" })], { message: "Yes" }, resume("Yes")],
  [
    "an agent that wants a confirmation",
    [asks({ id: "i1", reason: "confirmation", message: "Sure?" })],
    { approved: true },
    resume({ approved: true }),
  ],
];

for (const [name, asked, { message, ...decision }, sent] of ANSWERED as [
  string,
  object[],
  { message?: string },
  object,
][]) {
  test(`the answer to ${name} behind AG-UI comes back where it expects it`, async (t) => {
    const text = { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Thanks." };
    const remote = await remoteAgent(t, inTurn(sse(...asked), sse(text, FINISHED)));
    const server = await serve(t, agUi(remote.url));
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
    const approvals = last.approvals?.map(({ id }) => ({ id, ...decision }));
    const second = await send.sse(t, server, { ...(message ? { message } : { approvals }), state: last.state });
    assert.deepEqual([second.last.type, second.last.data], ["done", "Thanks."]);
    const { resume, forwardedProps } = remote.asked[1]?.body ?? {};
    assert.deepEqual({ resume, forwardedProps }, { resume: undefined, forwardedProps: {}, ...sent });
    assert.equal(remote.asked.length, 2);
  });
}

test("LangGraph asks about the call that its value names, also with a model that does not stream", async (t) => {
  const called = { id: "c1", type: "function", function: { name: "refund", arguments: '{"order":"7"}' } };
  const messages = [
    { id: "u1", role: "user", content: "Hi" },
    { id: "a1", role: "assistant", content: "", toolCalls: [called] },
  ];
  const asked = [
    { type: "MESSAGES_SNAPSHOT", messages },
    ...graph("i1", { question: "Refund 7?", order: "7", toolCallId: "c1" }),
  ];
  const result = { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" };
  for (const approved of [true, false]) {
    const remote = await remoteAgent(t, inTurn(sse(...asked), sse(...CALLED, result, FINISHED)));
    const server = await serve(t, agUi(remote.url));
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.ok(last.type === "done");
    const [asking] = last.approvals ?? [];
    assert.deepEqual(
      [last.approvals?.length, asking?.id, asking?.tool, asking?.text],
      [1, "c1", "refund", "Refund 7?"],
    );
    const { events } = await send.sse(t, server, { approvals: [{ id: "c1", approved }], state: last.state });
    const rows = events.flatMap((it) =>
      it.type === "tool_result" ? [[it.data.id, it.data.tool, it.data.status]] : [],
    );
    assert.deepEqual(rows, [["c1", "refund", approved ? "completed" : "failed"]]);
  }
});

test("a question is about the only call that waits, whatever asks about it, and whatever the thread has left open before", async (t) => {
  const list = (id: string, name: string, args: object) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  });
  const confirm = list("k1", "confirm_changes", { function_call_id: "c1" });
  const messages = [
    { id: "a0", role: "assistant", content: "", toolCalls: [list("old", "forgotten", {})] },
    { id: "u1", role: "user", content: "Hi" },
    { id: "a1", role: "assistant", content: "", toolCalls: [list("c1", "refund", {}), confirm] },
  ];
  const properties = { approved: {} };
  const interrupt = { id: "i1", message: "Refund?", responseSchema: { type: "object", properties } };
  const remote = await remoteAgent(t, inTurn(sse({ type: "MESSAGES_SNAPSHOT", messages }, asks(interrupt))));
  const server = await serve(t, agUi(remote.url));
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  assert.ok(last.type === "done");
  assert.deepEqual(
    events.filter(({ type }) => type === "tool_call"),
    [],
  );
  assert.deepEqual(
    last.approvals?.map(({ id, tool }) => [id, tool]),
    [["c1", "refund"]],
  );
});

test("a call that an agent behind AG-UI leaves open gets its result from the person", async (t) => {
  const result = { type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "done" };
  for (const [approved, reason] of [[true], [false, "No"]]) {
    const remote = await remoteAgent(t, inTurn(sse(...CALLED, FINISHED), sse(...CALLED, result, FINISHED)));
    const server = await serve(t, agUi(remote.url));
    const { last } = await send.sse(t, server, { message: "Hi" });
    const approvals = [{ id: "c1", approved, ...(reason === undefined ? {} : { reason }) }];
    const { events } = await send.sse(t, server, { approvals, state: last.state });
    const { messages, resume } = remote.asked[1]?.body ?? {};
    const { id: _id, ...sent } = (messages as Record<string, unknown>[]).at(-1) ?? {};
    const content = JSON.stringify({ accepted: approved, note: reason });
    assert.deepEqual([resume, sent], [undefined, { role: "tool", toolCallId: "c1", content }]);
    // A declined call appears once, whatever the agent reports about it.
    const rows = events.filter(({ type }) => type === "tool_call" || type === "tool_result");
    assert.equal(rows.length, approved ? 2 : 1);
  }
});

test("decisions on several calls reach Google's kit in one message, and Microsoft's framework alike: it knows no others", async (t) => {
  const ids = ["c1", "c2"];
  const confirm = (id: string) => [
    { type: "TOOL_CALL_START", toolCallId: `adk-${id}`, toolCallName: "adk_request_confirmation" },
    {
      type: "TOOL_CALL_ARGS",
      toolCallId: `adk-${id}`,
      delta: `{"originalFunctionCall":{"id":"${id}","name":"refund"}}`,
    },
    { type: "TOOL_CALL_END", toolCallId: `adk-${id}` },
  ];
  const properties = { approved: {} };
  const interrupts = ids.map((id) => {
    return { id: `i-${id}`, toolCallId: id, responseSchema: { properties }, metadata: { agent_framework: {} } };
  });
  const microsoft = { ...FINISHED, outcome: { type: "interrupt", interrupts } };
  for (const [asked, last, yes] of [
    [[...ids.flatMap(confirm), FINISHED], { role: "assistant", ids: ["adk-c1", "adk-c2"] }, true],
    [[microsoft], { role: "assistant", ids }, false],
  ] as const) {
    const text = { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Fine." };
    const remote = await remoteAgent(t, inTurn(sse(...asked), sse(text, FINISHED)));
    const server = await serve(t, agUi(remote.url));
    const first = await send.sse(t, server, { message: "Hi" });
    const approvals = ids.map((id) => ({ id, approved: id === "c1" }));
    await send.sse(t, server, { approvals, state: first.last.state });
    const { messages, resume } = (remote.asked[1]?.body ?? {}) as Record<string, Record<string, unknown>[]>;
    const calls = messages?.at(-1)?.toolCalls as { id: string }[];
    assert.deepEqual({ role: messages?.at(-1)?.role, ids: calls.map(({ id }) => id) }, last);
    assert.deepEqual(
      resume?.map(({ payload }) => payload),
      [{ approved: yes }, { approved: false }],
    );
  }
});

for (const again of [false, true]) {
  test(`what is written in place of a decision reaches an agent that takes no reason${again ? " and asks again" : ""}, behind its answer`, async (t) => {
    const text = (delta: string) => ({ type: "TEXT_MESSAGE_CHUNK", messageId: delta, delta });
    const asked = sse(...CALLED, strict);
    const decided = sse({ type: "TOOL_CALL_RESULT", toolCallId: "c1", content: "refunded" }, text("Fine."), FINISHED);
    const answers = [asked, ...(again ? [asked] : []), decided, sse(text("Looked."), FINISHED)];
    const remote = await remoteAgent(t, inTurn(...answers));
    const server = await serve(t, agUi(remote.url));
    const first = await send.sse(t, server, { message: "Hi" });
    let { last } = await send.sse(t, server, { message: "Look instead", state: first.last.state });
    const approvals = [{ id: "c1", approved: true }];
    if (again) ({ last } = await send.sse(t, server, { approvals, state: last.state }));
    assert.equal(last.data, "Looked.");
    const sent = remote.asked.map(({ body }) => body.messages as { role: string; content: unknown }[]);
    const said = sent.map((messages) => messages.filter(({ role }) => role === "user").map(({ content }) => content));
    const before = again ? [["Hi"], ["Hi"], ["Hi"]] : [["Hi"], ["Hi"]];
    assert.deepEqual(said, [...before, ["Hi", "Look instead"]]);
    const [result, message] = sent.at(-1)?.slice(-2) ?? [];
    assert.deepEqual([result?.role, message?.role], ["tool", "user"]);
    assert.match(String(result?.content), again ? /^refunded$/ : /did not decide/);
  });
}

for (const [what, inPlace, answer] of [
  ["a message", { message: "Look instead" }, 2],
  ["a file", { attachments: [PDF] }, 3],
] as const) {
  test(`what an agent said before ${what} in place of a decision keeps its id, and so does the answer`, async (t) => {
    const remote: Remote = await remoteAgent(t, (res, body, req) => {
      const n = remote.asked.length;
      const text = { type: "TEXT_MESSAGE_CHUNK", messageId: `m${n}`, delta: `Answer ${n}` };
      const answer = n === 1 ? sse(text, ...CALLED, asks({ id: "i1", toolCallId: "c1" })) : sse(text, FINISHED);
      answer(res, body, req);
    });
    const server = await serve(t, agUi(remote.url), { accepts: ["application/pdf"] });
    let state: unknown;
    for (const wish of [{ message: "Hi" }, inPlace, { message: "And?" }])
      ({ state } = (await send.sse(t, server, { message: "", ...wish, state })).last);
    const sent = remote.asked.map(({ body }) => body.messages as { id: string; content: string }[]);
    for (const one of sent.slice(0, -1)) assert.deepEqual(one[0], sent[0]?.[0]);
    assert.equal(sent.at(-1)?.[1]?.content, "Answer 1");
    assert.deepEqual(
      [0, 1, 3].map((index) => sent.at(-1)?.[index]?.id),
      [sent[0]?.[0]?.id, "m1", `m${answer}`],
    );
  });
}

test("a message from before decisions reaches an agent that does not wait for them any more, and the log says so", async (t) => {
  for (const [asked, errors] of [
    [[...CALLED, strict], 1],
    [graph("i1", { a: 1 }), 0],
  ] as const) {
    const remote: Remote = await remoteAgent(t, (res, body, req) => {
      const { messages, resume, forwardedProps } = body as { messages: { content: unknown }[] } & Record<
        string,
        object
      >;
      const isResumed = resume !== undefined || Object.keys(forwardedProps ?? {}).length > 0;
      const isLate = isResumed && remote.asked.length > 2;
      const text = { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: `${messages.at(-1)?.content}` };
      const error = { type: "RUN_ERROR", message: "nothing waits" };
      const answer = remote.asked.length === 1 ? sse(...asked) : isLate ? sse(error) : sse(text, FINISHED);
      answer(res, body, req);
    });
    const server = await serve(t, agUi(remote.url));
    const { last } = await send.sse(t, server, { message: "Hi" });
    const approvals = last.type === "done" ? last.approvals?.map(({ id }) => ({ id, approved: true })) : [];
    await send.sse(t, server, { approvals, state: last.state });
    const branch = await send.sse(t, server, { message: "Something else", state: last.state });
    assert.equal(branch.last.data, "Something else");
    assert.equal(server.log.filter((record) => record.includes("nothing waits")).length, errors);
  }
});

test("an agent that keeps its thread finds in each message what it knows under the ids that it knows, and a picture once", async (t) => {
  const large = "x".repeat(400_000);
  const remote: Remote = await remoteAgent(t, (res, body, req) => {
    const id = `lc-${remote.asked.length}`;
    // Like LangGraph's servers: the state contains the whole thread, and only the list of messages has the answer.
    const thread = [{ type: "human", content: large, additional_kwargs: {} }];
    const known = body.messages as object[];
    const messages = [...known, { id, role: "assistant", content: `Answer ${remote.asked.length}` }];
    const own = { type: "STATE_SNAPSHOT", snapshot: { n: 1, messages: thread } };
    sse(own, { type: "MESSAGES_SNAPSHOT", messages }, FINISHED)(res, body, req);
  });
  const server = await serve(t, agUi(remote.url), { accepts: ["image/png"] });
  const attachments = [{ type: "image", name: "a.png", mime_type: "image/png", data: "iVBORw0KGgo=" }];
  let state: unknown;
  for (const [n, more] of [{ attachments }, {}, {}, {}].entries()) {
    const { last } = await send.json(t, server, { message: `Message ${n}`, state, ...more });
    assert.equal(last.data, `Answer ${n + 1}`);
    state = last.state;
  }
  const sent = remote.asked.map(({ body }) => body.messages as { id: string; role: string }[]);
  const [picture, second, third] = [0, 1, 2].map((n) => sent[n]?.at(-1)?.id);
  assert.equal(new Set([picture, second, third]).size, 3);
  assert.deepEqual(
    sent.slice(1).map((messages) => messages.slice(0, -1).map(({ id }) => id)),
    [["lc-1"], ["lc-1", second, "lc-2"], ["lc-1", second, "lc-2", third, "lc-3"]],
  );
  assert.deepEqual(remote.asked[3]?.body.state, { n: 1, messages: [] });
});

test("a message that is changed, or answered once more, is another one for an agent, and one without its file, too", async (t) => {
  const text = { type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "Hello" };
  const remote = await remoteAgent(t, sse(text, FINISHED));
  const server = await serve(t, agUi(remote.url), { accepts: ["application/pdf"] });
  const attachments = [PDF];
  const { last } = await send.json(t, server, { message: "Hi", attachments });
  for (const message of ["And?", "And?", "Or?"]) await send.json(t, server, { message, state: last.state });
  const sent = remote.asked.map(({ body }) => (body.messages as { id: string }[]).map(({ id }) => id));
  assert.equal(new Set(sent.map((ids) => ids.at(-1))).size, 4);
  assert.notEqual(sent[1]?.[0], sent[0]?.[0]);
  assert.deepEqual(sent[1]?.slice(0, 2), sent[2]?.slice(0, 2));
});

test("an agent behind the Responses API gets its approval requests back with the decisions", async (t) => {
  const request = { type: "mcp_approval_request", id: "r1", name: "refund", arguments: "{}", server_label: "s" };
  const call = { type: "mcp_call", id: "m1", approval_request_id: "r1", name: "refund", arguments: "{}", output: "ok" };
  const remote = await remoteAgent(t, inTurn(sse(done(request), COMPLETED), sse(done(call), COMPLETED)));
  const server = await serve(t, responses(remote.url), { accepts: ["application/pdf"] });
  const { last } = await send.sse(t, server, { message: "Refund" });
  const approvals = [{ id: "r1", approved: true }];
  const second = await send.sse(t, server, { approvals, state: last.state });
  const rows = second.events.flatMap((event) =>
    event.type === "tool_result" ? [[event.data.id, event.data.output]] : [],
  );
  assert.deepEqual(rows, [["r1", "ok"]]);
  const response = { type: "mcp_approval_response", approval_request_id: "r1", approve: true };
  assert.deepEqual(remote.asked[1]?.body.input, [{ role: "user", content: "Refund" }, request, response]);
  await send.sse(t, server, { message: "", attachments: [PDF], state: last.state });
  const [asked, , , file] = (remote.asked[2]?.body.input ?? []) as { content: unknown }[];
  const part = { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" };
  assert.deepEqual([asked?.content, file?.content], ["Refund", [part]]);
});

test("an agent behind the Responses API gets what it did before it asked, and files that come in place of a decision", async (t) => {
  const request = { type: "mcp_approval_request", id: "r1", name: "refund", arguments: "{}", server_label: "s" };
  const asking = sse(piece("Let me look."), done(CALL), done(OUTPUT), done(request), COMPLETED);
  const remote = await remoteAgent(t, inTurn(asking, sse(piece("Fine."), COMPLETED)));
  const server = await serve(t, responses(remote.url), { accepts: ["image/png"] });
  const { last } = await send.sse(t, server, { message: "Refund" });
  const attachments = [{ type: "image", name: "a.png", mime_type: "image/png", data: "iVBORw0KGgo=" }];
  await send.json(t, server, { message: "This one", attachments, state: last.state });
  const [, second] = remote.asked;
  const input = second?.body.input as { reason?: string }[];
  assert.match(input[5]?.reason ?? "", /They wrote: This one$/);
  assert.deepEqual(input, [
    { role: "user", content: "Refund" },
    { role: "assistant", content: "Let me look." },
    CALL,
    OUTPUT,
    request,
    { type: "mcp_approval_response", approval_request_id: "r1", approve: false, reason: input[5]?.reason },
    {
      role: "user",
      content: [
        { type: "input_text", text: "This one" },
        { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" },
      ],
    },
  ]);
});

const written = (delta: string) => ({ type: "response.output_text.delta", delta });
const piece = (delta: string, id = "m1") => ({ ...written(delta), item_id: id });
const done = (item: object) => ({ type: "response.output_item.done", item });
const unnamed = (text: string) => ({ type: "message", content: [{ type: "output_text", text }] });
const spoken = (text: string, id = "m1") => ({ ...unnamed(text), id });
const CALL = { type: "function_call", call_id: "c1", name: "look", arguments: "{}" };
const OUTPUT = { type: "function_call_output", call_id: "c1", output: "found" };
const DONE = { type: "[DONE]" };
const CREATED = { type: "response.created" };
const completed = (...output: object[]) => ({ type: "response.completed", response: { id: "r1", output } });

/** The servers' events, the text of all tokens that clients get, and the final text if it differs. */
const SPOKEN: [name: string, events: object[], said: string, final?: string][] = [
  ["in pieces, and ends with [DONE]", [piece("Hel"), piece("lo"), DONE], "Hello"],
  ["in pieces and whole", [piece("Hel"), piece("lo"), done(spoken("Hello")), { trace_id: "t" }, DONE], "Hello"],
  [
    "in pieces and whole, under other ids",
    [piece("Hello"), done(spoken("Hello", "x")), completed(spoken("Hello"))],
    "Hello",
  ],
  ["in a finished item", [done(spoken("Hello")), DONE], "Hello"],
  ["in the finished response", [completed(CALL, OUTPUT, spoken("Hello"))], "Hello"],
  ["as text without parts", [done({ type: "message", role: "assistant", content: "Hello" }), DONE], "Hello"],
  ["in two messages", [piece("Hel"), piece("lo", "m2"), done(spoken("lo", "m2")), completed()], "Hel\n\nlo"],
  ["in pieces, and in a finished item behind them", [piece("Hel"), done(spoken("lo", "m2")), DONE], "Hel\n\nlo"],
  ["in two finished messages", [done(spoken("Hel")), done(spoken("lo")), DONE], "Hel\n\nlo"],
  ["in pieces without ids, and in a message without one", [written("Hel"), done(unnamed("lo")), DONE], "Hel\n\nlo"],
  [
    "without ids, before its tool in pieces, behind it whole",
    [
      ...[written("Hel"), done(CALL), done(OUTPUT), done(unnamed("lo")), written(" there"), done(unnamed("there"))],
      completed(unnamed("Hel"), CALL, OUTPUT, unnamed("lo"), unnamed("there")),
    ],
    "Hello\n\n there",
    "lo\n\n there",
  ],
  [
    "twice in the same words, of which the finished response alone has the second",
    [piece("OK, then OK."), completed(spoken("OK, then OK."), spoken("OK.", "m2"))],
    "OK, then OK.\n\nOK.",
  ],
  [
    "in turns of its model, each of which is a response, in the same words, of which the first were streamed",
    [piece("OK."), done(CALL), completed(spoken("OK."), CALL), done(OUTPUT), CREATED, completed(spoken("OK.", "m2"))],
    "OK.OK.",
    "OK.",
  ],
];

for (const [name, events, said, final = said] of SPOKEN) {
  test(`an agent behind the Responses API may speak ${name}`, async (t) => {
    const remote = await remoteAgent(t, sse(...events));
    const server = await serve(t, responses(remote.url));
    const { events: told, last } = await send.sse(t, server, { message: "Hi" });
    const tokens = told.flatMap((event) => (event.type === "token" ? [event.data] : []));
    assert.deepEqual([last.type, last.data, tokens.join("")], ["done", final, said]);
  });
}

const FAILED: [name: string, events: string][] = [
  ["an error alone", 'data: {"error": "the index is gone"}\n\ndata: [DONE]\n\n'],
  ["an error with a code", 'data: {"error": {"code": "x", "message": "the index is gone"}}\n\n'],
  ["a named event", 'event: error\ndata: {"message": "the index is gone"}\n\n'],
  [
    "a failed response",
    'data: {"type": "response.failed", "response": {"error": {"message": "the index is gone"}}}\n\n',
  ],
];

for (const [name, events] of FAILED) {
  test(`what an agent behind the Responses API says of its failure goes to the operator: ${name}`, async (t) => {
    const remote = await remoteAgent(t, streamed(dataOf(piece("Hel")), events));
    const { last } = await send.sse(t, await serve(t, responses(remote.url)), { message: "Hi" });
    assert.equal(last.type === "error" && last.code, "provider_error");
    assert.match(String(last.data), /the index is gone/);
  });
}

test("an answer that the token limit of a remote model cut says so", async (t) => {
  const cut = { type: "response.incomplete", response: { incomplete_details: { reason: "max_output_tokens" } } };
  const remote = await remoteAgent(t, sse({ type: "response.output_text.delta", delta: "Hel" }, cut));
  const { last } = await send.json(t, await serve(t, responses(remote.url)), { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "length");
});

/** `detail` is the message for the operator. */
const FAULTS: [name: string, answer: Answer, code: string, detail?: RegExp][] = [
  ["refuses", (res) => res.writeHead(500).end("secret"), "provider_error"],
  ["wants a key", (res) => res.writeHead(401).end("secret"), "provider_auth", /status 401\. Check the headers/],
  ["is elsewhere", (res) => res.writeHead(404).end(), "provider_error", /with HTTP status 404\. Check its address/],
  ["redirects", (res) => res.writeHead(307, { location: "http://127.0.0.1:1/" }).end(), "provider_error", /status 307/],
  ["answers no stream", (res) => res.end("<html>secret</html>"), "provider_error", /200 and the content type/],
  ["is too busy", (res) => res.writeHead(429).end(), "provider_rate_limited", /is getting too many requests/],
  ["streams no JSON", streamed("data: secret\n\n"), "provider_error"],
  ["ends before its end", sse({ type: "TEXT_MESSAGE_CONTENT", delta: "Hel" }), "provider_truncated"],
  [
    "breaks off",
    (res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write('data: {"type":"TEXT_MESSAGE_CONTENT","delta":"Hel"}\n\n', () => res.destroy());
    },
    "provider_truncated",
  ],
  [
    "asks without an id, by which it would know the answer",
    sse(...CALLED, asks({ toolCallId: "c1" })),
    "provider_error",
    /outcome\.interrupts\[0\] of its RUN_FINISHED has no id/,
  ],
  [
    "asks for two things with LangGraph, one of them without an id",
    sse(...graph("i1", "Your name?").slice(0, 1), ...graph("", "Your order?")),
    "provider_error",
    /asks for several things, but one of LangGraph's interrupts has no id/,
  ],
  [
    "asks for two things with LangGraph in the same words, without ids",
    sse(...graph("", "Sure?").slice(0, 1), ...graph("", "Sure?")),
    "provider_error",
    /asks for several things, but one of LangGraph's interrupts has no id/,
  ],
  ["reports an error", sse({ type: "RUN_ERROR", message: "no key" }), "provider_error", /reports an error: no key/],
  ["says nothing", () => {}, "provider_timeout"],
];

for (const [name, answer, code, detail = /./] of FAULTS) {
  test(`a remote agent that ${name} is asked once, and clients get ${code}`, async (t) => {
    const remote = await remoteAgent(t, answer);
    const env = { PARLEY_FIRST_CHUNK_SECONDS: "1" };
    const server = await serve(t, agUi(remote.url), {}, { env });
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type === "error" && last.code, remote.asked.length], [code, 1]);
    assert.match(String(last.data), detail);
    assert.doesNotMatch(JSON.stringify(events), /secret/);
  });
}

const SERVED: [name: string, run: (url: string) => RunFunction, said: object[], end: object, silent: string][] = [
  ["AG-UI", agUi, [{ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Hello" }], FINISHED, ": ping\n\n"],
  [
    "the Responses API",
    responses,
    // The finished response contains only the model's calls.
    [done(OUTPUT), done(CALL), piece("Hello")],
    completed(CALL),
    'data: {"type":"response.in_progress"}\n\n',
  ],
];

for (const [name, run, said, end] of SERVED) {
  test(`an agent behind ${name} that leaves its stream open has answered with its last event`, async (t) => {
    const closed = gate();
    const remote = await remoteAgent(t, (res) => {
      res.on("close", closed.open);
      res.writeHead(200, { "content-type": "text/event-stream" }).write(dataOf(...said, end));
    });
    const server = await serve(t, run(remote.url), {}, { env: { PARLEY_IDLE_SECONDS: "1" } });
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type, last.data], ["done", "Hello"]);
    assert.ok(events.every((event) => event.type !== "tool_result" || event.data.output === "found"));
    await closed.opened;
  });
}

test("an agent that takes long is alive as long as it sends what says nothing, behind AG-UI and the Responses API", async (t) => {
  const env = { PARLEY_FIRST_CHUNK_SECONDS: "2", PARLEY_IDLE_SECONDS: "2" };
  // In parallel, because each takes longer than the time limits.
  const answers = SERVED.map(async ([name, run, said, end, silent]) => {
    const remote = await remoteAgent(t, (res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      let left = 10;
      const timer = setInterval(() => {
        res.write(left-- > 0 ? silent : dataOf(...said, end));
        if (left < 0) clearInterval(timer);
      }, 300);
    });
    const { last } = await send.sse(t, await serve(t, run(remote.url), {}, { env }), { message: "Hi" });
    assert.deepEqual([last.type, last.data], ["done", "Hello"], name);
  });
  await Promise.all(answers);
});

test("thousands of changes of a large state cost no copy of it each", async (t) => {
  const delta = (n: number) => ({ type: "STATE_DELTA", delta: [{ op: "replace", path: "/n", value: n }] });
  const snapshot = { n: 0, document: "x".repeat(200_000) };
  const text = { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Done." };
  const changes = Array.from({ length: 20_000 }, (_, n) => delta(n));
  const remote = await remoteAgent(t, sse({ type: "STATE_SNAPSHOT", snapshot }, ...changes, text, FINISHED));
  const server = await serve(t, agUi(remote.url), {}, { env: { PARLEY_RUN_SECONDS: "15" } });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.equal(last.type, "done");
  await send.json(t, server, { message: "And?", state: last.state });
  assert.deepEqual(
    remote.asked.map(({ body }) => (body.state as { n?: number }).n),
    [undefined, 19_999],
  );
});

test("a change that does not fit the state of an agent is left out, and the log says so", async (t) => {
  const remote = await remoteAgent(
    t,
    sse(
      { type: "STATE_SNAPSHOT", snapshot: { n: 1 } },
      {
        type: "STATE_DELTA",
        delta: [
          { op: "replace", path: "/n", value: 2 },
          { op: "remove", path: "/gone" },
        ],
      },
      { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Done." },
      FINISHED,
    ),
  );
  const server = await serve(t, agUi(remote.url));
  const { last } = await send.sse(t, server, { message: "Hi" });
  await send.json(t, server, { message: "And?", state: last.state });
  assert.deepEqual(remote.asked[1]?.body.state, { n: 1 });
  assert.match(server.log.join(""), /STATE_DELTA that does not fit its state.*there is no \/gone/);
});

test("a state of a remote agent that is too large fails the run, and is not kept where the run failed before", async (t) => {
  const large = { type: "STATE_SNAPSHOT", snapshot: "x".repeat(300_000) };
  const text = { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Done." };
  for (const end of [FINISHED, { type: "RUN_ERROR", message: "gone" }]) {
    const server = await serve(t, agUi((await remoteAgent(t, sse(large, text, end))).url));
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type === "error" && last.code], ["provider_error"]);
    assert.ok(JSON.stringify(last.state).length < 1000);
    assert.match(server.log.join(""), /state is larger than 256 KiB/);
  }
});

/** The document, the patch, and the document after it or the reason why the patch fails. */
const PATCHES: [document: string, patch: string, after: string | RegExp][] = [
  ['{"a":1}', '[{"op":"add","path":"/b","value":2},{"op":"add","path":"/a","value":3}]', '{"a":3,"b":2}'],
  ['{"a":[1,3]}', '[{"op":"add","path":"/a/1","value":2},{"op":"add","path":"/a/-","value":4}]', '{"a":[1,2,3,4]}'],
  ['{"a":[1,2]}', '[{"op":"remove","path":"/a/0"}]', '{"a":[2]}'],
  ['{"a":[1,2]}', '[{"op":"replace","path":"/a/1","value":null}]', '{"a":[1,null]}'],
  ['{"a":{"b":1},"c":{}}', '[{"op":"move","from":"/a/b","path":"/c/d"}]', '{"a":{},"c":{"d":1}}'],
  ['{"a":[1,2,3]}', '[{"op":"move","from":"/a/0","path":"/a/2"}]', '{"a":[2,3,1]}'],
  ['{"a":{"b":1}}', '[{"op":"move","from":"/a","path":"/a"}]', '{"a":{"b":1}}'],
  ['{"a":[1]}', '[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}]', '{"a":[1],"b":[1,2]}'],
  ['{"a":[1,{"b":2}]}', '[{"op":"test","path":"/a","value":[1,{"b":2}]},{"op":"remove","path":"/a/1"}]', '{"a":[1]}'],
  ['{"/":1,"~1":2,"":3}', '[{"op":"remove","path":"/~1"},{"op":"remove","path":"/~01"}]', '{"":3}'],
  ['{"":1}', '[{"op":"replace","path":"/","value":2}]', '{"":2}'],
  ['{"a":1}', '[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]', "[1,2]"],
  ['{"a":1}', '[{"op":"test","path":"/a","value":"1"}]', /has another value/],
  ['{"a":1}', '[{"op":"replace","path":"/b","value":1}]', /there is no \/b/],
  ['{"a":1}', '[{"op":"add","path":"/b/c","value":1}]', /there is no \/b\/c/],
  ['{"a":"text"}', '[{"op":"add","path":"/a/0","value":1}]', /there is no \/a\/0/],
  ['{"a":[1]}', '[{"op":"remove","path":"/a/-"}]', /there is no/],
  ['{"a":[1]}', '[{"op":"add","path":"/a/2","value":1}]', /there is no/],
  ['{"a":[1]}', '[{"op":"replace","path":"/a/x","value":1}]', /there is no/],
  ['{"a":[1]}', '[{"op":"replace","path":"/a/00","value":1}]', /there is no/],
  ['{"a":[1]}', '[{"op":"replace","path":"/a/-1","value":1}]', /there is no/],
  ['{"a":[1]}', '[{"op":"remove","path":"/a/length"}]', /there is no/],
  ['{"a":{"b":1}}', '[{"op":"move","from":"/a","path":"/a/b"}]', /into itself/],
  ['{"a":1}', '[{"op":"add","path":"/b"}]', /has no value/],
  ['{"a":1}', '[{"op":"add","path":"b","value":1}]', /path that is none/],
  ['{"a":1}', '[{"op":"add","value":1}]', /path that is none/],
  ['{"a":1}', '[{"op":"merge","path":"/a"}]', /unknown/],
  ['{"a":1}', '{"op":"remove","path":"/a"}', /no list/],
  ['{"a":1}', "[1]", /no object/],
  ["{}", '[{"op":"add","path":"/__proto__/polluted","value":1}]', /there is no/],
  ["{}", '[{"op":"add","path":"/constructor/prototype/polluted","value":1}]', /there is no/],
  ["{}", '[{"op":"add","path":"/__proto__","value":{"polluted":1}}]', '{"__proto__":{"polluted":1}}'],
  [
    '{"a":"aaaaaaaa"}',
    JSON.stringify(Array.from({ length: 40 }, (_, n) => ({ op: "copy", from: "", path: `/b${n}` }))),
    /copies or compares more than/,
  ],
];

for (const [document, patch, after] of PATCHES) {
  test(`a JSON Patch is carried out as RFC 6902 has it, wholly or not at all: ${patch.slice(0, 100)}`, () => {
    const patched = new PatchedDocument(JSON.parse(document));
    if (after instanceof RegExp) {
      // If a patch fails, its earlier operations are rolled back.
      const before = [
        { op: "add", path: "/new", value: {} },
        { op: "add", path: "/new/list", value: [1, 2] },
        { op: "move", from: "/new/list/0", path: "/new/one" },
        { op: "remove", path: "/new/list" },
      ];
      const operations = JSON.parse(patch);
      assert.throws(() => patched.patch(Array.isArray(operations) ? [...before, ...operations] : operations), after);
    } else patched.patch(JSON.parse(patch));
    assert.equal(JSON.stringify(patched.document), after instanceof RegExp ? document : after);
    assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
  });
}

test("a remote agent's request is closed when the answer is stopped", async (t) => {
  const closed = gate();
  const remote = await remoteAgent(t, (res) => {
    res.on("close", closed.open);
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write('data: {"type":"TEXT_MESSAGE_CONTENT","delta":"Hel"}\n\n');
  });
  const client = await connect(t, (await serve(t, agUi(remote.url))).socketUrl);
  client.send({ message: "Hi" });
  await client.until("token");
  client.send({ type: "stop" });
  await client.until("done");
  await closed.opened;
});

test("an address that is none stops the start", () => {
  for (const url of ["", "127.0.0.1:9000", "ftp://x"]) {
    assert.throws(() => agUi(url), { name: "ConfigError", message: /^agUi needs the agent's address/ });
    assert.throws(() => responses(url), { message: /^responses needs/ });
  }
});
