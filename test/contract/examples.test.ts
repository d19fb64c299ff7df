/** Serves the examples as described in their READMEs. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ChatResponse, HistoryMessage } from "../../server/protocol/chat.ts";
import { outputText } from "../../server/providers/history.ts";
import { post } from "../support/chat-transports.ts";
import { REPOSITORY, start } from "../support/command.ts";
import { ask } from "../support/document-commands.ts";
import { temporaryProject } from "../support/temporary-project.ts";

const ORIGIN = "http://localhost:3000";

function historyOf({ state }: ChatResponse): HistoryMessage[] {
  assert.ok("conversation_history" in state && Array.isArray(state.conversation_history));
  return state.conversation_history;
}

test("examples/hello-agent is served under its name and answers", async (t) => {
  const { url } = await start(t, ["examples/hello-agent"], { cwd: REPOSITORY });
  const info = await (await fetch(new URL("api/info", url))).json();
  assert.deepEqual([info.name, info.agent], ["Hello", "Friendly"]);
  assert.deepEqual(info.suggestions, ["What are you?"]);

  const response = await ask(url, "What are you?");
  assert.equal(response.status, 200);
  assert.match((await response.json()).response, /demo model/);
});

test("examples/hello-agent starts with a real model as its comment says", async (t) => {
  const file = join(REPOSITORY, "examples/hello-agent/agent.ts");
  const [, model = ""] = /For a real one write "(openai\/[^"]+)"/.exec(readFileSync(file, "utf8")) ?? [];
  const source = readFileSync(file, "utf8").replace('model: "demo"', `model: "${model}"`);
  const folder = temporaryProject(t, { "agent.ts": source, ".env": "OPENAI_API_KEY=sk-from-the-file\n" });
  const { command } = await start(t, [folder]);
  assert.match(command.stdout, new RegExp(`model +${model}\n`));
});

test("examples/tools-agent runs its JSON Schema tool and its zod tool for one message", async (t) => {
  const { url } = await start(t, ["examples/tools-agent"], { cwd: REPOSITORY });
  const { suggestions } = await (await fetch(new URL("api/info", url))).json();
  const response = await ask(url, suggestions[0]);
  assert.equal(response.status, 200);
  const results = historyOf(await response.json()).flatMap((message) =>
    message.role === "tool" ? [JSON.parse(outputText(message))] : [],
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
  // The example must require the version that the tests run.
  assert.equal(dependencies.zod, `^${read("package.json").devDependencies.zod}`);
});

test("examples/mcp calls the tools of its server, and asks before one that changes something", async (t) => {
  const { url } = await start(t, ["examples/mcp"], { cwd: REPOSITORY });
  const { suggestions } = await (await fetch(new URL("api/info", url))).json();
  const [looked, reserved] = await Promise.all(suggestions.map(async (it: string) => (await ask(url, it)).json()));
  assert.deepEqual(
    looked.tool_calls.map(({ title, output }: { title: string; output: string }) => [title, output]),
    [["Bikes in stock", "city bike: 4 in stock"]],
  );
  assert.equal(reserved.approvals[0].text, "Reserve a city bike until the evening?");
  const approvals = [{ id: reserved.approvals[0].id, approved: true }];
  const answer = await (await post({ url }, { approvals, state: reserved.state, stream: false })).json();
  assert.equal(answer.tool_calls[0].output, "One city bike is reserved until the evening.");
});

test("examples/mcp names the package that its servers need", () => {
  const read = (path: string) => JSON.parse(readFileSync(join(REPOSITORY, path), "utf8"));
  const name = "@modelcontextprotocol/client";
  const { [name]: version } = read("package.json").devDependencies;
  assert.deepEqual(read("examples/mcp/package.json").dependencies, { [name]: `^${version}` });
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
  const fromPage = await ask(url, "Hello", { origin: ORIGIN, authorization });
  assert.equal(fromPage.status, 200);
  assert.equal(fromPage.headers.get("access-control-allow-origin"), ORIGIN);
  const elsewhere = await ask(url, "Hello", { origin: "https://evil.example", authorization });
  assert.equal(elsewhere.status, 403);
  const without = await ask(url, "Hello", { origin: ORIGIN });
  assert.equal(without.status, 401);
});
