/** Texts about tool calls for people, and data of calls that never leave the server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import type { IsHidden } from "../../server/agent/sealed.ts";
import { readState, type StateBinding, sealState } from "../../server/agent/state.ts";
import type { AnyToolDefinition } from "../../server/agent/tool-definition.ts";
import { type RunRecord, ToolError } from "../../server/parley-agent.ts";
import type { HistoryMessage, ToolApproval } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import {
  onEveryTransport,
  post,
  readEventStream,
  send,
  TRANSPORTS,
  type TransportName,
} from "../support/chat-transports.ts";
import { newRun, readBytes } from "../support/run-lines.ts";
import { call, end, fail, hang, say, type Turn } from "../support/scripted-provider.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { define, throwing } from "../support/test-tools.ts";

const weather = (more: object) => define("get_weather", () => ({ celsius: 10 }), more);
const running = ({ city }: { city: string }) => `Looking up ${city}`;
const done = ({ city }: { city: string }, { celsius }: { celsius: number }) => `${city}: ${celsius} °C`;
const table = { en: "Weather", de: "Wetter" };

const TITLES: [name: string, more: object, running: unknown, ended: unknown][] = [
  ["no words", {}, undefined, undefined],
  ["a title", { title: "Weather" }, "Weather", "Weather"],
  ["a title by language", { title: table }, table, table],
  ["running and done", { title: "Weather", running, done }, "Looking up Paris", "Paris: 10 °C"],
  ["running alone", { running }, "Looking up Paris", undefined],
  ["functions that return tables", { running: async () => table, done: () => ({ de: "Da" }) }, table, { de: "Da" }],
  [
    "a text with line breaks and marks of direction",
    { running: () => " Par\u0000is\u202e\n\tnow " },
    "Par is now",
    undefined,
  ],
  ["a text that is too long", { running: () => "x".repeat(3_000) }, `${"x".repeat(999)}…`, undefined],
  [
    "a function that reads a field of its tool",
    {
      unit: "K",
      done: ({ city }: { city: string }) => city,
      running(this: { unit: string }) {
        return this.unit;
      },
    },
    "K",
    "Paris",
  ],
];

for (const [name, more, begun, ended] of TITLES) {
  test(`a tool with ${name} is called so in its events`, async (t) => {
    const turns = [[call("c1", "get_weather", { city: "Paris" })], [say("Done")]];
    const { sse, json } = await onEveryTransport(
      t,
      () => ({ turns, agent: { tools: [weather({ timeoutMs: 5_000, ...more })] } }),
      { message: "Hi" },
    );
    const titles = sse.events.flatMap((event) =>
      event.type === "tool_call" || event.type === "tool_result" ? [event.data.title] : [],
    );
    assert.deepEqual(titles, [begun, ended]);
    assert.deepEqual(
      json.toolCalls?.map((it) => Object(it).title),
      [ended],
    );
  });
}

const RUBBISH: [name: string, make: () => unknown][] = [
  ["returns nothing", () => undefined],
  ["returns an empty text", () => " \n "],
  ["returns an empty table", () => ({})],
  ["returns a table without languages", () => ({ "": "x" })],
  ["returns a list", () => ["Weather"]],
];

for (const [name, make] of RUBBISH) {
  test(`where a function ${name}, people read the title, the log says so, and the run goes on`, async (t) => {
    const words = { title: "Weather", running: make, done: make };
    const turns = [[call("c1", "get_weather")], [say("Done")]];
    const server = await startServer(t, { turns, agent: { tools: [weather(words)] } });
    const { events, last } = await send.sse(t, server, { message: "Hi" });
    assert.equal(last.data, "Done");
    const titles = events.flatMap(({ data }) =>
      typeof data === "object" ? [Object(data).title, Object(data).status] : [],
    );
    assert.deepEqual(titles, ["Weather", "running", "Weather", "completed"]);
    const records = server.log.filter((record) => /(running|done) of the tool \\"get_weather\\" failed/.test(record));
    assert.equal(records.length, 2, server.log.join(""));
  });
}

test("a call that fails has its title, and running and done get no arguments that do not fit", async (t) => {
  const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const fits = weather({ title: "Weather", running, done, parameters });
  const breaks = define("fail", throwing(new Error("no")), { title: "Failing", done: () => "Not reached" });
  const turns = [[call("c1", "get_weather", { town: 1 }), call("c2", "fail")], [say("Done")]];
  const server = await startServer(t, { turns, agent: { tools: [fits, breaks] } });
  const { toolCalls } = await send.json(t, server, { message: "Hi" });
  assert.deepEqual(
    toolCalls?.map((it) => [Object(it).title, Object(it).status]),
    [
      ["Weather", "failed"],
      ["Failing", "failed"],
    ],
  );
  assert.doesNotMatch(server.log.join(""), /of the tool/);
});

const WRONG_WORDS: [more: object, sentence: string][] = [
  [{ title: "" }, 'title of the tool "x" must be a text that is not empty.'],
  [{ title: 7 }, 'title of the tool "x" must be a text that is not empty.'],
  [{ title: {} }, 'title of the tool "x" must be a text, or texts by language: { en: "…", de: "…" }.'],
  [{ title: { en: "Weather", de: "" } }, 'title of the tool "x" for "de" must be a text that is not empty.'],
  [
    { title: { "de DE": "Wetter" } },
    'title of the tool "x" has a text for "de DE", which is no language. Use codes such as "en" or "pt-BR".',
  ],
  [{ title: "x".repeat(1_001) }, 'title of the tool "x" must be at most 1000 characters.'],
  [{ title: "a\nb" }, 'title of the tool "x" must have no line breaks, control characters or marks of direction.'],
  [
    { title: { ar: "a\u202eb" } },
    'title of the tool "x" for "ar" must have no line breaks, control characters or marks of direction.',
  ],
  [{ running: "Looking" }, 'running of the tool "x" must be a function that returns a text, such as (args) => "…".'],
  [{ done: {} }, 'done of the tool "x" must be a function that returns a text, such as (args) => "…".'],
  [{ expose: "some" }, 'expose of the tool "x" must be "all", "title" or "none".'],
  [{ expose: "title" }, 'The tool "x" has expose: "title" and no title. Add title: "…", which people read.'],
];

test("what is wrong with a tool's words stops the start with a sentence", () => {
  for (const [more, message] of WRONG_WORDS) {
    const agent = { name: "Acme", model: "demo", tools: [define("x", () => "", more)] };
    assert.throws(() => checkAgent(agent), { name: "ConfigError", message });
  }
});

// Values that no client may read.
const ARGUMENT = "secret-argument";
const OUTPUT = "secret-output";
const NAME = "secret_tool";
const SECRETS = new RegExp(`${ARGUMENT}|${OUTPUT}|${NAME}`);

const secret = (expose: string, execute: AnyToolDefinition["execute"] = () => OUTPUT): AnyToolDefinition =>
  define(NAME, execute, { title: "Looking at your file", expose });
const open = define("open_tool", () => "open output");
const useSecret = call(`functions.${NAME}:0`, NAME, { id: ARGUMENT });
const useBoth = [call("c0", "open_tool", { id: "open argument" }), useSecret];

interface Ending {
  turns: Turn[];
  execute?: AnyToolDefinition["execute"];
  maxTurns?: number;
  /** The client stops the run once the tool has started. */
  stop?: true;
}

const calls = Array.from({ length: 20 }, (_, index) => call(`c${index}`, NAME, { id: ARGUMENT }));

const ENDINGS: Record<string, Ending> = {
  "an answer": { turns: [[say("Wait."), ...useBoth], [say("Here it is.")]] },
  "no answer": { turns: [[useSecret], [end()]] },
  "a failure": { turns: [[useSecret], [fail(new ApiError("provider_error", "The model failed."))]] },
  "the turn limit": { turns: [[useSecret], [say("And"), useSecret]], maxTurns: 2 },
  "a stop": { turns: [[useSecret], [hang]], stop: true },
  "a stop while the tool runs": { turns: [[useSecret]], execute: () => new Promise(() => {}), stop: true },
  "a tool that throws": { turns: [[useSecret], [say("No.")]], execute: throwing(new Error(OUTPUT)) },
  "a ToolError": { turns: [[useSecret], [say("No.")]], execute: throwing(new ToolError(OUTPUT)) },
  "arguments that are no JSON": { turns: [[call("c1", NAME, `{"${ARGUMENT}`)], [say("No.")]] },
  "a tool that is not there": { turns: [[call("c1", `${NAME}_2`, { id: ARGUMENT })], [say("No.")]] },
  "more calls than may be made": { turns: [calls, [say("No.")]] },
};

/** All bytes that a client of a new server reads. */
async function readAll(t: Cleanup, transport: TransportName, expose: string, ending: Ending): Promise<string> {
  const { turns, execute = () => OUTPUT, maxTurns = 10, stop } = ending;
  const run = newRun();
  const cancel = () => stop && void fetch(`${server.url}/api/chat/runs/${run}/cancel`, { method: "POST" });
  const tool = secret(expose, (...args) => {
    setImmediate(cancel);
    return execute(...args);
  });
  const server = await startServer(t, { turns, agent: { tools: [open, tool], maxTurns } });
  const read = await readBytes[transport](t, server, { message: "Hi", run });
  await server.close();
  return read;
}

for (const [name, ending] of Object.entries(ENDINGS)) {
  test(`no client reads of a hidden tool, whose run ends with ${name}`, async (t) => {
    for (const transport of TRANSPORTS.filter((it) => it !== "json" || ending.stop === undefined)) {
      const titled = await readAll(t, transport, "title", ending);
      const silent = await readAll(t, transport, "none", ending);
      assert.doesNotMatch(titled + silent, SECRETS, transport);
      assert.doesNotMatch(silent, /Looking at your file|tool_result.*functions|"c1"/);
      const hasEvents = transport !== "json" || !titled.includes('"error"');
      assert.equal(
        /"tool":"Looking at your file"/.test(titled),
        hasEvents && name !== "a tool that is not there",
        titled,
      );
    }
  });
}

test("a hidden call is whole for the model, for hooks and for the log, and the state goes on with it", async (t) => {
  const long = OUTPUT + "x".repeat(256 * 1024);
  for (const expose of ["title", "none"]) {
    const records: RunRecord[] = [];
    const server = await startServer(t, {
      turns: [[say("Wait."), ...useBoth], [say("Here.")], [say("Again.")], [say("Anew.")]],
      // A large state is unsealed in the thread that parses it.
      agent: { tools: [open, secret(expose, () => long)], onRunEnd: (record) => records.push(record) },
      env: { PARLEY_MAX_TOOL_OUTPUT_CHARS: "300000" },
    });
    const first = await send.json(t, server, { message: "Hi" });
    const second = await send.json(t, server, { message: "And?", state: first.last.state });
    const { messages = [] } = server.model.asked[2] ?? {};
    assert.deepEqual(messages.flatMap((message) => (message.role === "tool" ? [message.content] : [])).toSorted(), [
      "open output",
      long,
    ]);
    assert.match(JSON.stringify(messages), new RegExp(`${NAME}.*${ARGUMENT}`));
    assert.doesNotMatch(JSON.stringify(second.last), SECRETS);
    assert.deepEqual(records[0]?.toolCalls.map(({ tool, output }) => [tool, output]).toSorted(), [
      ["open_tool", "open output"],
      [NAME, long],
    ]);
    assert.match(await (await fetch(`${server.url}/metrics`)).text(), new RegExp(`tool="${NAME}"`));
    // Earlier messages can be repeated: a later state begins with what was signed before.
    const history = Object(second.last.state).conversation_history;
    assert.deepEqual(history.slice(0, 5), Object(first.last.state).conversation_history);
    const again = { ...first.last.state, conversation_history: history.slice(0, 5) };
    assert.equal((await send.socket(t, server, { message: "Hm", state: again })).last.data, "Anew.");
  }
});

test("what was hidden stays hidden when its tool is gone, and what was said before and after it stays apart", async (t) => {
  const tools = [open, secret("none")];
  const server = await startServer(t, {
    turns: [[say("Wait."), useSecret], [say("Here.")], [say("Again.")]],
    agent: { tools: ({ metadata }) => (metadata.gone ? [] : tools) },
  });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(
    events.flatMap((event) => (event.type === "token" ? [event.data] : [])),
    ["Wait.", "\n\n", "Here."],
  );
  const next = await send.sse(t, server, { message: "Hi", state: last.state, metadata: { gone: "yes" } });
  assert.match(JSON.stringify(server.model.asked[2]?.messages), SECRETS);
  assert.doesNotMatch(JSON.stringify(next.last), SECRETS);
});

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  test(`a hidden call waits for a person, is declined or made and goes on after a failure without being read, with ${stateKind}`, async (t) => {
    for (const expose of ["title", "none"]) {
      const tool = { ...secret(expose), needsApproval: true, approvalText: () => "May I look at your file?" };
      const failure = fail(new ApiError("provider_error", "The model failed."));
      const server = await startServer(t, {
        stateKind,
        turns: [[useSecret], [failure], [say("Here.")], [useSecret], [say("Then not.")]],
        agent: { tools: [tool as AnyToolDefinition] },
      });
      const ask = async (body: object) => {
        const text = await (await post(server, { stream: true, ...body })).text();
        assert.doesNotMatch(text, SECRETS, expose);
        return Object(readEventStream(text).at(-1));
      };
      const asked = await ask({ message: "Hi" });
      const [approval] = asked.approvals;
      assert.deepEqual([approval.text, approval.arguments], ["May I look at your file?", "{}"]);
      const yes = [{ id: approval.id, approved: true }];
      const failed = await ask({ approvals: yes, state: asked.state });
      assert.deepEqual([failed.type, failed.continue], ["error", true]);
      const went = await ask({ continue: true, state: failed.state });
      assert.equal(went.data, "Here.");
      const again = await ask({ message: "Again", state: went.state });
      const no = [{ id: again.approvals[0].id, approved: false }];
      const declined = await ask({ approvals: no, state: again.state });
      assert.equal(declined.data, "Then not.");
      const altered = { ...again.state, open: { ...again.state.open, sealed: failed.state.open.sealed } };
      for (const state of [altered, { ...again.state, open: { ...again.state.open, sealed: undefined } }]) {
        const answer = await post(server, { approvals: no, stream: false, state });
        assert.equal((await answer.json()).error.code, "invalid_state");
      }
    }
  });
}

const BINDING = {
  kind: "conversation_history",
  agent: "acme",
  provider: "test",
  user: undefined,
  secrets: [],
  ownSecrets: ["a secret"],
  limits: { maxHistoryItems: 100, maxHistoryBytes: 1_000_000 },
} as const;
const CONVERSATION = "0123456789abcdef";
const toolCall = (id: string, name: string) => ({ id, type: "function", function: { name, arguments: ARGUMENT } });
const HISTORY = [
  { role: "user", content: "Hi" },
  {
    role: "assistant",
    content: null,
    tool_calls: [toolCall("a", NAME), toolCall("b", "open")],
    thinking_blocks: [ARGUMENT],
  },
  { role: "tool", tool_call_id: "b", content: "open" },
  { role: "tool", tool_call_id: "a", content: OUTPUT, is_error: true },
  { role: "assistant", content: null, tool_calls: [toolCall("c", NAME)] },
  { role: "tool", tool_call_id: "c", content: OUTPUT },
  { role: "assistant", content: "Here." },
] as unknown as HistoryMessage[];
const isHidden: IsHidden = ({ function: { name } }) => name === NAME;
const sealedFor = (binding: StateBinding, conversation = CONVERSATION) =>
  sealState({ conversation_history: HISTORY }, conversation, binding, isHidden);
const sealed = sealedFor(BINDING);
const messages = (sealed.conversation_history ?? []) as unknown as Record<string, string>[];
const withMessage = (index: number, change: object) => ({
  ...sealed,
  conversation_history: messages.with(index, { ...messages[index], ...change } as Record<string, string>),
});
const value = (index: number) => String(messages[index]?.sealed);

const FORGERIES: [name: string, state: unknown, reader?: Partial<StateBinding>][] = [
  ["altered", withMessage(3, { sealed: value(3).replace(/.$/, (last) => (last === "A" ? "B" : "A")) })],
  ["truncated", withMessage(3, { sealed: value(3).slice(0, -8) })],
  ["emptied", withMessage(3, { sealed: "" })],
  ["swapped with another", withMessage(3, { sealed: value(5) })],
  ["put on another message", withMessage(6, { sealed: value(5) })],
  ["beside other words", withMessage(1, { content: "Yes." })],
  ["taken out", { ...sealed, conversation_history: messages.toSpliced(5, 1) }],
  ["without its signature", { ...sealed, signature: undefined }],
  ["with a signature of something else", { ...sealed, signature: "A".repeat(43) }],
  ["in another conversation", { ...sealed, conversation: "another-0123456789" }],
  [
    "of another conversation, in this one",
    { ...sealed, conversation_history: sealedFor(BINDING, "another-0123456789").conversation_history },
  ],
  ["of a user, with somebody unknown", sealedFor({ ...BINDING, user: "ada" })],
  ["of a user, with another one", sealedFor({ ...BINDING, user: "ada" }), { user: "bob" }],
  ["of another agent", sealed, { agent: "other" }],
  ["of another provider", sealed, { provider: "other" }],
  ["of another start", sealed, { ownSecrets: ["another secret"] }],
];

test("a sealed history reads as it was, for its user alone, and whatever was changed is invalid_state", () => {
  assert.doesNotMatch(JSON.stringify(sealed), SECRETS);
  assert.doesNotMatch(
    JSON.stringify(messages.map(({ sealed = "" }) => Buffer.from(sealed, "base64url").toString("latin1"))),
    SECRETS,
  );
  const readers: Partial<StateBinding>[] = [{}, { user: "ada" }, { ownSecrets: ["new", "a secret"] }];
  for (const reader of readers) {
    const hidden = new Set<string>();
    const read = readState(JSON.parse(JSON.stringify(sealed)), { ...BINDING, ...reader }, hidden);
    assert.deepEqual(read.conversation_history, HISTORY);
    assert.deepEqual([...hidden], ["a", "c"]);
  }
  for (const [name, state, reader] of FORGERIES) {
    assert.throws(
      () => readState(state, { ...BINDING, ...reader }),
      (error) => error instanceof ApiError && error.code === "invalid_state",
      name,
    );
  }
});

test("where nothing is hidden, a state is neither sealed nor signed", () => {
  const none = sealState({ conversation_history: HISTORY }, CONVERSATION, BINDING, () => false);
  assert.deepEqual(none, { conversation_history: HISTORY, conversation: CONVERSATION });
});

test("with ids of OpenAI, no state has anything of a hidden call", async (t) => {
  const turns = [[useSecret], [say("Here.")]];
  const server = await startServer(t, {
    turns,
    stateKind: "previous_response_id",
    agent: { tools: [secret("title")] },
  });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.deepEqual(Object.keys(Object(last.state)).sort(), ["conversation", "previous_response_id"]);
});

// `toolTexts`: texts for people about tools of hosted agents.

const called = (id: string, tool: string, args: object = { order: "A1" }) => ({
  type: "tool_call",
  data: { id, tool, arguments: args },
});
const ended = (id: string, output: unknown, status = "completed") => ({
  type: "tool_result",
  data: { id, output, status },
});

function serveRun(t: Cleanup, toolTexts: object, run: (...input: never[]) => unknown) {
  return startServer(t, { agent: { model: undefined, run, toolTexts } as never });
}

test("the author's words stand in the rows of tools that run elsewhere", async (t) => {
  const toolTexts = {
    look: {
      title: { en: "Order", de: "Bestellung" },
      running: ({ order }: { order: string }) => `Looking for ${order}`,
      done: ({ order }: { order: string }, { status }: { status: string }) => `${order} is ${status}`,
    },
    pay: { title: "Payment", running: () => "", done: () => "Paid" },
  };
  const server = await serveRun(t, toolTexts, async function* () {
    yield called("c1", "look");
    yield ended("c1", { status: "on its way" });
    yield called("c2", "pay", {});
    yield ended("c2", "no card", "failed");
    yield called("c3", "other");
    yield ended("c3", "x");
    yield "Here it is.";
  });
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  const rows = events.flatMap((event) =>
    event.type === "tool_call" || event.type === "tool_result" ? [[event.data.tool, event.data.title]] : [],
  );
  assert.deepEqual(rows, [
    ["look", "Looking for A1"],
    ["look", "A1 is on its way"],
    ["pay", "Payment"],
    ["pay", "Payment"],
    ["other", undefined],
    ["other", undefined],
  ]);
  assert.equal(last.data, "Here it is.");
  assert.match(server.log.join(""), /running of the tool \\"pay\\" failed/);
});

test("what a tool that runs elsewhere hides leaves neither in events nor in the state, and the agent gets it back", async (t) => {
  const inputs: { exchange: unknown }[] = [];
  const toolTexts = { look: { title: "Order", expose: "title" }, spy: { expose: "none" } };
  const server = await serveRun(t, toolTexts, async function* (input: { exchange: unknown }) {
    inputs.push(input);
    if (inputs.length > 1) {
      yield "Done.";
      return;
    }
    yield called("c1", "look", { order: "secret-1" });
    yield ended("c1", "secret-2");
    yield "Well.";
    yield called("c2", "spy", { order: "secret-3" });
    yield ended("c2", "secret-4");
    yield "So.";
    yield { type: "tool_approval", data: { id: "c3", tool: "cancel", arguments: { order: "A2" }, text: "Sure?" } };
  } as never);
  const { events, last } = await send.sse(t, server, { message: "Hi" });
  // Calls without texts are not hidden: otherwise people would decide on what they cannot read.
  const [{ tool, arguments: args } = {} as ToolApproval] = (last.type === "done" && last.approvals) || [];
  assert.deepEqual([tool, args], ["cancel", '{"order":"A2"}']);
  assert.doesNotMatch(JSON.stringify([events, last]), /secret-|spy|look/);
  const titles = events.flatMap((event) => (event.type === "tool_call" ? [event.data.tool] : []));
  assert.deepEqual(titles, ["Order"]);
  assert.equal(events.flatMap((event) => (event.type === "token" ? [event.data] : [])).join(""), "Well.\n\nSo.");
  const approvals = [{ id: "c3", approved: true }];
  const second = await send.json(t, server, { approvals, state: last.type === "done" ? last.state : {} });
  assert.equal(second.last.data, "Done.");
  assert.match(JSON.stringify(inputs[1]?.exchange), /secret-1.*secret-2.*secret-3.*secret-4/);
});

test("the author's question is asked in place of the framework's, with the tool's title and its danger", async (t) => {
  const decided: unknown[] = [];
  const toolTexts = {
    cancel: {
      title: "Cancel an order",
      danger: true,
      approvalText: ({ order }: { order: string }) => `Cancel ${order}?`,
    },
    refund: { title: "Refund" },
  };
  const server = await serveRun(t, toolTexts, async function* ({ ctx }: { ctx: { approvals: object[] } }) {
    decided.push(...ctx.approvals);
    if (ctx.approvals.length > 0) {
      yield "Done.";
      return;
    }
    yield {
      type: "tool_approval",
      data: { id: "cancel-1", tool: "cancel", arguments: { order: "A1" }, text: "Go on?" },
    };
    yield { type: "tool_approval", data: { id: "c2", tool: "refund", arguments: {} } };
    yield { type: "tool_approval", data: { id: "c3", tool: "refund", arguments: {}, text: "Refund it?" } };
  } as never);
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.ok(last.type === "done" && last.approvals !== undefined);
  assert.deepEqual(
    last.approvals.map(({ tool, title, text, danger }) => [tool, title, text, danger]),
    [
      ["cancel", "Cancel an order", "Cancel A1?", true],
      ["refund", "Refund", 'The assistant wants to use "Refund".', undefined],
      ["refund", "Refund", "Refund it?", undefined],
    ],
  );
  const approvals = last.approvals.map(({ id }) => ({ id, approved: id !== "c2" }));
  const second = await send.sse(t, server, { approvals, state: last.state });
  assert.equal(second.last.data, "Done.");
  assert.deepEqual(
    decided.map((one) => [(one as { id: string }).id, (one as { approved: boolean }).approved]),
    [
      ["cancel-1", true],
      ["c2", false],
      ["c3", true],
    ],
  );
});

const MISTAKES: [agent: object, sentence: RegExp][] = [
  [{ toolTexts: [] }, /^toolTexts must be an object by names of tools/],
  [{ toolTexts: { a: "Title" } }, /^toolTexts must be an object by names of tools/],
  [{ toolTexts: { a: { titel: "A" } } }, /^toolTexts\.a has a field titel, which does nothing\. Did you mean title\?$/],
  [{ toolTexts: { a: { execute() {} } } }, /^toolTexts\.a has a field execute.*The fields are title, running, done/],
  [{ toolTexts: { a: { expose: "title" } } }, /^The tool "a" has expose: "title" and no title/],
  [{ toolTexts: { a: { approvalText: "Sure?" } } }, /^approvalText of the tool "a" must be a function/],
  [{ toolTexts: { a: { danger: 1 } } }, /^danger of the tool "a" must be true or false/],
  [
    { run: undefined, model: "demo", toolTexts: {} },
    /^toolTexts is for tools that run elsewhere, but there is neither run nor mcp/,
  ],
];

test("toolTexts that would do nothing stop the start", () => {
  for (const [fields, message] of MISTAKES) {
    assert.throws(() => checkAgent({ name: "A", run() {}, ...fields }), { name: "ConfigError", message });
  }
});
