import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { readSettings } from "../../server/config/settings.ts";
import type { ChatResponse, HistoryMessage } from "../../server/protocol/chat.ts";
import { REPOSITORY, type StartedCommand, start } from "../support/command.ts";
import { codeBlocks, findBlock, readMarkdown, section } from "../support/markdown-file.ts";

const run = promisify(execFile);
const readme = readMarkdown("README.md");

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

for (const provider of ["OpenAI", "LiteLLM"]) {
  test(`the README's way to ${provider} starts, and without its .env is told what is missing`, async (t) => {
    const text = section(readme, `### With ${provider}`);
    const [, model = ""] = /`model: "([^"]+)"`/.exec(text) ?? [];
    const source = ownAgent.replace('model: "demo"', `model: "${model}"`);
    const dotEnv = findBlock(text, "ini", "=");

    const folder = writeProject(t, { "agent.ts": source, ".env": dotEnv });
    const { command } = await start(t, [folder]);
    assert.match(command.stdout, new RegExp(`model +${model}\n`));

    const [variable = ""] = dotEnv.split("=");
    const bare = writeProject(t, { "agent.ts": source });
    await assert.rejects(start(t, [bare]), new RegExp(`needs ${variable}: set it`));
  });
}

test("the README's curl commands bring the answer as JSON and as a stream", async (t) => {
  const server = await start(t, []);
  const commands = codeBlocks(readme).filter(({ text }) => text.startsWith("curl "));
  const [json, stream, ...others] = await Promise.all(
    commands.map(async ({ text }) => (await run("bash", ["-c", against(server, text)])).stdout),
  );
  assert.deepEqual(others, []);
  assert.match(JSON.parse(json ?? "").response, /get_weather/);
  assert.match(stream ?? "", /^id: 1\nevent: thinking\ndata: \{.*\nevent: done\ndata: \{[^\n]*\}\n\n$/s);
});

test("the README's eventsource-parser client prints the answer", async (t) => {
  const server = await start(t, []);
  const script = findBlock(readme, "js", "eventsource-parser/stream");
  const printed = await runJavaScript(against(server, script));
  assert.match(printed, /^Let me look that up\.Here is what the tools answered:.*as it is\.$/s);
});

test("the README's WebSocket client prints the answer and its tool call, and ends", async (t) => {
  const server = await start(t, []);
  const script = findBlock(readme, "js", "new WebSocket");
  const printed = await runJavaScript(against(server, script));
  assert.match(printed, /^Let\n me\n look\n.*get_weather \{"city":"Paris"\}\n.* is\.\n$/s);
});

test("the examples of deploying go together with the defaults", () => {
  const { runSeconds, drainSeconds } = readSettings({});
  const figures = (file: string, pattern: RegExp) => {
    const found = [...readMarkdown(file).matchAll(pattern)].map(([, figure]) => Number(figure));
    assert.ok(found.length > 0, `${file}: ${pattern}`);
    return Math.min(...found);
  };
  assert.ok(figures("examples/deploy/nginx.conf", /proxy_read_timeout (\d+)s;/g) > runSeconds);
  assert.ok(figures("examples/deploy/haproxy.cfg", /timeout (?:client|server) +(\d+)s/g) > runSeconds);
  assert.ok(figures("examples/deploy/parley.service", /TimeoutStopSec=(\d+)/g) > drainSeconds);
  assert.ok(figures("docs/deploying.md", /--stop-timeout (\d+)/g) > drainSeconds);
});

test("every link and image between the project's documents leads to a file and a heading that exist", () => {
  const examples = readdirSync(join(REPOSITORY, "examples")).map((name) => `examples/${name}/README.md`);
  const documents = [
    "README.md",
    "CHANGELOG.md",
    ...examples,
    "docs/api.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/deploying.md",
    "docs/performance.md",
    "docs/providers.md",
    "docs/settings.md",
    "docs/widget.md",
  ];
  const broken = documents.flatMap((path) =>
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
