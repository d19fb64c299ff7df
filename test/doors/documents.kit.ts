/**
 * Runs the blocks of docs/clients.md, docs/hosting.md and docs/leaving-agent-builder.md that need packages: npm run test:doors.
 * Without a `python3`, what needs it is skipped.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type NodeVersion, nodeFor } from "../agents/javascript.ts";
import { ANSWER, MODEL_URL, requests, textsOf } from "../agents/model.ts";
import { send } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { PROCESS_MS } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { installLiteLlm, pythonVersion, startLiteLlm } from "../support/litellm-proxy.ts";
import { findBlock, readMarkdown } from "../support/markdown-file.ts";
import { serveProject } from "../support/serve-project.ts";
import type { Cleanup } from "../support/start-server.ts";
import { install } from "./install.ts";

const CLIENTS = readMarkdown("docs/clients.md");
const LEAVING = readMarkdown("docs/leaving-agent-builder.md");
const KEY = "a-key-of-the-programs";
const DEMO = /Here is what the tools answered:/;

const { host } = await serveProject({ after } as Cleanup, undefined, {
  PARLEY_OPENAI_API: "on",
  PARLEY_API_KEY: KEY,
});

const run = promisify(execFile);
const env = { PATH: process.env.PATH, PARLEY_API_KEY: KEY, NO_PROXY: "*" };
const here = (block: string): string => block.replaceAll("localhost:8080", host);

const VERSIONS: NodeVersion[] = [20, 22];
const places = new Map<NodeVersion, { node: string; folder: string }>();
for (const version of VERSIONS) places.set(version, { node: await nodeFor(version), folder: await install(version) });

for (const [version, { node, folder }] of places) {
  test(`on Node ${version}, the block of LangChain prints an answer`, async () => {
    const path = join(folder, "block.mjs");
    writeFileSync(path, here(findBlock(CLIENTS, "js", "ChatOpenAI")));
    const { stdout } = await run(node, [path], { env, timeout: PROCESS_MS });
    assert.match(stdout, DEMO);
  });

  /** Serves the agent of a block, next to the workflow. */
  const serveWorkflow = (t: Cleanup, name: string, block: string) => {
    const project = join(folder, name);
    mkdirSync(project);
    writeFileSync(join(project, "agent.ts"), block);
    writeFileSync(join(project, "conversation.js"), conversation());
    cpSync("test/doors/workflow/workflow.js", join(project, "workflow.js"));
    const model = { OPENAI_API_KEY: "mock", OPENAI_BASE_URL: MODEL_URL, OPENAI_AGENTS_DISABLE_TRACING: "1" };
    return start(t, [project], { node, env: model, startMs: 180_000 });
  };

  test(`on Node ${version}, an exported workflow answers behind its function`, async (t) => {
    const server = await serveWorkflow(t, "function", findBlock(LEAVING, "ts", "runWorkflow"));
    const { last } = await send.sse(t, server, { message: "where is order 4711" });
    assert.deepEqual([last.type, last.data], ["done", ANSWER]);
  });

  test(`on Node ${version}, its agent streams, shows its tool and goes on with the conversation`, async (t) => {
    const server = await serveWorkflow(t, "agent", findBlock(LEAVING, "ts", "myAgent"));
    const { events, last } = await send.sse(t, server, { message: "where is order 4711" });
    assert.deepEqual([last.type, last.data], ["done", ANSWER]);
    assert.ok(events.some((event) => event.type === "tool_result" && event.data.tool === "get_order_status"));
    assert.ok(events.filter(({ type }) => type === "token").length > 1);
    assert.ok(last.type === "done");
    const { last: second } = await send.sse(t, server, { message: "thanks", state: last.state });
    assert.equal(second.data, "You are welcome.");
  });

  test(`on Node ${version}, a workflow begins with the conversation where the page's list is in the place of its own`, async (t) => {
    const agent = findBlock(LEAVING, "ts", "runWorkflow")
      .replace("{ message }", "{ message, messages }")
      .replace("input_as_text: message", "input_as_text: message, messages");
    const server = await serveWorkflow(t, "conversation", agent);
    const { last } = await send.sse(t, server, { message: "where is order 4711" });
    assert.ok(last.type === "done");
    const before = requests();
    const { last: second } = await send.sse(t, server, { message: "thanks", state: last.state });
    assert.equal(second.data, "You are welcome.");
    assert.deepEqual(textsOf(before), ["where is order 4711", ANSWER, "thanks"]);
  });
}

test("a route for useChat has the agent as its model, and is an agent itself", async (t) => {
  const { folder } = places.get(20) ?? assert.fail();
  process.env.PARLEY_API_KEY = KEY;
  writeFileSync(join(folder, "route.mjs"), here(findBlock(CLIENTS, "js", "toUIMessageStreamResponse")));
  const { POST } = await import(pathToFileURL(join(folder, "route.mjs")).href);
  const asked: string[] = [];
  const route = await listen(
    t,
    createServer(async (request, response) => {
      const body = await text(request);
      asked.push(body);
      const answer: Response = await POST(new Request("http://localhost", { method: "POST", body }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    }),
  );
  const block = findBlock(readMarkdown("docs/hosting.md"), "ts", "DefaultChatTransport");
  mkdirSync(join(folder, "route"));
  writeFileSync(join(folder, "route/agent.ts"), block.replace("https://shop.example.com/api/chat", route));
  const server = await start(t, [join(folder, "route")], { startMs: 180_000 });
  const { last } = await send.sse(t, server, { message: "What is the weather in Paris?" });
  assert.equal(last.type, "done");
  assert.match(last.data, DEMO);
  await send.sse(t, server, { message: "Hello", state: last.state });
  assert.deepEqual(
    asked.map((body) => JSON.parse(body).messages.length),
    [1, 3],
  );
});

/** The block without its types, for a JavaScript file. */
function conversation(): string {
  const block = findBlock(LEAVING, "ts", "conversationOf");
  return block.replace(/^interface[\s\S]*?^\}\n/m, "").replace(": readonly Said[]", "");
}

const version = await pythonVersion();
const skip = version === undefined && "there is no python3 here";

test("the block of OpenAI's package in Python prints an answer", { skip }, async () => {
  const python = await installLiteLlm(version ?? "");
  const block = here(findBlock(CLIENTS, "python", "from openai"));
  const { stdout } = await run(python, ["-c", block], { env, timeout: PROCESS_MS });
  assert.match(stdout, DEMO);
});

test("with the page's settings, LiteLLM has the agent as a model", { skip }, async (t) => {
  const python = await installLiteLlm(version ?? "");
  const yaml = here(findBlock(CLIENTS, "yaml", "model_list")).replace("os.environ/PARLEY_API_KEY", KEY);
  const read = ["-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.argv[1])))", yaml];
  const { model_list: models, litellm_settings: settings } = JSON.parse((await run(python, read)).stdout);
  assert.deepEqual(settings, { num_retries: 0 });
  const proxy = await startLiteLlm(t, python, models);
  const answer = await fetch(`${proxy.url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${proxy.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "support", messages: [{ role: "user", content: "What is the weather in Paris?" }] }),
    signal: AbortSignal.timeout(PROCESS_MS),
  });
  assert.match((await answer.json()).choices[0].message.content, DEMO);
});
