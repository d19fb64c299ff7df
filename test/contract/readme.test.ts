import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { readSettings } from "../../server/config/settings.ts";
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
