/** MCP's conformance test of servers, against an agent's MCP door. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type TestContext, test } from "node:test";
import { listen } from "../support/listen.ts";
import { KEY, MCP_ENV } from "../support/mcp-client.ts";
import { call, hang, say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { echo } from "../support/test-tools.ts";
import { CONFORMANCE, load } from "./packages.ts";

/** A proxy that adds the key, for which the test has no option. */
async function withKey(t: TestContext, { port }: { port: number }): Promise<string> {
  const relay = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${KEY}` };
    const passed = request({ port, path: req.url, method: req.method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(res);
    });
    passed.on("error", () => res.destroy());
    req.pipe(passed);
  });
  return `${await listen(t, relay)}/mcp`;
}

/**
 * The other scenarios call tools with names of the test's own, or require prompts, resources, logging and elicitation, which
 * this door lacks; the one for DNS rebinding is for servers without a key.
 */
const SCENARIOS = ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams"];

const isOldNode = Number.parseInt(process.versions.node, 10) < 22 && "it needs Node 22";

for (const scenario of SCENARIOS) {
  test(`the makers' test of servers passes: ${scenario}`, { skip: isOldNode }, async (t) => {
    const server = await startServer(t, { env: MCP_ENV });
    const args = [CONFORMANCE, "server", "--url", await withKey(t, server), "--scenario", scenario];
    const env = { ...process.env, TMPDIR: temporaryProject(t, {}) };
    const child = spawn(process.execPath, args, { env, cwd: temporaryProject(t, {}) });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        said += chunk;
      });
    }
    await once(child, "close");
    // The test also reports scenarios without any check as passed.
    assert.match(said, /^Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings$/m);
  });
}

test("the client of version 1 of their package asks, hears of progress, goes on, and cancels", async (t) => {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const turns = [[call("a", "echo", { text: "x" })], [say("One.")], [say("Two.")], [say("Well"), hang]];
  const server = await startServer(t, { env: MCP_ENV, agent: { tools: [echo] }, turns });
  const client = new Client({ name: "a test", version: "1" });
  const requestInit = { headers: { authorization: `Bearer ${KEY}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }));
  t.after(() => client.close());
  const ask = (args: object, options?: object) => client.callTool({ name: "ask", arguments: args }, undefined, options);

  const heard: (string | undefined)[] = [];
  const onprogress = ({ message }: { message?: string }) => heard.push(message);
  const { structuredContent: first } = await ask({ message: "Hi" }, { onprogress });
  assert.equal(first.answer, "One.");
  assert.ok(heard.includes("echo"));
  const { structuredContent: second } = await ask({ message: "And?", conversation: first.conversation });
  assert.deepEqual(second, { answer: "Two.", conversation: first.conversation });
  assert.equal(server.model.asked.at(-1)?.messages.length, 5);

  const leaving = new AbortController();
  const asked = server.model.nextAsked();
  const answer = ask({ message: "Long" }, { signal: leaving.signal });
  const { aborted } = await asked;
  leaving.abort();
  await assert.rejects(answer);
  await aborted;
});
