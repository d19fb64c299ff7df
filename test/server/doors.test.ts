/** A door whose clients bring the whole conversation with each message, and take no state. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunInput } from "../../server/agent/run-function.ts";
import type { AnswerSource } from "../../server/agent/served-agent.ts";
import type { StateKind } from "../../server/protocol/chat.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { answerAt, collectRun } from "../../server/routes/chat.ts";
import type { Door } from "../../server/routes/door.ts";
import type { MessageRules, ParsedChatRequest } from "../../server/routes/message.ts";
import { PARSERS } from "../../server/routes/parse-message.ts";
import { DEADLINE_MS } from "../support/deadline.ts";
import { call, fail, say, scriptedProvider } from "../support/scripted-provider.ts";
import { type Cleanup, type ServerOptions, startServer } from "../support/start-server.ts";
import { define, echo } from "../support/test-tools.ts";
import { RESPONSES } from "../support/upstream-replies.ts";
import { fixture, startUpstream } from "../support/upstream-server.ts";

type Messages = { role: "user" | "assistant"; content: string }[];

function parseMessages(body: unknown, { name }: MessageRules): ParsedChatRequest {
  const {
    messages,
    stream,
    instructions = "",
  } = body as { messages: Messages; stream: boolean; instructions?: string };
  const message = messages.at(-1)?.content ?? "";
  const request = { message, attachments: [], state: {}, history: messages.slice(0, -1), instructions };
  return { request, stream, name, digest: message, metadata: {}, asked: { ignored: ["seed"] } };
}

// As a door's parser stands in the table, but for its type.
const parser = "messages" as Door["parser"];
Object.assign(PARSERS, { messages: parseMessages });

const DOOR: Door = {
  parser,
  transport: (isStreamed) => (isStreamed ? "sse" : "json"),
  nameOf: ({ req }) => req.headers["x-name"]?.toString() || undefined,
  headers: ({ ignored = [] }) => ({ "x-ignored": ignored.join() }),
  encoder: (answer) => (event) => `${JSON.stringify({ ...event, answer })}\n`,
  body: async (reader) => ({ ...(await collectRun(reader)).last }),
};

const BEFORE: Messages = [
  { role: "user", content: "My dog is Rex." },
  { role: "assistant", content: "Noted." },
];
const MESSAGES: Messages = [...BEFORE, { role: "user", content: "Who is Rex?" }];

/** Sends the conversation to the door, and gives the last event of the answer. */
async function ask(t: Cleanup, { stream = false, messages = MESSAGES, name = "", instructions, ...options }: Ask) {
  const routes: ServerOptions["routes"] = (service) => ({
    "POST /door": { access: "message", handle: answerAt(service, DOOR) },
  });
  const server = await startServer(t, { ...options, routes });
  const answer = await fetch(`${server.url}/door`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-name": name },
    body: JSON.stringify({ messages, stream, instructions }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const text = await answer.text();
  return { server, headers: answer.headers, last: JSON.parse(text.trim().split("\n").at(-1) ?? "") };
}

interface Ask extends ServerOptions {
  stream?: boolean;
  messages?: Messages;
  name?: string;
  instructions?: string;
}

const TURNS = [[call("a", "echo", { text: "Rex?" })], [say("Your dog.")]];
const CALLED = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "a", type: "function", function: { name: "echo", arguments: '{"text":"Rex?"}' } }],
};
const RESULT = { role: "tool", tool_call_id: "a", content: "Rex?" };

const KINDS: [kind: StateKind, second: { sent: unknown; previousId: unknown }][] = [
  ["conversation_history", { sent: [...MESSAGES, CALLED, RESULT], previousId: undefined }],
  ["previous_response_id", { sent: [RESULT], previousId: "resp_1" }],
];

for (const [stateKind, second] of KINDS) {
  for (const stream of [false, true]) {
    test(`${stateKind}: a history of the client's goes to the model, and no state comes back (stream: ${stream})`, async (t) => {
      const { server, last } = await ask(t, { agent: { tools: [echo] }, turns: TURNS, stateKind, stream });
      assert.deepEqual([last.data, last.state], ["Your dog.", {}]);
      const asked = server.model.asked.map(({ sent, previousId }) => ({ sent, previousId }));
      assert.deepEqual(asked, [{ sent: MESSAGES, previousId: undefined }, second]);
    });
  }

  test(`${stateKind}: no state is made where none is taken, whether the run answers or fails`, async (t) => {
    for (const [name, step] of [["done", say("Rex.")] as const, ["error", fail(new Error("broken"))] as const]) {
      let made = 0;
      const model = scriptedProvider([[step], [step]], { stateKind });
      const stateOf: AnswerSource["stateOf"] = (...end) => {
        made++;
        return model.stateOf(...end);
      };
      for (const messages of [MESSAGES, MESSAGES.slice(-1)]) {
        const { last } = await ask(t, { provider: { ...model, stateOf }, messages });
        assert.deepEqual([last.type, made], [name, 0]);
      }
    }
  });

  test(`${stateKind}: a run that fails behind its tools invites to no other try, which would run them again`, async (t) => {
    const failing = [fail(new ApiError("provider_error", "The model broke. Please try again."))];
    const agent = { tools: [define("pay", () => "paid")] };
    const asIs = await ask(t, { agent, turns: [failing], stateKind });
    assert.deepEqual([asIs.last.data, asIs.last.retryable], ["The model broke. Please try again.", true]);
    const { last } = await ask(t, { agent, turns: [[call("a", "pay")], failing], stateKind });
    assert.deepEqual([last.data, last.retryable], ["The model broke.", false]);
    assert.ok(!("state" in last || "continue" in last));
  });
}

test("OpenAI, which stores conversations, gets the history as input, and goes on within the run by its own id", async (t) => {
  const replies = ["reasoning-and-two-calls", "text"].map((name) => ({ body: [fixture(`responses/${name}`)] }));
  await using upstream = await startUpstream(...replies);
  const tools = [define("get_weather", () => "sunny")];
  const { last } = await ask(t, { agent: { model: RESPONSES.model, tools }, env: RESPONSES.env(upstream.url) });
  assert.deepEqual([last.data, last.state], ["Grüß Gott 👋!", {}]);
  const [first, second] = upstream.calls.map(({ json }) => json);
  assert.deepEqual(first.input, [
    { role: "user", content: [{ type: "input_text", text: "My dog is Rex." }] },
    { role: "assistant", content: "Noted." },
    { role: "user", content: [{ type: "input_text", text: "Who is Rex?" }] },
  ]);
  assert.ok(!("previous_response_id" in first));
  assert.equal(second.previous_response_id, "resp_tools1");
  assert.deepEqual(new Set(second.input.map(({ type }: { type: string }) => type)), new Set(["function_call_output"]));
});

test("an agent that is written elsewhere gets the history as the messages before", async (t) => {
  const run = ({ messages, state }: RunInput) => JSON.stringify([messages, state]);
  const { last } = await ask(t, { agent: { model: undefined, run } as never });
  assert.deepEqual([JSON.parse(last.data), last.state], [[MESSAGES, null], {}]);
});

test("a door names the run, says below the agent's instructions what its client adds, and hears what it asked for", async (t) => {
  const agent = { instructions: "Be kind." };
  const asked = { agent, turns: [[say("Rex.")]], stream: true, name: "a-name-of-the-door", instructions: "Be short." };
  const { server, last, headers } = await ask(t, asked);
  assert.deepEqual(last.answer, { run: asked.name, agent: "Acme Support", asked: { ignored: ["seed"] } });
  assert.deepEqual([headers.get("x-run-id"), headers.get("x-ignored")], [asked.name, "seed"]);
  assert.equal(server.model.asked[0]?.start.setup.instructions, "Be kind.\n\nBe short.");
});
