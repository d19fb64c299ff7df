/** What a start does not need is loaded when it is needed, and then it works. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { demoAgent } from "../../server/project/demo-agent.ts";
import { post } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { installed } from "../support/installed.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const nameOf = async (url: string) => (await (await fetch(`${url}/api/info`)).json()).name;

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
