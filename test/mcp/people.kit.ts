/** MCP servers per user: each user's requests have their own headers, and nobody gets another user's data. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { McpHttpServer } from "../../server/agent/mcp-definition.ts";
import type { RunContext } from "../../server/agent/run-context.ts";
import type { Authenticate } from "../../server/auth/authenticate.ts";
import { post, readEventStream } from "../support/chat-transports.ts";
import { gate } from "../support/deadline.ts";
import { call, say, type Turn, wait } from "../support/scripted-provider.ts";
import type { Cleanup, ServerOptions, TestServer } from "../support/start-server.ts";
import { calling, eventually, startWith } from "./asking.ts";
import { type Asked, type Calling, type Script, startHttpServer, textResult, toolNamed } from "./http-server.ts";

const authenticate: Authenticate = ({ token }) => (token === undefined ? undefined : { id: token });

const env = { PARLEY_RATE_PER_ADDRESS: "100000", PARLEY_MAX_RUNS_PER_ADDRESS: "1000", PARLEY_MAX_RUNS: "1000" };

/** The token of a request. */
const whose = ({ headers }: Asked) => String(headers.authorization).replace(/^Bearer /, "");

const headers = ({ user }: RunContext) => ({ authorization: `Bearer ${user?.id}` });

/** A server with the tool `who` and one more tool per user. */
const startPersonal = (t: Cleanup, script: Script = {}) =>
  startHttpServer(t, {
    tools: (asked) => [toolNamed("who"), toolNamed(`of_${whose(asked)}`)],
    call: (asked) => textResult(whose(asked)),
    ...script,
  });

const startFor = (t: Cleanup, definition: McpHttpServer, options: ServerOptions = {}) =>
  startWith(t, { own: { headers, ...definition } }, { authenticate, env, ...options });

interface Answered {
  status: number;
  outputs: (string | undefined)[];
  /** The code of the error at its end. */
  error: string | undefined;
}

async function askAs(server: TestServer, user?: string): Promise<Answered> {
  const own: Record<string, string> = user === undefined ? {} : { "x-user-token": user };
  const response = await post(server, { message: `I am ${user}`, stream: true }, { headers: own });
  const text = await response.text();
  const events = response.status === 200 ? readEventStream(text) : [];
  const outputs = events.flatMap((event) => (event.type === "tool_result" ? [event.data.output] : []));
  const [error] = events.flatMap((event) => (event.type === "error" ? [event.code] : []));
  return { status: response.status, outputs, error };
}

/** Turns of `count` concurrent messages, each of which calls a tool before any ends. */
function atOnce(count: number, tool: string): { turns: Turn[]; allAsked: ReturnType<typeof gate> } {
  const allAsked = gate();
  const first = Array.from({ length: count }, () => [wait(allAsked.opened), call("c", tool)]);
  return { turns: [...first, ...first.map(() => [say("Done.")])], allAsked };
}

/** The tools offered to each user's model. */
const offers = ({ model }: TestServer) =>
  model.asked.map(({ start, messages }) => ({
    user: String(/I am (\w+)/.exec(JSON.stringify(messages))?.[1]),
    tools: start.setup.tools.map(({ name }) => name),
  }));

test("fifty people at once see only their own tools and results, and each request has its person's header", async (t) => {
  const tools = await startPersonal(t);
  const people = Array.from({ length: 50 }, (_, index) => `user${index}`);
  const { turns, allAsked } = atOnce(people.length, "own__who");
  const server = await startFor(t, { url: tools.url }, { turns });
  const answers = people.map((person) => askAs(server, person));
  await eventually(() => server.model.asked.length === people.length, "all requests to the model");
  allAsked.open();
  assert.deepEqual(
    (await Promise.all(answers)).map(({ outputs }) => outputs),
    people.map((person) => [person]),
  );
  for (const { user, tools: names } of offers(server)) assert.deepEqual(names, [`own__of_${user}`, "own__who"]);
  const sessions = new Map<string, Set<string>>();
  for (const one of tools.asked) {
    assert.match(whose(one), /^user\d+$/, one.method);
    const session = one.headers["mcp-session-id"];
    if (session === undefined) continue;
    sessions.set(String(session), (sessions.get(String(session)) ?? new Set()).add(whose(one)));
  }
  assert.equal(sessions.size, people.length);
  for (const users of sessions.values()) assert.equal(users.size, 1);
  for (const method of ["initialize", "tools/list", "tools/call"]) assert.equal(tools.count(method), people.length);
});

test("a lost session of each of fifty people is opened anew with their own header", async (t) => {
  const tools = await startPersonal(t);
  const people = Array.from({ length: 50 }, (_, index) => `user${index}`);
  const [once, twice] = [atOnce(people.length, "own__who"), atOnce(people.length, "own__who")];
  const server = await startFor(t, { url: tools.url }, { turns: [...once.turns, ...twice.turns] });
  for (const [index, { allAsked }] of [once, twice].entries()) {
    const answers = people.map((person) => askAs(server, person));
    await eventually(() => server.model.asked.length === people.length * (2 * index + 1), "all requests to the model");
    tools.forget();
    allAsked.open();
    assert.deepEqual(
      (await Promise.all(answers)).map(({ outputs }) => outputs),
      people.map((person) => [person]),
    );
  }
  for (const one of tools.asked) assert.match(whose(one), /^user\d+$/, one.method);
});

test("a message without a known user gets no tools, and the server is not asked", async (t) => {
  const tools = await startPersonal(t);
  const server = await startFor(t, { url: tools.url }, { turns: calling(2, "own__who") });
  assert.match(String((await askAs(server)).outputs[0]), /no tool/i);
  assert.deepEqual([offers(server)[0]?.tools, tools.asked], [[], []]);
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann"]);
});

test("a call that a person stops is cancelled at the server with their header", async (t) => {
  const started = gate();
  const call = async ({ gone }: Calling) => {
    started.open();
    await gone;
  };
  const tools = await startPersonal(t, { call });
  const server = await startFor(t, { url: tools.url }, { turns: calling(1, "own__who") });
  const leaving = new AbortController();
  const asking = { headers: { "x-user-token": "ann" }, signal: leaving.signal };
  const stream = await post(server, { message: "Hi", stream: true }, asking);
  await started.opened;
  leaving.abort();
  await stream.text().catch(() => {});
  await eventually(() => tools.count("notifications/cancelled") === 1, "the cancellation");
  assert.ok(tools.asked.every((one) => whose(one) === "ann"));
});

test("headers run for every request, and a person whose header changes gets a connection of its own", async (t) => {
  const tools = await startPersonal(t);
  let version = 1;
  const changing = ({ user }: RunContext) => ({ authorization: `Bearer ${user?.id}_${version}` });
  const server = await startFor(t, { url: tools.url, headers: changing }, { turns: calling(3, "own__who") });
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann_1"]);
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann_1"]);
  assert.equal(tools.count("initialize"), 1);
  version = 2;
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann_2"]);
  assert.equal(tools.count("initialize"), 2);
});

test("with per, fresh headers go over the same connection, which is of one user all the same", async (t) => {
  const tools = await startPersonal(t);
  let version = 0;
  const definition = {
    url: tools.url,
    headers: ({ user }: RunContext) => ({ authorization: `Bearer ${user?.id}_${++version}` }),
    per: () => "the same for all",
  };
  const server = await startFor(t, definition, { turns: calling(3, "own__who") });
  const said = [];
  for (const person of ["ann", "ann", "ben"]) said.push(...(await askAs(server, person)).outputs);
  assert.deepEqual(
    said.map((one) => String(one).split("_")[0]),
    ["ann", "ann", "ben"],
  );
  assert.equal(tools.count("initialize"), 2);
  assert.equal(new Set(tools.asked.map(whose)).size, tools.asked.length);
});

test("of more than a hundred people, those who asked last keep their connections", async (t) => {
  const tools = await startPersonal(t);
  const server = await startFor(t, { url: tools.url }, { turns: calling(123, "own__who") });
  for (let index = 0; index < 120; index++) await askAs(server, `user${index}`);
  assert.equal(tools.count("initialize"), 120);
  await askAs(server, "user119");
  await askAs(server, "user25");
  assert.equal(tools.count("initialize"), 120);
  assert.deepEqual((await askAs(server, "user3")).outputs, ["user3"]);
  assert.equal(tools.count("initialize"), 121);
});

test("headers that throw, or are none, leave the tools out, and the log says so", async (t) => {
  const tools = await startPersonal(t);
  const wrong = ({ user }: RunContext) => {
    if (user?.id === "ann") throw new Error("no token for ann");
    return { authorization: 5 } as never;
  };
  const server = await startFor(t, { url: tools.url, headers: wrong }, { turns: calling(2, "own__who") });
  for (const person of ["ann", "ben"]) assert.match(String((await askAs(server, person)).outputs[0]), /no tool/i);
  assert.deepEqual(tools.asked, []);
  assert.match(server.log.join("\n"), /headers\(ctx\) failed[^\n]*no token for ann/);
  assert.match(server.log.join("\n"), /must return an object of texts/);
});

test("headers that throw later fail the call, which the server never sees", async (t) => {
  const tools = await startPersonal(t);
  const held = gate();
  let isBroken = false;
  const breaking = (ctx: RunContext) => {
    if (isBroken) throw new Error("the token service is away");
    return headers(ctx);
  };
  const turns = [[wait(held.opened), call("c", "own__who")], [say("Done.")], ...calling(1, "own__who")];
  const server = await startFor(t, { url: tools.url, headers: breaking }, { turns });
  const asked = server.model.nextAsked();
  const answer = askAs(server, "ann");
  await asked;
  isBroken = true;
  held.open();
  assert.deepEqual((await answer).outputs.length, 1);
  assert.equal(tools.count("tools/call"), 0);
  assert.doesNotMatch(String((await answer).outputs[0]), /may have been carried out/);
  isBroken = false;
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann"]);
});

test("a person whose token the server refuses has no tools, and the next person has", async (t) => {
  const tools = await startPersonal(t, {
    instead: (asked, res) => whose(asked) === "ann" && Boolean(res.writeHead(401).end()),
  });
  const server = await startFor(t, { url: tools.url }, { turns: calling(2, "own__who") });
  assert.match(String((await askAs(server, "ann")).outputs[0]), /no tool/i);
  assert.deepEqual((await askAs(server, "ben")).outputs, ["ben"]);
});

test("while a required server is away, a person's message is refused, and answered when it is back", async (t) => {
  const tools = await startPersonal(t);
  const server = await startFor(t, { url: tools.url, required: true }, { turns: calling(1, "own__who") });
  await tools.down();
  assert.equal((await askAs(server, "ann")).error, "overloaded");
  // A failing connection of one user says nothing about others, so the server stays ready.
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
  await tools.restart();
  await eventually(async () => (await askAs(server, "ann")).outputs[0] === "ann", "an answer");
});

test("a person whom a required server refuses gets no answer, and the next person has one", async (t) => {
  const tools = await startPersonal(t, {
    instead: (asked, res) => whose(asked) === "ann" && Boolean(res.writeHead(403).end()),
  });
  const server = await startFor(t, { url: tools.url, required: true }, { turns: calling(1, "own__who") });
  assert.equal((await askAs(server, "ann")).error, "forbidden");
  assert.match(server.log.join("\n"), /403/);
  assert.deepEqual((await askAs(server, "ben")).outputs, ["ben"]);
});

test("a person's connection that was not used for a quarter of an hour is closed", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"], now: Date.now() });
  const tools = await startPersonal(t);
  const server = await startFor(t, { url: tools.url }, { turns: calling(3, "own__who") });
  await askAs(server, "ann");
  t.mock.timers.tick(10 * 60_000);
  await askAs(server, "ben");
  t.mock.timers.tick(6 * 60_000);
  await tools.until("DELETE", 1);
  assert.deepEqual(tools.asked.filter(({ method }) => method === "DELETE").map(whose), ["ann"]);
  await askAs(server, "ann");
  assert.equal(tools.count("initialize"), 3);
});

test("a person's tools are there with the first message after the server came back", async (t) => {
  const tools = await startPersonal(t);
  const server = await startFor(t, { url: tools.url }, { turns: calling(3, "own__who") });
  await tools.down();
  assert.match(String((await askAs(server, "ann")).outputs[0]), /no tool/i);
  await tools.restart();
  // Waits because the server is not retried at once.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann"]);
});

test("a person whose connection is one too many beside a hundred busy ones has their tools", async (t) => {
  const held = gate();
  const busy = Array.from({ length: 100 }, (_, index) => `user${index}`);
  const tools = await startPersonal(t, {
    call: async (asked) => {
      if (whose(asked) !== "ann") await held.opened;
      return textResult(whose(asked));
    },
  });
  const { turns, allAsked } = atOnce(busy.length, "own__who");
  const server = await startFor(
    t,
    { url: tools.url },
    { turns: [...turns.slice(0, 100), ...calling(1, "own__who"), ...turns.slice(100)] },
  );
  const answers = busy.map((person) => askAs(server, person));
  await eventually(() => server.model.asked.length === busy.length, "all requests to the model");
  allAsked.open();
  await eventually(() => tools.count("tools/call") === busy.length, "all calls");
  assert.deepEqual((await askAs(server, "ann")).outputs, ["ann"]);
  held.open();
  assert.deepEqual(
    (await Promise.all(answers)).map(({ outputs }) => outputs),
    busy.map((person) => [person]),
  );
});
