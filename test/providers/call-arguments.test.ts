/** Arguments of calls in the forms that models write: what the tool receives, and what is sent back to the model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isRecord, tryParse } from "../../server/protocol/json.ts";
import { callsOf } from "../../server/providers/history.ts";
import type { Provider } from "../../server/providers/provider.ts";
import { claude } from "../support/anthropic.ts";
import { bedrock, frames } from "../support/bedrock.ts";
import { historyOf, runTools } from "../support/chat-servers.ts";
import { chatProvider, open, responsesProvider } from "../support/upstream-conversation.ts";
import { eventStream, startUpstream, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

const TOOL = {
  name: "plan",
  description: "Plans a trip.",
  parameters: {
    type: "object",
    properties: {
      city: { type: "string" },
      days: { type: "array", items: { type: "object", properties: { stops: { type: "array" } } } },
      options: { type: "object" },
      note: { type: ["string", "array"] },
    },
  },
};

const json = (value: unknown) => JSON.stringify(value);
const PARIS = { city: "Paris" };

/** The model's pieces, and the arguments that they mean. */
const FORMS: [what: string, pieces: string[], meant: string][] = [
  ["nothing", [], "{}"],
  ["an empty text", [""], "{}"],
  ["null", ["null"], "{}"],
  ["the text null", ['"null"'], "{}"],
  ["an empty text as JSON", ['""'], "{}"],
  ["JSON in a JSON text", [json(json(PARIS))], json(PARIS)],
  ["JSON in a JSON text, twice", [json(json(json(PARIS)))], json(PARIS)],
  ["an empty object before the real one", ["{}", '{"city":', '"Paris"}'], json(PARIS)],
  ["two empty objects before the real one", ["{} ", "{ }\n", json(PARIS)], json(PARIS)],
  ["a list as a text", [json({ days: json([{ stops: [1] }]) })], json({ days: [{ stops: [1] }] })],
  ["a list as a text inside of one", [json({ days: [{ stops: "[1]" }] })], json({ days: [{ stops: [1] }] })],
  ["an object as a text", [json({ options: json({ slow: true }) })], json({ options: { slow: true } })],
  // Ambiguous and meaningless arguments stay unchanged.
  ["a list where a text may stand", [json({ note: "[1]" })], json({ note: "[1]" })],
  ["a text that looks like a list", [json({ city: "[1]" })], json({ city: "[1]" })],
  ["a text in place of a list", [json({ days: "two" })], json({ days: "two" })],
  ["an object in place of a list", [json({ days: "{}" })], json({ days: "{}" })],
  ["two objects", ['{"a":1}{"b":2}'], '{"a":1}{"b":2}'],
  ["white space of its own", ['{ "city" : "Paris" }'], '{ "city" : "Paris" }'],
  ["a list", ["[1]"], "[1]"],
  ["a number", ["7"], "7"],
  ["a word", ['"Paris"'], '"Paris"'],
  ["broken JSON", ['{"city'], '{"city'],
  ["broken JSON after an empty object", ['{}{"city'], '{}{"city'],
];

function chat(pieces: readonly string[]): UpstreamReply {
  const [first, ...rest] = pieces.map((piece) => ({ arguments: piece }));
  const begin = { index: 0, id: "call_1", type: "function", function: { name: TOOL.name, ...first } };
  const calls = [begin, ...rest.map((fn) => ({ index: 0, function: fn }))];
  const chunks = calls.map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [call] } }] }));
  return { body: [eventStream(...chunks, { choices: [{ delta: {}, finish_reason: "tool_calls" }] }, "[DONE]")] };
}

function responses(pieces: readonly string[]): UpstreamReply {
  const item = { type: "function_call", call_id: "call_1", name: TOOL.name, arguments: pieces.join("") };
  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" };
  const done = [reasoning, item].map((each, output_index) => ({
    type: "response.output_item.done",
    output_index,
    item: each,
  }));
  return { body: [eventStream(...done, { type: "response.completed", response: { id: "resp_1" } })] };
}

function messages(pieces: readonly string[]): UpstreamReply {
  const block = { type: "tool_use", id: "call_1", name: TOOL.name, input: {} };
  const deltas = pieces.map((partial_json) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "input_json_delta", partial_json },
  }));
  const end = { type: "message_delta", delta: { stop_reason: "tool_use" } };
  return {
    body: [
      eventStream({ type: "content_block_start", index: 0, content_block: block }, ...deltas, end, {
        type: "message_stop",
      }),
    ],
  };
}

function converse(pieces: readonly string[]): UpstreamReply {
  const begin = { contentBlockIndex: 0, start: { toolUse: { toolUseId: "call_1", name: TOOL.name } } };
  const deltas = pieces.map((input) => ({
    contentBlockDelta: { contentBlockIndex: 0, delta: { toolUse: { input } } },
  }));
  return frames(
    { contentBlockStart: begin },
    ...deltas,
    { messageStop: { stopReason: "tool_use" } },
    { metadata: { usage: {} } },
  );
}

/** Each API: a call with these pieces, and the call's arguments in the next request, as an object or JSON. */
const APIS: [
  name: string,
  provider: (upstream: UpstreamServer) => Provider | Promise<Provider>,
  reply: (pieces: readonly string[]) => UpstreamReply,
  // biome-ignore lint/suspicious/noExplicitAny: each API has bodies of its own.
  sentIn: (body: any) => unknown,
][] = [
  ["Chat Completions", chatProvider, chat, (body) => body.messages[2].tool_calls[0].function.arguments],
  [
    "OpenAI with store: false",
    (upstream) => responsesProvider(upstream, { settings: { store: false } }),
    responses,
    (body) => body.input[2].arguments,
  ],
  ["Anthropic", claude, messages, (body) => body.messages[1].content[0].input],
  ["Bedrock", bedrock, converse, (body) => body.messages[1].content[0].toolUse.input],
];

for (const [name, provider, reply, sentIn] of APIS) {
  test(`${name}: arguments are read in every form that means one object, and go back as an object`, async () => {
    for (const [what, pieces, meant] of FORMS) {
      await using upstream = await startUpstream(reply(pieces), reply([]));
      const conversation = open(await provider(upstream), { tools: [TOOL] });
      const [turn] = await runTools(conversation);
      const calls = turn.events.flatMap((event) => (event.type === "call" ? [event.call.arguments] : []));
      assert.deepEqual(calls, [meant], what);
      const sent = sentIn(upstream.calls[1]?.json);
      const value = typeof sent === "string" ? JSON.parse(sent) : sent;
      const object = tryParse(meant);
      assert.deepEqual(value, isRecord(object) ? object : { unparsed_arguments: meant }, what);
      conversation.interrupt("");
      assert.deepEqual(callsOf(historyOf(conversation.state()))[0]?.function.arguments, meant, what);
    }
  });
}
