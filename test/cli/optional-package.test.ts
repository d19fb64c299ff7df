/** Packages that only some models need: the project's own first, then the one beside Parley, else one sentence. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "../../server/errors.ts";
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

const NEEDED: readonly OptionalPackage[] = [SDK, "@aws-sdk/client-bedrock-runtime", "google-auth-library"];

const BROKEN: [how: string, files: (name: string) => Record<string, string>][] = [
  ["lacks one of its own", (name) => packageFiles(name, 'import "gone"; export {};')],
  ["throws", (name) => packageFiles(name, 'throw new Error("first line\\nsecond line");')],
  ["has no main file", (name) => ({ [`node_modules/${name}/package.json`]: '{"main":"gone.js"}' })],
  ["exports nothing", (name) => ({ [`node_modules/${name}/package.json`]: '{"exports":{}}' })],
];

for (const [how, files] of BROKEN) {
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

const agent = { "agent.ts": `export default { name: "Mine", model: "anthropic/claude-sonnet-4-5" };` };
const env = { ANTHROPIC_API_KEY: "sk-ant" };

test("a missing package stops the start with the command that installs it, and other models do not ask for it", async (t) => {
  const cli = installed(t);
  const end = await run(["start", temporaryProject(t, agent)], { cli, env });
  assert.match(
    end.stderr,
    /^parley: This model needs the package @anthropic-ai\/sdk, which is not installed\. [^\n]*npm install @anthropic-ai\/sdk@1\n$/,
  );
  assert.equal(end.code, 1);
  const other = { "agent.ts": 'export default { name: "Mine", model: "litellm/x" };' };
  assert.match((await run(["start", temporaryProject(t, other)], { cli })).stderr, /LITELLM_BASE_URL/);
});

test("a broken package beside Parley stops the start in one sentence", async (t) => {
  const cli = installed(t, { files: packageFiles(SDK, 'throw new Error("first line\\nsecond line");') });
  const { code, stderr } = await run(["start", temporaryProject(t, agent)], { cli, env });
  assert.match(stderr, /^parley: The package @anthropic-ai\/sdk cannot be loaded: first line\. [^\n]+\n$/);
  assert.equal(code, 1);
});
