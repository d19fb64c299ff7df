import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { checkAgent } from "../../server/agent/define.ts";
import { readEnvironment } from "../../server/config/environment.ts";
import { loadOptionalPackage, type OptionalPackage } from "../../server/config/optional-package.ts";
import { ConfigError } from "../../server/errors.ts";
import { findProject, loadAgent } from "../../server/project/load-project.ts";
import { REPOSITORY, run } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { readMarkdown } from "../support/markdown-file.ts";
import type { Cleanup } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { temporaryProject } from "../support/temporary-project.ts";

interface Installation {
  /** Beside what npm installs. */
  files?: Readonly<Record<string, string>>;
}

/** Parley as npm installs it, without the packages that are optional; returns the path of its command. */
function installed(t: Cleanup, { files }: Installation = {}): string {
  const manifest = readFileSync(join(REPOSITORY, "package.json"), "utf8");
  const folder = temporaryProject(t, { "package.json": manifest, ...files });
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), { recursive: true });
  for (const name of Object.keys(JSON.parse(manifest).dependencies)) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(REPOSITORY, "node_modules", name), link);
  }
  return join(folder, "dist/cli.js");
}

// A broken project says which file, what is wrong and what to do: one sentence, exit code 1, no stack.

const NEAR_MISSES: [file: string, sentence: RegExp][] = [
  ["agent.tsx", /agent\.tsx is not served under this name\. Rename it to agent\.ts\.$/],
  ["Agent.ts", /Agent\.ts is not served under this name\. Rename it to agent\.ts\.$/],
  ["AGENT.MJS", /AGENT\.MJS is not served under this name\. Rename it to agent\.mjs\.$/],
  ["agent.cjs", /Rename it to agent\.js\.$/],
  ["agents.ts", /Rename it to agent\.ts\.$/],
  ["src/agent.ts", /The agent is in .*src\/agent\.ts\. Give that folder: parley start \S*src$/],
];

const BROKEN: [name: string, files: Record<string, string>, sentence: RegExp][] = [
  ["no agent file", { "readme.md": "" }, /holds no agent\. Write an agent\.ts/],
  ...NEAR_MISSES.map(([file, sentence]): [string, Record<string, string>, RegExp] => [
    `${file} alone`,
    { [file]: "export default {};" },
    sentence,
  ]),
  [
    "an authenticate that is none",
    { "agent.js": 'export default { name: "A", model: "demo" };\nexport const authenticate = "jwt";' },
    /agent\.js: authenticate must be a function that says who sends a message\.$/,
  ],
  [
    "a misspelt authenticate",
    { "agent.js": 'export default { name: "A", model: "demo" };\nexport async function autenticate() {}' },
    /agent\.js: autenticate is exported, which does nothing\. Did you mean authenticate\?$/,
  ],
  [
    "authenticate in the agent",
    { "agent.js": 'export default { name: "A", model: "demo", authenticate() {} };' },
    /authenticate is not a field of an agent\. Export it beside the agent: export function authenticate\(\)/,
  ],
  [
    "two default exports",
    { "agent.ts": `const quoted = \`\nexport default 0;\`;\nexport default { quoted };\nexport default {};` },
    /agent\.ts cannot be loaded: there are two default exports\. Keep one "export default"\.$/,
  ],
  [
    "two default functions, one of them by another name",
    { "agent.mts": "export default function one() {}\nfunction two() {}\nexport { two as default };" },
    /there are two default exports/,
  ],
  ...["agent.js", "agent.mjs"].map((file): [string, Record<string, string>, RegExp] => [
    `two default exports in ${file}`,
    { [file]: "export default {};\nexport default {};" },
    /there are two default exports/,
  ]),
  [
    "a syntax error in an import",
    { "agent.ts": "import './part.ts'; export default {};", "part.ts": "const = 5;" },
    /part\.ts:1:6/,
  ],
  ["a syntax error in JavaScript", { "agent.mjs": "export default {{;" }, /agent\.mjs/],
  ["a missing import", { "agent.ts": "import './gone.ts'; export default {};" }, /gone\.ts/],
  [
    "a missing package",
    { "agent.ts": "import 'no-such-package'; export default {};" },
    /Run in the agent's folder: npm install no-such-package$/,
  ],
  [
    "the name of the command as that of the package",
    { "agent.ts": "import 'parley'; export default {};" },
    /There is no module 'parley'\. Import from "parley-agent"\.$/,
  ],
  ["an exception that is no error", { "agent.ts": "throw 'oops';" }, /oops/],
  ["an error without a message", { "agent.ts": "throw new Error('');" }, /an error without a message/],
  ["no default export", { "agent.ts": "export const agent = {};" }, /nothing is exported as default/],
  ["no default export of CommonJS", { "agent.js": 'export const name = "Mine";' }, /nothing is exported as default/],
  ["nothing in it", { "agent.ts": "" }, /nothing is exported as default/],
  ["nothing in it in JavaScript", { "agent.js": "" }, /nothing is exported as default/],
  ["nothing in it that Node loads", { "agent.mjs": "" }, /nothing is exported as default/],
  ["an agent that is none", { "agent.ts": "export default { model: 'demo' };" }, /agent\.ts: name is missing/],
];

for (const [name, files, sentence] of BROKEN) {
  test(`a project with ${name} is refused in one sentence`, async (t) => {
    await assert.rejects(loadAgent(temporaryProject(t, files)), (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      assert.match(error.message.replace(/(?:\n {4}at [\w./]+:\d+)*$/, ""), sentence);
      assert.match(error.message, /^[^\n]+(?:\n {4}at [\w./]+:\d+)*$/, "one line, and places in the project");
      assert.doesNotMatch(error.message, /node:internal|node_modules/);
      return true;
    });
  });
}

const BROKEN_FOR_THE_COMMAND: typeof BROKEN = [
  ["a syntax error", { "agent.ts": "export default {\n  name: 'x',\n  model = 5\n};" }, /agent\.ts.*:3:\d+/],
  ["a process.exit", { "agent.ts": "process.exit(0);" }, /agent\.ts, or a file that it imports, ended the process/],
  ["an await that never ends", { "agent.ts": "await new Promise(() => {}); export default {};" }, /agent\.ts/],
  [
    "a setting in .env that is wrong",
    { "agent.ts": "export default { name: 'x', model: 'demo' };", ".env": "PARLEY_DRAIN_SECONDS=x" },
    /PARLEY_DRAIN_SECONDS/,
  ],
  [
    "a model without its key",
    { "agent.ts": "export default { name: 'x', model: 'openai/gpt-5.2' };" },
    /OPENAI_API_KEY/,
  ],
];

for (const [name, files, sentence] of BROKEN_FOR_THE_COMMAND) {
  test(`a project with ${name} is one sentence and exit code 1`, async (t) => {
    const { code, stdout, stderr } = await run(["start", temporaryProject(t, files), "--port", "0"]);
    assert.match(stderr, sentence);
    assert.match(stderr, /^parley: [^\n]+\n(?: {4}at [\w./]+:\d+\n)*$/, "one line, and places in the project");
    assert.doesNotMatch(stderr, /node:internal|node_modules/);
    assert.deepEqual([code, stdout], [1, ""]);
  });
}

test("an error while a project loads names file and line, and the project's own files that led there", async (t) => {
  const folder = temporaryProject(t, {
    "agent.ts":
      'import { connect } from "./lib/db.ts";\n\ninterface Shop { id: string }\nconst db: Shop = connect();\nexport default { name: db.id, model: "demo" };',
    "lib/db.ts":
      'type Never = never;\n\nexport function connect(): Never {\n  throw new Error("No database at localhost:5432");\n}',
  });
  const { code, stderr } = await run(["start", folder, "--port", "0"]);
  assert.match(
    stderr,
    /agent\.ts cannot be loaded: No database at localhost:5432\n {4}at lib\/db\.ts:4\n {4}at agent\.ts:4\n$/,
  );
  assert.equal(code, 1);
});

test("a top-level await that takes longer than five seconds is told of, and waited for", async (t) => {
  const held = gate();
  const agent = "await globalThis.heldByATest; export default { name: 'Late', model: 'demo' };";
  const folder = temporaryProject(t, { "agent.ts": agent });
  Object.assign(globalThis, { heldByATest: held.opened });
  const clock = stopClock(t);
  const written = t.mock.method(process.stderr, "write", () => true);
  const loading = loadAgent(folder);
  clock.tick(5000);
  written.mock.restore();
  const told = written.mock.calls.map((call) => String(call.arguments[0])).join("");
  assert.match(
    told,
    /^parley: agent\.ts is still loading\. It imports large packages, or a top-level await in it.* has not finished\.\n$/,
  );
  held.open();
  assert.equal((await loading).name, "Late");
});

test("a file instead of a folder, and a folder instead of .env, are named as such", (t) => {
  const folder = temporaryProject(t, { "agent.ts": "export default {};", "b/.env/x": "" });
  const file = join(folder, "agent.ts");
  assert.throws(() => findProject(file), refuses(/is a file\. Give its folder: parley start /));
  assert.throws(() => readEnvironment({}, join(folder, "b")), refuses(/\.env cannot be read/));
});

const refuses = (sentence: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  assert.match(error.message, sentence);
  return true;
};

const TOOL = { name: "t", description: "d", parameters: { type: "object" }, execute() {} };
const exporting = (fields: object) => ({ name: "Mine", model: "demo", ...fields });
const withTool = (fields: object) => exporting({ tools: [{ ...TOOL, ...fields }] });
const NO_SCHEMA = { type: "object", properties: { a: { $ref: "#/nope" } }, required: ["a"] };

const WRONG_AGENTS: [name: string, exported: unknown, sentence: RegExp][] = [
  ["a default export of another type", 5, /must be an agent/],
  ["no name", { model: "demo" }, /name is missing/],
  ["no model", { name: "x" }, /model is missing\. Set it to a name such as "demo" or .*, or write run in its place\.$/],
  ["an empty id", { name: "x", model: "demo", id: " " }, /id is missing\. Set it to a string that is not empty/],
  ["an id that is no text", { name: "x", model: "demo", id: 7 }, /id must be a string/],
  ["a long id", { name: "x", model: "demo", id: "x".repeat(201) }, /^id must be at most 200 characters/],
  ["a long name", { name: "x".repeat(201), model: "demo" }, /^name must be at most 200 characters/],
  ["a name that is no text", exporting({ name: 5 }), /name must be a string/],
  ["maxTurns of 0", exporting({ maxTurns: 0 }), /maxTurns must be a whole number from 1 to 1000/],
  ["tools that are no array", exporting({ tools: {} }), /tools must be an array/],
  ["suggestions that are no array", exporting({ chat: { suggestions: "x" } }), /chat\.suggestions must be an array/],
  ["a tool without execute", withTool({ execute: undefined }), /"t" has no execute/],
  ["a tool with a bad name", withTool({ name: "get weather" }), /tools\[0\]\.name must be 1 to 64/],
  ["a tool without description", withTool({ description: "" }), /description of the tool "t" is missing/],
  ["a tool without parameters", withTool({ parameters: undefined }), /parameters of the tool "t" must be a zod object/],
  ["a tool with a bad schema", withTool({ parameters: NO_SCHEMA }), /parameters of the tool "t"/],
  ["a tool with a bad timeoutMs", withTool({ timeoutMs: 0 }), /timeoutMs of the tool "t"/],
  [
    "another package's name of a field",
    exporting({ system: "x" }),
    /^system is not a field .* Did you mean instructions\?$/,
  ],
  ["a misspelt field", exporting({ instruction: "x" }), /Did you mean instructions\?/],
  [
    "a field that resembles none",
    exporting({ colour: "x" }),
    /colour is not a field of an agent\. The fields are name, agent, model/,
  ],
  ["a misspelt field of chat", exporting({ chat: { welcom: "x" } }), /chat\.welcom .* Did you mean chat\.welcome\?/],
  ["a misspelt field of a tool", withTool({ timeout: 5 }), /"t" has a field timeout, .* Did you mean timeoutMs\?/],
  ["a tool that has run", withTool({ execute: undefined, run() {} }), /field run, .* Did you mean execute\?/],
  [
    "a tool whose schema has a type that is none",
    withTool({ parameters: { type: "object", properties: { city: { type: "sting" } } } }),
    /parameters of the tool "t" are not a JSON Schema: \/properties\/city\/type: .*"string"/,
  ],
  [
    "a tool whose schema has required in a property",
    withTool({ parameters: { type: "object", properties: { city: { anyOf: [{ type: "string", required: true }] } } } }),
    /\/properties\/city\/anyOf\/0\/required/,
  ],
  [
    "a tool whose schema has a type in the place of a property's schema",
    withTool({ parameters: { type: "object", properties: { city: "string" } } }),
    /\/properties\/city: must be a schema, such as \{ type: "string" \}, but is of the type "string"\.$/,
  ],
  [
    "a tool whose schema requires a text",
    withTool({ parameters: { type: "object", required: "city" } }),
    /\/required: must be of the type "array", but is of the type "string"\.$/,
  ],
  ["a tool whose schema is of something else", withTool({ parameters: { type: "objekt" } }), /but has "objekt"/],
  ["two tools of one name", exporting({ tools: [TOOL, TOOL] }), /Two tools are named "t"/],
];

for (const [name, exported, sentence] of WRONG_AGENTS) {
  test(`an agent with ${name} is refused in one sentence`, () => {
    assert.throws(() => checkAgent(exported), refuses(sentence));
  });
}

// Packages that only some models need: the project's own first, then the one beside Parley, else one sentence.

const SDK = "@aws-sdk/client-bedrock-runtime";

/** The files of a package of that name, whose module is this text. */
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
  const cli = installed(t, { files: packageFiles(SDK, 'throw new Error("first line\\nsecond line");') });
  const { code, stderr } = await run(["start", temporaryProject(t, agent)], { cli, env });
  assert.match(
    stderr,
    /^parley: The package @aws-sdk\/client-bedrock-runtime cannot be loaded: first line\. [^\n]+\n$/,
  );
  assert.equal(code, 1);
});
