/** What a framework keeps of an answer that waits for a person: the next run gets it, and nobody else reads it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunInput } from "../../server/agent/run-function.ts";
import { send, TRANSPORTS } from "../support/chat-transports.ts";
import { newRun, readBytes } from "../support/run-lines.ts";
import { startServer } from "../support/start-server.ts";

async function* streamed(list: readonly unknown[]) {
  yield* list;
}

const REFUND = { toolCallId: "c1", toolName: "refund", input: { a: 1 } };
const ASKED_STEP = { rawItem: { type: "function_call", callId: "c1", name: "refund", arguments: "{}" } };
const PLANTED = "postgres://ada:planted@db";
const ASK = { type: "tool-approval-request", approvalId: "a", toolCall: REFUND };
/** What the AI SDK adds to a conversation: thoughts, and what a tool threw. */
const AI_SAID = [
  { role: "assistant", content: [{ type: "reasoning", text: PLANTED }, ASK] },
  {
    role: "tool",
    content: [{ type: "tool-result", toolCallId: "c0", output: { type: "error-text", value: PLANTED } }],
  },
];
const AI_ASKS = [
  { type: "tool-call", toolCallId: "c0", toolName: "look", input: {} },
  { type: "tool-error", toolCallId: "c0", error: new Error(PLANTED) },
  { type: "tool-call", ...REFUND },
  ASK,
];

/** What a framework keeps of a run that waits, with a secret in it. */
const KEEPERS: [name: string, source: () => unknown][] = [
  ["the AI SDK 5 and 6", () => ({ stream: streamed(AI_ASKS), response: Promise.resolve({ messages: AI_SAID }) })],
  ["the AI SDK 7", () => ({ stream: streamed(AI_ASKS), responseMessages: Promise.resolve(AI_SAID) })],
  [
    "the OpenAI Agents SDK",
    () =>
      Object.assign(streamed([{ type: "run_item_stream_event", name: "tool_approval_requested", item: ASKED_STEP }]), {
        // As the class RunState writes it, with the local context that not even the model gets.
        state: { toString: () => JSON.stringify({ $schemaVersion: "1.0", context: { context: { db: PLANTED } } }) },
      }),
  ],
  [
    "LangGraph",
    () =>
      streamed([
        ["tools", { event: "on_tool_start", toolCallId: "c1", name: "refund", input: "{}" }],
        ["updates", { __interrupt__: [{ id: PLANTED, value: "Go on?" }] }],
      ]),
  ],
  [
    "Mastra",
    () => streamed([{ type: "tool-call-approval", runId: PLANTED, from: "AGENT", payload: { ...REFUND, args: {} } }]),
  ],
  [
    "AG-UI",
    () =>
      streamed([
        { type: "TOOL_CALL_CHUNK", toolCallId: "c1", toolCallName: "refund", delta: "{}" },
        {
          type: "RUN_FINISHED",
          outcome: { type: "interrupt", interrupts: [{ id: PLANTED, toolCallId: "c1", message: "Sure?" }] },
        },
      ]),
  ],
  [
    "an event of ours, which is so large that a thread parses it",
    () => {
      const kept = [PLANTED, "x".repeat(250_000)];
      return streamed([{ type: "tool_approval", data: { id: "c1", tool: "refund", arguments: {}, kept } }]);
    },
  ],
];

for (const [name, source] of KEEPERS) {
  test(`no client reads what ${name} keeps of an answer that waits, and the next run gets it whole`, async (t) => {
    for (const transport of TRANSPORTS) {
      const inputs: RunInput[] = [];
      const run = (input: RunInput) => {
        inputs.push(input);
        return inputs.length === 1 ? source() : Promise.reject(new Error("down"));
      };
      const server = await startServer(t, { agent: { model: undefined, run } as never });
      const { last } = await send.socket(t, server, { message: "Hi" });
      assert.ok(last.type === "done" && last.approvals !== undefined, JSON.stringify(last));
      inputs.length = 0;
      let bytes = await readBytes[transport](t, server, { message: "Hi", run: newRun() });
      // A run that fails before it has done anything gives back the state that it got.
      const approvals = last.approvals.map(({ id }) => ({ id, approved: true }));
      for (const wish of [{ approvals }, { message: "Never mind" }]) {
        bytes += await readBytes[transport](t, server, { ...wish, state: last.state, run: newRun() });
        assert.match(JSON.stringify(inputs.at(-1)?.ctx.approvals), new RegExp(PLANTED));
      }
      assert.doesNotMatch(bytes + JSON.stringify(last), /planted/, transport);
    }
  });
}

test("what a framework promises beside an answer that waits has to come within the idle limit", async (t) => {
  const run = () => ({ stream: streamed(AI_ASKS), response: new Promise(() => {}) });
  const server = await startServer(t, {
    agent: { model: undefined, run } as never,
    env: { PARLEY_IDLE_SECONDS: "0.05" },
  });
  const { last } = await send.json(t, server, { message: "Hi" });
  assert.equal(last.type === "error" && last.code, "provider_timeout");
});
