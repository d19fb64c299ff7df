import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { transform } from "esbuild";
import type { ChatResponse, HistoryMessage } from "../../server/protocol/chat.ts";
import { REPOSITORY, type StartedCommand, start } from "../support/command.ts";
import { codeBlocks, DOCUMENTS, findBlock, readMarkdown } from "../support/markdown-file.ts";

const run = promisify(execFile);
const readme = readMarkdown("README.md");
const agents = readMarkdown("docs/agents.md");
const clients = readMarkdown("docs/clients.md");

/** A block of the README that talks to a server, turned to the one of the test. */
function against({ host }: StartedCommand, block: string): string {
  const turned = block.replaceAll("localhost:8080", host);
  assert.notEqual(turned, block);
  return turned;
}

async function runJavaScript(script: string): Promise<string> {
  // Node 20 has the browser's WebSocket behind this flag, as the README says.
  const flags = process.version.startsWith("v20.") ? ["--experimental-websocket"] : [];
  const args = [...flags, "--no-warnings", "--input-type=module", "-e", script];
  return (await run(process.execPath, args, { cwd: REPOSITORY })).stdout;
}

function writeProject(t: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "readme-agent-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const ownAgent = findBlock(readme, "ts", "defineAgent");

test("the agent of the README runs its tool from a folder outside the repository", async (t) => {
  const { url } = await start(t, [writeProject(t, { "agent.ts": ownAgent })]);
  const response = await fetch(new URL("api/chat", url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ message: "What is my order status?", stream: true }),
  });
  assert.match(await response.text(), /event: tool_result\ndata: .*on its way.*"completed"/);
});

test("the README's way to a real model starts, and without its .env is told what is missing", async (t) => {
  const source = ownAgent.replace('model: "demo"', 'model: "openai/gpt-5.2"');
  assert.match(readme, /set `model` to `openai\/gpt-5\.2`/);
  const folder = writeProject(t, { "agent.ts": source, ".env": findBlock(readme, "ini", "OPENAI_API_KEY=") });
  const { command } = await start(t, [folder]);
  assert.match(command.stdout, /model +openai\/gpt-5\.2\n/);
  const bare = writeProject(t, { "agent.ts": source });
  await assert.rejects(start(t, [bare]), /needs OPENAI_API_KEY: set it/);
});

test("the README's curl commands bring the answer as JSON and as a stream", async (t) => {
  const server = await start(t, [writeProject(t, { "agent.ts": ownAgent })]);
  const commands = codeBlocks(readme).filter(({ text }) => text.startsWith("curl "));
  const [json, stream, ...others] = await Promise.all(
    commands.map(async ({ text }) => (await run("bash", ["-c", against(server, text)])).stdout),
  );
  assert.deepEqual(others, []);
  assert.match(JSON.parse(json ?? "").response, /get_order_status/);
  assert.match(stream ?? "", /^id: 1\nevent: thinking\ndata: \{.*\nevent: done\ndata: \{[^\n]*\}\n\n$/s);
});

test("docs/clients.md: the first client asks twice in one conversation, and learns why a message was refused", async (t) => {
  const server = await start(t, []);
  const script = findBlock(clients, "js", "const ask = async");
  const printed = await runJavaScript(against(server, script));
  assert.match(printed, /Here is what the tools answered:.*Paris.*Here is what the tools answered:.*Tokyo/s);
  await assert.rejects(
    runJavaScript(against(server, script.replace("in Paris?", "").replace("What is the weather ", ""))),
    /invalid_request: /,
  );
});

test("docs/clients.md: the eventsource-parser client prints the answer", async (t) => {
  const server = await start(t, []);
  const script = findBlock(clients, "js", "eventsource-parser/stream");
  const printed = await runJavaScript(against(server, script));
  assert.match(printed, /^Let me look that up\.Here is what the tools answered:.*as it is\.$/s);
});

test("docs/clients.md: the WebSocket client prints the answer and its tool call, and ends", async (t) => {
  const server = await start(t, []);
  const script = findBlock(clients, "js", "new WebSocket");
  const printed = await runJavaScript(against(server, script));
  assert.match(printed, /^Let\n me\n look\n.*get_weather \{"city":"Paris"\}\n.* is\.\n$/s);
});

test("docs/agents.md: the agent runs its tool, its unit test passes, and the tool with zod works", async (t) => {
  const files = {
    "agent.ts": findBlock(agents, "ts", "export default defineAgent"),
    "orders.test.ts": findBlock(agents, "ts", "node:test"),
    "quote.ts": findBlock(agents, "ts", 'from "zod"'),
    "package.json": '{ "type": "module" }',
  };
  const folder = writeProject(t, files);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(REPOSITORY, join(folder, "node_modules/parley-agent"), "junction");
  symlinkSync(join(REPOSITORY, "node_modules/zod"), join(folder, "node_modules/zod"), "junction");
  const { url } = await start(t, [folder]);
  const body = JSON.stringify({ message: "What is my order status?", stream: false });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/api/chat`, { method: "POST", headers, body });
  assert.match(await response.text(), /on its way/);
  const tsx = pathToFileURL(join(REPOSITORY, "node_modules/tsx/dist/esm/index.mjs")).href;
  const tested = await run(process.execPath, ["--import", tsx, "--test", "orders.test.ts"], {
    cwd: folder,
    env: { PATH: process.env.PATH },
  });
  assert.match(tested.stdout, /pass 1\b/);
  const quoting =
    'const { quote } = await import("./quote.ts"); console.log(quote.execute({ part: "gears", count: 1 }, {}));';
  const quoted = await run(process.execPath, ["--import", tsx, "--input-type=module", "-e", quoting], { cwd: folder });
  assert.match(quoted.stdout, /euros: 60/);
});

test("docs/deploying.md: its first commands write an .env with which the server starts and asks for a key", async (t) => {
  const folder = writeProject(t, { "agent.ts": ownAgent });
  const commands = codeBlocks(readMarkdown("docs/deploying.md"))[0]?.text ?? "";
  assert.match(commands, /npx parley start\n$/);
  await run("bash", ["-c", commands.replace("npx parley start", "")], { cwd: folder });
  const { command, url } = await start(t, [folder], { env: { HOST: "0.0.0.0" } });
  assert.match(command.stdout, /keys +chat\n/);
  assert.equal(command.stderr, "", "no warning");
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/api/chat`, { method: "POST", headers, body: '{"message":"Hi","stream":false}' });
  assert.equal(response.status, 401);
});

test("docs/providers.md: its first agent and .env start with a real model", async (t) => {
  const page = readMarkdown("docs/providers.md");
  const files = { "agent.ts": codeBlocks(page)[0]?.text ?? "", ".env": findBlock(page, "ini", "OPENAI_API_KEY=") };
  const { command } = await start(t, [writeProject(t, files)]);
  assert.match(command.stdout, /model +openai\/gpt-5\.2\n/);
});

test("every code block of JavaScript, TypeScript and shell in a document that no other test runs is one that can be read", async () => {
  for (const path of DOCUMENTS) {
    for (const { language, text } of codeBlocks(readMarkdown(path))) {
      if (["js", "ts", "tsx", "jsx"].includes(language)) await transform(text, { loader: language as "ts" });
      if (language === "json" && !text.includes("…")) JSON.parse(text);
      if (["sh", "bash"].includes(language)) await run("bash", ["-n", "-c", text]);
    }
  }
});

test("every code block of JavaScript, TypeScript and shell in a document that no other test runs is one that can be read", async () => {
  for (const path of DOCUMENTS) {
    for (const { language, text } of codeBlocks(readMarkdown(path))) {
      if (["js", "ts", "tsx", "jsx"].includes(language)) await transform(text, { loader: language as "ts" });
      if (language === "json" && !text.includes("…")) JSON.parse(text);
      if (["sh", "bash"].includes(language)) await run("bash", ["-n", "-c", text]);
    }
  }
});

test("every link and image between the project's documents leads to a file and a heading that exist", () => {
  const broken = DOCUMENTS.flatMap((path) =>
    linksOf(readMarkdown(path))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

function linksOf(markdown: string): string[] {
  const prose = markdown.replace(/^```.*?^```$/gms, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"/g)];
  return links.map(([, link, image]) => link ?? image ?? "").filter((link) => !/^https?:/.test(link));
}

function leadsSomewhere(from: string, link: string): boolean {
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

const ORIGIN = "http://localhost:3000";

function chat(url: string, message: string, headers: Record<string, string> = {}) {
  return fetch(new URL("api/chat", url), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ message, stream: false }),
  });
}

function historyOf({ state }: ChatResponse): HistoryMessage[] {
  assert.ok("conversation_history" in state && Array.isArray(state.conversation_history));
  return state.conversation_history;
}

test("examples/hello-agent is served under its name and answers", async (t) => {
  const { url } = await start(t, ["examples/hello-agent"], { cwd: REPOSITORY });
  const info = await (await fetch(new URL("api/info", url))).json();
  assert.deepEqual([info.name, info.agent], ["Hello", "Friendly"]);
  assert.deepEqual(info.suggestions, ["What are you?"]);

  const response = await chat(url, "What are you?");
  assert.equal(response.status, 200);
  assert.match((await response.json()).response, /demo model/);
});

test("examples/hello-agent starts with a real model as its comment says", async (t) => {
  const file = join(REPOSITORY, "examples/hello-agent/agent.ts");
  const [, model = ""] = /For a real one write "(openai\/[^"]+)"/.exec(readFileSync(file, "utf8")) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "hello-agent-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const source = readFileSync(file, "utf8").replace('model: "demo"', `model: "${model}"`);
  writeFileSync(join(folder, "agent.ts"), source);
  writeFileSync(join(folder, ".env"), "OPENAI_API_KEY=sk-from-the-file\n");

  const { command } = await start(t, [folder]);
  assert.match(command.stdout, new RegExp(`model +${model}\n`));
});

test("examples/tools-agent runs its JSON Schema tool and its zod tool for one message", async (t) => {
  const { url } = await start(t, ["examples/tools-agent"], { cwd: REPOSITORY });
  const { suggestions } = await (await fetch(new URL("api/info", url))).json();
  const response = await chat(url, suggestions[0]);
  assert.equal(response.status, 200);
  const results = historyOf(await response.json()).flatMap((message) =>
    message.role === "tool" ? [JSON.parse(message.content)] : [],
  );
  assert.deepEqual(results, [
    { bike: "city bike", inStock: 4 },
    { part: "brakes", count: 1, euros: 30 },
  ]);
});

test("examples/tools-agent names the package that its zod comes from", () => {
  const source = readFileSync(join(REPOSITORY, "examples/tools-agent/agent.ts"), "utf8");
  const imported = [...source.matchAll(/from "([^."][^"]*)"/g)].map(([, name]) => name);
  const read = (path: string) => JSON.parse(readFileSync(join(REPOSITORY, path), "utf8"));
  const { dependencies } = read("examples/tools-agent/package.json");
  const needed = imported.filter((name = "") => name !== "parley-agent" && !name.startsWith("node:"));
  assert.deepEqual(Object.keys(dependencies), needed);
  // The example promises the version that the tests run.
  assert.equal(dependencies.zod, `^${read("package.json").devDependencies.zod}`);
});

test("examples/embed-page loads the widget with a key that its README's settings let in, from its page only", async (t) => {
  const html = readFileSync(join(REPOSITORY, "examples/embed-page/index.html"), "utf8");
  const scripts = [...html.matchAll(/<script([^>]*)><\/script>/g)].map(([, attributes = ""]) =>
    Object.fromEntries([...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, k, v]) => [k, v])),
  );
  assert.equal(scripts.length, 1);
  const [{ src = "", "data-key": key = "" } = {}] = scripts;
  assert.equal(src, "http://localhost:8080/widget.js");

  const readme = readFileSync(join(REPOSITORY, "examples/embed-page/README.md"), "utf8");
  const settings = [...readme.matchAll(/(PARLEY_\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value]);
  const { url } = await start(t, [], { env: Object.fromEntries(settings) });

  const script = await fetch(new URL(new URL(src).pathname, url));
  assert.equal(script.status, 200);
  assert.match(script.headers.get("content-type") ?? "", /^text\/javascript/);

  const authorization = `Bearer ${key}`;
  const fromPage = await chat(url, "Hello", { origin: ORIGIN, authorization });
  assert.equal(fromPage.status, 200);
  assert.equal(fromPage.headers.get("access-control-allow-origin"), ORIGIN);
  const elsewhere = await chat(url, "Hello", { origin: "https://evil.example", authorization });
  assert.equal(elsewhere.status, 403);
  const without = await chat(url, "Hello", { origin: ORIGIN });
  assert.equal(without.status, 401);
});
