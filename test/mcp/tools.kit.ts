/** An agent's settings for an MCP server: tools, names, approval, texts for people, and `required`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import type { McpServerDefinition } from "../../server/agent/mcp-definition.ts";
import { post, send } from "../support/chat-transports.ts";
import { call, say } from "../support/scripted-provider.ts";
import type { Cleanup, TestServer } from "../support/start-server.ts";
import { calling, eventually, outputOf, resultsOf, saidOf, startWith, toolsOf } from "./asking.ts";
import { startHttpServer, textResult, toolNamed } from "./http-server.ts";
import { isAlive, program } from "./programs.ts";

const READS = { annotations: { readOnlyHint: true } };

const TOOLS = [
  toolNamed("list_files", { ...READS, title: "List files" }),
  toolNamed("read.file", READS),
  toolNamed("delete_file", { annotations: { destructiveHint: true } }),
  toolNamed("move_file"),
];

/** The tools whose calls wait for approval. */
async function waitingOf(t: Cleanup, definition: Partial<McpServerDefinition>, names: string[]): Promise<string[]> {
  const tools = await startHttpServer(t, { tools: TOOLS });
  const turns = [names.map((name) => call(name, name)), [say("Done.")]];
  const mcp = { own: { url: tools.url, ...definition } as McpServerDefinition };
  const { last } = await send.sse(t, await startWith(t, mcp, { turns }), { message: "Hi" });
  return last.type === "done" ? (last.approvals ?? []).map(({ tool }) => tool) : [];
}

const ALL = ["own__list_files", "own__read_file", "own__delete_file", "own__move_file"];

test("calls of all tools, of those that fit, or of those that are not read-only wait for approval", async (t) => {
  assert.deepEqual(await waitingOf(t, { needsApproval: true }, ALL), ALL);
  assert.deepEqual(await waitingOf(t, { needsApproval: ["delete*", "read.file"] }, ALL), [
    "own__read_file",
    "own__delete_file",
  ]);
  assert.deepEqual(await waitingOf(t, { needsApproval: "unless-read-only" }, ALL), [
    "own__delete_file",
    "own__move_file",
  ]);
  assert.deepEqual(await waitingOf(t, {}, ALL), []);
});

test("an approved call is made once, a declined one never", async (t) => {
  const made: string[] = [];
  const tools = await startHttpServer(t, {
    tools: TOOLS,
    call: ({ params }) => {
      made.push(params.arguments.path);
      return textResult("gone");
    },
  });
  const mcp = { own: { url: tools.url, needsApproval: true as const } };
  const turns = [[call("a", ALL[2] ?? "", { path: "a" }), call("b", ALL[2] ?? "", { path: "b" })], [say("Done.")]];
  const server = await startWith(t, mcp, { turns });
  const { last } = await send.sse(t, server, { message: "Hi" });
  assert.ok(last.type === "done" && last.approvals?.every(({ danger }) => danger === true));
  const approvals = [
    { id: "a", approved: true },
    { id: "b", approved: false },
  ];
  const { events } = await send.sse(t, server, { approvals, state: last.state });
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event.data.output] : []));
  assert.deepEqual([made, results.includes("gone")], [["a"], true]);
});

test("an agent gets the tools that it names, under the prefix that it gives", async (t) => {
  const tools = await startHttpServer(t, { tools: [...TOOLS, toolNamed("a".repeat(100)), toolNamed("ä b/c")] });
  const offered = async (definition: Partial<McpServerDefinition>) => {
    const mcp = { "my server": { url: tools.url, ...definition } as McpServerDefinition };
    const server = await startWith(t, mcp, { turns: [[say("Hi")]] });
    await send.sse(t, server, { message: "Hi" });
    return toolsOf(server);
  };
  assert.deepEqual(await offered({ tools: ["list*", "move_file", "no_such*"] }), [
    "my_server__list_files",
    "my_server__move_file",
  ]);
  assert.deepEqual(await offered({ tools: ["read.file"], prefix: "disk" }), ["disk__read_file"]);
  assert.deepEqual(await offered({ tools: ["read.file"], prefix: false }), ["read_file"]);
  const [long = "", odd] = await offered({ tools: ["aaa*", "ä*"] });
  assert.match(long, /^my_server__a{44}_[0-9a-f]{8}$/);
  assert.deepEqual([long.length, odd], [64, "my_server____b_c"]);
});

test("two tools of one name are one, and the log says so", async (t) => {
  const tools = await startHttpServer(t, { tools: [toolNamed("a.b"), toolNamed("a_b")] });
  const server = await startWith(t, { own: { url: tools.url } }, { turns: calling(2, "own__a_b") });
  for (const _ of [1, 2]) assert.equal(await outputOf(t, server), "Done.");
  assert.deepEqual(toolsOf(server), ["own__a_b"]);
  assert.equal(server.log.filter((line) => line.includes("Two tools are named")).length, 1);
});

test("toolTexts gives tools words for people, and hides calls", async (t) => {
  const tools = await startHttpServer(t, { tools: TOOLS, call: () => textResult("secret") });
  const toolTexts: AgentDefinition["toolTexts"] = {
    own__read_file: { title: "Reading", done: () => "Has read", expose: "title" },
    own__move_file: { expose: "none" },
  };
  const turns = calling(1, "own__list_files", "own__read_file", "own__move_file");
  const server = await startWith(t, { own: { url: tools.url } }, { turns, agent: { toolTexts } });
  const { events } = await send.sse(t, server, { message: "Hi" });
  const told = events.flatMap((event) =>
    event.type === "tool_result" ? [[event.data.tool, event.data.title, event.data.output]] : [],
  );
  assert.deepEqual(
    new Set(told.map((one) => JSON.stringify(one))),
    new Set([JSON.stringify(["own__list_files", "List files", "secret"]), JSON.stringify(["Reading", "Has read", ""])]),
  );
});

test("of more than 128 tools, and of too long descriptions, the first are taken, and the log says so once", async (t) => {
  const many = await startHttpServer(t, {
    tools: Array.from({ length: 300 }, (_, at) => toolNamed(`tool_${1000 + at}`)),
  });
  const long = await startHttpServer(t, {
    tools: Array.from({ length: 10 }, (_, at) => toolNamed(`tool_${at}`, { description: "x".repeat(20_000) })),
  });
  const mcp = { many: { url: many.url }, long: { url: long.url } };
  const server = await startWith(t, mcp, { turns: calling(2, "many__tool_1000") });
  for (const _ of [1, 2]) assert.equal(await outputOf(t, server), "Done.");
  const names = toolsOf(server);
  assert.deepEqual(names.filter((name) => name.startsWith("many")).length, 128);
  assert.deepEqual(names.filter((name) => name.startsWith("long")).length, 3);
  assert.equal(saidOf(server).length, 2, saidOf(server).join("\n"));
});

const ready = async ({ url }: TestServer) => (await fetch(`${url}/health/ready`)).status;

const upOf = async ({ url }: TestServer) =>
  (await (await fetch(`${url}/metrics`)).text()).split("\n").filter((line) => line.startsWith("parley_mcp_up{"));

test("while a required server is away, nothing is ready, and messages are refused; then they are answered", async (t) => {
  const tools = await startHttpServer(t, { tools: TOOLS });
  await tools.down();
  const mcp = { own: { url: tools.url, required: true } };
  const server = await startWith(t, mcp, { turns: calling(2, "own__move_file") });
  assert.equal(await ready(server), 503);
  const refused = await post(server, { message: "Hi", stream: false });
  assert.deepEqual([refused.status, (await refused.json()).error.code], [503, "overloaded"]);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  assert.deepEqual(await upOf(server), ['parley_mcp_up{server="own"} 0']);
  await tools.restart();
  await eventually(async () => (await ready(server)) === 200, "readiness");
  assert.deepEqual(await upOf(server), ['parley_mcp_up{server="own"} 1']);
  assert.equal(await outputOf(t, server), "Done.");
  await eventually(() => saidOf(server).length === 2, "both notices");
});

test("a server that is away and not required leaves the agent ready", async (t) => {
  const server = await startWith(t, { own: { url: "http://127.0.0.1:1/mcp" } }, { turns: calling(1, "own__x") });
  assert.equal(await ready(server), 200);
  assert.match(await outputOf(t, server), /no tool/i);
});

test("the time of calls is measured by server and outcome", async (t) => {
  const call = ({ params }: { params: { name: string } }) => {
    if (params.name === "move_file") throw new Error("locked");
  };
  const tools = await startHttpServer(t, { tools: TOOLS, call });
  const turns = calling(1, "own__move_file", "own__list_files");
  const server = await startWith(t, { own: { url: tools.url } }, { turns });
  await resultsOf(t, server);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  for (const outcome of ["ok", "error"]) {
    assert.match(
      metrics,
      new RegExp(`parley_mcp_call_duration_seconds_count\\{server="own",outcome="${outcome}"\\} 1`),
    );
  }
});

test("a reload closes and opens what has changed, and nothing else", async (t) => {
  const [kept, changed, gone] = await Promise.all([1, 2, 3].map(() => startHttpServer(t, { tools: TOOLS })));
  const [own, other] = [program(t), program(t)];
  assert.ok(kept && changed && gone);
  const agent = (mcp: AgentDefinition["mcp"] & {}): AgentDefinition => ({ name: "A", model: "demo", mcp });
  const first = {
    kept: { url: kept.url },
    changed: { url: changed.url },
    gone: { url: gone.url },
    own: own.definition,
    other: other.definition,
  };
  const server = await startWith(t, first, {
    turns: [...calling(1, "kept__move_file"), ...calling(1, "changed__move_file")],
  });
  assert.equal(await outputOf(t, server), "Done.");
  const [ownPid = 0] = own.pids();
  const [otherPid = 0] = other.pids();
  const next = {
    kept: { url: kept.url, needsApproval: ["nothing"] },
    changed: { url: changed.url, headers: { "x-new": "1" } },
    own: own.definition,
  };
  await server.server.replaceAgent({ agent: checkAgent(agent(next)) });
  assert.equal(await outputOf(t, server), "Done.");
  await eventually(() => !isAlive(otherPid), "the end of the program that is not named any more");
  assert.ok(isAlive(ownPid));
  assert.deepEqual(
    [kept, changed, gone].map(({ count }) => count("initialize")),
    [1, 2, 1],
  );
  assert.deepEqual([own.pids().length, other.pids().length], [1, 1]);
  assert.equal(changed.asked.at(-1)?.headers["x-new"], "1");
  await server.close();
  await eventually(() => !isAlive(ownPid), "the end of the other program");
});

test("a reload while a call runs lets it end", async (t) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const tools = await startHttpServer(t, {
    tools: TOOLS,
    call: async () => {
      await held;
      return textResult("late");
    },
  });
  const server = await startWith(t, { own: { url: tools.url } }, { turns: calling(1, "own__move_file") });
  const running = outputOf(t, server);
  await eventually(() => tools.count("tools/call") === 1, "the call");
  await server.server.replaceAgent({ agent: checkAgent({ name: "B", model: "demo" }) });
  release();
  assert.equal(await running, "late");
});
