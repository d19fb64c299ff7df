/** What a start does not need is loaded when it is needed, and then it works. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { demoAgent } from "../../server/project/demo-agent.ts";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { installed } from "../support/installed.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const nameOf = async (url: string) => (await (await fetch(`${url}/api/info`)).json()).name;

const HEAVY = ["@cfworker/json-schema", "openai", "tsx", "ws"];

const PLAIN: [name: string, files: Record<string, string>][] = [
  [
    "a module with imports of its own",
    {
      "agent.mjs": `
        import { defineAgent } from "parley-agent";
        import { name } from "./parts/name.mjs";
        export default defineAgent({ name, model: "openai/gpt-5.2" });`,
      "parts/name.mjs": 'export const name = await Promise.resolve("Mine");',
    },
  ],
  [
    "an object in a .js that no package.json calls a module",
    { "agent.js": 'export default { name: "Mine", model: "openai/gpt-5.2" };' },
  ],
];

for (const [what, files] of PLAIN) {
  test(`${what} is served without any of Parley's packages`, async (t) => {
    const cli = installed(t, { without: HEAVY });
    const env = { OPENAI_API_KEY: "sk-test" };
    const { url } = await start(t, [temporaryProject(t, files)], { cli, env });
    assert.equal(await nameOf(url), "Mine");
  });
}

test("the demo agent is served without any of Parley's packages, and its tools work", async (t) => {
  const cli = installed(t, { without: HEAVY });
  const { url } = await start(t, [], { cli });
  const question = { message: "What is the weather in Paris and Tokyo?", stream: false };
  const { response } = JSON.parse(await (await post({ url }, question)).text());
  assert.match(response, /Paris/);
  assert.match(response, /Tokyo/);
});

test("the demo agent's tools tell the model which city is missing, and what is none of their arguments", async () => {
  const { parameters } = demoAgent().tools.get("measure_distance") ?? assert.fail();
  assert.deepEqual(await parameters.check({ from: "", to: "Paris" }), {
    ok: false,
    problems: ["/from: must name a city"],
  });
  assert.deepEqual(await parameters.check({ from: "Lima", to: "Paris", unit: "km", via: 1 }), {
    ok: false,
    problems: ["/unit: is not an argument of this tool", "/via: is not an argument of this tool"],
  });
  assert.deepEqual(await parameters.check(["Lima"]), {
    ok: false,
    problems: ["/: must be an object"],
  });
  assert.deepEqual(await parameters.check({ from: "Lima", to: "Paris" }), {
    ok: true,
    value: { from: "Lima", to: "Paris" },
  });
});

test("a start reads one file beside the command, and no provider that it does not serve", async (t) => {
  const cli = installed(t);
  const [needed] = /cli-[\w-]+\.js/.exec(readFileSync(cli, "utf8")) ?? [];
  assert.ok(needed);
  const built = readdirSync(dirname(cli));
  const others = built.filter((name) => /^cli-.+\.js$/.test(name) && name !== needed);
  assert.ok(others.length > 0);
  for (const name of others) rmSync(join(dirname(cli), name));
  const agent = 'export default { name: "Mine", model: "openai/gpt-5.2" };';
  const project = temporaryProject(t, { "agent.mjs": agent });
  const { url } = await start(t, [project], { cli, env: { OPENAI_API_KEY: "sk-test" } });
  assert.equal(await nameOf(url), "Mine");
});

/** Node's own: the slowest, and what an import of all names would make. */
const SLOW = [
  "crypto",
  "internal/blocklist",
  "internal/mime",
  "internal/util/parse_args/parse_args",
  "worker_threads",
  "zlib",
];

/** What a bare server loads, which is more on newer versions of Node. */
const BARE = execFileSync(
  process.execPath,
  [
    "--input-type=module",
    "--eval",
    'import "node:http"; console.log(process.moduleLoadList.join());',
  ],
  { encoding: "utf8", env: { ...process.env, NODE_OPTIONS: "" } },
);

test("the first answer waits for none of Node's slow modules, and later ones have them", async (t) => {
  const project = temporaryProject(t, {
    "agent.mjs": `
      // What the server does a moment after its start is not part of one.
      const { setTimeout } = globalThis;
      globalThis.setTimeout = (run, ms) => setTimeout(run, ms + 600_000);
      process.on("SIGUSR2", () => console.log(\`loaded: \${process.moduleLoadList.join(", ")};\`));
      export default { name: "Mine", model: "demo" };`,
  });
  const { command, url } = await start(t, [project], { env: { PARLEY_LOG: "off" } });
  assert.equal((await fetch(`${url}/health`)).status, 200);
  command.kill("SIGUSR2");
  const loaded = (await command.printed("stdout", /loaded: (.+);/)).split(", ");
  assert.ok(loaded.includes("NativeModule http"));
  assert.deepEqual(
    SLOW.filter((name) => loaded.includes(`NativeModule ${name}`)),
    SLOW.filter((name) => BARE.split(/,\s*/).includes(`NativeModule ${name}`)),
  );
  assert.equal((await fetch(url)).headers.get("content-encoding"), "gzip");
});

const TYPED = 'enum Name { Mine = "Mine" } export const name: string = Name.Mine;';

/** Each project is JavaScript up to the import that Node cannot follow by itself. */
const MIXED: [name: string, specifier: string, files: Record<string, string>][] = [
  ["a TypeScript file", "./parts/name.ts", { "parts/name.ts": TYPED }],
  ["a file without its extension", "./parts/name", { "parts/name.ts": TYPED }],
  [
    "a folder",
    "./parts",
    { "parts/index.js": 'export { name } from "./name.ts";', "parts/name.ts": TYPED },
  ],
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
    assert.equal(await nameOf(url), "Mine");
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
