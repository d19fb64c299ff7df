/** Packages that only some models need: the project's own first, then the one beside Parley, else one sentence. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadOptionalPackage } from "../../server/project/optional-package.ts";
import type { OptionalPackage } from "../../server/providers/provider.ts";
import { run } from "../support/command.ts";
import { installed } from "../support/installed.ts";
import { readMarkdown } from "../support/markdown-file.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const SDK = "@anthropic-ai/sdk";

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

const agent = (model: string) => ({
  "agent.ts": `export default { name: "Mine", model: ${JSON.stringify(model)} };`,
});
const ENV = {
  ANTHROPIC_API_KEY: "sk-ant",
  AWS_REGION: "us-east-1",
  AWS_BEARER_TOKEN_BEDROCK: "x",
  GOOGLE_CLOUD_PROJECT: "acme",
  GOOGLE_CLOUD_LOCATION: "global",
};

const NEEDED: [model: string, name: OptionalPackage][] = [
  ["anthropic/claude-sonnet-4-5", SDK],
  ["bedrock/amazon.nova-lite-v1:0", "@aws-sdk/client-bedrock-runtime"],
  ["vertex/gemini-2.5-flash", "google-auth-library"],
];

test("a missing package stops the start with the command that docs/providers.md names, others are not asked for", async (t) => {
  const cli = installed(t);
  const page = readMarkdown("docs/providers.md");
  for (const [model, name] of NEEDED) {
    const end = await run(["start", temporaryProject(t, agent(model))], { cli, env: ENV });
    const [line = "", command = ""] =
      /^parley: (?:.* )?needs the package .*(npm install \S+)\n$/.exec(end.stderr) ?? [];
    assert.ok(line.includes(`${name}, which is not installed`), end.stderr);
    assert.ok(page.includes(`\`${command}\``), command);
    assert.equal(end.code, 1);
  }
  const other = await run(["start", temporaryProject(t, agent("litellm/x"))], { cli });
  assert.match(other.stderr, /LITELLM_BASE_URL/);
});

const BROKEN: [how: string, files: Record<string, string>][] = [
  ["lacks one of its own", packageFiles(SDK, 'import "gone"; export {};')],
  ["throws", packageFiles(SDK, 'throw new Error("first line\\nsecond line");')],
  ["has no main file", { [`node_modules/${SDK}/package.json`]: '{"main":"gone.js"}' }],
  ["exports nothing", { [`node_modules/${SDK}/package.json`]: '{"exports":{}}' }],
];

for (const [how, files] of BROKEN) {
  test(`a package that is there but ${how} is told as broken, not as missing`, async (t) => {
    const bare = installed(t);
    const [model] = NEEDED[0] ?? [];
    const project = agent(String(model));
    const inProject = await run(["start", temporaryProject(t, { ...project, ...files })], {
      cli: bare,
      env: ENV,
    });
    const beside = await run(["start", temporaryProject(t, project)], {
      cli: installed(t, { files }),
      env: ENV,
    });
    for (const { code, stderr } of [inProject, beside]) {
      assert.match(stderr, /^parley: The package @anthropic-ai\/sdk cannot be loaded: [^\n]+\n$/);
      assert.match(stderr, /npm install @anthropic-ai\/sdk@1\n$/);
      assert.equal(code, 1);
    }
  });
}
