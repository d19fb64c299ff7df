/** Real servers: files of a folder, the specification of 2026-07-28, and MCP's conformance test of clients. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import type { RunContext } from "../../server/agent/run-context.ts";
import type { ToolProgressEvent } from "../../server/protocol/events.ts";
import { post, readEventStream, send } from "../support/chat-transports.ts";
import { REPOSITORY } from "../support/command.ts";
import { gate } from "../support/deadline.ts";
import { listen } from "../support/listen.ts";
import { startTwo, testWithRedis } from "../support/redis-server.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { call, say, wait } from "../support/scripted-provider.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { calling, eventually, outputOf, resultsOf, saidOf, startWith, toolsOf } from "./asking.ts";
import { type Calling, startHttpServer, textResult, toolNamed } from "./http-server.ts";
import { CONFORMANCE, FILES, load } from "./packages.ts";

test("files of a folder are read and written, and none outside of it", async (t) => {
  const folder = temporaryProject(t, { "hello.txt": "Hello from the file." });
  const read = (path: string): [string, object] => ["files__read_text_file", { path }];
  const written = join(folder, "new.txt");
  const server = await startWith(
    t,
    { files: { command: process.execPath, args: [FILES, folder], needsApproval: "unless-read-only" } },
    {
      turns: [
        ...calling(1, read(join(folder, "hello.txt"))),
        ...calling(1, read("/etc/passwd")),
        [call("w", "files__write_file", { path: written, content: "New." })],
        [say("Done.")],
        ...calling(1, read(written)),
      ],
    },
  );
  assert.match(await outputOf(t, server), /Hello from the file\./);
  const [outside] = await resultsOf(t, server);
  assert.deepEqual([outside?.status, /Access denied/.test(outside?.output ?? "")], ["failed", true]);
  const { last } = await send.sse(t, server, { message: "Write." });
  assert.ok(last.type === "done" && last.approvals?.length === 1);
  await send.sse(t, server, { approvals: [{ id: "w", approved: true }], state: last.state });
  assert.match(await outputOf(t, server), /New\./);
});

interface Modern {
  url: string;
  /** The protocol's methods from the headers, and the token of each request. */
  asked: { method: string; version: string; token: string }[];
}

/** A server of the specification of 2026-07-28, with one tool per token. */
async function startModern(t: TestContext): Promise<Modern> {
  const { createMcpHandler, McpServer } = await load("@modelcontextprotocol/server");
  const { z } = await load("zod");
  const tokenOf = (headers: Headers) => headers.get("authorization")?.replace("Bearer ", "") ?? "nobody";
  const handler = createMcpHandler(
    ({ requestInfo }: { requestInfo: Request }) => {
      const token = tokenOf(requestInfo.headers);
      const server = new McpServer({ name: "modern", version: "1" }, { instructions: "Add numbers." });
      const input = { inputSchema: z.object({ a: z.number(), b: z.number() }), title: "Addition" };
      server.registerTool("add", input, ({ a, b }: { a: number; b: number }) => ({
        content: [{ type: "text", text: String(a + b) }],
        structuredContent: { sum: a + b },
      }));
      server.registerTool(`of_${token}`, { inputSchema: z.object({}) }, () => ({
        content: [{ type: "text", text: token }],
      }));
      return server;
    },
    { legacy: "reject" },
  );
  const asked: Modern["asked"] = [];
  const http = createServer(async (req, res) => {
    const headers = new Headers(req.headers as Record<string, string>);
    asked.push({
      method: headers.get("mcp-method") ?? req.method ?? "",
      version: headers.get("mcp-protocol-version") ?? "",
      token: tokenOf(headers),
    });
    const body = req.method === "POST" ? { body: Readable.toWeb(req) as ReadableStream, duplex: "half" } : {};
    const init: object = { method: req.method, headers, ...body };
    const response: Response = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, init));
    res.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body === null) res.end();
    else Readable.fromWeb(response.body as never).pipe(res);
  });
  return { url: `${await listen(t, http)}/mcp`, asked };
}

test("a server of 2026-07-28 is asked without a handshake and without sessions", async (t) => {
  const { url, asked } = await startModern(t);
  const turns = calling(2, ["own__add", { a: 20, b: 22 }]);
  const server = await startWith(t, { own: { url } }, { turns });
  const [result] = await resultsOf(t, server);
  assert.deepEqual([result?.output, result?.title, result?.status], ["42", "Addition", "completed"]);
  assert.equal(await outputOf(t, server), "42");
  assert.deepEqual(saidOf(server), []);
  const methods = asked.map(({ method }) => method);
  assert.deepEqual(methods.filter((one) => one === "tools/call").length, 2);
  assert.ok(!methods.includes("initialize"), methods.join());
  assert.ok(
    asked.every(({ version }) => version === "2026-07-28"),
    JSON.stringify(asked),
  );
  assert.match(server.model.asked[0]?.start.setup.instructions ?? "", /Add numbers\./);
});

test("thirty people at once see only their own tools of a server of 2026-07-28", async (t) => {
  const { url, asked } = await startModern(t);
  const people = Array.from({ length: 30 }, (_, index) => `user${index}`);
  const allAsked = gate();
  const first = people.map(() => [wait(allAsked.opened), call("c", "own__add", { a: 1, b: 2 })]);
  const server = await startWith(
    t,
    { own: { url, headers: ({ user }: RunContext) => ({ authorization: `Bearer ${user?.id}` }) } },
    {
      turns: [...first, ...people.map(() => [say("Done.")])],
      authenticate: ({ token }) => (token === undefined ? undefined : { id: token }),
      env: { PARLEY_RATE_PER_ADDRESS: "100000", PARLEY_MAX_RUNS_PER_ADDRESS: "1000" },
    },
  );
  const answers = people.map(async (person) => {
    const response = await post(server, { message: person, stream: true }, { headers: { "x-user-token": person } });
    return readEventStream(await response.text());
  });
  await eventually(() => server.model.asked.length === people.length, "all requests to the model");
  allAsked.open();
  await Promise.all(answers);
  for (const { start, messages } of server.model.asked) {
    const person = /user\d+/.exec(JSON.stringify(messages))?.[0];
    assert.deepEqual(
      start.setup.tools.map(({ name }) => name),
      ["own__add", `own__of_${person}`],
    );
  }
  for (const { token, method } of asked) assert.match(token, /^user\d+$/, method);
  assert.ok(toolsOf(server).length === 2);
});

testWithRedis("a run of one process that is read from the other shows a tool's progress", async (t, redis) => {
  const held = gate();
  const tools = await startHttpServer(t, {
    tools: [toolNamed("slow")],
    async call({ progress }: Calling) {
      progress(1, { total: 4, message: "One of four" });
      await held.opened;
      return textResult("slow");
    },
  });
  const mcp = { own: { url: tools.url } };
  const [owner, other] = await startTwo(t, redis, { turns: calling(1, "own__slow"), agent: { mcp } });
  const run = newRun();
  const first = await openLine.sse(t, owner, { message: "Hi", run });
  while ((await first.next()).type !== "tool_progress");
  const second = await openLine.sse(t, other, { resume: run, after: 0 });
  let event = await second.next();
  while (event.type !== "tool_progress") event = await second.next();
  assert.equal((event as ToolProgressEvent).data.text, "One of four");
  held.open();
  const rest = await second.rest();
  assert.ok(rest.some((one) => one.type === "tool_result" && one.data.output === "slow"));
});

/**
 * The conformance test's scenarios that apply to us. The others: `elicitation-sep1034-client-defaults` (we do not announce it)
 * and all of `auth/` (we have no OAuth flow; in the scenarios with a client secret, the server names another origin to send it
 * to, while we use the address that the author names: see tokens.kit.ts).
 */
const CASES = ["initialize", "tools_call", "sse-retry"];

const isOldNode = Number(process.versions.node.split(".")[0]) < 22 && "the makers' test needs Node 22";

for (const scenario of CASES) {
  test(`the makers' test of clients passes: ${scenario}`, { skip: isOldNode }, async (t) => {
    const folder = temporaryProject(t, {});
    const client = `${process.execPath} --import tsx ${join(REPOSITORY, "test/mcp/conformance-client.ts")}`;
    const args = [CONFORMANCE, "client", "--command", client, "--scenario", scenario];
    const child = spawn(process.execPath, args, { cwd: REPOSITORY, env: { ...process.env, TMPDIR: folder } });
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
