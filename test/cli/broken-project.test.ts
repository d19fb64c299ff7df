import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { readEnvironment } from "../../server/config/environment.ts";
import { loadOptionalPackage, type OptionalPackage } from "../../server/config/optional-package.ts";
import { ConfigError } from "../../server/errors.ts";
import { findProject, loadProject } from "../../server/project/load-project.ts";
import { post } from "../support/chat-transports.ts";
import { installed, run } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { readMarkdown } from "../support/markdown-file.ts";
import { refused } from "../support/refused.ts";
import { serveProject } from "../support/serve-project.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { temporaryProject } from "../support/temporary-project.ts";

// For a broken project, one sentence names the file, the problem and a remedy, without a stack.

const AGENT = 'export default { name: "A", model: "demo" };';
/** An agent that imports Parley. */
const OWN = `import { defineAgent } from "parley-agent";\n${AGENT}`;

/** A project, or the text of its `agent.ts`, and the error message. */
type Broken = [project: Readonly<Record<string, string>> | string, sentence: RegExp];

const FILES: Broken[] = [
  [{ "readme.md": "", "agent.config.ts": "", "types.d.ts": "" }, /holds no agent\. Write an agent\.ts/],
  [{ "bot.ts": AGENT, "vite.config.ts": "" }, /holds no agent\. If it is bot\.ts, rename that to agent\.ts\.$/],
  [{ "a.ts": AGENT, "b.ts": AGENT }, /holds no agent\. Write an agent\.ts/],
  [{ "a.ts": OWN, "b.ts": AGENT }, /holds no agent\. If it is a\.ts, rename that to agent\.ts\.$/],
  [{ "agent.tsx": AGENT }, /agent\.tsx is not served under this name\. Rename it to agent\.ts\.$/],
  [{ "Agent.ts": AGENT }, /Agent\.ts is not served under this name\. Rename it to agent\.ts\.$/],
  [{ "AGENT.MJS": AGENT }, /AGENT\.MJS is not served under this name\. Rename it to agent\.mjs\.$/],
  [{ "agent.cjs": AGENT }, /Rename it to agent\.js\.$/],
  [{ "agents.ts": AGENT }, /Rename it to agent\.ts\.$/],
  [{ "src/agent.ts": AGENT }, /The agent is in .*src\/agent\.ts\. Give that folder: \S*src$/],
];

const MODULES: Broken[] = [
  ["export default {\n  name: 'x',\n  model = 5\n};", /agent\.ts.*:3:\d+/],
  [{ "agent.ts": "import './part.ts'; export default {};", "part.ts": "const = 5;" }, /part\.ts:1:6/],
  [{ "agent.mjs": "export default {{;" }, /agent\.mjs/],
  ["import './gone.ts'; export default {};", /gone\.ts/],
  ["import 'no-such-package'; export default {};", /Run in the agent's folder: npm install no-such-package$/],
  ["import 'parley'; export default {};", /There is no module 'parley'\. Import from "parley-agent"\.$/],
  ["throw 'oops';", /oops/],
  ["throw new Error('');", /an error without a message/],
  ["export const agent = {};", /nothing is exported as default/],
  [{ "agent.js": 'export const name = "Mine";' }, /nothing is exported as default/],
  ["", /nothing is exported as default/],
  [{ "agent.js": "" }, /nothing is exported as default/],
  [{ "agent.mjs": "" }, /nothing is exported as default/],
  [
    `const quoted = \`\nexport default 0;\`;\nexport default { quoted };\nexport default {};`,
    /agent\.ts cannot be loaded: there are two default exports\. Keep one "export default"\.$/,
  ],
  [
    { "agent.mts": "export default function one() {}\nfunction two() {}\nexport { two as default };" },
    /there are two default exports/,
  ],
  [{ "agent.js": "export default {};\nexport default {};" }, /there are two default exports/],
  [{ "agent.mjs": "export default {};\nexport default {};" }, /there are two default exports/],
  ['import "~/mail"; export default {};', /Cannot find module '~\/mail'$/],
  ["export default { model: 'demo' };", /agent\.ts: name is missing/],
  ["export default (async () => ({}))();", /agent\.ts: The agent is a promise\. Write await before it\.$/],
  ["export default async () => ({});", /The agent is a function\. Call it, with await if it is async\.$/],
  [
    "export default class { name = 'A'; }",
    /The agent is a class\. Export an object of it: export default new …\(\)\.$/,
  ],
  [
    { "agent.ts": 'import * as a from "./a.ts"; export default a;', "a.ts": AGENT },
    /The agent is a module\. Use what it exports as default: export \{ default \} from "…"\.$/,
  ],
  ['class A { name = "A"; model = "demo"; onMesage() {} } export default new A();', /Did you mean onMessage\?$/],
];

/** A module with another export besides its agent, which has `fields`. */
const beside = (exported: string, fields = ""): string =>
  `${exported}\nexport default { name: "A", ${fields || 'model: "demo"'} };`;

const FIELD = /is exported beside the agent, where it does nothing\. Make it a field: defineAgent\(\{ (\w+), … \}\)/;

const BESIDE: Broken[] = [
  [beside('export const authenticate = "jwt";'), /authenticate must be a function that says who sends a message\.$/],
  [beside("export const close = {};"), /close must be a function that closes what the module has opened\.$/],
  [
    beside("export async function autenticate() {}"),
    /autenticate is exported, which does nothing\. .* authenticate\?$/,
  ],
  [beside("export const devUser = [];"), /devUser is exported, which does nothing\. Did you mean devUsers\?$/],
  [
    beside("", 'model: "demo", devUsers: []'),
    /devUsers is not a field .* beside the agent: export const devUsers = \[ … \];$/,
  ],
  [beside("export function Close() {}"), /Close is exported, which does nothing\. Did you mean close\?$/],
  [beside("export const onRunend = () => {};"), /Did you mean onRunEnd, a field of the agent\?$/],
  [AGENT.replace("}", ", authenticate() {} }"), /authenticate is not a field .* Export it beside the agent/],
  ...["onMessage", "onAnswer", "onRunEnd", "onFeedback", "instructions", "tools", "run"].map(
    (name): Broken => [beside(`export function ${name}() {}`), FIELD],
  ),
  [beside("export const tools = [], maxTurns = 3;"), FIELD],
  [beside("export const chat = { welcome: 'Hi' };"), FIELD],
  [beside("export const onMessage = () => {};", 'model: "demo", onMessage() {}'), FIELD],
  [{ "agent.js": 'exports.default = { name: "A", model: "demo" }; exports.onMessage = () => {};' }, FIELD],
];

for (const [what, rows] of Object.entries({ files: FILES, modules: MODULES, "exports beside the agent": BESIDE })) {
  for (const [project, sentence] of rows) {
    const files = typeof project === "string" ? { "agent.ts": project } : project;
    test(`wrong ${what} are refused in one sentence: ${JSON.stringify(files)}`, async (t) => {
      await assert.rejects(loadProject(temporaryProject(t, files)), refused(sentence));
    });
  }
}

test("what the agent has as well may be exported beside it, and so may other things of the same names", async (t) => {
  for (const module of [
    `export const tools = [], name = "A", onMessage = () => {}; export const agent = { name, tools, model: "demo", onMessage }; export default agent;`,
    beside("export const instructions = 'x';", 'model: "demo", instructions: () => instructions + "y"'),
    // Parts of a framework's agent.
    beside("export const tools = [], model = {}, agent = {};", "run: () => 'Hi'"),
    beside(
      "export const store = new Map(), onMessage = undefined; export function answer() {} export function clone() {}",
    ),
  ]) {
    await loadProject(temporaryProject(t, { "agent.ts": module }));
  }
});

test("an object of a class is an agent whose functions keep their this", async (t) => {
  const agent = `class Mine { name = "A"; model = "demo"; #word = "no"; onMessage() { return { refuse: this.#word }; } }
    export default new Mine();`;
  const { url } = await serveProject(t, { "agent.ts": agent });
  assert.match(await (await post({ url }, { message: "Hi", stream: false })).text(), /"response":"no"/);
});

const ENDS: Broken[] = [
  ["process.exit(0);", /agent\.ts, or a file that it imports, ended the process/],
  ["await new Promise(() => {}); export default {};", /agent\.ts/],
];

for (const [agent, sentence] of ENDS) {
  test(`a project with ${agent} is one sentence and exit code 1`, async (t) => {
    const { code, stdout, stderr } = await run(["start", temporaryProject(t, { "agent.ts": String(agent) })]);
    assert.match(stderr, sentence);
    assert.match(stderr, /^parley: [^\n]+\n(?: {4}at [\w./]+:\d+\n)*$/, "one line, and places in the project");
    assert.doesNotMatch(stderr, /node:internal|node_modules/);
    assert.deepEqual([code, stdout], [1, ""]);
  });
}

test("a folder whose agent has another name is refused without a path, too, and not served as the demo", async (t) => {
  const cwd = temporaryProject(t, { "bot.ts": OWN, "other.ts": "export {};", "next.js/readme.md": "" });
  const { code, stderr } = await run(["start", "--port", "0"], { cwd });
  assert.equal(code, 1);
  assert.match(stderr, /holds no agent\. If it is bot\.ts, rename that to agent\.ts\.\n$/);
});

test("an error while a project loads names file and line, and the project's own files that led there", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts":
      'import { connect } from "./lib/db.ts";\n\ninterface Shop { id: string }\nconst db: Shop = connect();\nexport default { name: db.id, model: "demo" };',
    "lib/db.ts":
      'type Never = never;\n\nexport function connect(): Never {\n  throw new Error("No database at localhost:5432");\n}',
  });
  await assert.rejects(loadProject(folder), {
    message: `${folder}/agent.ts cannot be loaded: No database at localhost:5432\n    at lib/db.ts:4\n    at agent.ts:4`,
  });
});

test("a top-level await that takes longer than five seconds is told of, and waited for", async (t) => {
  const held = gate();
  const agent = "await globalThis.heldByATest; export default { name: 'Late', model: 'demo' };";
  const folder = temporaryProject(t, { "agent.ts": agent });
  Object.assign(globalThis, { heldByATest: held.opened });
  const clock = stopClock(t);
  const written = t.mock.method(process.stderr, "write", () => true);
  const loading = loadProject(folder);
  clock.tick(5000);
  written.mock.restore();
  const told = written.mock.calls.map((call) => String(call.arguments[0])).join("");
  assert.match(
    told,
    /^parley: agent\.ts is still loading\. It imports large packages, the machine is busy, or a top-level await in it.* has not finished\.\n$/,
  );
  held.open();
  assert.equal((await loading).agent.name, "Late");
});

test("a file instead of a folder, and a folder instead of .env, are named as such", (t) => {
  const folder = temporaryProject(t, { "agent.ts": "export default {};", "b/.env/x": "" });
  const file = join(folder, "agent.ts");
  assert.throws(() => findProject(file), refused(/is a file\. Give its folder: \S+$/));
  assert.throws(() => readEnvironment({}, join(folder, "b")), refused(/\.env cannot be read/));
});

const TOOL = { name: "t", description: "d", parameters: { type: "object" }, execute() {} };
const withTool = (fields: object) => ({ tools: [{ ...TOOL, ...fields }] });
const withSchema = (properties: object) => withTool({ parameters: { type: "object", properties } });
const LATER = Promise.resolve("x");
class Graph {
  stream() {}
}

/** Fields in addition to a valid demo agent, and the error message. */
const WRONG_AGENTS: [fields: unknown, sentence: RegExp][] = [
  [5, /The agent must be an object/],
  [[], /The agent must be an object/],
  [{ name: undefined }, /name is missing/],
  [{ name: 5 }, /name must be a string/],
  [{ name: "x".repeat(201) }, /^name must be at most 200 characters/],
  [{ model: undefined }, /model is missing\. Set it to a name such as "demo" or .*, or write run in its place\.$/],
  [
    { model: { version: "agent-v1", stream() {} } },
    /^model is an agent, not a model\. Write it into run: .*run: agent/,
  ],
  [
    { model: new Graph() },
    /^model is an agent, not a model\. Call it in run, and return its stream: run: \(\{ messages/,
  ],
  [{ model: undefined, run: new Graph() }, /^run must be a function .* Call it in run, and return its stream/],
  [{ model: undefined, name: undefined, stream() {} }, /^The agent is one of a framework\. Call it in run/],
  [{ model: undefined, run: LATER }, /^run is a promise\. Write await before it\.$/],
  [{ id: " " }, /id is missing\. Set it to a string that is not empty/],
  [{ id: 7 }, /id must be a string/],
  [{ id: "x".repeat(201) }, /^id must be at most 200 characters/],
  [{ instructions: LATER }, /^instructions is a promise\. Write await before it\.$/],
  [{ instructions: ["x"] }, /^instructions must be a string, or a function that returns one\.$/],
  [{ maxTurns: 0 }, /maxTurns must be a whole number from 1 to 1000/],
  [{ reasoningEffort: "max" }, /^reasoningEffort must be one of none, minimal, low, medium, high, xhigh\.$/],
  [{ temperature: 3 }, /^temperature must be a number from 0 to 2\.$/],
  [{ maxOutputTokens: 0.5 }, /^maxOutputTokens must be a whole number above 0\.$/],
  [{ extraBody: "x" }, /^extraBody must be an object\.$/],
  [{ store: "no" }, /^store must be true or false\.$/],
  [{ welcome: "x" }, /^welcome is not a field of an agent\. Write chat: \{ welcome: … \}\.$/],
  [{ system: "x" }, /^system is not a field .* Did you mean instructions\?$/],
  [{ instruction: "x" }, /Did you mean instructions\?/],
  [{ onFinish() {} }, /Did you mean onRunEnd\?$/],
  [{ apiKey: "x" }, /^apiKey is not a field of an agent\. Keys are settings: set OPENAI_API_KEY/],
  [{ colour: "x" }, /colour is not a field of an agent\. The fields are name, agent, model/],
  [{ tools: {} }, /tools must be an array/],
  [{ tools: [TOOL, TOOL] }, /Two tools are named "t"/],
  [withTool({ execute: undefined }), /"t" has no execute/],
  [withTool({ name: "get weather" }), /tools\[0\]\.name must be 1 to 64/],
  [withTool({ description: "" }), /description of the tool "t" is missing/],
  [withTool({ parameters: undefined }), /parameters of the tool "t" must be a zod object/],
  [withTool({ parameters: { type: "objekt" } }), /but has "objekt"/],
  [withTool({ timeoutMs: 0 }), /timeoutMs of the tool "t"/],
  [withTool({ timeout: 5 }), /"t" has a field timeout, .* Did you mean timeoutMs\?/],
  [withTool({ requiresApproval: true }), /"t" has a field requiresApproval, .* Did you mean needsApproval\?/],
  [withTool({ danger: true }), /^danger of the tool "t" does nothing without needsApproval\./],
  [withTool({ execute: undefined, run() {} }), /field run, .* Did you mean execute\?/],
  [
    withTool({ parameters: { type: "object", required: "city" } }),
    /\/required: must be of the type "array", but is of /,
  ],
  [withSchema({ a: { $ref: "#/nope" } }), /parameters of the tool "t"/],
  [withSchema({ city: { type: "sting" } }), /"t" are not a JSON Schema: \/properties\/city\/type: .*"string"/],
  [withSchema({ city: { anyOf: [{ type: "string", required: true }] } }), /\/properties\/city\/anyOf\/0\/required/],
  [
    withSchema({ city: "string" }),
    /\/city: must be a schema, such as \{ type: "string" \}, but is of the type "string"/,
  ],
];

for (const [fields, sentence] of WRONG_AGENTS) {
  const agent = typeof fields === "object" && !Array.isArray(fields) ? { name: "A", model: "demo", ...fields } : fields;
  test(`a wrong agent is refused in one sentence: ${sentence.source}`, () => {
    assert.throws(() => checkAgent(agent), refused(sentence));
  });
}

// Packages that only some models need: from the project, then from Parley's installation; otherwise one sentence.

const SDK = "@aws-sdk/client-bedrock-runtime";

/** The files of a package with this name and module source. */
function packageFiles(name: string, module: string): Record<string, string> {
  const manifest = { name, version: "1.99.0", type: "module", main: "index.js" };
  const folder = `node_modules/${name}`;
  return {
    [`${folder}/package.json`]: JSON.stringify(manifest),
    [`${folder}/index.js`]: module,
  };
}

test("a project's own package comes before the one beside Parley", async (t) => {
  const own = temporaryProject(t, packageFiles(SDK, 'export const mark = "own";'));
  const nested = join(own, "agents/acme");
  mkdirSync(nested, { recursive: true });
  for (const folder of [own, nested]) {
    assert.deepEqual({ ...((await loadOptionalPackage(SDK, folder)) as object) }, { mark: "own" });
  }
});

test("a project without the package, and no project, get the one beside Parley", async (t) => {
  const beside = await import(SDK);
  assert.equal(await loadOptionalPackage(SDK, temporaryProject(t, {})), beside);
  assert.equal(await loadOptionalPackage(SDK, undefined), beside);
});

const NEEDED: readonly OptionalPackage[] = [SDK, "google-auth-library"];

const BROKEN_PACKAGES: [how: string, files: (name: string) => Record<string, string>][] = [
  ["lacks one of its own", (name) => packageFiles(name, 'import "gone"; export {};')],
  ["throws", (name) => packageFiles(name, 'throw new Error("first line\\nsecond line");')],
  ["has no main file", (name) => ({ [`node_modules/${name}/package.json`]: '{"main":"gone.js"}' })],
  ["exports nothing", (name) => ({ [`node_modules/${name}/package.json`]: '{"exports":{}}' })],
];

for (const [how, files] of BROKEN_PACKAGES) {
  test(`a package that is there but ${how} is refused as broken, with the command that docs/providers.md names`, async (t) => {
    const page = readMarkdown("docs/providers.md");
    for (const name of NEEDED) {
      const failure = await loadOptionalPackage(name, temporaryProject(t, files(name))).then(
        () => assert.fail("it was loaded"),
        (error: unknown) => (error instanceof ConfigError ? error : assert.fail(String(error))),
      );
      assert.ok(failure.message.startsWith(`The package ${name} cannot be loaded: `), failure.message);
      const [, command = ""] = /\. Run this in the project's folder: (npm install \S+)$/.exec(failure.message) ?? [];
      assert.ok(page.includes(`\`${command}\``), failure.message);
    }
  });
}

const agent = { "agent.ts": `export default { name: "Mine", model: "bedrock/amazon.nova-lite-v1:0" };` };
const env = { AWS_REGION: "us-east-1" };

test("a missing package stops the start with the command that installs it, and other models do not ask for it", async (t) => {
  const cli = installed(t);
  const end = await run(["start", temporaryProject(t, agent)], { cli, env });
  assert.match(
    end.stderr,
    /^parley: This model needs the package @aws-sdk\/client-bedrock-runtime, which is not installed\. [^\n]*npm install @aws-sdk\/client-bedrock-runtime@3\n$/,
  );
  assert.equal(end.code, 1);
  const other = { "agent.ts": 'export default { name: "Mine", model: "litellm/x" };' };
  assert.match((await run(["start", temporaryProject(t, other)], { cli })).stderr, /LITELLM_BASE_URL/);
});

test("a broken package beside Parley stops the start in one sentence", async (t) => {
  const cli = installed(t, packageFiles(SDK, 'throw new Error("first line\\nsecond line");'));
  const { code, stderr } = await run(["start", temporaryProject(t, agent)], { cli, env });
  assert.match(
    stderr,
    /^parley: The package @aws-sdk\/client-bedrock-runtime cannot be loaded: first line\. [^\n]+\n$/,
  );
  assert.equal(code, 1);
});
