/** A client that goes away closes the connection to the model within a second, whatever the garbage collector does. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { tool } from "../../server/agent/define.ts";
import { post, TRANSPORTS, type TransportName } from "../support/chat-transports.ts";
import { gate, within } from "../support/deadline.ts";
import { call } from "../support/scripted-provider.ts";
import { connect } from "../support/socket-client.ts";
import { type Cleanup, startServer, type TestServer } from "../support/start-server.ts";
import { eventStream, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Sends a message, and returns how to go away. */
const send: Record<TransportName, (t: Cleanup, server: TestServer) => Promise<() => void>> = {
  json: async (_t, server) => leave(server, false),
  sse: async (_t, server) => leave(server, true),
  async socket(t, server) {
    const client = await connect(t, server.socketUrl);
    client.send({ message: "Hi" });
    return () => client.socket.terminate();
  },
};

function leave(server: TestServer, stream: boolean): () => void {
  const leaving = new AbortController();
  post(server, { message: "Hi", stream }, { signal: leaving.signal })
    .then((answer) => answer.text())
    .catch(() => {});
  return () => leaving.abort();
}

const half = eventStream({
  choices: [{ index: 0, delta: { content: "Half" }, finish_reason: null }],
});

const MOMENTS: [name: string, reply: UpstreamReply][] = [
  ["before the model answers", { headless: true, end: "stall" }],
  ["before the model's first event", { end: "stall" }],
  ["in the middle of the answer", { body: [half], end: "stall" }],
];

for (const transport of TRANSPORTS) {
  for (const [moment, reply] of MOMENTS) {
    test(`a client that leaves ${moment} closes the model's connection (${transport})`, async (t) => {
      await using upstream = await startUpstream(reply);
      const server = await startServer(t, {
        agent: { model: "compatible/test" },
        env: { COMPATIBLE_BASE_URL: upstream.url },
      });
      const asked = upstream.nextCall();
      const goAway = await send[transport](t, server);
      const { closed } = await asked;
      for (let round = 0; round < 5; round++) {
        collectGarbage();
        await nextTurn();
      }
      const start = performance.now();
      goAway();
      assert.equal(await within(closed, "the end of the model's connection"), "aborted");
      t.diagnostic(`closed after ${(performance.now() - start).toFixed(1)} ms`);
    });
  }

  test(`a client that leaves during a tool aborts the tool (${transport})`, async (t) => {
    const started = gate();
    const aborted = gate();
    const slow = tool({
      name: "slow",
      description: "Waits.",
      parameters: { type: "object" },
      execute: (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.open();
            reject(signal.reason);
          });
          started.open();
        }),
    });
    const server = await startServer(t, {
      turns: [[call("c1", "slow")]],
      agent: { tools: [slow] },
    });
    const goAway = await send[transport](t, server);
    await within(started.opened, "the tool's start");
    for (let round = 0; round < 5; round++) {
      collectGarbage();
      await nextTurn();
    }
    goAway();
    await within(aborted.opened, "the tool's abort");
  });
}
