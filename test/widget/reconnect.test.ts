/** A conversation with a real server over an unreliable connection: nothing is lost, said or done twice. */

import "./browser-stubs.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ChatSession } from "../../widget/conversations/chat-session.ts";
import { OpenConversation } from "../../widget/conversations/open-conversation.ts";
import { ReconnectPolicy } from "../../widget/conversations/reconnect-policy.ts";
import type { FallbackTransport } from "../../widget/transport/fallback.ts";
import { HttpTransport } from "../../widget/transport/http.ts";
import type { Endpoint, Transport } from "../../widget/transport/transport.ts";
import { WebSocketTransport } from "../../widget/transport/websocket.ts";
import { startProxy } from "../support/proxy.ts";
import { call, type Step, say, think, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { echo } from "../support/test-tools.ts";

const TRANSPORTS = {
  WebSocket: (endpoint: Endpoint): Transport => {
    const http = new HttpTransport(endpoint);
    return Object.assign(new WebSocketTransport(endpoint), { cancel: (run: string) => http.cancel(run) });
  },
  SSE: (endpoint: Endpoint): Transport => new HttpTransport(endpoint),
};

/** The model's steps, each of which waits until the client has all earlier events. */
function* steps(turn: readonly Step[], before: number, has: (count: number) => Promise<void>) {
  let sent = before;
  for (const step of turn) {
    // Calls reach the client at the end of the turn.
    if (step.type !== "call") yield wait(has(sent));
    sent += 1;
    yield step;
  }
}

/** Counts the events that a session applies, and lets the model wait for a count. */
class Progress {
  count = 0;
  #waiting: { count: number; resolve: () => void }[] = [];

  readonly reached = (count: number) =>
    new Promise<void>((resolve) => {
      this.#waiting.push({ count, resolve });
      this.#wake();
    });

  next(): void {
    this.count += 1;
    this.#wake();
  }

  #wake(): void {
    for (const { count, resolve } of this.#waiting) if (count <= this.count) resolve();
  }
}

async function answer(t: TestContext, over: keyof typeof TRANSPORTS, cutAfter: number | undefined) {
  const progress = new Progress();
  const { reached } = progress;
  const server = await startServer(t, {
    agent: { tools: [echo] },
    turns: [
      steps(
        [think("I look "), think("twice."), call("a", "echo", { text: "one" }), call("b", "echo", { text: "two" })],
        0,
        reached,
      ),
      // Two tool results came in between.
      steps([think("Good."), say("Both "), say("**done**"), say(".")], 6, reached),
    ],
  });
  const proxy = await startProxy(t, server.port);
  const transport = TRANSPORTS[over]({ server: new URL(`${proxy.url}/`), key: () => undefined });
  t.after(() => transport.close());
  // Before the first event: the message has arrived, and no response has been sent.
  if (cutAfter === 0) void server.model.nextAsked().then(() => proxy.cut());
  let last = 0;
  const conversation = new OpenConversation({
    store: () => undefined,
    owner: () => ({ agent: "", kept: "tab" }),
    makeRoom: async () => false,
    onAppend: () => {},
  });
  const session = new ChatSession({
    conversation,
    transport: transport as FallbackTransport,
    reconnect: new ReconnectPolicy(() => {}),
    classifyError: (error) => error,
    onToken: () => {},
    onTool: () => {},
    onAnswerEnd: () => {},
    onChange: () => {
      const after = conversation.value.run?.after ?? last;
      while (last < after) {
        last += 1;
        if (last === cutAfter) proxy.cut();
        progress.next();
      }
    },
  });
  const { ended } = await session.send({ text: "Go", attachments: [], files: [] });
  await ended;
  return {
    messages: session.messages,
    state: session.state,
    events: last + 1,
    modelRequests: server.model.asked.length,
  };
}

/** Removes values that depend on time or chance. */
const timeless = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (key, item: unknown) =>
      /^(at|startedAt|endedAt|durationMs|conversation|run)$/.test(key) ? undefined : item,
    ),
  );

for (const over of ["WebSocket", "SSE"] as const) {
  test(`over ${over}, a connection that is cut before or after any event changes nothing of an answer, and the agent runs once`, async (t) => {
    const whole = await answer(t, over, undefined);
    const expected = timeless(whole);
    assert.equal(expected.modelRequests, 2);
    for (let cutAfter = 0; cutAfter < expected.events; cutAfter++) {
      assert.deepEqual(timeless(await answer(t, over, cutAfter)), expected, `cut after event ${cutAfter}`);
    }
  });
}

test("pauses double from 2 seconds on and stay at 30", async (t) => {
  t.mock.method(Math, "random", () => 1);
  const clock = stopClock(t);
  const policy = new ReconnectPolicy(() => {});
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 7; attempt++) {
    const waiting = policy.wait();
    pauses.push(policy.retryIn);
    clock.tick(30_000);
    await waiting;
  }
  assert.deepEqual(pauses, [1, 2, 4, 8, 16, 30, 30]);
});
