/** Projects as people write them, in folders outside this repository. */

import assert from "node:assert/strict";
import { readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { demoAgent } from "../../server/project/demo-agent.ts";
import { post, send } from "../support/chat-transports.ts";
import { run, start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const info = async (url: string) => JSON.parse(await (await fetch(`${url}/api/info`)).text());

const PROJECTS: [name: string, files: Record<string, string>][] = [
  ["agent.ts with defineAgent", { "agent.ts": agent() }],
  ["agent.mts", { "agent.mts": agent() }],
  ["agent.js", { "agent.js": agent() }],
  ["agent.mjs", { "agent.mjs": agent() }],
  ["agent.ts under a package.json that says commonjs", { "agent.ts": agent(), "package.json": '{"type":"commonjs"}' }],
  ["agent.js of CommonJS", { "agent.js": 'module.exports = { name: "Mine", model: "demo" };' }],
  [
    "agent.js as tsc writes it for CommonJS",
    {
      "agent.js": `"use strict";
        Object.defineProperty(exports, "__esModule", { value: true });
        exports.default = { name: "Mine", model: "demo" };`,
    },
  ],
  ["a plain object", { "agent.ts": 'export default { name: "Mine", model: "demo" };' }],
  [
    "top-level await and a relative import without types",
    {
      "agent.ts": `
        import { name } from "./parts/name.ts";
        const model = await Promise.resolve("demo");
        export default { name: await name(), model };`,
      "parts/name.ts": 'export const name = async (): Promise<string> => "Mine";',
    },
  ],
  [
    "a relative import by .js that is a .ts, as tsc writes it",
    {
      "agent.ts": 'import { name } from "./name.js"; export default { name, model: "demo" };',
      "name.ts": 'export const name = "Mine";',
    },
  ],
  [
    "enums, decorators' metadata and JSON: what only a compiler can read",
    {
      "agent.ts":
        'import { name } from "./name.json"; enum Model { Demo = "demo" } export default { name, model: Model.Demo };',
      "name.json": '{"name":"Mine"}',
    },
  ],
  ["a folder with spaces and other characters", { "agent.ts": agent(), "ä b#c%20/agent.ts": agent() }],
];

for (const [name, files] of PROJECTS) {
  test(`${name} is served`, async (t) => {
    const folder = temporaryProject(t, files);
    const nested = Object.keys(files).find((file) => file.endsWith("/agent.ts"));
    const { url } = await start(t, [nested === undefined ? folder : join(folder, "ä b#c%20")]);
    assert.equal((await info(url)).name, "Mine");
  });
}

test("of several agent files the first of ts, mts, js, mjs is taken", async (t) => {
  const named = (name: string) => `export default { name: "${name}", model: "demo" };`;
  const files = { "agent.mjs": named("mjs"), "agent.mts": named("mts"), "agent.js": named("js") };
  const { url } = await start(t, [temporaryProject(t, files)]);
  assert.equal((await info(url)).name, "mts");
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
  // The demo model takes names, numbers and quotations as arguments.
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
  const folder = temporaryProject(t, {
    ".env": [
      "# a comment",
      "TITLE='From the file'",
      "MODEL=demo",
      "SET=from the file",
      "PARLEY_API_KEY=key-of-the-file",
    ].join("\n"),
    "agent.ts":
      "const { TITLE, SET, MODEL } = process.env; export default { name: [TITLE, SET].join('/'), model: MODEL };",
  });
  const { url, command } = await start(t, [folder], { env: { SET: "from outside" } });
  const { name, auth_required } = await info(url);
  assert.deepEqual([name, auth_required], ["From the file/from outside", true]);
  assert.doesNotMatch(command.stdout + command.stderr, /key-of-the-file/);
  const headers = { authorization: "Bearer key-of-the-file" };
  const answer = await post({ url }, { message: "Hi", stream: false }, { headers });
  assert.equal(answer.status, 200);
});

test("the .env of the working directory is not the project's", async (t) => {
  const cwd = temporaryProject(t, {
    ".env": "TITLE=Wrong",
    "mine/agent.ts": 'export default { name: process.env.TITLE ?? "Right", model: "demo" };',
  });
  const { url } = await start(t, ["mine"], { cwd });
  assert.equal((await info(url)).name, "Right");
});

test("parley-agent is this very package, and another package.json nearby does not matter", async (t) => {
  const folder = temporaryProject(t, {
    "package.json": '{"name":"mine","dependencies":{"parley-agent":"^99.0.0"}}',
    "agent.ts": agent(),
  });
  const { url } = await start(t, [folder]);
  assert.equal((await info(url)).name, "Mine");
});

for (const [whose, from] of [
  ["the server's package", "parley-agent"],
  ["another copy of the package", "./copy.mjs"],
] as const) {
  test(`clients get the message of a ToolError of ${whose}, and of no other error`, async (t) => {
    const folder = temporaryProject(t, {
      "copy.mjs": 'export class ToolError extends Error { [Symbol.for("parley-agent.ToolError")] = true; }',
      "agent.ts": `
        import { ToolError } from "${from}";
        const tool = (name: string, execute: () => never) =>
          ({ name, description: "d", parameters: { type: "object" }, execute });
        const error = new ToolError("Sold out.", { cause: "hunter2" });
        export default { name: "Mine", model: "demo", tools: [
          tool("meant", () => { throw error; }),
          tool("secret", () => { throw new Error("the password is hunter2"); }),
        ] };`,
    });
    const server = await start(t, [folder]);
    const { events } = await send.sse(t, server, { message: "call all tools" });
    const told = events.flatMap((event) => (event.type === "tool_result" ? [event.data] : []));
    assert.deepEqual(
      told.map(({ tool, status, output }) => [tool, status, output]),
      [
        ["meant", "failed", "Sold out."],
        ["secret", "failed", "The tool failed."],
      ],
    );
    assert.match(server.command.stderr, /"level":"warn".*\\"secret\\" failed.*hunter2.*agent\.ts/);
  });
}

function agent(): string {
  return 'import { defineAgent } from "parley-agent";\nexport default defineAgent({ name: "Mine", model: "demo" });\n';
}

test("a tool that leaves a rejected promise behind ends no conversation but its own", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": `
      const execute = () => { void Promise.reject(new Error("left behind")); return "done"; };
      const parameters = { type: "object" };
      export default { name: "Mine", model: "demo",
        tools: [{ name: "leave", description: "d", parameters, execute }] };`,
  });
  const server = await start(t, [folder]);
  for (const message of ["please leave", "hello again"]) {
    const answer = await post(server, { message, stream: false });
    assert.equal(answer.status, 200);
  }
  assert.match(server.command.stderr, /left behind/);
});

test("TypeScript is loaded where no file can be written, as in a read-only container", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts": 'enum Model { Demo = "demo" } export default { name: "Mine" as string, model: Model.Demo };',
  });
  // There is no folder below a file, and none can be made.
  const env = { TMPDIR: join(folder, "agent.ts/none") };
  const { url } = await start(t, [folder], { env });
  assert.equal((await info(url)).name, "Mine");
});

const TYPED = 'enum Name { Mine = "Mine" } export const name: string = Name.Mine;';

/** Each project is JavaScript up to the import that Node cannot follow by itself. */
const MIXED: [name: string, specifier: string, files: Record<string, string>][] = [
  ["a TypeScript file", "./parts/name.ts", { "parts/name.ts": TYPED }],
  ["a file without its extension", "./parts/name", { "parts/name.ts": TYPED }],
  ["a folder", "./parts", { "parts/index.js": 'export { name } from "./name.ts";', "parts/name.ts": TYPED }],
  [
    "a .js that is a .ts",
    "./parts/first.ts",
    { "parts/first.ts": 'export { name } from "./name.js";', "parts/name.ts": TYPED },
  ],
  ["JSON", "./parts/name.json", { "parts/name.json": '{"name":"Mine"}' }],
  [
    "TypeScript beside the project",
    "../shared/name.ts",
    { "../shared/name.ts": 'export { name } from "./typed";', "../shared/typed.ts": TYPED },
  ],
];

for (const [what, specifier, files] of MIXED) {
  test(`an agent in JavaScript imports ${what}`, async (t) => {
    const agent = `import { name } from "${specifier}"; export default { name, model: "demo" };`;
    const nested = Object.entries({ "agent.mjs": agent, ...files });
    const inFolder = nested.map(([name, text]) => [`agents/${name}`, text] as const);
    const folder = temporaryProject(t, Object.fromEntries(inFolder));
    const { url } = await start(t, [`${folder}/agents`]);
    assert.equal((await info(url)).name, "Mine");
  });
}

test("a tool in JavaScript imports TypeScript while it runs", async (t) => {
  const folder = temporaryProject(t, {
    "agent.js": `
      export default { name: "Mine", model: "demo", tools: [{
        name: "get_price", description: "Price.", parameters: { type: "object" },
        execute: async () => (await import("./price.ts")).price(),
      }] };`,
    "price.ts": 'export const price = (): string => "It costs 5";',
  });
  const { url } = await start(t, [folder]);
  const answer = await post({ url }, { message: "The price please", stream: false });
  assert.match(JSON.parse(await answer.text()).response, /It costs 5/);
});

test("the demo agent's tool tells the model which city is missing or unknown, and which argument is not its own", async () => {
  const { parameters, execute } = demoAgent().tools.get("get_weather") ?? assert.fail();
  const problems = async (value: unknown) => {
    const checked = await parameters.check(value);
    return checked.ok ? [] : checked.problems;
  };
  assert.match(String(await problems({ city: "" })), /city/);
  assert.match(String(await problems({})), /city/);
  assert.match(String(await problems({ city: "Lima", unit: "C" })), /unit/);
  assert.match(String(await problems(["Lima"])), /object/i);
  assert.deepEqual(await problems({ city: "Lima" }), []);
  const context = { signal: new AbortController().signal, callId: "1" };
  const weather = { city: "lima", celsius: 25, sky: "sunny", invented: true };
  assert.deepEqual(await execute({ city: "lima" }, context), weather);
  await assert.rejects(
    async () => execute({ city: "Atlantis" }, context),
    /does not know Atlantis\. It knows Berlin, /,
  );
});

test("compiled code is kept in the project's node_modules, never where other users can write", async (t) => {
  const temporary = temporaryProject(t, {});
  const project = temporaryProject(t, { "agent.ts": agent(), "node_modules/readme": "" });
  const bare = temporaryProject(t, { "agent.ts": agent() });
  for (const folder of [project, project, bare]) {
    const { url } = await start(t, [folder], { env: { TMPDIR: temporary } });
    assert.equal((await info(url)).name, "Mine");
  }
  assert.deepEqual(readdirSync(temporary), []);
  assert.equal(readdirSync(join(project, "node_modules/.cache/jiti")).length, 1);
});

for (const file of ["agent.mjs", "agent.js", "agent.ts"]) {
  test(`an ${file} that throws at the end is run once`, async (t) => {
    const folder = temporaryProject(t, {
      [file]: `
        import "node:fs";
        console.log("Run");
        throw new Error("no database");`,
    });
    const { stdout, stderr, code } = await run(["start", folder]);
    assert.equal(code, 1);
    assert.match(stderr, /no database/);
    assert.deepEqual(stdout.match(/Run/g), ["Run"]);
  });
}

test("a tool of a plain object imports parley-agent later", async (t) => {
  const folder = temporaryProject(t, {
    "agent.mjs": `
      export default { name: "Mine", model: "demo", tools: [{
        name: "get_price", description: "Price.", parameters: { type: "object" },
        execute: async () => typeof (await import("parley-agent")).ToolError,
      }] };`,
  });
  const { url } = await start(t, [folder]);
  const answer = await post({ url }, { message: "The price please", stream: false });
  assert.match(JSON.parse(await answer.text()).response, /function/);
});

for (const file of ["agent.mjs", "agent.js", "agent.ts"]) {
  test(`an ${file} that exports nothing as default is told so`, async (t) => {
    for (const source of ["", 'export const name = "Mine";']) {
      const { stderr, code } = await run(["start", temporaryProject(t, { [file]: source })]);
      assert.equal(code, 1);
      assert.match(stderr, /nothing is exported as default/);
    }
  });
}

test("under an agent with tools of its own, the demo model speaks of those", async (t) => {
  const tools = ["refund_order", "findCustomer"].map(
    (name) => `{ name: "${name}", description: "d", parameters: { type: "object" }, execute: () => "done by ${name}" }`,
  );
  const folder = temporaryProject(t, {
    "agent.ts": `export default { name: "Shop", model: "demo", tools: [${tools}] };`,
  });
  const { url } = await start(t, [folder]);
  const answer = async (message: string) => JSON.parse(await (await post({ url }, { message, stream: false })).text());
  const { response } = await answer("Hello");
  assert.match(response, /\*\*refund order\*\* runs `refund_order`/);
  assert.match(response, /\*\*find customer\*\* runs `findCustomer`/);
  assert.doesNotMatch(response, /Paris|weather/);
  assert.match((await answer("find customer")).response, /done by findCustomer/);
});
