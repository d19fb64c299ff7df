/** Hosted agents: what `run` receives, and what clients get of its output. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import type { RunInput } from "../../server/agent/run-function.ts";
import { ToolError } from "../../server/agent/tool-definition.ts";
import type { ToolApproval } from "../../server/protocol/chat.ts";
import { fieldOf, type Outcome, onEveryTransport, post, send, stateOf, typesOf } from "../support/chat-transports.ts";
import { gate, turns } from "../support/deadline.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";

type Run = (input: RunInput) => unknown;

const hosted = (run: Run, more: object = {}, rest: Partial<ServerOptions> = {}): ServerOptions => ({
  agent: { model: undefined, run, ...more } as never,
  ...rest,
});

const serve = (t: Cleanup, run: Run, more: object = {}, rest: Partial<ServerOptions> = {}) =>
  startServer(t, hosted(run, more, rest));

/** An agent that yields one of the lists in each run, in order. */
const serveRounds = (t: Cleanup, ...rounds: unknown[][]) => serve(t, () => items(...(rounds.shift() ?? [])));

/** The text that clients assemble from tokens. */
const textOf = (events: readonly { type: string; data?: unknown }[]) =>
  events.flatMap(({ type, data }) => (type === "token" ? [data] : [])).join("");

const call = (id: string, tool = "look", args: unknown = { a: 1 }) => ({
  type: "tool_call",
  data: { id, tool, arguments: args },
});
const result = (id: string, output: unknown = "found") => ({ type: "tool_result", data: { id, output } });

/** A message chunk as LangGraph streams it. */
const graphChunk = (id: string, fields: object) => [
  "messages",
  [{ type: "AIMessageChunk", id, content: "", ...fields }, { langgraph_node: "agent" }],
];

/** Nested arrays and objects. */
const nested = (levels: number): unknown =>
  levels === 0 ? "]}" : levels % 2 === 0 ? [nested(levels - 1)] : { a: nested(levels - 1) };

async function* items(...list: unknown[]) {
  yield* list;
}

/** A web `ReadableStream` of the items. */
function streamOf(list: unknown[]): ReadableStream<unknown> {
  const rest = list.values();
  return new ReadableStream({
    pull(controller) {
      const { done, value } = rest.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

const WAYS: [name: string, run: Run][] = [
  ["returns a text", () => "Hello"],
  ["promises a text", async () => "Hello"],
  ["yields texts", () => items("Hel", "lo")],
  ["yields texts without waiting", () => ["Hel", "lo"].values()],
  [
    "yields a text and returns one",
    () =>
      (async function* () {
        yield "Hel";
        return "lo";
      })(),
  ],
  ["yields promises of texts", () => [Promise.resolve("Hel"), "lo"].values()],
  ["returns a stream of texts", () => streamOf(["Hel", "lo"])],
  ["promises a stream of events", async () => items({ type: "token", data: "Hel" }, { type: "token", data: "lo" })],
  ["yields streams within streams", () => items(items("Hel"), { fullStream: streamOf(["lo"]) })],
  [
    "returns an object with a stream that can only be read",
    () => {
      const stream = streamOf(["Hel", "lo"]);
      return { stream: { getReader: () => stream.getReader() } };
    },
  ],
];

for (const [name, run] of WAYS) {
  test(`an agent whose run ${name} answers the same over every transport`, async (t) => {
    const { sse } = await onEveryTransport(t, () => hosted(run), { message: "Hi" });
    assert.equal(textOf(sse.events), "Hello");
    assert.ok(sse.last.type === "done");
    assert.deepEqual([sse.last.data, sse.last.finish_reason], ["Hello", "stop"]);
    const history = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello" },
    ];
    assert.deepEqual(stateOf(sse.last)?.conversation_history, history);
  });
}

test("thinking, tools and usage reach clients, and the text after the last tool is the answer", async (t) => {
  const run = () =>
    items(
      { type: "thinking", data: "Hm." },
      "Let me look.",
      call("c1"),
      call("c2", "read", '{"b":2}'),
      { type: "usage", data: { input_tokens: 3, output_tokens: 2 } },
      { type: "tool_result", data: { id: "c2", output: "not there", status: "failed" } },
      result("c1", { found: true }),
      "Here ",
      "it is.",
      { type: "usage", data: { input_tokens: 30, output_tokens: 20 } },
    );
  const { sse } = await onEveryTransport(t, () => hosted(run), { message: "Hi" });
  const kinds = "thinking token tool_call tool_call tool_result tool_result token token done";
  assert.equal(typesOf(sse.events).join(" "), kinds);
  const rows = sse.events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  assert.deepEqual(
    rows.map(({ tool, output, status }) => [tool, output, status]),
    [
      ["read", "not there", "failed"],
      ["look", '{"found":true}', "completed"],
    ],
  );
  assert.ok(sse.last.type === "done");
  assert.equal(sse.last.data, "Here it is.");
  assert.deepEqual(sse.last.usage, { input_tokens: 33, output_tokens: 22 });
  assert.deepEqual(
    fieldOf(sse.last.state.conversation_history ?? [], "role"),
    "user assistant tool tool assistant".split(" "),
  );
});

test("run gets the message, the conversation as texts, files, its last state and ctx", async (t) => {
  const seen: RunInput[] = [];
  const run = (input: RunInput) => {
    seen.push(input);
    const { state } = input;
    return items(`Answer ${seen.length}.`, call("c1"), result("c1"), "Done.", {
      type: "state",
      data: { n: (state?.n ?? 0) + 1 },
    });
  };
  const server = await serve(t, run, { accepts: ["image/png"] });
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const attachments = [{ type: "image", name: "dot.png", mime_type: "image/png", data: png }];
  const first = await send.json(t, server, { message: "One", attachments, metadata: { plan: "pro" } });
  const second = await send.sse(t, server, { message: "Two", state: first.last.state });
  assert.ok(second.last.type === "done");
  const [one, two] = seen;
  assert.deepEqual([one?.message, one?.state, one?.ctx.metadata.plan], ["One", undefined, "pro"]);
  assert.deepEqual(one?.messages, [{ role: "user", content: "One" }]);
  assert.deepEqual(
    one?.attachments.map(({ name, mimeType, data }) => [name, mimeType, data.byteLength]),
    [["dot.png", "image/png", 70]],
  );
  assert.equal(one?.attachments[0]?.data.buffer.byteLength, 70, "its memory is shared with nothing");
  assert.equal(one?.signal, one?.ctx.signal);
  assert.deepEqual(two?.state, { n: 1 });
  assert.equal(two?.ctx.conversation, first.last.state?.conversation);
  assert.deepEqual(two?.messages, [
    { role: "user", content: "One\n[an image (PNG, 1 kB) was attached here earlier and is no longer included]" },
    { role: "assistant", content: "Answer 1.\n\nDone." },
    { role: "user", content: "Two" },
  ]);
  const states = (second.last.state.conversation_history ?? []).flatMap((message) =>
    "run_state" in message ? [message.run_state] : [],
  );
  assert.deepEqual(states, [{ n: 2 }], "only the last state is carried");
  const pdf = [{ type: "file", name: "a.pdf", mime_type: "application/pdf", data: "JVBERi0=" }];
  assert.equal((await send.json(t, server, { message: "x", attachments: pdf })).status, 415);
});

test("what a conversation has said so far is given to run in the same words each time, which prompt caches need", async (t) => {
  const asked: string[] = [];
  const run = ({ messages }: RunInput) => {
    asked.push(JSON.stringify(messages).slice(0, -1));
    return items("One moment.", call("c1"), result("c1"), `Answer ${asked.length} to “${messages.length}”.`);
  };
  const server = await serve(t, run);
  let state: unknown;
  for (const message of ["A", "B\n\u{1F44B}", "C"]) ({ state } = (await send.json(t, server, { message, state })).last);
  assert.ok(asked[1]?.startsWith(asked[0] ?? "-"));
  assert.ok(asked[2]?.startsWith(asked[1] ?? "-"));
});

test("the deepest state that run may keep comes back with the next message", async (t) => {
  const run = ({ state }: RunInput) => items(JSON.stringify(state ?? 0), { type: "state", data: nested(58) });
  const server = await serve(t, run);
  const { last } = await send.json(t, server, { message: "Hi" });
  const next = await send.json(t, server, { message: "On", state: last.state });
  assert.deepEqual(JSON.parse(String(next.last.data)), nested(58));
});

test("a state of run is signed, without any setting, and bound to its conversation", async (t) => {
  const run = ({ state }: RunInput) => items(`State ${state ?? "none"}.`, { type: "state", data: "thread-1" });
  const server = await serve(t, run);
  const { last } = await send.json(t, server, { message: "Hi" });
  const state = last.state ?? {};
  assert.match(state.signature ?? "", /^[\w-]{43}$/);
  const answer = await send.json(t, server, { message: "On", state });
  assert.equal(answer.last.data, "State thread-1.");
  const forged = structuredClone(state);
  const message = forged.conversation_history?.at(-1);
  assert.ok(message?.role === "assistant");
  message.run_state = "thread-2";
  const { signature: _signature, ...unsigned } = state;
  for (const other of [forged, unsigned, { ...state, conversation: "c".repeat(36) }]) {
    const { status, last } = await send.json(t, server, { message: "On", state: other });
    assert.deepEqual([status, last.type === "error" && last.code], [400, "invalid_state"]);
  }
});

test("an agent that ends with tools alone has answered, and what it said before stands", async (t) => {
  const { sse } = await onEveryTransport(t, () => hosted(() => items(call("c1"), result("c1"))), { message: "Hi" });
  assert.equal(sse.last.data, "I have nothing to add.");
  const said = await onEveryTransport(t, () => hosted(() => items("All is well.", call("c1"), result("c1"))), {
    message: "Hi",
  });
  assert.equal(said.sse.last.data, "All is well.");
});

test("a call without a result is closed at the end", async (t) => {
  const { sse } = await onEveryTransport(t, () => hosted(() => items(call("c1"), "Done.")), { message: "Hi" });
  assert.deepEqual(typesOf(sse.events), ["tool_call", "token", "tool_result", "done"]);
  assert.ok(sse.last.type === "done");
  const [, , tool] = sse.last.state.conversation_history ?? [];
  assert.deepEqual([tool?.role, tool?.role === "tool" && tool.is_error], ["tool", true]);
});

const FAILURES: [name: string, run: Run, sentence: RegExp, logged: RegExp][] = [
  [
    "throws",
    () => {
      throw new Error("secret at /srv");
    },
    /has a problem/,
    /run failed: secret at \/srv/,
  ],
  [
    "throws after a text",
    () =>
      (async function* () {
        yield "Hel";
        throw new Error("secret");
      })(),
    /has a problem/,
    /run failed: secret/,
  ],
  ["throws what is no error", () => Promise.reject({ secret: 1 }), /has a problem/, /run failed/],
  ["throws what cannot become a text", () => Promise.reject(Object.create(null)), /has a problem/, /run failed/],
  [
    "throws an error whose message is no text",
    () => Promise.reject(Object.assign(new Error(), { message: { secret: 1 } })),
    /has a problem/,
    /run failed/,
  ],
  [
    "throws a ToolError",
    () => {
      throw new ToolError("The shop is closed.");
    },
    /^The shop is closed\.$/,
    /provider_error/,
  ],
  ["returns nothing", () => undefined, /empty answer/, /run returned and yielded nothing\. Return or yield strings/],
  [
    "returns a finished result and a state",
    () => items({ finalOutput: "secret" }, { type: "state", data: "r1" }),
    /has a problem/,
    /with the fields finalOutput\. Return or yield .* the stream of a framework, not its finished result/,
  ],
  [
    "yields nothing",
    () => items(undefined, null),
    /empty answer/,
    /run returned and yielded nothing\. Return or yield/,
  ],
  [
    "returns an object of a class",
    () => new Response("secret"),
    /has a problem/,
    /nothing that Parley knows, but an object of the class Response .*\. Return or yield strings/,
  ],
  [
    "yields nothing that is known",
    () => items({ secret: "x" }, 5),
    /has a problem/,
    /nothing that Parley knows, but an object with the fields secret/,
  ],
  [
    "yields nothing that is known, but looks as if a framework had made it",
    () => items({ type: "SECRET_KEPT", secret: "x" }, { type: "secret_stream_event" }),
    /has a problem/,
    /^(?!.*Recognised).*nothing that Parley knows, but an object of the type SECRET_KEPT/s,
  ],
  [
    "yields an event whose type cannot become a text",
    () => items({ type: Object.create(null) }),
    /has a problem/,
    /nothing that Parley knows, but an object with the fields type/,
  ],
  [
    "yields an event that is wrong",
    () => items({ type: "token", data: { secret: 1 } }),
    /has a problem/,
    /an event whose token\.data is not a string/,
  ],
  [
    "yields an event of ours by another framework's name",
    () => items({ type: "tool-call", data: { id: "secret", tool: "t" } }),
    /has a problem/,
    /^(?!.*Recognised).*an object of the type tool-call \(did you mean tool_call\?\) with the fields type, data/s,
  ],
  [
    "yields a text by another name",
    () => items({ type: "text", data: "secret" }),
    /has a problem/,
    /an object of the type text \(did you mean token\?\)/,
  ],
  [
    "reports tokens by other names",
    () => items({ type: "usage", data: { inputTokens: 1 } }),
    /has a problem/,
    /a usage whose data has no input_tokens and output_tokens/,
  ],
  [
    "keeps a state that is too large",
    () => items("x", { type: "state", data: "s".repeat(300_000) }),
    /has a problem/,
    /larger than 256 KiB/,
  ],
  [
    "keeps a state that is no JSON",
    () => items("x", { type: "state", data: 1n }),
    /has a problem/,
    /state is not JSON/,
  ],
  [
    "keeps a state that is a function",
    () => items("x", { type: "state", data: () => "secret" }),
    /has a problem/,
    /state is not JSON/,
  ],
  [
    "keeps a state that no message may bring back, so deep it is",
    () => items("x", { type: "state", data: nested(59) }),
    /has a problem/,
    /state is nested deeper than 58 levels/,
  ],
  [
    "says more than any model may",
    () => items("x".repeat(64 * 1024 * 1024 + 1)),
    /has a problem/,
    /answer is longer than 64 MiB/,
  ],
];

for (const [name, run, sentence, logged] of FAILURES) {
  test(`a run that ${name} fails on every transport, is called once, and says nothing of its causes`, async (t) => {
    let calls = 0;
    const counted: Run = (input) => {
      calls += 1;
      return run(input);
    };
    // Others can chat here, so that details for the operator must only be in the log.
    const env = { PARLEY_API_KEY: "k".repeat(24), PARLEY_ALLOWED_ORIGINS: "*" };
    const server = await serve(t, counted, {}, { env });
    const headers = { authorization: `Bearer ${env.PARLEY_API_KEY}` };
    const answer = await post(server, { message: "Hi", stream: false }, { headers });
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code, calls], [502, "provider_error", 1]);
    assert.match(error.message, sentence);
    const stream = await (await post(server, { message: "Hi", stream: true }, { headers })).text();
    assert.doesNotMatch(stream, /secret/);
    assert.match(server.log.join(""), logged);
  });
}

test("what a tool threw is for the log, unless it is a ToolError", async (t) => {
  const thrown = (id: string, error: unknown) => [
    { type: "tool-call", toolCallId: id, toolName: "look", input: {} },
    { type: "tool-error", toolCallId: id, toolName: "look", error },
  ];
  const run = () =>
    items(
      ...thrown("c1", new Error("secret at /srv")),
      ...thrown("c2", new ToolError("No such order.")),
      // The same failures again, because some frameworks report them in several ways.
      ...thrown("c1", new Error("secret at /srv")),
      ...thrown("c2", new Error("No such order.")),
      "So be it.",
    );
  const server = await serve(t, run);
  const { events } = await send.sse(t, server, { message: "Hi" });
  const outputs = events.flatMap((event) =>
    event.type === "tool_result" ? [[event.data.output, event.data.status]] : [],
  );
  assert.deepEqual(outputs, [
    ["The tool failed.", "failed"],
    ["No such order.", "failed"],
  ]);
  const failures = server.log.filter((record) => /The tool .* failed/.test(record));
  assert.equal(failures.length, 1);
  assert.match(failures.join(""), /The tool \\"look\\" failed.*secret at \/srv/);
});

test("an unknown item among known ones is one notice in the log", async (t) => {
  const server = await serve(t, () => items("Hel", { odd: "secret" }, { odder: 1 }, "lo"));
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.data, "Hello");
  const notices = server.log.filter((record) => record.includes("does not know"));
  assert.equal(notices.length, 1);
  assert.match(notices.join(""), /an object with the fields odd/);
  assert.doesNotMatch(notices.join(""), /secret/);
});

test("a tool_result of no call, and one whose output has another name, are one notice each in the log", async (t) => {
  const call = { type: "tool_call", data: { id: "1", tool: "look" } };
  const results = [
    { id: "2", output: "a" },
    { id: "3", output: "b" },
    { id: "1", result: "secret" },
  ];
  const server = await serve(t, () => items(call, ...results.map((data) => ({ type: "tool_result", data })), "Hello"));
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.data, "Hello");
  assert.equal(server.log.filter((record) => /tool_result whose id is that of no call/.test(record)).length, 1);
  assert.equal(server.log.filter((record) => /tool_result without output, but with result/.test(record)).length, 1);
  assert.doesNotMatch(server.log.join(""), /secret/);
});

test("a hook that fails after tools have run elsewhere invites to no retry", async (t) => {
  const run = async function* () {
    yield call("c1", "charge");
    yield result("c1", "charged");
    yield "Done.";
  };
  const onAnswer = () => {
    throw new Error("gone");
  };
  const server = await startServer(t, { agent: { model: undefined, run, onAnswer } as never });
  for (const transport of ["json", "sse"] as const) {
    const { last } = await send[transport](t, server, { message: "Buy" });
    assert.ok(last.type === "error");
    assert.deepEqual([last.code, last.retryable], ["internal", false]);
    assert.doesNotMatch(last.data, /try again/);
  }
});

test("after a failure the state has the message and what was told of it, and the tools are not run again by a retry", async (t) => {
  let calls = 0;
  const run = async function* ({ messages }: RunInput): AsyncGenerator<unknown> {
    calls += 1;
    if (calls === 2) return yield JSON.stringify(messages);
    yield "I charge the card.";
    yield call("c1", "charge");
    yield result("c1", "charged");
    throw new Error("gone");
  };
  const server = await serve(t, run);
  const { last } = await send.sse(t, server, { message: "Buy" });
  assert.ok(last.type === "error");
  assert.deepEqual([last.code, last.retryable, calls], ["provider_error", false, 1]);
  assert.match(last.data, /^The assistant has a problem right now\. \(/);
  assert.deepEqual(fieldOf(last.state?.conversation_history ?? [], "role"), ["user", "assistant", "tool"]);
  const next = await send.sse(t, server, { message: "And now?", state: last.state });
  assert.deepEqual(JSON.parse(String(next.last.data)), [
    { role: "user", content: "Buy" },
    { role: "assistant", content: "I charge the card." },
    { role: "user", content: "And now?" },
  ]);
});

const SILENCES: Readonly<Record<string, readonly unknown[]>> = {
  nothing: [],
  "nothing after a text": ["Hel"],
  "nothing after its tool": [call("c1"), result("c1")],
  "nothing after a call of LangGraph that its next message leaves behind": [
    graphChunk("m1", { tool_call_chunks: [{ index: 0, id: "c1", name: "look", args: "{}" }] }),
    graphChunk("m2", { content: "Hel" }),
  ],
  "nothing after calls of AG-UI that its next message leaves behind": [
    { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "look" },
    { type: "TOOL_CALL_END", toolCallId: "c1" },
    { type: "TOOL_CALL_START", toolCallId: "c2", toolCallName: "look" },
    { type: "TEXT_MESSAGE_START", messageId: "m1" },
  ],
  "nothing after a call of the AI SDK that its next step leaves behind": [
    { type: "tool-call", toolCallId: "c1", toolName: "look", input: {} },
    { type: "start-step" },
  ],
};

test("an agent that is silent for too long, wherever that begins, ends with provider_timeout, and its signal is aborted", async (t) => {
  const ended = new Map(Object.keys(SILENCES).map((what) => [what, gate()]));
  const run = async function* ({ message, signal }: RunInput) {
    signal.addEventListener("abort", () => ended.get(message)?.open());
    yield* SILENCES[message] ?? [];
    await new Promise(() => {});
  };
  const env = { PARLEY_FIRST_CHUNK_SECONDS: "1", PARLEY_IDLE_SECONDS: "1" };
  const server = await serve(t, run, {}, { env });
  // In parallel, because each takes a second.
  const silences = [...ended].map(async ([message, { opened }]) => {
    const { last } = await send.sse(t, server, { message });
    assert.equal(last.type === "error" && last.code, "provider_timeout", message);
    await opened;
  });
  await Promise.all(silences);
});

test("an agent that yields nothing for ever holds up nobody, and ends with the limit of its first event or of the run", async (t) => {
  // In parallel, because each takes a second.
  const ends = [
    [null, "PARLEY_FIRST_CHUNK_SECONDS"],
    ["Hel", "PARLEY_RUN_SECONDS"],
  ].map(async ([first, setting]) => {
    const run = async function* () {
      yield first;
      for (;;) yield null;
    };
    const server = await serve(t, run, {}, { env: { [String(setting)]: "1" } });
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.deepEqual([last.type, last.type === "error" && last.code], ["error", "provider_timeout"], String(setting));
  });
  await Promise.all(ends);
});

test("an output is cut in the state as it is for clients", async (t) => {
  const run = () => items(call("c1"), result("c1", "x".repeat(1_000)), "Done.");
  const server = await serve(t, run, {}, { env: { PARLEY_MAX_TOOL_OUTPUT_CHARS: "10" } });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  const cut = `${"x".repeat(10)}\n[cut: 990 more characters]`;
  const shown = events.flatMap((event) => (event.type === "tool_result" ? [event.data.output] : []));
  assert.deepEqual(shown, [cut]);
  assert.ok(JSON.stringify(stateOf(last)).includes(JSON.stringify(cut)));
});

test("an agent may be silent while its tool runs", async (t) => {
  const run = async function* () {
    yield call("c1");
    await new Promise((resolve) => setTimeout(resolve, 1500));
    yield result("c1");
    yield "Done.";
  };
  const env = { PARLEY_IDLE_SECONDS: "1" };
  const { last } = await send.sse(t, await serve(t, run, {}, { env }), { message: "Hi" });
  assert.equal(last.data, "Done.");
});

for (const deaf of [false, true]) {
  test(`an agent that ${deaf ? "ignores its signal" : "listens to its signal"} is stopped at once, and the conversation goes on`, async (t) => {
    const begun = gate();
    const ended = gate();
    const run = async function* ({ message, signal }: RunInput): AsyncGenerator<unknown> {
      if (message === "On?") return yield "Fine.";
      yield "One ";
      yield "two ";
      begun.open();
      await new Promise<void>((resolve) => {
        if (!deaf) signal.addEventListener("abort", () => resolve());
        else setTimeout(resolve, 1200);
      });
      ended.open();
      yield "three";
    };
    const server = await serve(t, run);
    const client = await connect(t, server.socketUrl);
    client.send({ message: "Hi" });
    await begun.opened;
    client.send({ type: "stop" });
    const done = (await client.until("done")).at(-1);
    assert.ok(done?.type === "done");
    assert.deepEqual([done.data, done.finish_reason], ["One two ", "stopped"]);
    assert.equal((await client.run({ message: "On?" })).at(-1)?.data, "Fine.");
    await ended.opened;
    const goesOn = server.log.some((record) => record.includes("goes on although its answer has ended"));
    assert.equal(goesOn, deaf);
  });
}

test("a server that drains ends an agent that ignores its signal, and the state has what it told", async (t) => {
  const begun = gate();
  const run = async function* () {
    yield "Half an ";
    begun.open();
    await new Promise(() => {});
  };
  const server = await serve(t, run);
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await begun.opened;
  const [events] = await Promise.all([client.until("error"), server.close()]);
  const last = events.at(-1);
  assert.ok(last?.type === "error");
  assert.equal(last.code, "shutting_down");
  assert.deepEqual(fieldOf(last.state?.conversation_history ?? [], "content"), ["Hi", "Half an "]);
});

test("fifty conversations at once keep apart, though one never waits and another fails", async (t) => {
  const run = async function* ({ message, messages }: RunInput) {
    if (message === "fail") throw new Error("gone");
    if (message === "flood") for (let n = 0; n < 20_000; n++) yield "x";
    for (const word of [message, ":", messages.length]) yield String(word);
  };
  const server = await serve(t, run, {}, { env: { PARLEY_RATE_PER_ADDRESS: "0" } });
  const names = ["fail", "flood", ...Array.from({ length: 50 }, (_, index) => `m${index}`)];
  const answers = await Promise.all(names.map((message) => send.sse(t, server, { message })));
  assert.equal(answers[0]?.last.type, "error");
  assert.deepEqual(
    answers.slice(2).map(({ last }) => last.data),
    names.slice(2).map((name) => `${name}:1`),
  );
});

test("hooks see what run says, and a refused answer stands in no state", async (t) => {
  const run = ({ message }: RunInput) => items(`You wrote ${message}.`, call("c1"), result("c1"), "The secret is 42.");
  const hooks = {
    onMessage: () => ({ message: "something else" }),
    onAnswer: ({ answer }: { answer: string }) =>
      answer.includes("secret") ? { refuse: "I may not say." } : undefined,
  };
  const { sse } = await onEveryTransport(t, () => hosted(run, hooks), { message: "Hi" });
  assert.ok(sse.last.type === "done");
  assert.deepEqual([sse.last.data, sse.last.finish_reason], ["I may not say.", "refused"]);
  assert.doesNotMatch(JSON.stringify(sse.events), /secret|You wrote/);
  const history = sse.last.state.conversation_history ?? [];
  assert.deepEqual(
    history.map(({ role, content }) => [role, content]),
    [
      ["user", "something else"],
      ["assistant", null],
      ["tool", "found"],
      ["assistant", "I may not say."],
    ],
  );
});

test("logs, metrics and the page's information call the model run, and know its tools", async (t) => {
  const server = await serve(t, () => items(call("c1", "look"), result("c1"), "Hi"), { accepts: ["application/pdf"] });
  await send.json(t, server, { message: "Hi" });
  assert.match(server.log.join(""), /"msg":"run"|"model":"run"/);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /parley_info\{model="run"\} 1/);
  assert.match(metrics, /tool="look",status="completed"/);
  const info = (await (await fetch(`${server.url}/api/info`)).json()) as { attachments: { media_types: string[] } };
  assert.deepEqual(info.attachments.media_types, ["application/pdf"]);
});

// Calls that wait for approval.

const asks = (more: object = {}) => ({
  type: "tool_approval",
  data: { id: "c1", tool: "refund", arguments: { sum: 5 }, text: "Refund 5?", kept: { thread: 7 }, ...more },
});

/** Makes the agent ask for approval; its later runs continue. `inputs` records the input of each run. */
async function asking(
  t: Cleanup,
  { first = [asks()], more = {} }: { first?: unknown[]; more?: Partial<ServerOptions> },
) {
  const inputs: RunInput[] = [];
  const run = (input: RunInput) => {
    inputs.push(input);
    if (inputs.length === 1) return items(...first);
    if (input.message === "fail") throw new Error("down");
    return items({ type: "tool_result", data: { id: "c1", output: "refunded" } }, "Done.");
  };
  const server = await serve(t, run, {}, more);
  const { last, events } = await send.sse(t, server, { message: "Refund it" });
  assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
  return { server, inputs, state: last.state, last, events };
}

const YES = [{ id: "c1", approved: true }];
const codeOf = ({ last, status }: Outcome) => [status, last.type === "error" ? last.code : last.finish_reason];
const roles = (outcome: Outcome) => stateOf(outcome.last)?.conversation_history?.map(({ role }) => role);

const OPEN: [name: string, first: unknown[], then: unknown[], logged: RegExp][] = [
  ["of its own", [call("c1"), "Done."], [], /got no result: run has ended before it\./],
  [
    "of LangGraph, whose interrupts are not streamed",
    [["tools", { event: "on_tool_start", toolCallId: "c1", name: "look", input: "{}" }]],
    [],
    /"look\\" got no result: if it interrupts the graph, stream the mode \\"updates\\", too\./,
  ],
  [
    "that a person has approved",
    [asks()],
    ["Done."],
    /"refund\\" got no result: run has to give ctx\.approvals to what/,
  ],
];
for (const [name, first, then, logged] of OPEN) {
  test(`the log says why a call ${name} may have no result`, async (t) => {
    const run: Run = ({ ctx }) => items(...(ctx.approvals.length === 0 ? first : then));
    const server = await serve(t, run);
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.ok(last.type === "done");
    if (then.length > 0) await send.json(t, server, { approvals: YES, state: last.state });
    assert.match(server.log.join(""), logged);
  });
}

for (const transport of ["json", "sse", "socket"] as const) {
  test(`an approved call of an agent has its row in the second run (${transport})`, async (t) => {
    const { server, inputs, state, last } = await asking(t, { first: ["Let me see.", asks()] });
    const [{ expires_at, ...approval } = {} as ToolApproval] = last.approvals ?? [];
    assert.deepEqual(approval, { id: "c1", tool: "refund", arguments: '{"sum":5}', text: "Refund 5?" });
    assert.ok(Date.parse(expires_at) > Date.now());
    assert.equal(last.data, "Let me see.");
    const second = await send[transport](t, server, { approvals: YES, state });
    assert.equal(codeOf(second).at(1), "stop");
    assert.equal(second.last.data, "Done.");
    if (transport === "json")
      assert.deepEqual(fieldOf(second.toolCalls as { status: string }[], "status"), ["completed"]);
    else assert.deepEqual(typesOf(second.events), ["tool_call", "tool_result", "token", "done"]);
    assert.deepEqual(roles(second), ["user", "assistant", "tool", "assistant"]);
    assert.deepEqual(inputs[1]?.ctx.approvals, [{ id: "c1", approved: true, tool: "refund", kept: { thread: 7 } }]);
    assert.deepEqual(
      inputs[1]?.exchange.map(({ role, content }) => [role, content]),
      [
        ["user", "Refund it"],
        ["assistant", "Let me see."],
      ],
    );
    assert.deepEqual(codeOf(await send[transport](t, server, { approvals: YES, state })).at(1), "approval_used");
    assert.equal(inputs.length, 2);
    const next = await send[transport](t, server, { message: "Thanks", state: second.last.state });
    assert.equal(next.last.type, "done");
    assert.deepEqual(inputs.at(-1)?.ctx.approvals, []);
  });
}

for (const approved of [true, false]) {
  test(`a run that says nothing after a call was ${approved ? "approved" : "declined"} has ended well: the decision is used`, async (t) => {
    const run: Run = ({ ctx }) => items(...(ctx.approvals.length === 0 ? [asks()] : []));
    const server = await serve(t, run);
    const { last } = await send.json(t, server, { message: "Hi" });
    assert.equal(server.log.join("").includes("got no result"), false, "it waits");
    const second = await send.json(t, server, { approvals: [{ id: "c1", approved }], state: last.state });
    assert.deepEqual([codeOf(second).at(1), second.last.type], ["stop", "done"]);
  });
}

test("calls beside those that ask are not said to have no result", async (t) => {
  const run: Run = () => items(call("c0"), asks());
  const server = await serve(t, run);
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.type === "done" && last.finish_reason, "approval_required");
  assert.doesNotMatch(server.log.join(""), /got no result/);
});

test("the log says that a framework may carry out nothing if one of its calls is declined", async (t) => {
  const { server, state } = await asking(t, { first: [asks({ id: "c0" }), asks()] });
  const approvals = [
    { id: "c0", approved: true },
    { id: "c1", approved: false },
  ];
  await send.json(t, server, { approvals, state });
  assert.match(server.log.join(""), /got no result: .*, which may carry out none of its calls if one is declined\./);
});

test("a declined call of an agent has a failed row at once, and the agent gets the reason", async (t) => {
  const { server, inputs, state } = await asking(t, {});
  const decision = { id: "c1", approved: false, reason: "Too much" };
  const { events } = await send.sse(t, server, { approvals: [decision], state });
  assert.deepEqual(typesOf(events), ["tool_result", "token", "done"]);
  assert.ok(events[0]?.type === "tool_result");
  assert.deepEqual([events[0].data.id, events[0].data.declined], ["c1", true]);
  assert.deepEqual(inputs[1]?.ctx.approvals, [{ ...decision, tool: "refund", kept: { thread: 7 } }]);
});

test("a call that was declined stands once, also where its framework tells of it after another question", async (t) => {
  const told = [call("c1", "refund", { sum: 5 }), result("c1", "declined"), "Done."];
  const server = await serveRounds(t, [asks()], [asks({ id: "c2" })], told);
  let { last, events } = await send.sse(t, server, { message: "Hi" });
  for (const [id, approved] of [
    ["c1", false],
    ["c2", true],
  ]) {
    ({ last, events } = await send.sse(t, server, { approvals: [{ id, approved }], state: last.state }));
  }
  const rows = events.flatMap((one) => (one.type === "tool_call" || one.type === "tool_result" ? [one.data.id] : []));
  assert.deepEqual([last.data, rows.includes("c1")], ["Done.", false]);
});

test("an approved call whose result comes behind the next question is not said to have failed, and has its row then", async (t) => {
  const server = await serveRounds(
    t,
    [asks()],
    [asks({ id: "c2" })],
    [result("c1", "done"), result("c2", "done"), "Done."],
  );
  let { last, events } = await send.sse(t, server, { message: "Hi" });
  const rows = [];
  for (const id of ["c1", "c2"]) {
    ({ last, events } = await send.sse(t, server, { approvals: [{ id, approved: true }], state: last.state }));
    rows.push(
      events.flatMap((one) => (one.type === "tool_result" ? [[one.data.id, one.data.status, one.data.output]] : [])),
    );
  }
  assert.deepEqual(rows, [
    [["c1", "completed", "Its result is not known yet."]],
    ["c1", "c2"].map((id) => [id, "completed", "done"]),
  ]);
});

test("a call of an agent's own with other arguments than a declined one of its id is another call", async (t) => {
  const server = await serveRounds(t, [asks()], [call("c1", "refund", { sum: 4 }), result("c1"), "Done."]);
  const { last } = await send.sse(t, server, { message: "Hi" });
  const { events } = await send.sse(t, server, { approvals: [{ id: "c1", approved: false }], state: last.state });
  assert.deepEqual(typesOf(events), ["tool_result", "tool_call", "tool_result", "token", "done"]);
});

test("a graph runs a declined tool to tell it, with other arguments than it has shown, and the call stands once", async (t) => {
  const started = ["tools", { event: "on_tool_start", toolCallId: "c1", name: "refund", input: '{"a":1}' }];
  const ended = ["tools", { event: "on_tool_end", toolCallId: "c1", name: "refund", output: "declined" }];
  const rounds = [
    [started, ["updates", { __interrupt__: [{ id: "i1", value: { question: "Refund?", sum: 1 } }] }]],
    [started, ended, graphChunk("m1", { content: "Done." })],
  ];
  const server = await serveRounds(t, ...rounds);
  const { last } = await send.sse(t, server, { message: "Hi" });
  const second = await send.sse(t, server, { approvals: [{ id: "c1", approved: false }], state: last.state });
  assert.deepEqual(typesOf(second.events), ["tool_result", "token", "done"]);
});

test("a message in place of decisions declines all calls of an agent, which gets the message as the reason", async (t) => {
  const { server, inputs, state } = await asking(t, {});
  const outcome = await send.sse(t, server, { message: "Never mind", state });
  assert.deepEqual(typesOf(outcome.events), ["tool_result", "token", "done"]);
  const { message, messages, ctx } = inputs[1] as RunInput;
  assert.deepEqual([message, messages], ["Never mind", [{ role: "user", content: "Refund it\n\nNever mind" }]]);
  assert.match(ctx.approvals[0]?.reason ?? "", /did not decide.*Never mind/);
  assert.equal(ctx.approvals[0]?.approved, false);
  assert.deepEqual(roles(outcome), ["user", "assistant", "tool", "user", "assistant"]);
  assert.deepEqual(codeOf(await send.json(t, server, { approvals: YES, state })), [409, "approval_used"]);
  const next = await send.sse(t, server, { message: "And?", state: outcome.last.state });
  assert.equal(next.last.type, "done");
});

test("decisions about calls of an agent come alone, in time, and as they were asked", async (t) => {
  const { server, inputs, state, last } = await asking(t, { more: { env: { PARLEY_APPROVAL_SECONDS: "0.001" } } });
  const waiting = { calls: [{ id: "c1", name: "refund", arguments: "{}" }] };
  for (const change of [{ waiting }, { sealed: undefined }, { sealed: `${state.open?.sealed}A` }]) {
    const altered = { ...state, open: { ...state.open, ...change } } as never;
    assert.deepEqual(codeOf(await send.json(t, server, { approvals: YES, state: altered })), [400, "invalid_state"]);
  }
  const both = await send.json(t, server, { approvals: YES, message: "And thanks", state });
  assert.deepEqual(codeOf(both), [400, "invalid_request"]);
  assert.match(both.last.data, /takes decisions alone/);
  while (Date.now() <= Date.parse(last.approvals?.[0]?.expires_at ?? "")) await turns(1);
  assert.deepEqual(codeOf(await send.json(t, server, { approvals: YES, state })), [409, "approval_expired"]);
  assert.equal(inputs.length, 1);
  assert.equal((await send.json(t, server, { message: "Well?", state })).last.data, "Done.");
});

test("an agent that fails after a decision has used it up, and the conversation goes on", async (t) => {
  const { server, inputs, state } = await asking(t, { first: [asks({ editable: true, danger: true })] });
  const edited = [{ id: "c1", approved: true, arguments: '{"sum":4}' }];
  const run = await send.sse(t, server, { approvals: edited, state });
  assert.ok(run.events[0]?.type === "tool_call");
  assert.deepEqual([run.events[0].data.arguments, inputs[1]?.ctx.approvals[0]?.arguments], ['{"sum":4}', '{"sum":4}']);
  const failing = await asking(t, {});
  const failed = await send.json(t, failing.server, { message: "fail", state: failing.state });
  assert.equal(failed.last.type, "error");
  const again = { message: "Go on", state: failed.last.state ?? failing.state };
  assert.equal((await send.json(t, failing.server, again)).last.data, "Done.");
});

test("a call that a framework asks about late was told of, and its approval takes it back", async (t) => {
  const held = gate();
  async function* first() {
    yield { type: "tool-call", toolCallId: "c1", toolName: "refund", input: {} };
    await held.opened;
    yield { type: "tool-approval-request", approvalId: "a", toolCallId: "c1" };
  }
  const server = await serve(t, first);
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await client.until("tool_call");
  held.open();
  const events = await client.until("done");
  assert.deepEqual(typesOf(events), ["tool_approval", "done"]);
  const json = await send.json(t, server, { message: "Hi" });
  assert.deepEqual([json.last.type === "done" && json.last.approvals?.length, json.toolCalls], [1, []]);
});

test("an agent that needs more than 256 KiB to go on fails, and says so in the log", async (t) => {
  const server = await serve(t, () => items(asks({ kept: "k".repeat(300_000) })));
  assert.equal((await send.json(t, server, { message: "Hi" })).last.type, "error");
  assert.match(server.log.join(""), /agent's kept is larger than 256 KiB/);
});

const MISTAKES: [agent: object, sentence: RegExp][] = [
  [{ run: () => "x", model: "demo" }, /^model does nothing beside run/],
  [{ run: () => "x", tools: [] }, /^tools does nothing beside run/],
  [{ run: () => "x", instructions: "x" }, /^instructions does nothing/],
  [{ run: () => "x", maxTurns: 3 }, /^maxTurns does nothing/],
  [{ run: () => "x", fallbacks: ["demo"] }, /^fallbacks does nothing/],
  [{ run: () => "x", temperature: 1 }, /^temperature does nothing/],
  [{ run: "x" }, /^run must be a function/],
  [{ run: { stream: () => {} } }, /^run must be a function/],
  [{ run: () => "x", accepts: "image/png" }, /^accepts must be an array/],
  [{ run: () => "x", accepts: ["text/html"] }, /^accepts names "text\/html"/],
];

for (const [agent, sentence] of MISTAKES) {
  test(`the start refuses ${Object.keys(agent).join(" and ")}: ${sentence.source}`, () => {
    assert.throws(() => checkAgent({ name: "A", ...agent }), { name: "ConfigError", message: sentence });
  });
}

test("an agent with a run of its own says that its answers cannot go on", async (t) => {
  const server = await serve(t, () => "Hi");
  const info = (await (await fetch(`${server.url}/api/info`)).json()) as Record<string, unknown>;
  assert.deepEqual([info.name !== undefined, info.continue], [true, undefined]);
});
