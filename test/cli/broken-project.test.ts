/** A broken project says which file, what is wrong and what to do: one sentence, exit code 1, no stack. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const exporting = (fields: string) => ({
  "agent.ts": `export default { name: "Mine", model: "demo", ${fields} };`,
});
const withTool = (fields: string) =>
  exporting(`tools: [{ name: "t", description: "d", parameters: { type: "object" }, execute() {}, ${fields} }]`);

const BROKEN: [name: string, files: Record<string, string>, sentence: RegExp][] = [
  ["no agent file", { "readme.md": "" }, /holds no agent\. Write an agent\.ts/],
  ["a syntax error", { "agent.ts": "export default {\n  name: 'x',\n  model = 5\n};" }, /agent\.ts.*:3:\d+/],
  [
    "a syntax error in an import",
    { "agent.ts": "import './part.ts'; export default {};", "part.ts": "const = 5;" },
    /part\.ts:1:6/,
  ],
  ["a syntax error in JavaScript", { "agent.mjs": "export default {{;" }, /agent\.mjs/],
  ["a missing import", { "agent.ts": "import './gone.ts'; export default {};" }, /gone\.ts/],
  ["a missing package", { "agent.ts": "import 'no-such-package'; export default {};" }, /no-such-package/],
  ["an error while it loads", { "agent.ts": "throw new Error('No database');" }, /No database/],
  ["an exception that is no error", { "agent.ts": "throw 'oops';" }, /oops/],
  ["no default export", { "agent.ts": "export const agent = {};" }, /nothing is exported as default/],
  ["a default export of another type", { "agent.ts": "export default 5;" }, /must be an agent/],
  ["an await that never ends", { "agent.ts": "await new Promise(() => {}); export default {};" }, /agent\.ts/],
  ["no name", { "agent.ts": "export default { model: 'demo' };" }, /name is missing/],
  ["no model", { "agent.ts": "export default { name: 'x' };" }, /model is missing/],
  ["a name that is no text", { "agent.ts": "export default { name: 5, model: 'demo' };" }, /name must be a string/],
  ["maxTurns of 0", exporting("maxTurns: 0"), /maxTurns must be a whole number from 1 to 1000/],
  ["tools that are no array", exporting("tools: {}"), /tools must be an array/],
  ["suggestions that are no array", exporting("chat: { suggestions: 'x' }"), /chat\.suggestions must be an array/],
  ["a tool without execute", withTool("execute: undefined"), /"t" has no execute/],
  ["a tool with a bad name", withTool("name: 'get weather'"), /tools\[0\]\.name must be 1 to 64/],
  ["a tool without description", withTool("description: ''"), /description of the tool "t" is missing/],
  ["a tool without parameters", withTool("parameters: undefined"), /parameters of the tool "t" must be a zod object/],
  [
    "a tool with a bad schema",
    withTool("parameters: { type: 'object', properties: { a: { $ref: '#/nope' } }, required: ['a'] }"),
    /parameters of the tool "t"/,
  ],
  ["a tool with a bad timeoutMs", withTool("timeoutMs: 0"), /timeoutMs of the tool "t"/],
  [
    "two tools of one name",
    exporting(
      "tools: [1, 2].map(() => ({ name: 't', description: 'd', parameters: { type: 'object' }, execute() {} }))",
    ),
    /Two tools are named "t"/,
  ],
  [
    "a model without its key",
    { "agent.ts": "export default { name: 'x', model: 'openai/gpt-5.2' };" },
    /OPENAI_API_KEY/,
  ],
  ["a bare model without its key", { "agent.ts": "export default { name: 'x', model: 'gpt-5.2' };" }, /OPENAI_API_KEY/],
  [
    "litellm without its address",
    { "agent.ts": "export default { name: 'x', model: 'litellm/m' };" },
    /LITELLM_BASE_URL/,
  ],
  [
    "compatible without its address",
    { "agent.ts": "export default { name: 'x', model: 'compatible/m' };" },
    /COMPATIBLE_BASE_URL/,
  ],
  [
    "an unknown provider",
    { "agent.ts": "export default { name: 'x', model: 'nobody/m' };" },
    /"nobody\/m" names no known provider/,
  ],
  [
    "a base URL that is none",
    {
      "agent.ts": "export default { name: 'x', model: 'litellm/m' };",
      ".env": "LITELLM_BASE_URL=localhost",
    },
    /LITELLM_BASE_URL/,
  ],
  ["a setting in .env that is wrong", { ...exporting(""), ".env": "PARLEY_DRAIN_SECONDS=x" }, /PARLEY_DRAIN_SECONDS/],
];

for (const [name, files, sentence] of BROKEN) {
  test(`a project with ${name} is one sentence and exit code 1`, async (t) => {
    const folder = temporaryProject(t, files);
    const { code, stdout, stderr } = await run(["start", folder, "--port", "0"]);
    assert.match(stderr, sentence);
    assert.match(stderr, /^parley: [^\n]+\n$/, "one line");
    assert.doesNotMatch(stderr, /^\s+at |node:internal/m);
    assert.deepEqual([code, stdout], [1, ""]);
  });
}

test("a file in place of a folder, and a folder in place of .env, are told as such", async (t) => {
  const folder = temporaryProject(t, { "agent.ts": "export default {};", "b/.env/x": "" });
  const file = await run(["start", join(folder, "agent.ts")]);
  assert.match(file.stderr, /is a file\. Give the folder/);
  assert.equal(file.code, 1);
  const env = await run(["start", join(folder, "b")]);
  assert.match(env.stderr, /\.env cannot be read/);
  assert.equal(env.code, 1);
});
