/**
 * Real agents of several frameworks behind the real command, each through the same tests: npm run test:agents. With
 * `AGENTS=short` each answers once over each wire; with `AGENTS=node-22` those do whose packages have newer versions for
 * Node 22; with `AGENTS=newest` the newest packages are installed; with `AGENTS=python` all servers in Python are tried, and
 * nothing else. Their names may follow: `AGENTS=python:adk,crewai`.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import type { NumberedEvent, StreamEvent } from "../../server/protocol/events.ts";
import { post, send, timeless, typesOf } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { connect } from "../support/socket-client.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { twice } from "../support/twice.ts";
import { folderOf, isPythonAlone, PYTHON, SERVERS as PYTHON_SERVERS, startPython, titleOf } from "./python.ts";

const isOfNode22 = process.env.AGENTS === "node-22";

const isShort = process.env.AGENTS === "short" || isOfNode22;

const SERVERS = isOfNode22 ? [] : PYTHON_SERVERS;

const named = (servers: string[]) => Object.fromEntries(servers.map((name) => [titleOf(name), folderOf(name)]));

/** Folder of each agent. Those of the examples are what their readers copy. */
const AGENTS: Record<string, string> = {
  ...(isPythonAlone ? {} : { "AI SDK": "examples/ai-sdk", "OpenAI Agents SDK": "examples/openai-agents" }),
  ...(isPythonAlone || isOfNode22
    ? {}
    : {
        LangGraph: "examples/langgraph",
        "LangGraph with a sub-graph": "test/agents/sub-graph",
        "a generator": "test/agents/generator",
      }),
  ...named(SERVERS),
};

/** Agents with a tool that needs approval. */
const APPROVING: Record<string, string> = {
  ...(isPythonAlone
    ? {}
    : { "AI SDK": "test/agents/approval/ai-sdk", "OpenAI Agents SDK": "test/agents/approval/openai-agents" }),
  ...(isPythonAlone || isOfNode22 ? {} : { LangGraph: "test/agents/approval/langgraph" }),
  ...named(SERVERS.filter((name) => PYTHON[name]?.asks !== false)),
};

/** Such agents with a second tool, which needs none. */
const TWO_TOOLS: Record<string, string> = {
  ...APPROVING,
  ...(isPythonAlone ? {} : { "OpenAI Agents SDK": "test/agents/two-tools/openai-agents" }),
  ...(isPythonAlone || isOfNode22 ? {} : { LangGraph: "test/agents/two-tools/langgraph" }),
};

/** An agent that is a tool of another one, with a tool that needs approval. */
const AGENT_AS_TOOL = "test/agents/agent-as-tool/openai-agents";

const PATHS = new Set([
  ...[AGENTS, APPROVING, TWO_TOOLS].flatMap((agents) => Object.values<string>(agents)),
  AGENT_AS_TOOL,
]);

const PACKAGES = isOfNode22 ? "test/agents/node-22" : "test/agents";

const folder = temporaryProject({ after } as Cleanup, {});
for (const name of ["package.json", "package-lock.json"]) cpSync(join(PACKAGES, name), join(folder, name));
const { dependencies } = JSON.parse(readFileSync(join(PACKAGES, "package.json"), "utf8")) as {
  dependencies: Record<string, string>;
};
const newest = Object.keys(dependencies).map((name) => `${name}@latest`);
const install = process.env.AGENTS === "newest" ? ["install", ...newest] : ["ci"];
await twice(() => execFileSync("npm", [...install, "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder }));
symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"));
for (const path of PATHS) cpSync(join(path, "agent.ts"), join(folder, path, "agent.ts"));

const ANSWER = "Order 4711 is on its way.";

const mock = new LLMock({ port: 0 });
mock.addFixture({
  match: { userMessage: "where is order 4711", hasToolResult: false },
  response: { toolCalls: [{ name: "get_order_status", arguments: '{"order":"4711"}' }] },
});
mock.addFixture({
  match: { userMessage: "cancel them", hasToolResult: false },
  response: {
    toolCalls: ["A1", "B2"].map((order) => ({ name: "cancel_order", arguments: JSON.stringify({ order }) })),
  },
});
mock.addFixture({
  match: { userMessage: "cancel, then look", hasToolResult: false },
  // Some frameworks go on with the results alone: there, too, these words say what comes next.
  response: { toolCalls: [{ name: "cancel_order", arguments: '{"order":"then look"}' }] },
});
mock.addFixture({
  match: { userMessage: "ask the desk", hasToolResult: false },
  response: { toolCalls: [{ name: "ask_desk", arguments: '{"input":"cancel A1"}' }] },
});
mock.addFixture({
  match: { userMessage: "cancel A1", hasToolResult: false },
  response: { toolCalls: [{ name: "cancel_order", arguments: '{"order":"A1"}' }] },
});
mock.onMessage("slowly", { content: "word ".repeat(60) }, { latency: 50, chunkSize: 5 });
mock.onMessage("fail", { error: { message: "the key is sk-secret", type: "invalid_request_error" }, status: 400 });
mock.onMessage("never mind", { content: "As you like." });
mock.onMessage("thanks", { content: "You are welcome." });
for (let n = 0; n < 50; n++) mock.onMessage(new RegExp(`number ${n}$`), { content: `I am number ${n}.` });
mock.addFixture({
  match: {
    predicate({ messages }) {
      const said = JSON.stringify(messages);
      const isDecided = said.includes("then look") && messages.some(({ role }) => role === "tool");
      return (isDecided || said.includes("look instead")) && !said.includes("on its way");
    },
  },
  response: { toolCalls: [{ name: "get_order_status", arguments: '{"order":"4711"}' }] },
});
// Behind what has been looked up.
mock.onMessage("look instead", { content: ANSWER });
mock.addFixture({ match: { hasToolResult: true }, response: { content: ANSWER }, chunkSize: 6 });
await mock.start();
after(() => mock.stop());

const urls = new Map<string, string | undefined>();
for (const name of SERVERS) urls.set(titleOf(name), await startPython(name, folder, `${mock.url}/v1`));

const env = {
  OPENAI_API_KEY: "mock",
  OPENAI_BASE_URL: `${mock.url}/v1`,
  OPENAI_AGENTS_DISABLE_TRACING: "1",
  PARLEY_RATE_PER_ADDRESS: "100000",
  PARLEY_MAX_RUNS_PER_ADDRESS: "1000",
};

const KEY = "k".repeat(24);

const QUESTION = { message: "where is order 4711" };

/** Tools and texts, without ids and times, which differ each time. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads what is left of any event.
function told(events: readonly StreamEvent[]): any[] {
  const ids = new Map<string, number>();
  return timeless(events).map((event) => {
    const { state: _state, usage: _usage, data, ...rest } = event as Record<string, unknown>;
    if (typeof data !== "object" || data === null) return { ...rest, data };
    const { id } = data as { id: string };
    if (!ids.has(id)) ids.set(id, ids.size);
    return { ...rest, data: { ...data, id: ids.get(id) } };
  });
}

for (const [name, path] of Object.entries(AGENTS)) {
  if (urls.has(name) && urls.get(name) === undefined) {
    test(name, { skip: "there is no python3 with venv on this machine" });
    continue;
  }
  const own = { ...env, AGENT_URL: urls.get(name) };
  const serve = (t: Cleanup) => start(t, [join(folder, path)], { env: own });

  test(`${name}: the same events over every wire, with its tool as a row`, async (t) => {
    const server = await serve(t);
    const outcomes = {
      json: await send.json(t, server, QUESTION),
      sse: await send.sse(t, server, QUESTION),
      socket: await send.socket(t, server, QUESTION),
    };
    assert.deepEqual(told(outcomes.sse.events), told(outcomes.socket.events));
    for (const { last } of Object.values(outcomes)) {
      assert.ok(last.type === "done", JSON.stringify(last));
      assert.deepEqual([last.data, last.finish_reason], [ANSWER, "stop"]);
      assert.ok(last.state.signature);
    }
    const types = typesOf(outcomes.sse.events);
    assert.deepEqual([...new Set(types)], ["tool_call", "tool_result", "token", "done"]);
    const [call, result] = outcomes.sse.events;
    assert.ok(call?.type === "tool_call" && result?.type === "tool_result");
    assert.deepEqual([call.data.tool, JSON.parse(call.data.arguments)], ["get_order_status", { order: "4711" }]);
    assert.deepEqual([result.data.id, result.data.status], [call.data.id, "completed"]);
    assert.deepEqual(JSON.parse(result.data.output), { order: "4711", status: "on its way" });
    assert.equal(outcomes.json.toolCalls?.length, 1);
    assert.doesNotMatch(server.command.stderr, /does not know/);
  });

  if (isShort) continue;

  test(`${name}: the conversation goes on`, async (t) => {
    const server = await serve(t);
    const first = await send.sse(t, server, QUESTION);
    const { last } = await send.json(t, server, { message: "thanks", state: first.last.state });
    assert.equal(last.data, "You are welcome.");
    const asked = JSON.stringify(mock.getRequests().at(-1)?.body);
    const kept = JSON.stringify(first.last.state);
    // One has the conversation stored, and sends its id, which the fake does not keep in its journal.
    if (name === "OpenAI Agents SDK") assert.match(kept, /"run_state":"resp/);
    else assert.match(asked, /where is order 4711.*Order 4711 is on its way.*thanks/);
  });

  test(`${name}: a run whose connection is cut after any of its events is resumed without a gap or a double`, async (t) => {
    const server = await serve(t);
    const whole = await (await openLine.sse(t, server, QUESTION)).rest();
    for (let seen = 1; seen < whole.length; seen++) {
      const run = newRun();
      const first = await openLine.socket(t, server, { ...QUESTION, run });
      const events: NumberedEvent[] = [];
      while (events.length < seen) events.push(await first.next());
      await first.cut();
      events.push(...(await (await openLine.sse(t, server, { resume: run, after: seen })).rest()));
      assert.deepEqual(told(events), told(whole));
    }
  });

  test(`${name}: it is stopped at once, its model, too, and the conversation goes on`, async (t) => {
    const server = await serve(t);
    const client = await connect(t, server.socketUrl);
    client.send({ message: "slowly" });
    const [first] = await client.until("token");
    client.send({ type: "stop" });
    const done = (await client.until("done")).at(-1);
    assert.ok(done?.type === "done" && first?.type === "token");
    assert.equal(done.finish_reason, "stopped");
    assert.ok(done.data.startsWith("word ") && done.data.length < 300);
    const next = (await client.run({ message: "thanks" })).at(-1);
    assert.equal(next?.data, "You are welcome.");
    assert.doesNotMatch(server.command.stderr, /goes on although/);
  });

  test(`${name}: a failure of its model is one error, whose causes stay in the log`, async (t) => {
    const server = await start(t, [join(folder, path)], { env: { ...own, PARLEY_API_KEY: KEY } });
    const headers = { authorization: `Bearer ${KEY}` };
    const before = mock.getRequests().length;
    const answer = await post(server, { message: "fail", stream: false }, { headers });
    const text = await answer.text();
    assert.deepEqual([answer.status, JSON.parse(text).error.code], [502, "provider_error"]);
    assert.doesNotMatch(text, /secret/);
    assert.equal(mock.getRequests().length, before + 1);
    const next = await post(server, { message: "thanks", stream: false }, { headers });
    assert.equal(JSON.parse(await next.text()).response, "You are welcome.");
  });

  test(`${name}: fifty conversations at once keep apart`, async (t) => {
    const server = await serve(t);
    const numbers = Array.from({ length: 50 }, (_, n) => n);
    const answers = await Promise.all(numbers.map((n) => send.sse(t, server, { message: `number ${n}` })));
    assert.deepEqual(
      answers.map(({ last }) => last.data),
      numbers.map((n) => `I am number ${n}.`),
    );
  });
}

for (const [name, path] of Object.entries(APPROVING)) {
  if (urls.has(name) && urls.get(name) === undefined) continue;
  const own = { ...env, AGENT_URL: urls.get(name) };
  const { hearsWhy = true, decidesAlike = false } = PYTHON[name.split(" by ")[0] ?? ""] ?? {};

  const ask = async (t: Cleanup, more: Record<string, string> = {}) => {
    const server = await start(t, [join(folder, path)], { env: { ...own, ...more } });
    const { last } = await send.sse(t, server, { message: "cancel them" });
    assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
    const asked = last.approvals?.map((one) => [one.tool, JSON.parse(one.arguments)]);
    assert.deepEqual(asked, [
      ["cancel_order", { order: "A1" }],
      ["cancel_order", { order: "B2" }],
    ]);
    const [one = "", two = ""] = last.approvals?.map(({ id }) => id) ?? [];
    const approvals = [
      { id: one, approved: true },
      { id: two, approved: false, reason: "Too late" },
    ];
    return { server, state: last.state, approvals };
  };
  const lastAsked = () => JSON.stringify(mock.getRequests().at(-1)?.body);

  for (const transport of decidesAlike ? [] : (["json", "sse", "socket"] as const)) {
    test(`${name}: of two calls one is approved and one is declined with a reason, once (${transport})`, async (t) => {
      const { server, state, approvals } = await ask(t);
      const outcome = await send[transport](t, server, { approvals, state });
      assert.deepEqual([outcome.last.type, outcome.last.data], ["done", ANSWER]);
      assert.match(lastAsked(), /cancelled A1/);
      if (hearsWhy) assert.match(lastAsked(), /Too late/);
      assert.doesNotMatch(lastAsked(), /cancelled B2/);
      if (transport !== "json") {
        const rows = told(outcome.events)
          .slice(0, 3)
          .map((event) => [event.type, event.data.status, event.data.declined]);
        assert.deepEqual(rows, [
          ["tool_result", "failed", true],
          ["tool_call", "running", undefined],
          ["tool_result", "completed", undefined],
        ]);
      }
      const again = await send[transport](t, server, { approvals, state });
      assert.equal(again.last.type === "error" && again.last.code, "approval_used");
      const { last } = await send[transport](t, server, { message: "thanks", state: outcome.last.state });
      assert.equal(last.data, "You are welcome.");
    });
  }

  test(`${name}: whatever is decided, another tool may follow it, and the conversation goes on`, async (t) => {
    const server = await start(t, [join(folder, TWO_TOOLS[name] ?? path)], { env: own });
    for (const decided of [{ approved: true }, { approved: false, reason: "then look" }, { message: "look instead" }]) {
      const { last } = await send.sse(t, server, { message: "cancel, then look" });
      assert.ok(last.type === "done" && last.finish_reason === "approval_required", JSON.stringify(last));
      const { state, approvals: [asked] = [] } = last;
      const sent = decided.message === undefined ? { approvals: [{ id: asked?.id, ...decided }] } : decided;
      const second = await send.sse(t, server, { ...sent, state });
      assert.deepEqual([second.last.type, second.last.data], ["done", ANSWER], JSON.stringify([decided, second.last]));
      const rows = told(second.events).filter(({ data }) => data.tool === "get_order_status");
      assert.deepEqual(typesOf(rows), ["tool_call", "tool_result"]);
      const third = await send.json(t, server, { message: "thanks", state: second.last.state });
      assert.equal(third.last.data, "You are welcome.", JSON.stringify([decided, third.last]));
    }
  });

  test(`${name}: a message in place of decisions reaches its model, and nothing is carried out`, async (t) => {
    const { server, state, approvals } = await ask(t);
    const { last } = await send.sse(t, server, { message: "never mind", state });
    assert.equal(last.type, "done", JSON.stringify(last));
    assert.match(lastAsked(), /never mind/);
    assert.doesNotMatch(lastAsked(), /cancelled (A1|B2)/);
    const again = await send.json(t, server, { approvals, state });
    assert.equal(again.last.type === "error" && again.last.code, "approval_used");
  });

  test(`${name}: a decision that is late is approval_expired, and the conversation goes on`, async (t) => {
    const { server, state, approvals } = await ask(t, { PARLEY_APPROVAL_SECONDS: "0.001" });
    const { last } = await send.json(t, server, { approvals, state });
    assert.equal(last.type === "error" && last.code, "approval_expired");
    assert.equal((await send.json(t, server, { message: "never mind", state })).last.type, "done");
  });
}

const withoutLangGraph = { skip: APPROVING.LangGraph === undefined };

test(
  "LangGraph: a message that a person has changed, and another answer, go on from what is shown",
  withoutLangGraph,
  async (t) => {
    const server = await start(t, [join(folder, APPROVING.LangGraph ?? "")], { env });
    const { last: first } = await send.sse(t, server, { message: "number 1" });
    for (const message of ["number 2", "number 3", "number 3"]) {
      const { last } = await send.sse(t, server, { message, state: first.state });
      assert.equal(last.type, "done", JSON.stringify(last));
      const { messages = [] } = (mock.getRequests().at(-1)?.body ?? {}) as { messages?: { content: string }[] };
      assert.deepEqual(
        messages.map(({ content }) => content),
        ["number 1", "I am number 1.", message],
      );
    }
  },
);

const inJavaScript = { skip: isPythonAlone };

test("OpenAI Agents SDK: what an agent within a tool asks is asked, and decided", inJavaScript, async (t) => {
  const server = await start(t, [join(folder, AGENT_AS_TOOL)], { env });
  // Other rows cancel the same order.
  const before = mock.getRequests().length;
  const seen = () =>
    JSON.stringify(
      mock
        .getRequests()
        .slice(before)
        .map(({ body }) => body),
    );
  for (const decision of [{ approved: false, reason: "Too late" }, { approved: true }]) {
    const { last } = await send.sse(t, server, { message: "ask the desk" });
    assert.ok(last.type === "done" && last.approvals?.[0] !== undefined, JSON.stringify(last));
    const { id, tool, arguments: args } = last.approvals[0];
    assert.deepEqual([tool, JSON.parse(args)], ["cancel_order", { order: "A1" }]);
    const { last: second } = await send.sse(t, server, { approvals: [{ id, ...decision }], state: last.state });
    assert.deepEqual([second.type, second.data], ["done", ANSWER]);
    assert.ok(seen().includes("Too late"));
    assert.equal(seen().includes('"cancelled A1"'), decision.approved);
  }
});

test("the agents compile against their frameworks' own types", inJavaScript, () => {
  const options = {
    compilerOptions: {
      ...{
        target: "ES2022",
        module: "NodeNext",
        moduleResolution: "NodeNext",
        lib: ["ES2024", "DOM", "DOM.AsyncIterable"],
      },
      ...{
        strict: true,
        skipLibCheck: true,
        noEmit: true,
        types: ["node"],
        typeRoots: [`${REPOSITORY}/node_modules/@types`],
      },
      paths: { "parley-agent": [`${REPOSITORY}/server/parley-agent.ts`] },
      allowImportingTsExtensions: true,
    },
    include: [...PATHS].map((path) => `${path}/agent.ts`),
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  execFileSync(process.execPath, [join(REPOSITORY, "node_modules/typescript/bin/tsc"), "-p", folder], {
    stdio: "inherit",
  });
});

/** The versions of what serves an agent, and of what it is written with. */
const OWN_PACKAGES =
  /^(?:ag[-_]ui[-_](?!protocol)\w+|agno|agent-framework-ag-ui|pydantic-ai-slim.*|mlflow|openai-agents)==(.+)$/gm;

test("docs/hosting.md has the examples as they are, and names the versions that were tried", {
  skip: isPythonAlone,
}, () => {
  const page = readFileSync("docs/hosting.md", "utf8");
  const shown = [...Object.values(AGENTS), ...Object.values(APPROVING)].filter((one) =>
    /^examples|approval.(open|lang)/.test(one),
  );
  for (const path of shown) {
    assert.ok(page.includes(`\`\`\`ts\n${readFileSync(join(path, "agent.ts"), "utf8")}\`\`\``), path);
  }
  for (const name of ["ai", "@openai/agents", "@langchain/langgraph", "@langchain/core"]) {
    assert.ok(page.includes(dependencies[name] ?? ""), name);
  }
  for (const name of Object.keys(PYTHON)) {
    const own = [...readFileSync(join(folderOf(name), name, "requirements.txt"), "utf8").matchAll(OWN_PACKAGES)];
    assert.ok(own.length > 0 && own.every(([, version = ""]) => page.includes(version)), `${name} ${own}`);
  }
});

test("each example names the packages that it imports", { skip: isOfNode22 || isPythonAlone }, () => {
  for (const path of Object.values(AGENTS).filter((one) => one.startsWith("examples/"))) {
    const source = readFileSync(join(path, "agent.ts"), "utf8");
    const imported = [...source.matchAll(/from "((?:@[^/"]+\/)?[^/"]+)/g)].map(([, name]) => name ?? "");
    const named = JSON.parse(readFileSync(join(path, "package.json"), "utf8")).dependencies as Record<string, string>;
    assert.deepEqual(new Set([...Object.keys(named), "parley-agent"]), new Set(imported.concat(...peersOf(path))));
    for (const [name, range] of Object.entries(named)) assert.equal(range, `^${dependencies[name]}`);
  }
});

/** What an example needs beside what it imports. */
function peersOf(path: string): string[] {
  return path === "examples/langgraph" ? ["@langchain/core"] : [];
}
