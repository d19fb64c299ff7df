/** One real server over stdio and one over HTTP: the part of npm run test:mcp that .ci/run includes. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import type { McpServerDefinition } from "../../server/agent/mcp-definition.ts";
import { send } from "../support/chat-transports.ts";
import { within } from "../support/deadline.ts";
import { freePort } from "../support/free-port.ts";
import { call, say } from "../support/scripted-provider.ts";
import { calling, eventually, outputOf, resultsOf, saidOf, startWith } from "./asking.ts";
import { EVERYTHING } from "./packages.ts";

/** The reference server with one of everything, over HTTP; `restart` starts it again on the same port. */
async function startEverything(t: TestContext) {
  const port = await freePort();
  let child: ChildProcess;
  const start = async () => {
    const env = { PATH: process.env.PATH ?? "", PORT: String(port) };
    child = spawn(process.execPath, [EVERYTHING, "streamableHttp"], { env, stdio: ["ignore", "ignore", "pipe"] });
    await within(once(child.stderr ?? child, "data"), "the server with everything");
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  t.after(kill);
  await start();
  return { url: `http://127.0.0.1:${port}/mcp`, kill, restart: () => kill().then(start) };
}

const WIRES: Record<string, (t: TestContext) => Promise<McpServerDefinition>> = {
  stdio: async () => ({ command: process.execPath, args: [EVERYTHING] }),
  HTTP: async (t) => ({ url: (await startEverything(t)).url }),
};

for (const [wire, define] of Object.entries(WIRES)) {
  test(`over ${wire}, calls of a real server have results, pictures, structured content and progress`, async (t) => {
    const turns = [
      [
        call("sum", "ev__get-sum", { a: 1, b: 2 }),
        call("picture", "ev__get-tiny-image"),
        call("structured", "ev__get-structured-content", { location: "Chicago" }),
        call("links", "ev__get-resource-links", { count: 2 }),
        call("resource", "ev__get-resource-reference", { resourceType: "Text", resourceId: 1 }),
        call("slow", "ev__trigger-long-running-operation", { duration: 0.4, steps: 2 }),
        call("wrong", "ev__get-sum", { a: "one" }),
      ],
      [say("Done.")],
    ];
    const server = await startWith(t, { ev: await define(t) }, { turns });
    const { events } = await send.sse(t, server, { message: "Hi" });
    const results = new Map(events.flatMap((one) => (one.type === "tool_result" ? [[one.data.id, one.data]] : [])));
    const output = (id: string) => results.get(id)?.output ?? "";
    assert.match(output("sum"), /3/);
    assert.equal(results.get("sum")?.title, "Get Sum Tool");
    assert.deepEqual(
      results.get("picture")?.images?.map((image) => image.mime_type),
      ["image/png"],
    );
    assert.equal(JSON.parse(output("structured")).temperature, 36);
    assert.match(output("links"), /^Blob Resource 1: demo:\/\/resource\/dynamic\/blob\/1$/m);
    assert.match(output("resource"), /demo:\/\/resource\/dynamic\/text\/1/);
    assert.match(output("slow"), /completed/);
    assert.equal(results.get("wrong")?.status, "failed");
    const progress = events.flatMap((one) => (one.type === "tool_progress" ? [one.data.text] : []));
    // The package drops the last progress if it comes together with the result.
    assert.equal(progress[0], "50 %");
    assert.match(server.model.asked[0]?.start.setup.instructions ?? "", /^The tool server ev says of its tools:/);
    assert.deepEqual(saidOf(server), []);
  });
}

test("a real server that is restarted between two calls and during one is asked anew, and no call is repeated", async (t) => {
  const everything = await startEverything(t);
  const slow: [string, object] = ["ev__trigger-long-running-operation", { duration: 20, steps: 40 }];
  const sum: [string, object] = ["ev__get-sum", { a: 1, b: 2 }];
  const turns = [sum, sum, slow, sum].flatMap((one) => calling(1, one));
  const server = await startWith(t, { ev: { url: everything.url } }, { turns });
  assert.match(await outputOf(t, server), /3/);
  await everything.restart();
  assert.match(await outputOf(t, server), /3/);
  const cut = resultsOf(t, server);
  await eventually(() => server.model.asked.length === 5, "the slow call");
  await new Promise((resolve) => setTimeout(resolve, 700));
  await everything.restart();
  const [result] = await cut;
  assert.equal(result?.status, "failed");
  assert.match(result?.output ?? "", /It may have been carried out/);
  assert.match(await outputOf(t, server), /3/);
});
