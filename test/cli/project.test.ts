/** Projects as users write them, in folders outside this repository. */

import assert from "node:assert/strict";
import { readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ToolContext } from "../../server/agent/tool-definition.ts";
import { demoAgent } from "../../server/project/demo-agent.ts";
import { findProject, loadProject } from "../../server/project/load-project.ts";
import { setEnvironment } from "../support/at-end.ts";
import { post, send } from "../support/chat-transports.ts";
import { Command, start } from "../support/command.ts";
import { testWithRedis } from "../support/redis-server.ts";
import { serveProject } from "../support/serve-project.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const info = async (url: string) => JSON.parse(await (await fetch(`${url}/api/info`)).text());

const AGENT = 'export default { name: "Mine", model: "demo" };';
const TYPED = 'enum Name { Mine = "Mine" } export const name: string = Name.Mine;';

const PROJECTS: [name: string, files: Record<string, string>, folder?: string][] = [
  ["agent.mts", { "agent.mts": AGENT }],
  ["agent.js", { "agent.js": AGENT }],
  ["agent.mjs", { "agent.mjs": AGENT }],
  ["agent.mjs with an import", { "agent.mjs": `import "node:fs"; ${AGENT}` }],
  ["agent.ts under a package.json that says commonjs", { "agent.ts": AGENT, "package.json": '{"type":"commonjs"}' }],
  [
    "agent.ts that writes of default exports in comments and texts",
    {
      "agent.ts": `/*\nexport default 1;\n*/\nconst hint = \`\nexport default 2; exports.default = 3;\`;\n${AGENT}\nvoid hint;`,
    },
  ],
  [
    "agent.ts that assigns its default export twice",
    {
      "agent.ts": `// the export default is below\nlet agent = { name: "", model: "demo" };\nagent = { ...agent, name: "Mine" };\nexport { agent as default };`,
    },
  ],
  ["agent.js of CommonJS", { "agent.js": 'module.exports = { name: "Mine", model: "demo" };' }],
  ["agent.ts of CommonJS", { "agent.ts": 'const name: string = "Mine"; export = { name, model: "demo" };' }],
  [
    "agent.js as tsc writes it for CommonJS",
    {
      "agent.js": `"use strict";
        Object.defineProperty(exports, "__esModule", { value: true });
        exports.default = { name: "Mine", model: "demo" };`,
    },
  ],
  [
    "top-level await, enums, JSON, and relative imports without types or by the .js that tsc would write",
    {
      "agent.ts": `
        import { first } from "./parts/first.ts";
        import { rest } from "./rest.js";
        import { model } from "./model.json";
        enum Glue { None = "" }
        const start = await Promise.resolve(first());
        export default { name: [start, rest].join(Glue.None), model };`,
      "parts/first.ts": 'export const first = (): string => "Mi";',
      "rest.ts": 'export const rest = "ne";',
      "model.json": '{"model":"demo"}',
    },
  ],
  ["a folder with spaces and other characters", { "ä b#c%20/agent.ts": AGENT }, "ä b#c%20"],
];

/** Imports of a JavaScript agent that Node alone cannot resolve. */
const IMPORTED: [specifier: string, files: Record<string, string>][] = [
  ["./parts/name.ts", { "parts/name.ts": TYPED }],
  ["./name", { "name.ts": TYPED }],
  ["./parts", { "parts/index.js": 'export { name } from "./name.ts";', "parts/name.ts": TYPED }],
  ["./first.ts", { "first.ts": 'export { name } from "./name.js";', "name.ts": TYPED }],
  ["./name.json", { "name.json": '{"name":"Mine"}' }],
  ["../shared/name.ts", { "../shared/name.ts": 'export { name } from "./typed";', "../shared/typed.ts": TYPED }],
];

for (const [specifier, files] of IMPORTED) {
  const agent = { "agent.mjs": `import { name } from "${specifier}"; export default { name, model: "demo" };` };
  const nested = Object.entries({ ...agent, ...files }).map(([path, text]) => [join("nested", path), text]);
  PROJECTS.push([`JavaScript that imports "${specifier}"`, Object.fromEntries(nested), "nested"]);
}

for (const [name, files, folder = "."] of PROJECTS) {
  test(`${name} is loaded`, async (t) => {
    assert.equal((await loadProject(join(temporaryProject(t, files), folder))).agent.name, "Mine");
  });
}

test("of several agent files the first of ts, mts, js, mjs is taken", async (t) => {
  const named = (name: string) => `export default { name: "${name}", model: "demo" };`;
  const files = { "agent.mjs": named("mjs"), "agent.mts": named("mts"), "agent.js": named("js") };
  assert.equal((await loadProject(temporaryProject(t, files))).agent.name, "mts");
});

test("a project that is reached through a link is loaded like any other", async (t) => {
  const folder = temporaryProject(t, { "real/agent.ts": AGENT });
  symlinkSync(join(folder, "real"), join(folder, "linked"));
  assert.equal((await loadProject(findProject(join(folder, "linked")))).agent.name, "Mine");
});

for (const file of ["agent.mjs", "agent.js", "agent.ts"]) {
  test(`an ${file} that throws at the end is run once`, async (t) => {
    const runs: string[] = [];
    Object.assign(globalThis, { runsOfATest: runs });
    const source = 'import "node:fs"; globalThis.runsOfATest.push("Run"); throw new Error("no database");';
    await assert.rejects(loadProject(temporaryProject(t, { [file]: source })), /no database/);
    assert.deepEqual(runs, ["Run"]);
  });
}

test("an agent in a project as it is finds modules by the paths of tsconfig.json, and JSX", async (t) => {
  const files = {
    "agent.ts": `import { mail } from "@/mail"; import { last } from "lib/last"; const name = <string>(mail("Ada") + last);
      export default { name, model: "demo" };`,
    "src/mail.tsx": "export const mail = (name: string) => <b>{name}</b>;",
    "lib/last.ts": 'export const last = "!";',
    "node_modules/react/package.json": '{ "name": "react", "exports": { "./jsx-runtime": "./jsx.js" } }',
    "node_modules/react/jsx.js": "exports.jsx = (tag, { children }) => tag + children;",
    "tsconfig.json": '{ // a comment\n "compilerOptions": { "baseUrl": ".", "paths": { "@/*": ["./src/*"] } } }',
  };
  assert.equal((await loadProject(temporaryProject(t, files))).agent.name, "bAda!");
  // In production, a development package is not installed.
  const plain = {
    "agent.ts": 'export default { name: "A", model: "demo" };',
    "tsconfig.json": '{ "extends": "@a/b" }',
  };
  assert.equal((await loadProject(temporaryProject(t, plain))).agent.name, "A");
});

test("TypeScript is loaded where no file can be written, as in a read-only container", async (t) => {
  const source = 'enum Model { Demo = "demo" } export default { name: "Mine" as string, model: Model.Demo };';
  const folder = temporaryProject(t, { "agent.ts": source });
  // The temporary folder cannot exist, because its parent is a file.
  setEnvironment(t, { TMPDIR: join(folder, "agent.ts/none") });
  assert.equal((await loadProject(folder)).agent.name, "Mine");
});

test("compiled code is kept in the project's node_modules, never where other users can write", async (t) => {
  const project = temporaryProject(t, { "agent.ts": AGENT, "node_modules/readme": "" });
  const bare = temporaryProject(t, { "agent.ts": AGENT });
  const temporary = temporaryProject(t, {});
  setEnvironment(t, { TMPDIR: temporary });
  for (const folder of [project, project, bare]) assert.equal((await loadProject(folder)).agent.name, "Mine");
  assert.deepEqual(readdirSync(temporary), []);
  assert.equal(readdirSync(join(project, "node_modules/.cache/jiti")).length, 1);
});

test("a tool of the project runs, with its relative imports, zod from its own node_modules", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      import { defineAgent, tool } from "parley-agent";
      import { z } from "zod";
      import { price } from "./price.ts";
      const get_price = tool({
        name: "get_price", description: "Price.",
        parameters: z.object({ product: z.string() }),
        execute: async ({ product }) => price(product.toUpperCase()),
      });
      export default defineAgent({ name: "Mine", model: "demo", tools: [get_price] });`,
    "price.ts": "export const price = (of: string): string => of.concat(' costs 5');",
    "node_modules/.keep": "",
  });
  symlinkSync(join(process.cwd(), "node_modules/zod"), join(folder, "node_modules/zod"));
  const { url } = await start(t, [folder]);
  // The demo model recognizes names, numbers and quoted texts as arguments.
  for (const [product, priced] of [
    ["Tea", "TEA"],
    ['"green tea"', "GREEN TEA"],
    ["A-4711", "A-4711"],
  ]) {
    const answer = await post({ url }, { message: `The price of ${product} please`, stream: false });
    assert.match(JSON.parse(await answer.text()).response, new RegExp(`"${priced} costs 5|\\| ${priced} costs 5`));
  }
});

test(".env is read before the agent, does not override what is set, and its keys stay out of the output", async (t) => {
  const dotEnv = "# a comment\nTITLE='From the file'\nMODEL=demo\nSET=from the file\nPARLEY_API_KEY=key-of-the-file";
  const agent =
    "const { TITLE, SET, MODEL } = process.env; export default { name: [TITLE, SET].join('/'), model: MODEL };";
  const project = { ".env": dotEnv, "agent.ts": agent };
  const { url, summary, log } = await serveProject(t, project, { SET: "from outside" });
  const { name, auth_required } = await info(url);
  assert.deepEqual([name, auth_required], ["From the file/from outside", true]);
  const headers = { authorization: "Bearer key-of-the-file" };
  const answer = await post({ url }, { message: "Hi", stream: false }, { headers });
  assert.equal(answer.status, 200);
  assert.doesNotMatch(summary + log, /key-of-the-file/);
});

test("the .env of the working directory is not the project's", async (t) => {
  const cwd = temporaryProject(t, {
    ".env": "TITLE=Wrong",
    "mine/agent.ts": 'export default { name: process.env.TITLE ?? "Right", model: "demo" };',
  });
  const { url } = await start(t, ["mine"], { cwd });
  assert.equal((await info(url)).name, "Right");
});

test("parley-agent of an agent.ts is this very package, and another package.json nearby does not matter", async (t) => {
  const { agent } = await loadProject(
    temporaryProject(t, {
      "package.json": '{"name":"mine","dependencies":{"parley-agent":"^99.0.0"}}',
      "agent.ts":
        'import { defineAgent } from "parley-agent";\nexport default defineAgent({ name: "Mine", model: "demo" });',
    }),
  );
  assert.equal(agent.name, "Mine");
});

/** The results of a project's tools, called by the demo model. */
async function callTools(t: Cleanup, files: Record<string, string>) {
  const server = await serveProject(t, files);
  const { events } = await send.sse(t, server, { message: "call all tools" });
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
  return { results, log: server.log.join("") };
}

test("clients get the message of a ToolError, also of another copy of the package, and of no other error", async (t) => {
  const { results, log } = await callTools(t, {
    "copy.mjs": 'export class ToolError extends Error { [Symbol.for("parley-agent.ToolError")] = true; }',
    "agent.ts": `
      import { ToolError } from "parley-agent";
      import { ToolError as Copy } from "./copy.mjs";
      const tool = (name: string, error: Error) =>
        ({ name, description: "d", parameters: { type: "object" }, execute: () => { throw error; } });
      export default { name: "Mine", model: "demo", tools: [
        tool("meant", new ToolError("Sold out.", { cause: "hunter2" })),
        tool("copied", new Copy("Sold out, too.", { cause: "hunter2" })),
        tool("secret", new Error("the password is hunter2")),
      ] };`,
  });
  assert.deepEqual(
    results.map(({ tool, status, output }) => [tool, status, output]),
    [
      ["meant", "failed", "Sold out."],
      ["copied", "failed", "Sold out, too."],
      ["secret", "failed", "The tool failed."],
    ],
  );
  assert.match(log, /"level":"warn".*\\"secret\\" failed.*hunter2.*agent\.ts/);
});

test("tools in JavaScript import TypeScript and parley-agent while they run", async (t) => {
  const { results } = await callTools(t, {
    "agent.mjs": `
      const tool = (name, execute) => ({ name, description: "d", parameters: { type: "object" }, execute });
      export default { name: "Mine", model: "demo", tools: [
        tool("get_price", async () => (await import("./price.ts")).price()),
        tool("get_type", async () => typeof (await import("parley-agent")).ToolError),
      ] };`,
    "price.ts": 'export const price = (): string => "It costs 5";',
  });
  assert.deepEqual(results.map(({ output }) => output).sort(), ["It costs 5", "function"]);
});

const WITH_USERS = `
  import { defineAgent, tool, Unauthorized } from "parley-agent";
  const whoAmI = tool({
    name: "who_am_i",
    description: "Says who asks.",
    parameters: { type: "object" },
    execute: (_args, { user }) => user?.id ?? "nobody",
  });
  export const authenticate = ({ token }) => {
    if (token === undefined) throw new Unauthorized("Sign in at /login.");
    return { id: token };
  };
  export default defineAgent({ name: "A", model: "demo", tools: [whoAmI] });`;

for (const [settings, said] of [
  [{}, /Conversations end with this process, and no other can continue them, .*Set PARLEY_STATE_SECRET/],
  [{ PARLEY_STATE_SECRET: "a secret that is long enough" }, /^$/],
] as const) {
  test(`authenticate beside the agent is asked with ${JSON.stringify(settings)}, and the start says that it is there`, async (t) => {
    const { summary, warnings, url } = await serveProject(t, { "agent.ts": WITH_USERS }, settings);
    assert.match(summary, /\n {2}users {2}authenticate\(\)/);
    const refusal = await post({ url }, { message: "call all tools", stream: false });
    assert.match(await refusal.text(), /"login_required","message":"Sign in at \/login\."/);
    const headers = { "x-user-token": "ada" };
    const answer = await (await post({ url }, { message: "call all tools", stream: false }, { headers })).json();
    assert.equal(answer.tool_calls[0].output, "ada");
    assert.ok(answer.state.signature);
    assert.match(warnings.join("\n"), said);
  });
}

test("the start says that states are signed for a tool that hides its calls, and what does not survive", async (t) => {
  const agent = `import { defineAgent, tool } from "parley-agent";
    const file = tool({ name: "file", description: "d", parameters: { type: "object" }, execute: () => "", expose: "none" });
    export default defineAgent({ name: "A", model: "demo", tools: [file] });`;
  const { command } = await start(t, [temporaryProject(t, { "agent.ts": agent })]);
  await command.printed(
    "stderr",
    /Conversations end with this process, .*because the tool \\"file\\" hides its calls in them/,
  );
});

test("the demo agent's tool tells the model which city is missing or unknown, and which argument is not its own", async () => {
  const { parameters, execute } =
    demoAgent().toolSources[0]?.fixed.find(({ name }) => name === "get_weather") ?? assert.fail();
  const problems = async (value: unknown) => {
    const checked = await parameters.check(value);
    return checked.ok ? "" : JSON.stringify(checked.problems);
  };
  assert.match(await problems({ city: "" }), /city/);
  assert.match(await problems({}), /city/);
  assert.match(await problems({ city: "Lima", unit: "C" }), /unit/);
  assert.match(await problems(["Lima"]), /object/i);
  assert.equal(await problems({ city: "Lima" }), "");
  const context = { signal: new AbortController().signal, callId: "1" } as ToolContext;
  const weather = { city: "lima", celsius: 25, sky: "sunny", invented: true };
  assert.deepEqual(await execute({ city: "lima" }, context), weather);
  await assert.rejects(
    async () => execute({ city: "Atlantis" }, context),
    /does not know Atlantis\. It knows Berlin, /,
  );
});

test("the demo's suggestions show several tools at work, and a table, code, a formula and a footnote", async (t) => {
  const server = await serveProject(t);
  const { suggestions } = await info(server.url);
  const ask = async (message: string) => (await post(server, { message, stream: false })).json();
  // In parallel, because the demo answers slowly.
  const [{ tool_calls }, { response }] = await Promise.all([ask(suggestions[0]), ask(suggestions[1])]);
  const calls = tool_calls.map(({ tool, arguments: args, status }: Record<string, string>) => [tool, args, status]);
  assert.deepEqual(calls, [
    ["get_weather", '{"city":"Paris"}', "completed"],
    ["get_weather", '{"city":"Tokyo"}', "completed"],
    ["get_daylight", '{"city":"Paris"}', "completed"],
    ["get_daylight", '{"city":"Tokyo"}', "completed"],
  ]);
  assert.match(tool_calls[2].output, /"longest_day_hours":16\D/);
  for (const mark of [/^\|:?-/m, /^```ts$/m, /^\\\[$/m, /\[\^1\]/, /^\[\^1\]: /m]) assert.match(response, mark);
});

test("under an agent with tools of its own, the demo model speaks of those", async (t) => {
  const parameters = { type: "object" };
  const tools = ["refund_order", "findCustomer"].map((name) => ({
    ...{ name, description: "d", parameters },
    execute: () => `done by ${name}`,
  }));
  const { url } = await startServer(t, { agent: { name: "Shop", model: "demo", tools } });
  const answer = async (message: string) => JSON.parse(await (await post({ url }, { message, stream: false })).text());
  // The third question does not ask for a refund. In parallel, because the demo answers slowly.
  const messages = ["Hello", "find customer", "what is the status of my order?", "refund it"];
  const answers = await Promise.all(messages.map(answer));
  const [greeting = "", found = "", status = "", refund = ""] = answers.map(({ response }) => String(response));
  assert.match(greeting, /\*\*refund order\*\* runs `refund_order`/);
  assert.match(greeting, /\*\*find customer\*\* runs `findCustomer`/);
  assert.doesNotMatch(greeting, /Paris|weather/);
  assert.match(found, /done by findCustomer/);
  assert.match(status, /demo model/);
  assert.match(refund, /done by refund_order/);
});

test("the start says that the agent's own run answers, what does not survive it, and with the first message what framework it is of", async (t) => {
  const agent = `export default { name: "Mine", async *run() {
    yield { type: "raw_model_stream_event", data: { type: "output_text_delta", delta: "Hi" } };
  } };`;
  const { url, summary, warnings, log } = await serveProject(t, { "agent.ts": agent });
  assert.match(summary, /model +none: the agent's run answers\n/);
  assert.match(String(warnings), /because the agent has run and no secret is set to sign them/);
  assert.match(await (await post({ url }, { message: "Hello", stream: false })).text(), /"response":"Hi"/);
  assert.match(String(log), /Recognised what the agent's run streams: OpenAI Agents SDK\./);
});

test("the log says where in the agent's files its run threw", async (t) => {
  const agent = `import { order } from "./orders.ts";
  export default { name: "Mine", run: ({ message }) => order(message) };`;
  const orders = `export const order = (id: string) =>
    (undefined as never as { name: string }).name + id;`;
  const { url, log } = await serveProject(t, { "agent.ts": agent, "orders.ts": orders });
  await post({ url }, { message: "Hello", stream: false });
  assert.match(String(log), /The agent's run failed: .*cause: TypeError at \S+orders\.ts:2:\d+/);
});

test("the start says where an agent behind HTTP is, without its secrets", async (t) => {
  const agent = `import { agUi } from "parley-agent";
    // new MemorySaver() would be its own.
    export default { name: "A", run: agUi("http://me:secret@127.0.0.1:9/a?key=secret") };`;
  const env = { PARLEY_STATE_SECRET: "s".repeat(32) };
  const { command } = await start(t, [temporaryProject(t, { "agent.ts": agent })], { env });
  assert.match(command.stdout, /model +none: the agent at http:\/\/127\.0\.0\.1:9\/a answers, by AG-UI\n/);
  assert.doesNotMatch(command.stdout + command.stderr, /secret|remembers/);
});

test("the start says that an agent of the AI SDK answers", async (t) => {
  const agent = 'export default { name: "A", run: { version: "agent-v1", stream() {} } };';
  const { summary } = await serveProject(t, { "agent.ts": agent });
  assert.match(summary, /model +none: an agent of the AI SDK answers\n/);
});

async function namesMemory(t: Cleanup, name: string, level: string, env: Record<string, string> = {}): Promise<void> {
  const project = temporaryProject(t, {
    "agent.ts": 'import { run } from "./graphs/graph.js"; export default { name: "A", run };',
    "graphs/graph.ts": "class MemorySaver {} export const memory = new MemorySaver(); export const run = () => 'Hi';",
  });
  const command = new Command([name, project], { env: { PORT: "0", PARLEY_LOG: "json", ...env } });
  t.after(async () => {
    command.kill("SIGKILL");
    await command.end();
  });
  const sentence = "graphs/graph\\.ts makes a MemorySaver: .* another process does not";
  await command.printed("stderr", new RegExp(`"level":"${level}".*${sentence}`));
}

for (const name of ["start", "dev"]) {
  test(`parley ${name} names the memory of an agent that another process would not have`, (t) =>
    namesMemory(t, name, "info"));
}

testWithRedis(
  "the memory of an agent that another process does not have is a warning where several answer",
  (t, redis) => namesMemory(t, "start", "warn", { PARLEY_REDIS_URL: redis.url }),
);
