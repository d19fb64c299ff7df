/** Clients that leave at any moment, over every transport, with agents that may fail: nothing is left behind. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { AgentDefinition } from "../../server/agent/define.ts";
import type { RunInput } from "../../server/agent/run-function.ts";
import { ALL_MEDIA_TYPES } from "../../server/protocol/attachments.ts";
import type { ConversationState, ToolApproval } from "../../server/protocol/chat.ts";
import { createProvider } from "../../server/providers/create-provider.ts";
import { assistantMessage, toHistoryCall } from "../../server/providers/history.ts";
import type { Model, Provider } from "../../server/providers/provider.ts";
import { endOfTurn } from "../../server/providers/stream-pieces.ts";
import { post, send } from "../support/chat-transports.ts";
import { type Gate, gate, turns, within } from "../support/deadline.ts";
import { randomFrom } from "../support/random.ts";
import { newRun, openLine } from "../support/run-lines.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

/** `CLIENTS=600` runs more of them. */
const { CLIENTS = "60", SEED = String(Date.now() % 1e9) } = process.env;

const AT_ONCE = 10;
const MAX_RUNS = 16;

/** Long enough for its bytes to be counted. */
const MESSAGE = "x".repeat(70_000);

const random = randomFrom(Number(SEED));
const upTo = (max: number) => Math.floor(random() * max);
const chance = (share: number) => random() < share;
const pause = () => sleep(upTo(6));

/** While set, agents delay each answer until the gate opens, and count the answers. */
let held: { gate: Gate; count: number } | undefined;

async function hook(): Promise<void> {
  await pause();
  if (held === undefined && chance(0.1)) throw new Error("hook");
}

async function isHeld(): Promise<boolean> {
  if (held === undefined) return false;
  held.count++;
  await held.gate.opened;
  return true;
}

let calls = 0;

const model: Model = async function* ({ messages, keep }, signal) {
  const isCalm = await isHeld();
  for (let left = isCalm ? 3 : upTo(8); left > 0; left--) {
    signal.throwIfAborted();
    yield [{ type: "text", delta: "word " }];
    if (!isCalm) await pause();
  }
  if (!isCalm && chance(0.1)) throw new Error("model");
  const isAsked = !isCalm && messages.at(-1)?.role === "user" && chance(0.7);
  const names = isAsked ? ["slow", "asked", "broken"].slice(0, 1 + upTo(3)) : [];
  const message = assistantMessage(
    "words",
    names.map((name) => toHistoryCall({ id: `c${calls++}`, name, arguments: "{}" })),
  );
  keep(message, { id: "r", cutCalls: [] });
  yield endOfTurn(message, "stop", undefined);
};

const TOOLS = [
  define("slow", async (_args, { signal }) => sleep(upTo(30), "ok", chance(0.5) ? { signal } : {}), {
    running: () => "Running.",
  }),
  define("asked", () => "ok", {
    needsApproval: async () => {
      await hook();
      return chance(0.7);
    },
  }),
  define("broken", hook, { expose: "none" }),
];

async function* run({ signal }: RunInput): AsyncGenerator<unknown> {
  const isCalm = await isHeld();
  for (let left = isCalm ? 3 : upTo(6); left > 0; left--) {
    yield "word ";
    if (!isCalm) await pause();
  }
  if (isCalm) return;
  yield { type: "tool-call", toolCallId: "t1", toolName: "x", input: {} };
  // Sometimes longer than a call is withheld from clients.
  await sleep(upTo(260), undefined, chance(0.5) ? { signal } : {});
  if (chance(0.2)) throw new Error("run");
  if (chance(0.3)) yield { type: "tool_approval", data: { id: "t1", tool: "x" } };
  else yield* [{ type: "tool-result", toolCallId: "t1", output: "ok" }, "end"];
}

interface Answer {
  state?: ConversationState;
  approvals?: ToolApproval[];
}

/** A client's message after an answer, if it got one. */
function messageAfter({ state, approvals }: Answer) {
  const decisions = approvals?.map(({ id }) => ({ id, approved: chance(0.7) }));
  return {
    ...(decisions === undefined ? { message: MESSAGE } : { approvals: decisions }),
    ...(state === undefined ? {} : { state }),
    ...(chance(0.4) ? { run: newRun() } : {}),
  };
}

/** Two messages; each is left at some moment, or read to its end. */
async function converse(server: TestServer): Promise<void> {
  let answer: Answer = {};
  for (let round = 0; round < 2; round++) {
    const left = AbortSignal.timeout(chance(0.5) ? upTo(90) : 5000);
    const ask = chance(0.4) ? askBySocket : askByHttp;
    answer = (await ask(server, messageAfter(answer), left).catch(() => undefined)) ?? {};
  }
}

async function askByHttp(server: TestServer, message: object, signal: AbortSignal): Promise<Answer> {
  const stream = chance(0.5);
  const response = await post(server, { ...message, stream }, { signal });
  const text = await response.text();
  const last = text.split("\n").findLast((line) => line.startsWith("data:"));
  return JSON.parse(last?.slice("data:".length) ?? text);
}

function askBySocket(server: TestServer, message: object, signal: AbortSignal): Promise<Answer> {
  const socket = new WebSocket(server.socketUrl);
  signal.addEventListener("abort", () => socket.terminate());
  socket.on("open", () => {
    socket.send(JSON.stringify(message));
    if (chance(0.2)) socket.send('{"type":"stop"}');
    if (chance(0.1)) socket.send('{"type":"clear"}');
  });
  return new Promise((resolve, reject) => {
    socket.on("error", reject).on("close", () => reject(new Error("closed")));
    socket.on("message", (data) => {
      const event = JSON.parse(String(data));
      if (event.type !== "done" && event.type !== "error" && event.type !== "cleared") return;
      resolve(event);
      socket.close();
    });
  });
}

/** Starts as many large answers as may run at once: all begin, and one whose client resumes is complete. */
async function assertAllRoom(t: TestContext, server: TestServer): Promise<void> {
  const stage = { gate: gate(), count: 0 };
  held = stage;
  const left = newRun();
  const line = openLine.sse(t, server, { message: MESSAGE, run: left });
  const others = Array.from({ length: MAX_RUNS - 1 }, () => send.json(t, server, { message: MESSAGE }));
  await within(
    until(() => stage.count === MAX_RUNS),
    `the begin of ${MAX_RUNS} answers`,
  );
  await (await line).cut();
  stage.gate.open();
  for (const { status } of await Promise.all(others)) assert.equal(status, 200);
  await until(() => !server.server.isBusy());
  const events = await (await openLine.sse(t, server, { resume: left, after: 0 })).rest();
  assert.equal(events.at(-1)?.type, "done");
  held = undefined;
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turns(1);
}

const provider: Provider = createProvider(
  { id: "x", label: "X", mediaTypes: ALL_MEDIA_TYPES },
  "conversation_history",
  model,
);
const AGENTS: [name: string, agent: Partial<AgentDefinition>, provider: Provider | undefined][] = [
  [
    "with a model, tools and hooks",
    {
      tools: TOOLS,
      onMessage: hook,
      onAnswer: hook,
      onFeedback: hook,
      instructions: async () => {
        await pause();
        return "Be brief.";
      },
    },
    provider,
  ],
  ["that is written elsewhere", { model: undefined as never, run }, undefined],
];

for (const [name, agent, provider] of AGENTS) {
  test(`clients that leave an agent ${name} at any moment leave nothing behind`, async (t) => {
    t.diagnostic(`SEED=${SEED}`);
    held = undefined;
    let closed = 0;
    const server = await startServer(t, {
      agent: { ...agent, onRunEnd: hook },
      ...(provider === undefined ? {} : { provider }),
      env: {
        PARLEY_MAX_RUNS: String(MAX_RUNS),
        PARLEY_MAX_RUNS_PER_ADDRESS: "64",
        PARLEY_MAX_RUNS_PER_USER: "64",
        PARLEY_RATE_PER_ADDRESS: "0",
        PARLEY_RATE_PER_SOCKET: "0",
        PARLEY_RESUME_SECONDS: "2",
        PARLEY_QUEUE_SECONDS: "0.05",
        PARLEY_RUN_SECONDS: "5",
        // Less than all messages together, and less than all their events.
        PARLEY_MAX_BODY_BYTES: "1000000",
        PARLEY_MAX_REQUEST_BYTES_TOTAL: "2000000",
        PARLEY_RESUME_TOTAL_BYTES: "4000000",
      },
      authenticate: async () => {
        await pause();
        if (held === undefined && chance(0.05)) throw new Error("authenticate");
        return held === undefined && chance(0.5) ? { id: "ada" } : undefined;
      },
      close: () => void closed++,
    });
    for (let left = Number(CLIENTS); left > 0; left -= AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => converse(server)));
    }
    await within(
      until(() => !server.server.isBusy()),
      "the end of all runs",
    );
    await assertAllRoom(t, server);
    const open = () => server.server.metrics().match(/^parley_(runs_running|runs_queued|sockets_open) .*$/gm);
    await within(
      until(() => open()?.every((line) => line.endsWith(" 0")) ?? false),
      "the end of all sockets",
    );
    await within(server.close(), "the end of the server");
    assert.equal(closed, 1, "what the agent's module has opened is closed once");
  });
}
