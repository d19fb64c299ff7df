/** A conversation with a real server over a line that breaks: nothing is lost, nothing is said or done twice. */

import "./browser-globals.ts";
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startProxy } from "../support/proxy.ts";
import { call, type Step, say, think, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const { HttpTransport } = await import("../../widget/chunks/http.ts");
const { ChatSession } = await import("../../widget/chat-session.ts");
const { Connection } = await import("../../widget/connection.ts");
const { HttpRequests } = await import("../../widget/transport/http-requests.ts");
const { SocketTransport } = await import("../../widget/transport/socket-transport.ts");

type Line = ConstructorParameters<typeof ChatSession>[0]["transport"];
type Endpoint = ConstructorParameters<typeof HttpRequests>[0];

const LINES = {
  socket: (endpoint: Endpoint): Line => {
    const requests = new HttpRequests(endpoint);
    return Object.assign(new SocketTransport(endpoint), {
      cancel: (run: string) => requests.cancel(run),
    });
  },
  SSE: (endpoint: Endpoint): Line => {
    const requests = new HttpRequests(endpoint);
    return Object.assign(new HttpTransport(requests), {
      cancel: (run: string) => requests.cancel(run),
    });
  },
};

/** What the model says, each step after the client has what came before. */
function* steps(turn: readonly Step[], before: number, has: (count: number) => Promise<void>) {
  let sent = before;
  for (const step of turn) {
    // Calls reach the client when the turn is over.
    if (step.type !== "call") yield wait(has(sent));
    sent += 1;
    yield step;
  }
}

/** Counts the events that a session applies, and lets others wait for them. */
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

async function answer(t: TestContext, line: keyof typeof LINES, cutAfter: number | undefined) {
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
      // Two results have come between.
      steps([think("Good."), say("Both "), say("**done**"), say(".")], 6, reached),
    ],
  });
  const proxy = await startProxy(t, server.port);
  const transport = LINES[line]({ server: new URL(`${proxy.url}/`), key: () => undefined });
  t.after(() => transport.close());
  // Before the first event: the message has arrived, and nothing has come back.
  if (cutAfter === 0) void server.model.nextAsked().then(() => proxy.cut());
  let last = 0;
  const session = new ChatSession({
    transport,
    connection: new Connection(() => {}),
    judgeError: (error) => error,
    onToken: () => {},
    onChange: () => {
      const after = session.stored.run?.after ?? last;
      while (last < after) {
        last += 1;
        if (last === cutAfter) proxy.cut();
        progress.next();
      }
    },
  });
  await session.send({ text: "Go", attachments: [], files: [] });
  return {
    messages: session.messages,
    state: session.stored.state,
    events: last + 1,
    modelRequests: server.model.asked.length,
  };
}

/** Without what the clock decides. */
const timeless = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (key, item: unknown) => (/^(startedAt|endedAt|durationMs)$/.test(key) ? undefined : item)),
  );

for (const line of ["socket", "SSE"] as const) {
  test(`over ${line}, a line that is cut before or after any event of an answer changes nothing of it, and the agent runs once`, async (t) => {
    const whole = await answer(t, line, undefined);
    const expected = timeless(whole);
    assert.equal(expected.modelRequests, 2);
    for (let cutAfter = 0; cutAfter < expected.events; cutAfter++) {
      assert.deepEqual(timeless(await answer(t, line, cutAfter)), expected, `cut after event ${cutAfter}`);
    }
  });
}
