/**
 * Runs every fenced block of the documents with the first entry of ROWS that matches it. NOT_RUN names blocks that
 * cannot be run, with the reasons; a block in neither fails here. Also checks all links.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { after, describe, it, type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { WebSocket } from "ws";
import { readEnvironment } from "../../server/config/environment.ts";
import { startHttpServer, textResult, toolNamed } from "../mcp/http-server.ts";
import { launchBrowser } from "../support/browser.ts";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY } from "../support/command.ts";
import { ask, newFolder, serve, shell } from "../support/document-commands.ts";
import * as pages from "../support/document-pages.ts";
import { RED_PIXEL } from "../support/files.ts";
import { listen } from "../support/listen.ts";
import { type CodeBlock, codeBlocks, DOCUMENTS, readMarkdown } from "../support/markdown-file.ts";
import { ask as askAsTool, connectMcp, KEY, MCP_ENV } from "../support/mcp-client.ts";
import { NO_REDIS, startRedis } from "../support/redis-server.ts";
import { serveProject } from "../support/serve-project.ts";
import { assertShown, assertShownEvents, eventsOf, typeOf } from "../support/shown.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";

/** All blocks of the documents. Each block must begin in the column of its line. */
const BLOCKS = DOCUMENTS.flatMap((path) => {
  const markdown = readMarkdown(path);
  const blocks = codeBlocks(markdown);
  assert.equal(
    blocks.length * 2,
    markdown.match(/^ *```/gm)?.length ?? 0,
    `${path}: a block is not closed, or indented`,
  );
  return blocks.map((block) => ({ path, ...block }));
});

// As before `npm test`: otherwise `npm start` would build while other blocks run.
await shell("node build/start.mjs");

/** For resources of the whole file, which close at its end. */
const file = { after } as Cleanup;

/** The agent that the README's reader writes. */
const ORDERS = blockOf("README.md", "ts", "orderStatus");

const [browser, demo, acme] = await Promise.all([
  launchBrowser({ after }),
  serveProject(file),
  serveProject(file, { "agent.ts": ORDERS }),
]);

type Run = (t: TestContext, block: CodeBlock) => unknown;

const inBrowser =
  (run: typeof pages.opensInABrowser): Run =>
  (t, block) =>
    run(t, browser, block);

/** Selects blocks (by document or all, language, and a text that they contain), and runs them. */
const ROWS: [path: string, language: string, has: string, run: Run][] = [
  ["docs/users.md", "sh", "curl ", asksAsAda],
  ["docs/api.md", "sh", "Bearer $PARLEY_API_KEY", asksAtADoor],
  ["", "sh", "curl ", runCurl],
  ["", "sh", "npm start", startInTheClone],
  ["", "sh", "http.server", servesThePage],
  ["README.md", "sh", "npm install parley-agent", installs],
  ["README.md", "sh", "npx parley dev", servesWhatIsSaved],
  ["README.md", "sh", "npx parley start --open", startsAndOpens],
  ["README.md", "ts", "./graph.js", servesTheGraph],
  ["README.md", "ts", "", runsItsTool],
  ["README.md", "ini", "", startsWithARealModel],

  ["docs/agents.md", "ts", "accepts: [", takesATextFile],
  ["docs/agents.md", "ts", "prices", startsWithARealModel],
  ["docs/agents.md", "ts", "", runsItsTool],

  ["docs/api.md", "text", "> {", conversesOverWebSocket],
  ["docs/command.md", "text", "", isTheUsage],
  ["docs/api.md", "json", '"tool_calls"', isTheHistory],
  ["docs/api.md", "json", '"msg":"run"', isTheLog],
  ["docs/api.md", "json", '"mcpServers"', reachesTheAgent],

  ["docs/api.md", "json", '"continue": true', isRefusedWithoutItsState],

  ["docs/approvals.md", "ts", "", asksBeforeItsToolActs],
  ["docs/approvals.md", "js", "toolRenderers", inBrowser(pages.runsInThePage)],
  ["docs/approvals.md", "js", "", approvesWhatWaits],

  ["docs/chat-apps.md", "ini", "PARLEY_OPENAI_API", opensTheDoor],
  ["docs/chat-apps.md", "yaml", "", dropsWhatIsLeftOut],

  ["docs/clients.md", "js", "const ask", printsTwoAnswers],
  ["docs/clients.md", "js", "getToken", printsAnAnswerOfAUser],
  ["docs/clients.md", "js", "OpenAI", printsAnAnswerByOpenAI],
  ["docs/clients.md", "js", "", printsAnAnswer],
  ["docs/clients.md", "python", "", printsAnAnswerInPython],

  ["docs/conversations.md", "ts", "", namesItsConversation],

  ["docs/customize.md", "css", "", inBrowser(pages.coloursTheChat)],
  ["docs/customize.md", "js", "", inBrowser(pages.runsInThePage)],

  ["docs/deploying.md", "sh", "PARLEY_CHAT_KEY=", startsWithAKey],
  ["docs/scaling.md", "sh", "@redis/client", startsWorkers],
  ["docs/deploying.md", "yaml", "scrape_configs", isAConfigurationOfPrometheus],

  ["docs/element.md", "css", "", inBrowser(pages.coloursTheChat)],
  ["docs/element.md", "js", "", inBrowser(pages.runsInThePage)],

  ["docs/hosting.md", "ts", "agUi(", asksAnAgent],

  ["docs/leaving-agent-builder.md", "js", "listItems", exportsThreads],
  ["docs/leaving-agent-builder.md", "js", "cthr_1", goesOnWithAThread],
  ["docs/leaving-agent-builder.md", "js", "", inBrowser(pages.runsInThePage)],

  ["docs/looks.md", "ts", "disclaimer", looksAsItSays],
  ["docs/looks.md", "ts", "", startsWithItsLook],
  ["docs/looks.md", "css", "", inBrowser(pages.isReadable)],

  ["docs/mcp.md", "sh", "npm install", installs],
  ["docs/mcp.md", "ts", "needsApproval", asksBeforeItWrites],
  ["docs/mcp.md", "ts", "server-filesystem", readsAFile],
  ["docs/mcp.md", "ts", "authenticate", knowsWhoAsksTheServer],
  ["docs/mcp.md", "ts", "auth: {", fetchesItsToken],
  ["docs/mcp.md", "ts", "", sendsItsHeaders],

  ["docs/providers.md", "ts", "fallbacks", fallsBack],
  ["docs/providers.md", "ts", "", startsWithARealModel],
  ["docs/providers.md", "ini", "", startsWithARealModel],
  ["docs/run.md", "ts", "", runsItsTool],
  ["docs/run.md", "js", "", showsWhatItDoes],
  ["docs/settings.md", "ini", "", startsWithTheSettings],

  ["docs/tools.md", "sh", "npm install zod", installs],
  ["docs/tools.md", "ts", "node:test", runsAsATest],
  ["docs/tools.md", "ts", 'from "zod"', quotesAPrice],
  ["docs/tools.md", "ts", "sources: [", saysItsSources],
  ["docs/tools.md", "ts", "toolResult", showsAPicture],
  ["docs/tools.md", "ts", "", runsItsTool],

  ["docs/users.md", "ts", "SESSIONS", knowsItsUser],
  ["docs/users.md", "ts", "SITE", asksTheSite],

  ["docs/widget.md", "tsx", "", isOfAProject],
  ["docs/widget.md", "vue", "", isOfAProject],
  ["docs/widget.md", "svelte", "", isOfAProject],
  ["docs/widget.md", "json", "packageExports", isOfAProject],
  ["docs/widget.md", "js", "isCustomElement", isOfAProject],
  ["docs/widget.md", "js", 'import "parley-agent/widget";\n\nconst', isOfAProject],
  ["docs/widget.md", "text", "script-src", inBrowser(pages.isEnoughOfAPolicy)],
  ["docs/widget.md", "js", 'import "parley-agent/widget"', inBrowser(pages.isBundled)],
  ["docs/widget.md", "js", "", inBrowser(pages.runsInThePage)],
  ["", "html", "", inBrowser(pages.opensInABrowser)],
];

const RECIPES = "It needs packages from a registry: npm run test:recipes.";

/** Beginnings of the blocks that test/recipes runs and compiles. */
const USERS_RECIPES = [
  'import { jwtVerify } from "jose";\nimport { type AuthRequest, Unauthorized } from "parley-agent";\n\nconst secret = new TextEncoder().encode(process.env.JWT',
  "import { createRemoteJWKSet",
  'import { promisify } from "node:util";\nimport session',
  'import { jwtVerify } from "jose";\nimport { type AuthRequest, Unauthorized } from "parley-agent";\n\nconst secret = new TextEncoder().encode(process.env.FORWARD',
];

/** Beginnings of the blocks that test/agents runs and compiles. */
const AGENTS = "It needs packages from a registry: npm run test:agents.";
const FRAMEWORKS = [
  'import { openai } from "@ai-sdk',
  "import { Agent, run",
  'import { tool } from "@langchain/core/tools";\nimport { createReactAgent',
];
const FRAMEWORKS_THAT_ASK = [
  "import { Agent, RunState",
  "import { HumanMessage }",
  "import { Command, MemorySaver }",
  "import { Mastra }",
];

/** Beginning of the block that test/models runs and compiles. */
const MODEL_OBJECT = "import { anthropic }";

/** Beginnings of the blocks that test/doors runs with the packages that they import. */
const DOORS = "It needs packages from a registry: npm run test:doors.";
const CLIENTS = [
  "import os\nfrom openai",
  "import { ChatOpenAI }",
  "model_list:",
  "OTEL_BSP_SCHEDULE_DELAY",
  'prompts: ["{{question}}"]',
  "import { createOpenAICompatible",
];

/** Beginning of the block with an agent behind a route for `useChat`. */
const ROUTE = "import { DefaultChatTransport";
const WORKFLOWS = [
  'import { defineAgent } from "parley-agent";\nimport { runWorkflow }',
  'import { run } from "@openai/agents"',
  "import { assistant, user }",
];

const HOOKS_RECIPES = [
  "import { appendFile",
  'import { defineAgent } from "parley-agent";\n\nconst CARD',
  'import { defineAgent } from "parley-agent";\nimport pg from "pg";\n\nconst pool',
  'import { defineAgent } from "parley-agent";\nimport pg from "pg";\n\nconst USD',
  "import { DatabaseSync",
  "import sqlite",
];

/** Texts in the first lines of the blocks that test/recipes runs. */
const EMBEDDING_RECIPES = [
  "agent.js",
  ...["node:http", "sockets of its own", "Express", "Fastify", "Next", "two agents"].map(
    (host) => `server.js, with ${host}`,
  ),
];

const NOT_RUN: [path: string, begins: string, why: string][] = [
  ["README.md", "npm test", "This file is a part of it."],
  [
    "docs/deploying.md",
    "mkdir -p /srv",
    "It needs a machine that runs systemd; .ci/run checks the unit with systemd-analyze.",
  ],
  ["docs/agents.md", "14:03:22", "It needs a model; test/cli/dev.test.ts has the same lines."],
  ["docs/trace.md", "14:05:10", "It needs a model; test/cli/trace.test.ts has the same lines."],
  ["docs/trace.md", "sed -n 17p", "It needs jq; test/cli/trace.test.ts runs it."],
  ["docs/trace.md", '{\n  "time"', "It needs a model; test/cli/trace.test.ts compares it with a line of a trace."],
  ["docs/chat-apps.md", "ENABLE_TITLE_GENERATION", "They are settings of Open WebUI."],
  ...CLIENTS.map((begins): [string, string, string] => ["docs/clients.md", begins, DOORS]),
  ...WORKFLOWS.map((begins): [string, string, string] => ["docs/leaving-agent-builder.md", begins, DOORS]),
  ["docs/deploying.md", "docker build", "It needs a Docker daemon and images from a registry."],
  ["docs/deploying.md", "update.sh", "It needs nginx: npm run test:proxies."],
  ["docs/deploying.md", "location /support/", "It needs nginx: npm run test:proxies."],
  ["docs/deploying.md", "npm ci", "It takes minutes and a registry: npm run test:package."],
  ["docs/deploying.md", "npm install @opentelemetry", RECIPES],
  ["docs/deploying.md", "import { OTLPTraceExporter", RECIPES],
  ["docs/deploying.md", "node --import ./tracing.mjs", RECIPES],
  ["docs/users.md", "npm install jose", RECIPES],
  ["docs/users.md", "export const devUsers", "It needs parley dev: test/cli/dev.test.ts has the same."],
  ...["ai-sdk", "langgraph", "openai-agents"].map((name): [string, string, string] => [
    `examples/${name}/README.md`,
    "npm install --prefix",
    "It needs packages from a registry and a key: npm run test:agents.",
  ]),
  ...USERS_RECIPES.map((begins): [string, string, string] => ["docs/users.md", begins, RECIPES]),
  ["docs/hosting.md", "from pydantic_ai", "It needs packages from a registry: npm run test:agents runs the same."],
  ["docs/hosting.md", ROUTE, DOORS],
  ...FRAMEWORKS.map((begins): [string, string, string] => ["docs/hosting.md", begins, AGENTS]),
  ...FRAMEWORKS_THAT_ASK.map((begins): [string, string, string] => ["docs/hosting-approvals.md", begins, AGENTS]),
  ["docs/ai-sdk-models.md", MODEL_OBJECT, "It needs a package from a registry: npm run test:models."],
  ["docs/hooks.md", "npm install pg", RECIPES],
  ["docs/hooks.md", "npm install node-sqlite3-wasm", RECIPES],
  ["docs/hooks.md", "select message", RECIPES],
  ["docs/hooks.md", "OTEL_EXPORTER", "It needs an account at Langfuse."],
  ...HOOKS_RECIPES.map((begins): [string, string, string] => ["docs/hooks.md", begins, RECIPES]),
  ...EMBEDDING_RECIPES.map((name): [string, string, string] => ["docs/embedding.md", `// ${name}\n`, RECIPES]),
  ["docs/customize.md", "// diagrams.js", RECIPES],
  ["docs/architecture.md", "client  ", "A drawing; the names of its files are checked below."],
  ["docs/internals/redis.md", "process of the reader", "A drawing of what two processes say to each other."],
  ["docs/performance.md", "npm ci && npm run bench", "It takes half an hour; test/bench runs a small part."],
];

// Concurrent, because they mostly wait for other processes.
describe("blocks of the documents", { concurrency: 4 }, () => {
  for (const { path, ...block } of BLOCKS) {
    const { language, text, line } = block;
    const isAnswer = BLOCKS.some(
      (other) => other.path === path && other.answer?.line === line && other.text.startsWith("curl "),
    );
    if (isAnswer || NOT_RUN.some(([page, begins]) => page === path && text.startsWith(begins))) continue;
    const row = ROWS.find(([page, of, has]) => (page === "" || page === path) && of === language && text.includes(has));
    it(`${path}, line ${line}: the ${language || "unnamed"} block works`, async (t) => {
      assert.ok(row, "no row of ROWS runs it, and NOT_RUN does not say why");
      await row[3](t as TestContext, block);
    });
  }
});

test("all TypeScript of the documents compiles", compile);

test("every row runs a block, and each that is not run is there", () => {
  for (const [path, begins] of NOT_RUN) {
    assert.equal(BLOCKS.filter((block) => block.path === path && block.text.startsWith(begins)).length, 1, begins);
  }
  for (const [page, of, has] of ROWS) {
    const fits = ({ path, language, text }: (typeof BLOCKS)[number]) =>
      (page === "" || page === path) && of === language && text.includes(has);
    assert.ok(BLOCKS.some(fits), `${page} ${of} ${has}`);
  }
});

/** The first block of a document with this language and text. */
function blockOf(path: string, language: string, has = ""): string {
  const found = codeBlocks(readMarkdown(path)).find((it) => it.language === language && it.text.includes(has));
  return found?.text ?? assert.fail(`${path} has no ${language} block with "${has}"`);
}

test("every link and image of a document leads to a file and a heading that exist, or is a URL", () => {
  const broken = DOCUMENTS.flatMap((path) =>
    linksOf(readMarkdown(path))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

function linksOf(markdown: string): string[] {
  const prose = markdown.replace(/^```.*?^```$/gms, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"/g)];
  return links.map(([, link, image]) => link ?? image ?? "");
}

function leadsSomewhere(from: string, link: string): boolean {
  if (/^https?:/.test(link)) return URL.canParse(link);
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? from : join(dirname(from), path);
  if (!existsSync(join(REPOSITORY, target))) return false;
  if (anchor === undefined) return true;
  const headings = [...readMarkdown(target).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
  return headings.includes(anchor);
}

const INTERNALS = DOCUMENTS.filter((path) => path.startsWith("docs/internals/"));

test("docs/architecture.md and docs/internals name files that exist, in their drawings and elsewhere", () => {
  const known = ["server", "widget", "test"].flatMap((root) =>
    readdirSync(join(REPOSITORY, root), { recursive: true, encoding: "utf8" }).map((path) => `/${root}/${path}`),
  );
  const text = ["docs/architecture.md", ...INTERNALS].map(readMarkdown).join("\n");
  const named = text.match(/(?<![\w*/<>-])[a-z][\w-]*(?:\/[\w.-]+)*\.ts\b/g) ?? [];
  assert.ok(named.length > 200);
  const missing = named.filter((name) => name !== "cli.ts" && !known.some((path) => path.endsWith(`/${name}`)));
  assert.deepEqual(missing, []);
});

test("each test that docs/internals names stands in its file under that name", () => {
  const cited = INTERNALS.flatMap((path) => [...readMarkdown(path).matchAll(/`(test\/[^`]+)`:((?:\s*"[^"]+",?)+)/g)]);
  const names = cited.flatMap(([, file = "", all = ""]) =>
    [...all.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => [file, name] as const),
  );
  assert.ok(names.length > 150);
  const missing = names.filter(([file, name]) => {
    // The test's table uses an ellipsis for omitted text.
    const parts = name.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    return !new RegExp(`["\`]${parts.join("[^\\n]+?")}["\`]`).test(readMarkdown(file));
  });
  assert.deepEqual(missing, []);
});

// Commands and servers

async function runCurl(_t: TestContext, { text, answer }: CodeBlock): Promise<void> {
  const { host } = text.includes("order 4711") ? acme : demo;
  const printed = await shell(text.replaceAll("curl ", "curl -sS ").replaceAll("localhost:8080", host));
  if (answer?.language === "json") assertShown(JSON.parse(printed), JSON.parse(answer.text));
  else if (answer) assertShownEvents(eventsOf(printed), eventsOf(answer.text));
  else assert.match(printed, text.includes("x-user-token") ? /get_weather/ : /get_order_status/);
}

async function asksAtADoor(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { host } = await serveProject(t, undefined, { ...MCP_ENV, PARLEY_OPENAI_API: "on" });
  const command = text.replace("curl ", "curl -sS ").replace("localhost:8080", host);
  assert.match(await shell(command.replace("$PARLEY_API_KEY", KEY)), /`get_weather` \| \{\\"city\\":\\"Paris/);
}

async function startInTheClone(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serve(t, text);
  assert.equal((await fetch(`${url}/health/ready`)).status, 200);
}

async function servesThePage(t: TestContext, { text }: CodeBlock): Promise<void> {
  const server = await serve(t, text.replace("3000", "0").replace("python3", "python3 -u"));
  assert.match(await (await fetch(server.url)).text(), /widget\.js/);
}

async function installs(t: TestContext, { text }: CodeBlock): Promise<void> {
  const folder = await newFolder(t);
  await shell(text, { cwd: folder.path, env: folder.env });
  const [, name = ""] = /(\S+?)(?:@\d+)?\s*$/.exec(text) ?? [];
  assert.ok(existsSync(join(folder.path, "node_modules", name, "package.json")));
}

async function servesWhatIsSaved(t: TestContext, { text }: CodeBlock): Promise<void> {
  const agent = ORDERS;
  const folder = await newFolder(t, { "agent.ts": agent });
  await shell("npm install parley-agent", { cwd: folder.path, env: folder.env });
  const { url } = await serve(t, text, folder.path, folder.env);
  assert.match(await (await ask(url, "What is my order status?")).text(), /on its way/);
  writeFileSync(join(folder.path, "agent.ts"), agent.replace("on its way", "delivered"));
  let answer = "";
  while (!answer.includes("delivered")) answer = await (await ask(url, "What is my order status?")).text();
}

async function startsAndOpens(t: TestContext, { text }: CodeBlock): Promise<void> {
  const folder = await newFolder(t, { "agent.ts": ORDERS });
  await shell("npm install parley-agent", { cwd: folder.path, env: folder.env });
  const { url } = await serve(t, text, folder.path, folder.env);
  assert.equal(await folder.opened(), `${url}/`);
  assert.match(await (await ask(url, "What is my order status?")).text(), /on its way/);
}

/** Checks that the page has what the block configures. */
async function looksAsItSays(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text, "logo.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>" });
  const { chat, welcome } = await (await fetch(`${url}/api/info`)).json();
  assert.equal(welcome, "Hello! How can we help?");
  assert.equal((await fetch(`${url}/${chat.logo.light}`)).status, 200);
  assert.match(await (await fetch(url)).text(), /<title>Acme Help</);
}

/** Checks that the server returns the block's colours and corners. */
async function startsWithItsLook(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text, "logo.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>" });
  const { chat } = await (await fetch(`${url}/api/info`)).json();
  for (const theme of ["light", "dark"]) assert.ok(text.includes(chat.accent[theme]), chat.accent[theme]);
  assert.ok(text.includes(`corners: "${chat.corners}"`));
}

async function runsItsTool(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  assert.match(
    await (await ask(url, "What is my order status?")).text(),
    /"status":"completed".*on its way|on its way.*"completed"/,
  );
}

async function showsAPicture(t: TestContext, { text }: CodeBlock): Promise<void> {
  const folder = temporaryProject(t, { "agent.ts": text });
  writeFileSync(join(folder, "plan.png"), RED_PIXEL);
  const { url } = await serveProject(t, folder);
  const { tool_calls: calls } = await (await ask(url, "Show me the floor plan.")).json();
  assert.deepEqual(calls[0].images, [{ mime_type: "image/png", data: RED_PIXEL.toString("base64") }]);
}

async function saysItsSources(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  const { sources } = await (await ask(url, "Search the help for delivery.")).json();
  assert.deepEqual(
    sources.map(({ url: page, file }: Record<string, string>) => page ?? file),
    ["https://acme.example/help/delivery", "Terms of 2026"],
  );
}

async function showsWhatItDoes(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.js": text });
  const body = await (await post({ url }, { message: "When can I leave?", stream: true })).text();
  assert.match(body, /tool_progress.*Reading the contract.*"parent":"1".*three months/s);
}

async function takesATextFile(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  const attachments = [{ type: "file", name: "a.md", mime_type: "text/markdown", data: btoa("# Hello") }];
  const { state } = await (await post({ url }, { message: "Read this.", stream: false, attachments })).json();
  assert.deepEqual(state.conversation_history[0].content, [
    { type: "text", text: "Read this." },
    { type: "text", text: "a.md\n```\n# Hello\n```" },
  ]);
}

/** A replacement for the reader's own graph, which streams like LangGraph. */
const GRAPH = `
  type Input = { messages: { role: string; content: string }[] };
  export const graph = {
    async *stream({ messages }: Input, { signal }: { streamMode: string[]; signal: AbortSignal }) {
      signal.throwIfAborted();
      yield ["messages", [{ type: "AIMessageChunk", id: "1", content: "You wrote: " + messages.at(-1)?.content }, {}]];
    },
  };`;

async function servesTheGraph(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text, "graph.ts": GRAPH });
  assert.equal((await (await ask(url, "Hello")).json()).response, "You wrote: Hello");
}

async function asksAnAgent(t: TestContext, { text }: CodeBlock): Promise<void> {
  const events = [{ type: "TEXT_MESSAGE_CONTENT", delta: "Hello" }, { type: "RUN_FINISHED" }];
  const agent = createServer((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  const code = text.replace("http://127.0.0.1:8000", await listen(t, agent));
  const { url } = await serveProject(t, { "agent.ts": code });
  assert.equal((await (await ask(url, "Hi")).json()).response, "Hello");
}

/** Serves an agent of docs/mcp.md, with an equivalent program that needs no package. */
async function serveFiles(t: TestContext, text: string): Promise<{ url: string; folder: string }> {
  const folder = temporaryProject(t, { "hours.txt": "Open from nine to five." });
  const args = JSON.stringify([join(REPOSITORY, "test/fixtures/mcp/files.mjs"), folder]);
  const program = /"npx",\s+args: \["-y", "@modelcontextprotocol\/server-filesystem", "\.\/files"\]/;
  assert.match(text, program);
  return { folder, ...(await serveProject(t, { "agent.ts": text.replace(program, `"node", args: ${args}`) })) };
}

async function readsAFile(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveFiles(t, text);
  const { tool_calls: calls } = await (await ask(url, 'Read the text file "hours.txt".')).json();
  assert.deepEqual([calls.length, calls[0].tool], [1, "files__read_text_file"]);
  assert.equal(calls[0].output, "Open from nine to five.");
}

async function asksBeforeItWrites(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url, folder } = await serveFiles(t, text);
  const { approvals, state } = await (await ask(url, 'Write "notes.txt".')).json();
  assert.deepEqual([approvals.length, approvals[0].text], [1, "Write the file notes.txt?"]);
  const file = join(folder, "notes.txt");
  assert.ok(!existsSync(file));
  await post({ url }, { approvals: [{ id: approvals[0].id, approved: true }], state, stream: false });
  assert.ok(existsSync(file));
}

/** Serves an agent of docs/mcp.md; returns the tool's answers for these users, which contain the authorization. */
async function ticketsOf(t: TestContext, text: string, tokens: string[], env = {}): Promise<string[]> {
  const { url: crm } = await startHttpServer(t, {
    tools: [toolNamed("list_tickets")],
    call: ({ headers }) => textResult(`Tickets of ${headers.authorization}`),
  });
  const { url } = await serveProject(t, { "agent.ts": text.replace("https://crm.example.com/mcp", crm) }, env);
  const outputs = tokens.map(async (token) => {
    const answer = await ask(url, "List my tickets.", { "x-user-token": token });
    return (await answer.json()).tool_calls[0].output;
  });
  return Promise.all(outputs);
}

async function sendsItsHeaders(t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.deepEqual(await ticketsOf(t, text, [""], { CRM_TOKEN: "a" }), ["Tickets of Bearer a"]);
}

async function knowsWhoAsksTheServer(t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.deepEqual(await ticketsOf(t, text, ["session-of-ada", "session-of-bob"]), [
    "Tickets of Bearer crm-token-of-ada",
    "Tickets of Bearer crm-token-of-bob",
  ]);
}

async function fetchesItsToken(t: TestContext, { text }: CodeBlock): Promise<void> {
  const asked: string[] = [];
  const login = createServer(async (request, response) => {
    asked.push(request.headers.authorization ?? "", await textOf(request));
    response.end('{"access_token":"of-parley","token_type":"Bearer"}');
  });
  const code = text.replace("https://login.example.com", await listen(t, login));
  assert.deepEqual(await ticketsOf(t, code, [""], { CRM_CLIENT_SECRET: "b" }), ["Tickets of Bearer of-parley"]);
  const [client, wanted] = asked;
  assert.deepEqual(
    [client, wanted],
    [`Basic ${btoa("parley:b")}`, "grant_type=client_credentials&scope=tickets%3Aread"],
  );
}

async function knowsItsUser(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  const refused = await (await post({ url }, { message: "What are my orders?", stream: false })).json();
  assert.deepEqual(
    [refused.error.code, refused.error.message],
    ["login_required", "Please sign in to ask about your orders."],
  );
}

async function asksAsAda(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { host } = await serveProject(t, { "agent.ts": blockOf("docs/users.md", "ts") });
  assert.match(
    await shell(text.replace("curl ", "curl -sS ").replace("localhost:8080", host)),
    /"tool":"get_my_orders".*on its way/,
  );
}

const WHO_AM_I = `
  import { defineAgent, tool } from "parley-agent";
  const who = { name: "who_am_i", description: "Who asks.", parameters: { type: "object" } } as const;
  const whoAmI = tool({ ...who, execute: (_args, { user }) => String(user?.id) });
  export default defineAgent({ name: "A", model: "demo", tools: [whoAmI] });`;

async function asksTheSite(t: TestContext, { text }: CodeBlock): Promise<void> {
  const site = createServer(({ headers, url }, res) => {
    const status =
      url !== "/me" ? 404 : headers.cookie === "session=1" ? 200 : headers.cookie === "broken=1" ? 503 : 401;
    res.writeHead(status, { "content-type": "application/json" }).end('{"id":"ada"}');
  });
  const env = { SITE: await listen(t, site) };
  const { url } = await serveProject(t, { "agent.ts": text + WHO_AM_I }, env);
  const ask = async (cookie: string, origin = url) => {
    const answer = await post({ url }, { message: "call all tools", stream: false }, { headers: { cookie, origin } });
    return [answer.status, (await answer.json()).tool_calls?.[0].output];
  };
  assert.deepEqual(await ask("session=1"), [200, "ada"]);
  assert.deepEqual(await ask("session=2"), [401, undefined]);
  assert.deepEqual(await ask("broken=1"), [500, undefined]);
  // An allowed origin, but without a user.
  assert.deepEqual(await ask("session=1", "http://localhost:3000"), [401, undefined]);
}

async function startsWithARealModel(t: TestContext, { text }: CodeBlock): Promise<void> {
  const isEnv = text.includes("OPENAI_API_KEY=");
  const agent = isEnv ? blockOf("docs/providers.md", "ts") : text;
  const dotEnv = isEnv ? text : blockOf("docs/providers.md", "ini");
  const project = { "agent.ts": agent, ".env": dotEnv.replace("sk-...", "sk-of-a-test") };
  const { summary } = await serveProject(t, project);
  assert.match(summary, /model +openai\/gpt-5\.2(?:, else .+)?\n/);
}

/** The project of docs/tools.md, with the packages that it installs. */
async function projectOfTools(t: TestContext): Promise<string> {
  const { path, env } = await newFolder(t, {
    "agent.ts": blockOf("docs/tools.md", "ts"),
    "orders.test.ts": blockOf("docs/tools.md", "ts", "node:test"),
    "quote.ts": blockOf("docs/tools.md", "ts", 'from "zod"'),
    "package.json": '{ "type": "module" }',
  });
  await shell(`npm install parley-agent\n${blockOf("docs/tools.md", "sh")}`, { cwd: path, env });
  return path;
}

const TSX = `node --import ${pathToFileURL(join(REPOSITORY, "node_modules/tsx/dist/esm/index.mjs")).href}`;

async function runsAsATest(t: TestContext): Promise<void> {
  const printed = await shell(`${TSX} --test orders.test.ts`, { cwd: await projectOfTools(t) });
  assert.match(printed, /pass 1\b/);
}

async function quotesAPrice(t: TestContext): Promise<void> {
  const script =
    'const { quote } = await import("./quote.ts"); console.log(quote.execute({ part: "gears", count: 1 }));';
  const printed = await shell(`${TSX} --input-type=module -e '${script}'`, { cwd: await projectOfTools(t) });
  assert.match(printed, /euros: 60/);
}

async function conversesOverWebSocket(t: TestContext, { text }: CodeBlock): Promise<void> {
  const socket = new WebSocket(demo.socketUrl);
  t.after(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  for (const round of text.split(/^> /m).slice(1)) {
    const [message = "", ...answer] = round.trim().split("\n");
    const real: unknown[] = [];
    const ended = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        real.push(JSON.parse(String(data)));
        if (["done", "error", "cleared"].includes(String(typeOf(real.at(-1))))) resolve();
      });
    });
    socket.send(message);
    await ended;
    socket.removeAllListeners("message");
    assertShownEvents(
      real,
      answer.map((line) => (line === "…" ? line : JSON.parse(line.slice(2)))),
    );
  }
}

async function isTheUsage(_t: TestContext, { text }: CodeBlock): Promise<void> {
  const help = await shell("node dist/cli.js --help");
  for (const line of text.trim().split("\n")) assert.ok(help.includes(`\n  ${line}\n`), line);
}

async function isTheHistory(_t: TestContext, { text }: CodeBlock): Promise<void> {
  const { state } = await (await ask(demo.url, "What is the weather in Paris?")).json();
  assertShown(state.conversation_history, JSON.parse(text));
}

/** Connects like an MCP client with this configuration. */
async function reachesTheAgent(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url, headers } = JSON.parse(text).mcpServers.support;
  const server = await startServer(t, { env: MCP_ENV });
  const authorization = headers.Authorization.replace("KEY", KEY);
  const client = await connectMcp(t, server, { path: new URL(url).pathname, headers: { authorization } });
  assert.match((await askAsTool(client, "Hello")).text, /demo model/);
}

async function isTheLog(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url, log } = await serveProject(t);
  await (await ask(url, "Hello")).text();
  // The server reads the second request of a connection only after the first has ended.
  await (await fetch(`${url}/health`)).text();
  const records = log.map((record) => JSON.parse(record));
  for (const line of text.trim().split("\n")) {
    const shown = JSON.parse(line);
    const real = records.find(({ msg }) => msg === shown.msg);
    // The document also shows fields that the demo lacks, such as the provider's request id.
    assert.deepEqual(
      Object.keys(shown).filter((name) => name in real),
      Object.keys(real),
    );
  }
}

/** In Node 20, the browser's WebSocket needs this flag, as the page says. */
const NODE = `node --no-warnings --input-type=module${process.version.startsWith("v20.") ? " --experimental-websocket" : ""}`;

const runNode = (script: string) => shell(`${NODE} -e '${script.replaceAll("localhost:8080", demo.host)}'`);

async function printsTwoAnswers(_t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.match(
    await runNode(text),
    /Here is what the tools answered:.*Paris.*Here is what the tools answered:.*Tokyo/s,
  );
  await assert.rejects(runNode(text.replace("What is the weather in Paris?", "")), /invalid_request: /);
}

async function printsAnAnswerOfAUser(_t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.match(await runNode(text), /Here is what the tools answered:/);
}

async function asksBeforeItsToolActs(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  const send = async (body: object) => (await post({ url }, { ...body, stream: false })).json();
  const { finish_reason, approvals, state } = await send({ message: "Please cancel 1007." });
  assert.deepEqual([finish_reason, approvals[0].text], ["approval_required", "Cancel order 1007?"]);
  const answer = await send({ approvals: [{ id: approvals[0].id, approved: true }], state });
  assert.match(answer.tool_calls[0].output, /"cancelled":true/);
}

async function namesItsConversation(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": text });
  const answer = await post({ url }, { message: "What is the status of order 1007?", stream: false });
  const { title, suggestions } = await answer.json();
  assert.deepEqual([title, suggestions.length], ["Order 1007", 2]);
}

async function approvesWhatWaits(_t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.match(await runNode(text), /^Cancel order 1007\?.*"order":"1007"[\s\S]*"cancelled":true/);
}

/** The reader's own state is missing here. */
async function isRefusedWithoutItsState(_t: TestContext, { text }: CodeBlock): Promise<void> {
  const answer = await post(demo, { ...JSON.parse(text), stream: false });
  assert.equal((await answer.json()).error.code, "invalid_state");
}

async function printsAnAnswer(_t: TestContext, { text }: CodeBlock): Promise<void> {
  assert.match(
    (await runNode(text)).replaceAll("\n", ""),
    /^Let me look that up\..*Here is what the tools answered:.*as it is\.$/,
  );
}

const DOOR_KEY = "a-key-of-the-programs";

const withDoor = (t: TestContext) => serveProject(t, undefined, { PARLEY_OPENAI_API: "on", PARLEY_API_KEY: DOOR_KEY });

async function printsAnAnswerByOpenAI(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { host } = await withDoor(t);
  const printed = await shell(`PARLEY_API_KEY=${DOOR_KEY} ${NODE} -e '${text.replace("localhost:8080", host)}'`);
  assert.match(printed, /Here is what the tools answered:/);
}

async function opensTheDoor(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { url } = await serveProject(t, { "agent.ts": ORDERS, ".env": text });
  const [, keys = ""] = /PARLEY_API_KEY=(\S+)/.exec(text) ?? [];
  for (const key of keys.split(",")) {
    const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal((await answer.json()).data[0].name, "Acme Support");
  }
}

/** With these settings LibreChat omits the agent's own fields; test/server/chat-apps.test.ts replays both requests. */
function dropsWhatIsLeftOut(_t: TestContext, { text }: CodeBlock): void {
  const fieldsOf = (name: string): string[] => {
    const path = join(REPOSITORY, "test/fixtures/doors/requests", `${name}.json`);
    return Object.keys(JSON.parse(readFileSync(path, "utf8")).body);
  };
  const kept = fieldsOf("librechat-dropped");
  const [, dropped = ""] = /dropParams: (\[.*\])/.exec(text) ?? [];
  assert.deepEqual(
    JSON.parse(dropped),
    fieldsOf("librechat").filter((name) => !kept.includes(name)),
  );
}

/** A thread in the format of OpenAI's API: texts of people, and a widget. */
const THREAD = [
  { type: "chatkit.user_message", content: [{ type: "input_text", text: "My dog is Rex." }] },
  { type: "chatkit.widget", widget: "{}" },
  { type: "chatkit.assistant_message", content: [{ type: "output_text", text: "Noted.", annotations: [] }] },
];

const THREAD_FILE = {
  title: "Rex",
  user: "ada",
  messages: [
    { role: "user", content: "My dog is Rex." },
    { role: "assistant", content: "Noted." },
  ],
};

async function exportsThreads(t: TestContext, { text }: CodeBlock): Promise<void> {
  const listOf = (data: object[]) => JSON.stringify({ object: "list", data, has_more: false, last_id: null });
  const api = createServer(({ url = "" }, res) => {
    const items = THREAD.map((item, index) => ({ id: `cthi_${index}`, object: "chatkit.thread_item", ...item }));
    const threads = [{ id: "cthr_1", object: "chatkit.thread", title: "Rex", user: "ada" }];
    res.writeHead(200, { "content-type": "application/json" }).end(listOf(url.includes("/items") ? items : threads));
  });
  const cwd = temporaryProject(t, { "export.mjs": text });
  symlinkSync(join(REPOSITORY, "node_modules"), join(cwd, "node_modules"));
  await shell(`OPENAI_API_KEY=sk-of-a-test OPENAI_BASE_URL=${await listen(t, api)} node export.mjs`, { cwd });
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, "cthr_1.json"), "utf8")), THREAD_FILE);
}

async function goesOnWithAThread(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { host } = await withDoor(t);
  const script = text.replace("localhost:8080", host);
  const cwd = temporaryProject(t, { "go-on.mjs": script, "cthr_1.json": JSON.stringify(THREAD_FILE) });
  symlinkSync(join(REPOSITORY, "node_modules"), join(cwd, "node_modules"));
  assert.match(await shell(`PARLEY_API_KEY=${DOOR_KEY} node go-on.mjs`, { cwd }), /Here is what the tools answered:/);
}

async function printsAnAnswerInPython(t: TestContext, { text }: CodeBlock): Promise<void> {
  if (text.includes("websockets") && !(await hasPython("websockets")))
    return t.skip("no package websockets: .ci/run has it");
  const printed = await shell(`python3 - <<'END'\n${text.replaceAll("localhost:8080", demo.host)}END`);
  assert.match(printed, /Here is what the tools answered:/);
}

const hasPython = (name: string) =>
  shell(`python3 -c 'import ${name}'`).then(
    () => true,
    () => false,
  );

async function startsWithAKey(t: TestContext, { text }: CodeBlock): Promise<void> {
  // Without a final line break, which some editors omit.
  const dotEnv = { ".env": "OPENAI_API_KEY=sk-of-a-test" };
  const { path, env } = await newFolder(t, { "agent.ts": ORDERS, ...dotEnv });
  await shell("npm install parley-agent", { cwd: path, env });
  const server = await serve(t, text, path, env);
  assert.equal(readEnvironment({}, path).OPENAI_API_KEY, "sk-of-a-test");
  assert.match(server.printed, /keys +chat\n/);
  assert.doesNotMatch(server.printed, /"level":"warn"/);
  const { port } = new URL(server.url);
  assert.equal((await ask(`http://127.0.0.1:${port}`, "Hi")).status, 401);
}

async function startsWorkers(t: TestContext, { text }: CodeBlock): Promise<void> {
  if (NO_REDIS) return t.skip(NO_REDIS);
  const redis = await startRedis(t);
  const { path, env } = await newFolder(t, { "agent.ts": ORDERS });
  await shell("npm install parley-agent", { cwd: path, env });
  const { url } = await serve(t, text.replace("redis://127.0.0.1:6379", redis.url), path, env);
  assert.match(await (await fetch(`${url}/metrics`)).text(), /parley_redis_up 1/);
}

async function isAConfigurationOfPrometheus(t: TestContext, { text }: CodeBlock): Promise<void> {
  const folder = temporaryProject(t, { "parley.key": "a-key" });
  const local = text.replace("/etc/prometheus/parley.key", join(folder, "parley.key"));
  const config = temporaryProject(t, { "prometheus.yml": local });
  try {
    execFileSync("promtool", ["check", "config", join(config, "prometheus.yml")], { stdio: "pipe" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return t.skip("there is no promtool on this machine");
    throw error;
  }
}

/** The first two of the three models reject their keys, so the third one answers. */
async function fallsBack(t: TestContext, { text }: CodeBlock): Promise<void> {
  const asked: string[] = [];
  const upstream = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (!request.url?.endsWith("/chat/completions")) return response.writeHead(401).end("{}");
    const chunk = { choices: [{ index: 0, delta: { content: "Hi." }, finish_reason: "stop" }] };
    response.writeHead(200, { "content-type": "text/event-stream" });
    return response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  });
  const address = await listen(t, upstream);
  const folder = temporaryProject(t, { "agent.ts": text });
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  const { url } = await serveProject(t, folder, {
    ANTHROPIC_API_KEY: "a",
    ANTHROPIC_BASE_URL: address,
    AWS_REGION: "us-east-1",
    AWS_BEARER_TOKEN_BEDROCK: "b",
    BEDROCK_BASE_URL: address,
    GEMINI_API_KEY: "g",
    GEMINI_BASE_URL: address,
  });
  const { response, model } = await (await ask(url, "Hello")).json();
  assert.deepEqual([response, model], ["Hi.", "gemini/gemini-3-flash"]);
  assert.equal(asked.length, 3);
}

async function startsWithTheSettings(t: TestContext, { text }: CodeBlock): Promise<void> {
  const { summary, url } = await serveProject(t, { "agent.ts": ORDERS, ".env": text });
  assert.match(summary, /keys +chat\n/);
  const [, key = ""] = /PARLEY_CHAT_KEY=(\S+)/.exec(text) ?? [];
  assert.equal((await ask(url, "Hi", { origin: url, authorization: `Bearer ${key}` })).status, 200);
}

/** Checks that the block is, except for white space, in a project that `npm run test:frameworks` builds and runs. */
function isOfAProject(_t: TestContext, { text }: CodeBlock): void {
  const words = (source: string) => source.trim().replace(/\s+/g, " ");
  const folder = join(REPOSITORY, "test/frameworks");
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sources = paths.filter((path) => /(?<!package-lock)\.(?:[jt]sx?|json|vue|svelte)$/.test(path));
  assert.ok(sources.some((path) => words(readFileSync(join(folder, path), "utf8")).includes(words(text))));
}

/** Compiles all blocks at once, to start the compiler only once. */
async function compile(): Promise<void> {
  const files: Record<string, string> = {};
  const recipes = [
    ...USERS_RECIPES,
    ...HOOKS_RECIPES,
    ...FRAMEWORKS,
    ...FRAMEWORKS_THAT_ASK,
    ROUTE,
    MODEL_OBJECT,
    ...WORKFLOWS,
  ];
  const isRecipe = (text: string) => recipes.some((begins) => text.startsWith(begins));
  for (const { path, language, text, line } of BLOCKS.filter((it) => it.language === "ts" && !isRecipe(it.text))) {
    const isFirst = text === blockOf(path, language);
    files[`${path}/${isFirst ? "agent" : `line-${line}`}.${language}`] = text;
  }
  const at = (path: string) => [join(REPOSITORY, path)];
  const compilerOptions = {
    ...{ noUnusedLocals: false, rootDir: "/", types: ["node"] },
    paths: { "parley-agent": at("server/parley-agent.ts") },
  };
  const extended = join(REPOSITORY, "tsconfig.json");
  const tsconfig = { extends: extended, compilerOptions, include: Object.keys(files), exclude: [] };
  const folder = temporaryProject(file, {
    ...files,
    "README.md/graph.ts": GRAPH,
    "tsconfig.json": JSON.stringify(tsconfig),
    "package.json": '{"type":"module"}',
  });
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  execFileSync("node", [join(REPOSITORY, "node_modules/typescript/bin/tsc"), "-p", folder], { encoding: "utf8" });
}
