/**
 * Real agents of several frameworks behind the real command, all with the same questions: npm run test:agents. With
 * `AGENTS=short`, the examples and some Python agents answer once over each transport; with `AGENTS=node-22`, so do the agents
 * whose packages need Node 22; `AGENTS=newest` installs the newest packages; `AGENTS=javascript` skips the Python servers;
 * `AGENTS=python` runs only those, or some: `AGENTS=python:adk,crewai`. `RECORD=yes` records their streams again.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { send } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import type { Cleanup } from "../support/start-server.ts";
import { AGENT_AS_TOOL, install, JAVASCRIPT, type NodeVersion, nodeFor, packagesOf, wholeOf } from "./javascript.ts";
import { ANSWER, MODEL_URL, model, requests, saidSince } from "./model.ts";
import {
  folderOf,
  isPythonAlone,
  PYTHON,
  SERVERS as PYTHON_SERVERS,
  PYTHON_VERSION,
  startPython,
  titleOf,
} from "./python.ts";
import { askInPython } from "./python-questions.ts";
import { APPROVALS, FIRST, OF_JAVASCRIPT, type Question, type Row, SHARED, WHOLE } from "./questions.ts";

const AGENTS = process.env.AGENTS ?? "";

const MODES = /^(?:|short|node-22|newest|javascript|python(?::.+)?)$/;
if (!MODES.test(AGENTS))
  throw new Error(`AGENTS is ${AGENTS}; it may be short, node-22, newest, javascript, python or python:<names>.`);

const isOfNode22 = AGENTS === "node-22";

const isShort = AGENTS === "short" || isOfNode22;

const SERVERS = isOfNode22 || AGENTS === "javascript" ? [] : PYTHON_SERVERS;

/** Lists of packages that this run installs. */
const NODES: NodeVersion[] = isOfNode22 ? [22] : isShort || isPythonAlone ? [20] : [20, 22];

const ALL: Question[] = [FIRST, ...SHARED, ...OF_JAVASCRIPT, WHOLE, ...APPROVALS];

const TRIED = Object.entries(JAVASCRIPT).filter(
  ([, { node, isShort: answers = false }]) => !isPythonAlone && NODES.includes(node) && (!isShort || answers),
);

/** The agents' folders, per list of packages. */
const PATHS = new Map(
  NODES.map((node) => {
    const own = TRIED.flatMap(([, agent]) => (agent.node === node ? [[agent.path, agent.whole] as const] : []));
    const others = node === 20 ? SERVERS.map(folderOf).map((path) => [path, undefined] as const) : [];
    return [node, new Map([...own, ...others])];
  }),
);

const folders = new Map<NodeVersion, { folder: string; node: string }>();
for (const [node, paths] of PATHS)
  folders.set(node, { folder: await install(node, paths), node: await nodeFor(AGENTS === "newest" ? 22 : node) });

const env = {
  OPENAI_API_KEY: "mock",
  OPENAI_BASE_URL: MODEL_URL,
  OPENAI_AGENTS_DISABLE_TRACING: "1",
  PARLEY_RATE_PER_ADDRESS: "100000",
  PARLEY_MAX_RUNS_PER_ADDRESS: "1000",
};

/** Loading a framework first reads thousands of newly installed files, besides other work. */
const START_MS = 180_000;

function serve(t: Cleanup, version: NodeVersion, path: string, more: Record<string, string> = {}) {
  const { folder = "", node = "" } = folders.get(version) ?? {};
  return start(t, [join(folder, path)], { node, env: { ...env, ...more }, startMs: START_MS });
}

function pythonRow(name: string, AGENT_URL: string): Row {
  const { asks = true, ...limits } = PYTHON[name] ?? {};
  return {
    ...limits,
    name: titleOf(name),
    without: asks ? {} : { approvals: "it asks for words" },
    serve: (t, more) => serve(t, 20, folderOf(name), { AGENT_URL, ...more }),
  };
}

/** A question that an agent cannot answer becomes a skipped test with the reason. */
function askAll(row: Row, questions: readonly Question[]): void {
  for (const { title, needs, ask } of questions) {
    const skip = needs === undefined ? undefined : row.without?.[needs];
    test(`${row.name}: ${title}`, { skip }, (t) => ask(t, row));
  }
}

for (const [name, { path, node, questions = isShort ? [FIRST] : ALL, ...more }] of TRIED) {
  const serveWhole: Row["serve"] = (t, own) => serve(t, node, wholeOf(path), own);
  askAll({ name, ...more, serve: (t, own) => serve(t, node, path, own), serveWhole }, questions);
}

const NO_PYTHON = "there is no python3 on this machine";

const urls = new Map<string, string>();
for (const name of SERVERS) {
  if (PYTHON_VERSION !== undefined) urls.set(name, await startPython(name, folders.get(20)?.folder ?? "", MODEL_URL));
  else test(titleOf(name), { skip: isPythonAlone ? false : NO_PYTHON }, () => assert.fail(NO_PYTHON));
}
for (const [name, url] of urls) askAll(pythonRow(name, url), isShort ? [FIRST] : [FIRST, ...SHARED, ...APPROVALS]);
if (!isShort) askInPython(urls, model, (t, name, AGENT_URL) => serve(t, 20, folderOf(name), { AGENT_URL }));

const inJavaScript = { skip: isPythonAlone };

test("OpenAI Agents SDK: what an agent within a tool asks is asked, and decided", {
  skip: isPythonAlone || isOfNode22,
}, async (t) => {
  const server = await serve(t, 20, AGENT_AS_TOOL);
  // Other tests cancel the same order.
  const before = requests();
  for (const decision of [{ approved: false, reason: "Too late" }, { approved: true }]) {
    const { last } = await send.sse(t, server, { message: "ask the desk" });
    assert.ok(last.type === "done" && last.approvals?.[0] !== undefined, JSON.stringify(last));
    const { id, tool, arguments: args } = last.approvals[0];
    assert.deepEqual([tool, JSON.parse(args)], ["cancel_order", { order: "A1" }]);
    const { last: second } = await send.sse(t, server, { approvals: [{ id, ...decision }], state: last.state });
    assert.deepEqual([second.type, second.data], ["done", ANSWER]);
    assert.ok(saidSince(before).includes("Too late"));
    assert.equal(saidSince(before).includes('"cancelled A1"'), decision.approved);
  }
});

test("the agents compile against their frameworks' own types", inJavaScript, () => {
  for (const [node, { folder }] of folders) {
    const options = {
      compilerOptions: {
        ...{
          target: "ES2022",
          module: "NodeNext",
          moduleResolution: "NodeNext",
          lib: ["ES2024", "DOM", "DOM.AsyncIterable"],
        },
        ...{
          strict: true,
          skipLibCheck: true,
          noEmit: true,
          types: ["node"],
          typeRoots: [`${REPOSITORY}/node_modules/@types`],
        },
        paths: { "parley-agent": [`${REPOSITORY}/server/parley-agent.ts`] },
        allowImportingTsExtensions: true,
      },
      include: [...(PATHS.get(node)?.keys() ?? [])].map((path) => `${path}/**/agent.ts`),
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
    execFileSync(process.execPath, [join(REPOSITORY, "node_modules/typescript/bin/tsc"), "-p", folder], {
      stdio: "inherit",
    });
  }
});

/** Packages that serve an agent and with which it is written; other packages connect it to its model. */
const OWN_PACKAGES =
  /^(ag[-_]ui[-_](?!protocol)\w+|agno|agent-framework-(?:ag-ui|core)|crewai|google-adk|lang(?:chain|graph)|mlflow|openai-agents|pydantic-ai-slim|strands-agents)(?:\[.*\])?==(.+)$/gm;

/** Packages other than the agent's framework. */
const NO_FRAMEWORK = ["@ai-sdk/openai", "@langchain/openai", "zod"];

test("the pages of hosting have the agents as they are, and name the versions that were tried", inJavaScript, () => {
  const page = ["docs/hosting.md", "docs/hosting-approvals.md"].map((path) => readFileSync(path, "utf8")).join("\n");
  const shown = /^examples|agents.(open|lang|mastra)/;
  for (const { path } of Object.values(JAVASCRIPT).filter(({ path }) => shown.test(path))) {
    assert.ok(page.includes(`\`\`\`ts\n${readFileSync(join(path, "agent.ts"), "utf8")}\`\`\``), path);
  }
  for (const node of [20, 22] as const) {
    const versions = Object.entries(packagesOf(node)).filter(([name]) => !NO_FRAMEWORK.includes(name));
    for (const [name, version] of versions) assert.ok(page.includes(version), `${name} ${version}`);
  }
});

test("docs/hosting.md has the packages of each server in Python, in this order, and the Python that runs them", () => {
  const [, page = ""] = readFileSync("docs/hosting.md", "utf8").split("### Servers in Python\n");
  const rows = page.split("\n").filter((line) => line.startsWith("| "));
  const shown = rows.slice(2).map((row) => [...(row.split("|")[2] ?? "").matchAll(/`(.+?)` ([\d.]+)/g)]);
  const pinned = Object.keys(PYTHON).map((name) => {
    const list = readFileSync(join(folderOf(name), name, "requirements.txt"), "utf8");
    return [...list.matchAll(OWN_PACKAGES)];
  });
  const named = (all: RegExpExecArray[][]) => all.map((one) => one.map(([, name, version]) => `${name} ${version}`));
  assert.deepEqual(named(shown), named(pinned));
  if (isPythonAlone) assert.match(page, new RegExp(`All of them in Python ${PYTHON_VERSION},`));
});

test("each example names the packages that it imports", inJavaScript, () => {
  for (const path of new Set(Object.values(JAVASCRIPT).map((agent) => agent.path))) {
    if (!path.startsWith("examples/")) continue;
    const source = readFileSync(join(path, "agent.ts"), "utf8");
    const imported = [...source.matchAll(/from "((?:@[^/"]+\/)?[^/"]+)/g)].map(([, name]) => name ?? "");
    const named = JSON.parse(readFileSync(join(path, "package.json"), "utf8")).dependencies as Record<string, string>;
    assert.deepEqual(new Set([...Object.keys(named), "parley-agent"]), new Set(imported.concat(...peersOf(path))));
    for (const [name, range] of Object.entries(named)) assert.equal(range, `^${packagesOf(20)[name]}`);
  }
});

/** Packages that an example needs besides its imports. */
function peersOf(path: string): string[] {
  return path === "examples/langgraph" ? ["@langchain/core"] : [];
}
