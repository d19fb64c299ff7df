/** The modules that `parley start` loads for a plain agent: optional ones are loaded only where needed. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { post } from "../support/chat-transports.ts";
import { DIST, installed, REPOSITORY, start } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

const LIST = join(REPOSITORY, "test/contract/loaded.txt");

/** Maximum number of lines of our own files, including comments and types. The goal is 15,000. */
const MOST_LINES = 15_900;

/** Modules that a plain agent never needs, whatever the list says. */
const OPTIONAL =
  /^server\/(?:dev|redis)\/|^server\/hosted\/(?!(?:remote|to-framework)\.ts)|^server\/providers\/(?:ai-sdk\/(?!language-model\.ts)|(?:anthropic|bedrock|chat-completions|claude|demo|gemini)\/|fallbacks\.ts|openai\/hosted-tools\.ts)|\/(?:hook-queue|owners-page|run-record|prices|tracing|worker-metrics|workers|demo-agent|near-miss|process-memory|fresh-modules|openapi)\.ts$|commands\/dev\.ts$/;

const AGENT = `import { defineAgent } from "parley-agent";
export default defineAgent({ name: "Plain", model: "openai/gpt-5.2" });`;

/** Makes Node write the URL of each module that the main thread loads to the file named by a variable. */
const NOTING = {
  "note.mjs": `import { register } from "node:module";
import { isMainThread } from "node:worker_threads";
if (isMainThread) register("./hook.mjs", import.meta.url);`,
  "hook.mjs": `import { appendFileSync } from "node:fs";
export function load(url, context, next) {
  appendFileSync(process.env.LOADED, url + "\\n");
  return next(url, context);
}`,
};

/** URLs of the modules that the built command has loaded once a plain agent has answered a message. */
async function loadedModules(t: Cleanup): Promise<string[]> {
  const folder = temporaryProject(t, { "agent.ts": AGENT, ...NOTING });
  await using upstream = await startUpstream({ body: [fixture("responses/text")] });
  const loaded = join(folder, "loaded");
  const env = {
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: upstream.url,
    NODE_OPTIONS: `--import=${join(folder, "note.mjs")}`,
    LOADED: loaded,
  };
  const server = await start(t, [folder], { env, cli: installed(t) });
  const response = await post(server, { message: "Hi", stream: false });
  assert.equal(response.status, 200, await response.text());
  return readFileSync(loaded, "utf8").split("\n");
}

interface Source {
  path: string;
  lines: number;
}

/** The sources that the build bundled into these files, from their source maps. */
function sourcesOf(names: readonly string[]): Source[] {
  const found = new Map<string, number>();
  for (const name of names) {
    const map = JSON.parse(readFileSync(join(DIST, `${name}.map`), "utf8"));
    for (const [index, source] of (map.sources as string[]).entries()) {
      const text: string = map.sourcesContent[index];
      found.set(relative(REPOSITORY, resolve(DIST, source)), text.split("\n").length - 1);
    }
  }
  return [...found].map(([path, lines]) => ({ path, lines })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The package that a file belongs to. */
function packageOf(path: string): string | undefined {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1];
}

const grouped = (count: number) => count.toLocaleString("en");

test("a plain agent loads what test/contract/loaded.txt lists, nothing that is optional, and at most 15,900 lines of ours", async (t) => {
  const modules = await loadedModules(t);
  const built = modules.map((url) => basename(url)).filter((name) => existsSync(join(DIST, `${name}.map`)));
  const sources = sourcesOf(built);
  const own = sources.filter(({ path }) => packageOf(path) === undefined);
  const packages = [...modules, ...sources.map(({ path }) => path)].map(packageOf).filter((name) => name !== undefined);
  const lines = own.reduce((sum, source) => sum + source.lines, 0);
  const list = `What \`parley start\` has loaded when a plain agent (model: "openai/…") has answered a message, with the lines of each file.
What is optional has a row that loads it, and is not here: see docs/architecture.md. A new line needs a reason, in the commit that adds it.
Written by: npm run -s build && LIST=write node --import tsx --test test/contract/loaded.test.ts

${own.map(({ path, lines }) => `${String(lines).padStart(6)} ${path}`).join("\n")}
${grouped(lines).padStart(6)} lines of ${own.length} files

Packages: ${[...new Set(packages)].sort().join(", ")}
`;
  if (process.env.LIST === "write") writeFileSync(LIST, list);
  assert.deepEqual(
    own.filter(({ path }) => OPTIONAL.test(path)),
    [],
  );
  // The list's line counts may be outdated, so only names are compared.
  const names = (text: string) =>
    text.match(/^ *\d+ \S+\.ts$|^Packages: .*$/gm)?.map((row) => row.replace(/^ *\d+ /, ""));
  assert.deepEqual(names(list), names(readFileSync(LIST, "utf8")));
  assert.ok(lines <= MOST_LINES, `${grouped(lines)} lines`);
});
