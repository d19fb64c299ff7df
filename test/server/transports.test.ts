/** The same runs over JSON, SSE and WebSocket, which must give the same results. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DoneEvent, StreamEvent } from "../../server/protocol/events.ts";
import { bedrock, frames } from "../support/bedrock.ts";
import { onEveryTransport, stateOf, timeless } from "../support/chat-transports.ts";
import { call, end, say, type Turn, think } from "../support/scripted-provider.ts";
import type { ServerOptions } from "../support/start-server.ts";
import { echo, lookup } from "../support/test-tools.ts";
import { chatProvider } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

interface Case {
  name: string;
  turns: readonly Turn[];
  agent?: ServerOptions["agent"];
  /** All events of a stream, without durations of tools. */
  events: unknown[];
}

const STOPPED_HERE = "I stopped here: this took more steps than I may take for one message.";
const history = (...messages: object[]) => ({ conversation_history: messages });
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

const CASES: Case[] = [
  {
    name: "text comes in the deltas in which the model said it, and whole in done",
    turns: [[say("Hel"), say("lo")]],
    events: [
      { type: "token", data: "Hel" },
      { type: "token", data: "lo" },
      done("Hello", history(user("Hi"), assistant("Hello"))),
    ],
  },
  {
    name: "text with line ends, quotes and astral characters arrives unchanged",
    turns: [[say('a\r\nb\n\ndata: "x"\u2028\u0000 👋')]],
    events: [
      { type: "token", data: 'a\r\nb\n\ndata: "x"\u2028\u0000 👋' },
      done('a\r\nb\n\ndata: "x"\u2028\u0000 👋', history(user("Hi"), assistant('a\r\nb\n\ndata: "x"\u2028\u0000 👋'))),
    ],
  },
  {
    name: "thinking is told apart from the answer and is no part of it",
    turns: [[think("Hmm. "), think("Yes."), say("Yes")]],
    events: [
      { type: "thinking", data: "Hmm. " },
      { type: "thinking", data: "Yes." },
      { type: "token", data: "Yes" },
      done("Yes", history(user("Hi"), assistant("Yes"))),
    ],
  },
  {
    name: "usage is the sum over the run's model requests",
    turns: [
      [call("c1", "echo", { text: "a" }), end("stop", { input_tokens: 10, output_tokens: 1 })],
      [say("Done"), end("stop", { input_tokens: 20, output_tokens: 2 })],
    ],
    agent: { tools: [echo] },
    events: [
      ...toolEvents("c1", "echo", '{"text":"a"}', "a"),
      { type: "token", data: "Done" },
      {
        ...done("Done", toolHistory("c1", "echo", '{"text":"a"}', "a", "Done")),
        usage: { input_tokens: 30, output_tokens: 3 },
      },
    ],
  },
  {
    name: "the final output is the text of the last model turn only",
    turns: [[say("Let me look."), call("c1", "lookup", { id: 7 })], [say("It is 49.")]],
    agent: { tools: [lookup] },
    events: [
      { type: "token", data: "Let me look." },
      ...toolEvents("c1", "lookup", '{"id":7}', '{"id":7,"square":49}'),
      { type: "token", data: "It is 49." },
      done("It is 49.", toolHistory("c1", "lookup", '{"id":7}', '{"id":7,"square":49}', "It is 49.", "Let me look.")),
    ],
  },
  {
    name: "an answer cut by the token limit is done with finish_reason length",
    turns: [[say("Half"), end("length")]],
    events: [{ type: "token", data: "Half" }, done("Half", history(user("Hi"), assistant("Half")), "length")],
  },
  {
    name: "an answer that a filter withheld before it began says so in place of an empty text",
    turns: [[end("content_filter")]],
    events: [
      { type: "token", data: "The model's provider withheld this answer." },
      done(
        "The model's provider withheld this answer.",
        history(user("Hi"), assistant("The model's provider withheld this answer.")),
        "content_filter",
      ),
    ],
  },
  {
    name: "the turn limit ends the run with max_turns, a text, and every call answered in the state",
    turns: [[call("c1", "echo", { text: "a" })], [call("c2", "echo", { text: "b" })]],
    agent: { tools: [echo], maxTurns: 2 },
    events: [
      ...toolEvents("c1", "echo", '{"text":"a"}', "a"),
      { type: "token", data: STOPPED_HERE },
      done(
        STOPPED_HERE,
        history(
          user("Hi"),
          { role: "assistant", content: null, tool_calls: [functionCall("c1", "echo", "a")] },
          { role: "tool", tool_call_id: "c1", content: "a" },
          { role: "assistant", content: null, tool_calls: [functionCall("c2", "echo", "b")] },
          {
            role: "tool",
            tool_call_id: "c2",
            content: "Cancelled: the run ended before this call was finished.",
            is_error: true,
          },
          assistant(STOPPED_HERE),
        ),
        "max_turns",
      ),
    ],
  },
  {
    name: "maxTurns of 1 lets the model answer, but not use a tool",
    turns: [[say("I would look it up."), call("c1", "echo", { text: "a" })]],
    agent: { tools: [echo], maxTurns: 1 },
    events: [
      { type: "token", data: "I would look it up." },
      done(
        "I would look it up.",
        history(
          user("Hi"),
          { role: "assistant", content: "I would look it up.", tool_calls: [functionCall("c1", "echo", "a")] },
          {
            role: "tool",
            tool_call_id: "c1",
            content: "Cancelled: the run ended before this call was finished.",
            is_error: true,
          },
        ),
        "max_turns",
      ),
    ],
  },
];

for (const { name, turns, agent = {}, events } of CASES) {
  test(name, async (t) => {
    const outcomes = await onEveryTransport(t, () => ({ turns, agent }), { message: "Hi" });
    assert.deepEqual(timeless(outcomes.sse.events), events);
  });
}

test("a state that one transport gave continues on each", async (t) => {
  const first = await onEveryTransport(t, () => ({ turns: [[say("I am Bo.")]] }), { message: "Who?" });
  assert.equal(first.json.last.type, "done");
  const next = await onEveryTransport(t, () => ({ turns: [[say("Bo, still.")]] }), {
    message: "And now?",
    state: first.json.last.state,
  });
  const expected = history(user("Who?"), assistant("I am Bo."), user("And now?"), assistant("Bo, still."));
  assert.deepEqual(stateOf(next.socket.last), expected);
});

test("a provider that keeps the conversation hands out the id of its last answered response", async (t) => {
  const turns = [[call("c1", "echo", { text: "a" })], [say("Done")]];
  const outcomes = await onEveryTransport(
    t,
    () => ({ turns, agent: { tools: [echo] }, stateKind: "previous_response_id" }),
    { message: "Hi", state: { previous_response_id: "resp_4" } },
  );
  assert.deepEqual(stateOf(outcomes.sse.last), { previous_response_id: "resp_6" });
});

test("at the turn limit that id is the one from before, with the exchange open beside it", async (t) => {
  const setup = (): ServerOptions => ({
    turns: [[call("c1", "echo", { text: "a" })]],
    agent: { tools: [echo], maxTurns: 1 },
    stateKind: "previous_response_id",
  });
  const fresh = await onEveryTransport(t, setup, { message: "Hi" });
  const messages = [
    { role: "tool", tool_call_id: "c1", content: CANCELLED, is_error: true },
    { role: "assistant", content: fresh.sse.last.data },
  ];
  assert.deepEqual(stateOf(fresh.sse.last), { open: { response: "resp_1", messages } });
  const state = { previous_response_id: "resp_4" };
  const continued = await onEveryTransport(t, setup, { message: "Hi", state });
  assert.deepEqual(stateOf(continued.sse.last), { ...state, open: { response: "resp_5", messages } });
});

const CANCELLED = "Cancelled: the run ended before this call was finished.";

function done(data: string, state: object, finish_reason: DoneEvent["finish_reason"] = "stop") {
  return { type: "done", data, state, finish_reason };
}

function toolEvents(id: string, tool: string, args: string, output: string): unknown[] {
  const called: StreamEvent = { type: "tool_call", data: { id, tool, arguments: args, status: "running" } };
  return [called, { type: "tool_result", data: { id, tool, output, status: "completed" } }];
}

function functionCall(id: string, name: string, text: string) {
  return { id, type: "function", function: { name, arguments: JSON.stringify({ text }) } };
}

function toolHistory(
  id: string,
  name: string,
  args: string,
  output: string,
  answer: string,
  before: string | null = null,
) {
  const calls = [{ id, type: "function", function: { name, arguments: args } }];
  return history(
    user("Hi"),
    { role: "assistant", content: before, tool_calls: calls },
    { role: "tool", tool_call_id: id, content: output },
    assistant(answer),
  );
}

const PIECES = ["I plan.", " So:</th", "ink>\n\nThe ", "answer."];
const chunks = PIECES.map((content) => ({ choices: [{ delta: { content } }] }));
const contentDeltas = PIECES.map((text) => ({ contentBlockDelta: { contentBlockIndex: 0, delta: { text } } }));

for (const [name, provider, reply] of [
  [
    "Chat Completions",
    chatProvider,
    { body: [...chunks, { choices: [{ delta: {}, finish_reason: "stop" }] }].map((chunk) => eventStream(chunk)) },
  ],
  [
    "Bedrock",
    (upstream: UpstreamServer) => bedrock(upstream, { model: "qwen.qwen3-32b-v1:0" }),
    frames(...contentDeltas, { messageStop: { stopReason: "end_turn" } }, { metadata: {} }),
  ],
] as const) {
  test(`${name}: thoughts that only a closing tag ends are no part of answer and state; streams get them again as thinking`, async (t) => {
    const setup = async () => {
      const upstream = await startUpstream(reply);
      t.after(() => upstream.close());
      return { provider: await provider(upstream) };
    };
    const { sse } = await onEveryTransport(t, setup, { message: "Hi" });
    assert.deepEqual(timeless(sse.events), [
      { type: "token", data: "I plan." },
      { type: "token", data: " So:" },
      { type: "thinking", data: "I plan. So:" },
      { type: "token", data: "The " },
      { type: "token", data: "answer." },
      done("The answer.", history(user("Hi"), assistant("The answer."))),
    ]);
  });
}
