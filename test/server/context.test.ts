/** `ctx`: what an agent's code learns about each message. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import type { RunContext } from "../../server/agent/run-context.ts";
import type { RunInput } from "../../server/agent/run-function.ts";
import type { RunRecord } from "../../server/agent/run-record.ts";
import type { AnyToolDefinition, ToolContext } from "../../server/agent/tool-definition.ts";
import type { JsonSchema } from "../../server/agent/tool-schema.ts";
import { onEveryTransport, post, send, TRANSPORTS } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { onceCalled } from "../support/once-called.ts";
import { call, say } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";
import { answersTo, define, throwing } from "../support/test-tools.ts";

for (const how of TRANSPORTS) {
  test(`instructions, tools and execute get the same ctx of a message over ${how}`, async (t) => {
    const seen: RunContext[] = [];
    const look = define("look", (_args, ctx) => void seen.push(ctx));
    const server = await startServer(t, {
      agent: {
        instructions: async (ctx) => {
          seen.push(ctx);
          return `Plan: ${ctx.metadata.plan}.`;
        },
        tools: (ctx) => {
          seen.push(ctx);
          return [look];
        },
      },
      turns: [[call("c1", "look")], [say("Done")]],
    });
    const message = { message: "Hi", metadata: { plan: "pro", "page.url": "/a" } };
    const { last } = await send[how](t, server, message);
    const [first, second, ofTool] = seen;
    assert.ok(first && last.type === "done");
    const { signal, run, suggest: _suggest, title: _title, ...rest } = first;
    assert.deepEqual(rest, {
      user: undefined,
      metadata: { plan: "pro", "page.url": "/a" },
      conversation: last.state.conversation,
      keyKind: "none",
      approvals: [],
    });
    assert.equal(run.transport, how === "socket" ? "ws" : how);
    assert.match(run.id, /^[\w-]{36}$/);
    assert.ok(run.requestId);
    assert.ok(signal instanceof AbortSignal);
    assert.deepEqual({ ...second, signal }, first);
    const { progress } = ofTool as ToolContext;
    assert.deepEqual({ ...ofTool, signal }, { ...first, callId: "c1", progress });
    const { setup } = server.model.asked[0]?.start ?? assert.fail();
    assert.deepEqual([setup.instructions, setup.tools.map(({ name }) => name)], ["Plan: pro.", ["look"]]);
  });
}

test("each message gets the tools that its metadata call for, and a model cannot call another's", async (t) => {
  const tools = (ctx: RunContext) => [define(String(ctx.metadata.tool), () => "yes")];
  const server = await startServer(t, {
    agent: { tools },
    turns: [[call("c1", "one")], [say("A")], [call("c2", "one")], [say("B")]],
  });
  for (const [tool, answer] of [
    ["one", "yes"],
    ["two", 'There is no tool named "one".'],
  ]) {
    await post(server, { message: "Hi", stream: false, metadata: { tool } });
    assert.deepEqual(answersTo(server.model), [answer]);
  }
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /tool_duration_seconds_count\{tool="one",status="completed"\} 1/);
});

const propose = ({ suggest, title }: RunContext, name: string) => {
  suggest([`${name} 1`, `${name}\n2`]);
  title(`About ${name}`);
};
const proposing = (name: string) => (ctx: RunContext) => propose(ctx, name);
const runThat = (run: (input: RunInput) => unknown) => ({ agent: { model: undefined, run } as never });

const PROPOSERS: [name: string, make: () => ServerOptions, proposed: { suggestions?: string[]; title?: string }][] = [
  ["a run without proposals", () => ({ turns: [[say("Done")]] }), {}],
  [
    "instructions, then a tool",
    () => {
      const tools = [define("look", (_args, ctx) => propose(ctx, "tool"))];
      const instructions = (ctx: RunContext) => {
        propose(ctx, "instructions");
        return "Be brief.";
      };
      return { agent: { instructions, tools }, turns: [[call("c1", "look")], [say("Done")]] };
    },
    { suggestions: ["tool 1", "tool 2"], title: "About tool" },
  ],
  [
    "onAnswer",
    () => ({ agent: { onAnswer: (_answer, ctx) => propose(ctx, "hook") }, turns: [[say("Done")]] }),
    { suggestions: ["hook 1", "hook 2"], title: "About hook" },
  ],
  [
    "run, by its event",
    () => runThat(() => ["Done", { type: "suggestions", data: ["a", "b"] }].values()),
    { suggestions: ["a", "b"] },
  ],
  [
    "an onMessage that refuses",
    () => ({ agent: { onMessage: (_message, ctx) => propose(ctx, "a") ?? { refuse: "No." } }, turns: [] }),
    {},
  ],
  [
    "a run whose answer is refused",
    () => {
      const instructions = (ctx: RunContext) => `${proposing("a")(ctx)}`;
      return { agent: { instructions, onAnswer: () => ({ refuse: "No." }) }, turns: [[say("Done")]] };
    },
    {},
  ],
  [
    "a run that takes them back",
    () =>
      runThat(({ ctx }) => {
        propose(ctx, "a");
        ctx.suggest([]);
        return "Done";
      }),
    { title: "About a" },
  ],
];

for (const [name, make, proposed] of PROPOSERS) {
  test(`what ${name} proposed is beside the answer, and not in the state`, async (t) => {
    const outcomes = await onEveryTransport(t, make, { message: "Hi" });
    for (const { last } of Object.values(outcomes)) {
      assert.ok(last.type === "done");
      const { suggestions, title, state } = last;
      assert.deepEqual({ ...(suggestions && { suggestions }), ...(title && { title }) }, proposed);
      assert.doesNotMatch(JSON.stringify(state), /About|suggest/);
    }
  });
}

test("a run that is stopped proposes what it had proposed, and onRunEnd hears of it", async (t) => {
  const { hook: onRunEnd, next } = onceCalled<RunRecord>();
  const called = gate();
  const run = ({ ctx }: RunInput) => {
    propose(ctx, "a");
    called.open();
    return new Promise(() => {});
  };
  const server = await startServer(t, { agent: { model: undefined, run, onRunEnd } as never });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi" });
  await called.opened;
  client.send({ type: "stop" });
  const [stopped] = await client.until("done");
  assert.ok(stopped?.type === "done");
  assert.deepEqual([stopped.suggestions, stopped.title], [["a 1", "a 2"], "About a"]);
  const record = await next();
  assert.deepEqual([record.suggestions, record.title], [["a 1", "a 2"], "About a"]);
});

const PROPOSALS: [name: string, propose: (ctx: RunContext) => void, refused?: RegExp][] = [
  ["3 texts of 200 characters", (ctx) => ctx.suggest(["x".repeat(200), "b", "c"])],
  ["4 texts", (ctx) => ctx.suggest(["a", "b", "c", "d"]), /suggest takes a list of at most 3 texts/],
  ["no list", (ctx) => ctx.suggest("abc" as never), /suggest takes a list of at most 3 texts/],
  ["a text of 201 characters", (ctx) => ctx.suggest(["x".repeat(201)]), /suggest takes texts of 1 to 200 characters/],
  ["a blank text", (ctx) => ctx.suggest([" \n"]), /suggest takes texts of 1 to 200 characters/],
  ["a number", (ctx) => ctx.suggest([1 as never]), /suggest takes texts of 1 to 200 characters/],
  ["a blank title", (ctx) => ctx.title(""), /title takes texts of 1 to 200 characters/],
];

for (const [name, propose, refused] of PROPOSALS) {
  test(`proposing ${name} ${refused ? "is a mistake that says what is right" : "is fine"}`, async (t) => {
    const look = define("look", (_args, ctx) => propose(ctx));
    const server = await startServer(t, { agent: { tools: [look] }, turns: [[call("c1", "look")], [say("Done")]] });
    const { last } = await send.sse(t, server, { message: "Hi" });
    assert.equal(last.type, "done");
    if (refused) assert.match(answersTo(server.model).join(), refused);
    else assert.deepEqual(last.type === "done" && last.suggestions?.length, 3);
  });
}

test("what the start warns of with a list of tools is said once when a function first chooses such a tool", async (t) => {
  const pay = define("pay", () => "paid", { needsApproval: true, expose: "none" });
  const tools = ({ metadata }: RunContext) => (metadata.plan === "pro" ? [pay] : []);
  const warnings = async (options: ServerOptions, ...plans: string[]) => {
    const server = await startServer(t, { agent: { tools }, turns: plans.map(() => [say("Hi")]), ...options });
    for (const plan of plans) await post(server, { message: "Hi", metadata: { plan }, stream: false });
    return server.log.filter((record) => record.includes('"msg":"notice"')).join("");
  };
  assert.equal(await warnings({}, "free"), "");
  const said = await warnings({}, "free", "pro", "pro");
  assert.match(
    said,
    /^[^\n]*because the tool \\"pay\\" hides its calls[^\n]*\n[^\n]*wait for approval expire[^\n]*\n$/,
  );
  const env = { PARLEY_STATE_SECRET: "s".repeat(30) };
  assert.match(await warnings({ env }, "pro"), /^[^\n]*wait for approval expire[^\n]*\n$/);
  // With users, states are signed even without tools: that warning was printed at the start.
  assert.match(await warnings({ authenticate: () => undefined }, "pro"), /^[^\n]*wait for approval expire[^\n]*\n$/);
});

const WRONG: [name: string, wrong: object, said: RegExp][] = [
  [
    "has no execute function",
    { ...define("pay", () => ""), execute: undefined },
    /The tool "pay" has no execute function/,
  ],
  [
    "has an odd schema",
    define("pay", () => "", { parameters: { type: "object", required: "id" } }),
    /parameters of the tool "pay" are not a JSON Schema: \/required: .* "string"\./,
  ],
  ["has a misspelt needsApproval", define("pay", () => "", { needApproval: true }), /Did you mean needsApproval\?/],
  ["is named as another", define("look", () => "no"), /Two tools are named "look"\. Rename one of them\./],
  ["is none", [], /tools\[1\] must be an object/],
  [
    "cannot be read",
    new Proxy({}, { get: throwing(new Error("Read no more.")) }),
    /tools\[1\] cannot be read: Read no more\./,
  ],
];

for (const [name, wrong, said] of WRONG) {
  test(`a chosen tool that ${name} is left out, which is said once, and the others go on`, async (t) => {
    const tools = () => [define("look", () => "yes"), wrong as AnyToolDefinition];
    const turns = [1, 2].flatMap(() => [[call("c1", "look")], [say("Done")]]);
    const server = await startServer(t, { agent: { tools }, turns });
    for (const _ of [1, 2]) {
      await post(server, { message: "Hi", stream: false });
      assert.deepEqual(answersTo(server.model), ["yes"]);
      assert.deepEqual(
        server.model.asked.at(-1)?.start.setup.tools.map((tool) => tool.name),
        ["look"],
      );
    }
    const notices = server.log.map((record) => JSON.parse(record)).filter(({ msg }) => msg === "notice");
    assert.equal(notices.length, 1);
    assert.match(notices[0].text, /^One of the agent's tools is left out\. /);
    assert.match(notices[0].text, said);
  });
}

test("schemas that a function hands out again are not read again, whether they are right or wrong", async (t) => {
  let reads = 0;
  const read = <Value>(make: () => Value): Value => {
    reads += 1;
    return make();
  };
  const json = {
    type: "object",
    get properties() {
      return read(() => ({ n: { type: "integer" } }));
    },
  };
  const standard = (make: () => JsonSchema) => ({
    "~standard": {
      version: 1,
      vendor: "own",
      validate: () => ({ value: {} }),
      jsonSchema: { input: () => read(make) },
    },
  });
  const schemas = [json, standard(() => ({ type: "object" })), standard(throwing(new Error("No.")))];
  const tools = ({ run }: RunContext) =>
    schemas.map((parameters, index) => define(`t${index}`, () => run.id, { parameters }));
  const server = await startServer(t, { agent: { tools }, turns: [[say("A")], [say("B")]] });
  await post(server, { message: "Hi", stream: false });
  const first = reads;
  await post(server, { message: "Hi", stream: false });
  assert.ok(first >= schemas.length);
  assert.equal(reads, first);
});

test("a run that is stopped while instructions are made ends at once, and the conversation goes on", async (t) => {
  const called = gate();
  const instructions = (ctx: RunContext) => {
    if (ctx.metadata.hang === undefined) return "Be brief.";
    called.open();
    return new Promise<string>(() => {});
  };
  const server = await startServer(t, { agent: { instructions }, turns: [[say("Fine")]] });
  const client = await connect(t, server.socketUrl);
  client.send({ message: "Hi", metadata: { hang: "yes" } });
  await called.opened;
  client.send({ type: "stop" });
  const [stopped] = await client.until("done");
  assert.equal(stopped?.type === "done" && stopped.finish_reason, "stopped");
  assert.equal((await client.run({ message: "On?" })).at(-1)?.data, "Fine");
});

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, "x"]));

const METADATA: [name: string, metadata: unknown, param: string | undefined][] = [
  ["16 strings", names(16), undefined],
  ["17 strings", names(17), "/metadata"],
  ["null", null, undefined],
  ["a list", ["a"], "/metadata"],
  ["a text", "a", "/metadata"],
  ["a number inside", { a: 1 }, "/metadata/a"],
  ["512 characters", { a: "x".repeat(512) }, undefined],
  ["513 characters", { a: "x".repeat(513) }, "/metadata/a"],
  ["a name of 64 characters", { ["x".repeat(64)]: "a" }, undefined],
  ["a name of 65 characters", { ["x".repeat(65)]: "a" }, "/metadata"],
  ["a name with a space", { "a b": "a" }, "/metadata"],
  ["an empty name", { "": "a" }, "/metadata"],
  ["a name that every object has", JSON.parse('{"__proto__": "a", "constructor": "b"}'), undefined],
];

for (const [name, metadata, param] of METADATA) {
  test(`metadata with ${name} is ${param === undefined ? "taken as it is" : `refused at ${param}`}`, async (t) => {
    const seen: object[] = [];
    const agent = { instructions: (ctx: RunContext) => String(seen.push(ctx.metadata)) };
    const server = await startServer(t, { agent, turns: [[say("A")], [say("B")]] });
    const answer = await post(server, { message: "Hi", stream: false, metadata });
    const { last } = await send.socket(t, server, { message: "Hi", metadata });
    if (param === undefined) {
      const entries = Object.entries(metadata ?? {});
      assert.deepEqual(seen.map(Object.entries), [entries, entries]);
      return;
    }
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.code, error.param], [400, "invalid_request", param]);
    assert.equal(last.type === "error" && last.code, "invalid_request");
    assert.deepEqual(seen, []);
  });
}

test("a message that is sent again under its name with other metadata is answered once", async (t) => {
  const server = await startServer(t, { turns: [[say("Once")]] });
  const run = "a-name-of-the-test-0";
  for (const page of ["/a", "/b"]) {
    const message = { message: "Hi", run, stream: true, metadata: { page } };
    assert.match(await (await post(server, message)).text(), /Once/);
  }
  assert.equal(server.model.asked.length, 1);
});

test("a project that registers its user's type has it wherever its code gets the user, and no other", async () => {
  const args = ["node_modules/typescript/bin/tsc", "-p", "test/fixtures/register"];
  await promisify(execFile)(process.execPath, args);
});
