/** How requests go over the line, whichever package builds them. */

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { test } from "node:test";
import { createChatCompletions } from "../../server/providers/chat/create.ts";
import { httpAgent } from "../../server/providers/upstream/agents.ts";
import { bedrock, stream } from "../support/bedrock.ts";
import { ok, serve } from "../support/chat-servers.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { ask, chatProvider, INSTANT_CLOCK, open, said } from "../support/upstream-conversation.ts";
import { fixture, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const claude = (upstream: UpstreamServer) =>
  serve("anthropic/claude-sonnet-4-5", {
    ANTHROPIC_API_KEY: "sk-ant-test",
    ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, ""),
  });
/** Waits until a connection to the upstream may be used again. */
async function isFree({ url }: UpstreamServer): Promise<void> {
  const { host } = new URL(url);
  for (let turn = 0; turn < 10_000; turn++) {
    if (Object.keys(httpAgent.freeSockets).some((name) => name.startsWith(host))) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail("the connection was not kept");
}

const answered = { body: [fixture("anthropic/text")] };

for (const [name, provider, reply] of [
  ["openai", async (upstream: UpstreamServer) => chatProvider(upstream), ok()],
  ["anthropic", claude, answered],
  ["bedrock", bedrock, stream("text")],
] as const) {
  test(`${name}: no request goes through fetch, whose own five minutes would bound longer settings`, async (t) => {
    t.mock.method(globalThis, "fetch", () => {
      throw new Error("fetch was called");
    });
    await using upstream = await startUpstream(reply);
    assert.notEqual(said(await ask(open(await provider(upstream)))), "");
  });

  test(`${name}: the next request uses the connection again, and no answer may be compressed`, async (t) => {
    // An answer that was read to its last event has a moment to end.
    stopClock(t);
    await using upstream = await startUpstream(reply, reply);
    const served = await provider(upstream);
    for (let request = 0; request < 2; request++) {
      await ask(open(served));
      await isFree(upstream);
    }
    const [first, second] = upstream.calls;
    assert.equal(first?.port, second?.port);
    assert.equal(first?.headers["accept-encoding"], "identity");
    assert.equal(Number(first?.headers["content-length"]), Buffer.byteLength(first?.body ?? ""));
  });
}

for (const [keeps, kept] of [
  [600, 60_000],
  [20, 20_000],
] as const) {
  test(`a connection that nobody uses is kept for ${kept / 1000} seconds where the upstream keeps it for ${keeps}`, async () => {
    const requests: ClientRequest[] = [];
    const note = (message: unknown) => {
      requests.push((message as { request: ClientRequest }).request);
    };
    subscribe("http.client.request.start", note);
    try {
      const headers = { connection: "keep-alive", "keep-alive": `timeout=${keeps}` };
      await using upstream = await startUpstream({ ...ok(), headers });
      await ask(open(chatProvider(upstream)));
      await isFree(upstream);
      const idleFor = requests[0]?.socket?.timeout ?? 0;
      // Some versions of Node stay a second below what the upstream says.
      assert.ok(idleFor > kept - 2_000 && idleFor <= kept, `${idleFor} ms`);
    } finally {
      unsubscribe("http.client.request.start", note);
    }
  });
}

test("a connection that the upstream closed between two requests is replaced, and no try is lost over it", async () => {
  await using upstream = await startUpstream(ok(), { headless: true, end: "cut" }, ok());
  const settings = { model: "m", settings: {}, times: { firstChunk: 20_000, idle: 20_000 } };
  const waits: number[] = [];
  const provider = createChatCompletions({
    id: "x",
    label: "X",
    baseUrl: upstream.url,
    apiKey: undefined,
    clock: { ...INSTANT_CLOCK, wait: async (ms) => void waits.push(ms) },
    ...settings,
  });
  assert.equal(said(await ask(open(provider))), "ok");
  await isFree(upstream);
  assert.equal(said(await ask(open(provider))), "ok");
  const [kept, closed, replaced] = upstream.calls.map(({ port }) => port);
  assert.equal(closed, kept);
  assert.notEqual(replaced, closed);
  assert.deepEqual(waits, []);
});
