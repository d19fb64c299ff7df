/** MCP servers that restart, forget, freeze and lie: nothing stays broken, and no call is made twice. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate } from "../support/deadline.ts";
import { calling, eventually, outputOf, resultsOf, saidOf, startWith, toolsOf } from "./asking.ts";
import { type Calling, startHttpServer, textResult, toolNamed } from "./http-server.ts";

const COUNT = [toolNamed("count")];

function counting() {
  let calls = 0;
  return () => textResult(`call ${++calls}`);
}

for (const unknown of [404, 400] as const) {
  test(`a server that was restarted between two messages, and answers ${unknown}, is asked anew`, async (t) => {
    const tools = await startHttpServer(t, { tools: COUNT, call: counting(), unknown });
    const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(3, "tools__count") });
    assert.equal(await outputOf(t, server), "call 1");
    await tools.restart();
    assert.equal(await outputOf(t, server), "call 2");
    assert.equal(await outputOf(t, server), "call 3");
    assert.equal(tools.count("initialize"), 2);
    assert.deepEqual(saidOf(server), []);
  });

  test(`ten calls at once on a session that the server refuses with ${unknown} open one new session`, async (t) => {
    const tools = await startHttpServer(t, { tools: COUNT, call: counting(), unknown });
    const ten = Array.from({ length: 10 }, () => "tools__count");
    const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(2, ...ten) });
    assert.equal((await resultsOf(t, server)).length, 10);
    tools.forget();
    const outputs = (await resultsOf(t, server)).map(({ output }) => output);
    assert.deepEqual(new Set(outputs), new Set(ten.map((_, index) => `call ${index + 11}`)));
    assert.equal(tools.count("initialize"), 2);
  });
}

test("while nobody listens, calls fail with a sentence, and the agent answers; then all is well", async (t) => {
  const tools = await startHttpServer(t, { tools: COUNT, call: counting() });
  const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(4, "tools__count") });
  assert.equal(await outputOf(t, server), "call 1");
  await tools.down();
  for (const _ of [1, 2]) {
    const [result] = await resultsOf(t, server);
    assert.deepEqual([result?.status, result?.output], ["failed", "The tool server tools cannot be reached."]);
  }
  await tools.restart();
  assert.equal(await outputOf(t, server), "call 2");
  await eventually(() => saidOf(server).length === 2, "the notice that it is there again");
});

test("a server that comes after the agent gives its tools as soon as it is there", async (t) => {
  const tools = await startHttpServer(t, { tools: COUNT, call: counting() });
  await tools.down();
  const server = await startWith(t, { tools: { url: tools.url } }, { turns: [...calling(2, "tools__count")] });
  assert.match(await outputOf(t, server), /no tool/i);
  assert.deepEqual(toolsOf(server), []);
  await tools.restart();
  await eventually(() => tools.count("tools/list") > 0, "its list");
  assert.equal(await outputOf(t, server), "call 1");
});

test("a call during which the connection is cut fails, and is not made again", async (t) => {
  const started = gate();
  let calls = 0;
  const call = async ({ gone }: Calling) => {
    calls += 1;
    if (calls > 1) return textResult("later");
    started.open();
    return gone;
  };
  const tools = await startHttpServer(t, { tools: COUNT, call });
  const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(2, "tools__count") });
  const failing = resultsOf(t, server);
  await started.opened;
  await tools.restart();
  const [result] = await failing;
  assert.equal(result?.status, "failed");
  assert.match(result?.output ?? "", /It may have been carried out/);
  assert.equal(calls, 1);
  assert.equal(await outputOf(t, server), "later");
});

test("a call that the server never answers ends after its time, and is not made again", async (t) => {
  const call = ({ gone }: Calling) => gone;
  const tools = await startHttpServer(t, { tools: COUNT, call });
  const mcp = { tools: { url: tools.url, timeoutMs: 300 } };
  const server = await startWith(t, mcp, { turns: calling(2, "tools__count") });
  for (const _ of [1, 2]) {
    const [result] = await resultsOf(t, server);
    assert.deepEqual([result?.status, result?.output], ["failed", "Timed out after 300 ms."]);
  }
  assert.equal(tools.count("tools/call"), 2);
  await tools.until("notifications/cancelled", 2);
});

test("each progress gives a call its time anew", async (t) => {
  const call = async ({ progress }: Calling) => {
    for (const step of [1, 2, 3, 4]) {
      await new Promise((resolve) => setTimeout(resolve, 600));
      progress(step);
    }
    return textResult("slow");
  };
  const tools = await startHttpServer(t, { tools: COUNT, call });
  const mcp = { tools: { url: tools.url, timeoutMs: 1500 } };
  const server = await startWith(t, mcp, { turns: calling(1, "tools__count") });
  assert.equal(await outputOf(t, server), "slow");
});

test("a list that changes between two messages changes for the second, and a run keeps its own", async (t) => {
  const started = gate();
  const changed = gate();
  let names = ["count", "old"];
  const call = async ({ params }: Calling) => {
    if (params.name === "count") {
      started.open();
      await changed.opened;
    }
    return textResult(params.name);
  };
  const tools = await startHttpServer(t, { tools: () => names.map((name) => toolNamed(name)), call });
  const turns = [...calling(1, "tools__count").slice(0, 1), ...calling(1, "tools__old"), ...calling(1, "tools__new")];
  const server = await startWith(t, { tools: { url: tools.url } }, { turns });
  const first = resultsOf(t, server);
  await started.opened;
  names = ["new"];
  tools.forget();
  changed.open();
  assert.deepEqual(
    (await first).map(({ output }) => output),
    ["count", "old"],
  );
  assert.equal(await outputOf(t, server), "new");
  assert.deepEqual(toolsOf(server), ["tools__new"]);
});

test("a server that accepts and never answers lets the agent answer without it, and is asked again", async (t) => {
  let isFrozen = true;
  const tools = await startHttpServer(t, { tools: COUNT, call: counting(), instead: () => isFrozen });
  const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(3, "tools__count") });
  assert.match(await outputOf(t, server), /no tool/i);
  const before = performance.now();
  assert.match(await outputOf(t, server), /no tool/i);
  assert.ok(performance.now() - before < 3000, "only the first message waits");
  isFrozen = false;
  await eventually(() => tools.count("tools/list") > 0, "its list");
  await eventually(() => saidOf(server).length === 2, "the notice that it is there again");
  assert.equal(await outputOf(t, server), "call 1");
});

test("a session that is forgotten while a call waits for it is opened for the call, which runs once", async (t) => {
  const tools = await startHttpServer(t, { tools: COUNT, call: counting() });
  const server = await startWith(t, { tools: { url: tools.url } }, { turns: calling(6, "tools__count") });
  for (const number of [1, 2, 3, 4, 5, 6]) {
    tools.forget();
    assert.equal(await outputOf(t, server), `call ${number}`);
  }
  assert.equal(tools.count("initialize"), 6);
});
