/** The built command with a project outside this repository, on OpenAI's APIs: as a user runs it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamEvent } from "../../server/protocol/events.ts";
import { assertSame, type ChatMessage, type Outcome, send } from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { CHAT_COMPLETIONS, RESPONSES, type UpstreamApi } from "../support/upstream-replies.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const project = (model: string) => ({
  "agent.ts": `
    import { defineAgent, tool } from "parley-agent";
    import { cities } from "./cities.ts";
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const look = (field) => ({ city }) => cities[city][field];
    export default defineAgent({
      name: "Weather", model: ${JSON.stringify(model)}, instructions: "Be brief.",
      tools: [
        tool({ name: "get_weather", description: "Weather.", parameters, execute: look("weather") }),
        tool({ name: "get_time", description: "Time.", parameters, execute: look("time") }),
      ],
    });`,
  "cities.ts": `
    type City = { weather: string; time: string };
    export const cities: Record<string, City> = { Lima: { weather: "mild", time: "12:00" } };`,
});

const CALLS = [
  { id: "call_w", name: "get_weather", args: { city: "Lima" } },
  { id: "call_t", name: "get_time", args: { city: "Lima" } },
];

/** A conversation of two messages over each transport in turn: three model requests each. */
async function converse(t: Parameters<typeof start>[0], api: UpstreamApi) {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const folder = temporaryProject(t, project(api.model));
  const address = await start(t, [folder], { env: api.env(upstream.url) });
  const ask = async (transport: keyof typeof send, message: ChatMessage) => {
    const outcome = await send[transport](t, address, message);
    assert.equal(outcome.last.type, "done", JSON.stringify(outcome.last));
    return outcome;
  };
  const first: Partial<Record<keyof typeof send, Outcome>> = {};
  const second: Partial<Record<keyof typeof send, Outcome>> = {};
  for (const transport of ["json", "sse", "socket"] as const) {
    upstream.reply(
      api.calls(CALLS, "resp_1"),
      api.text("Mild, and noon.", "resp_2"),
      api.text("As I said: mild.", "resp_3"),
    );
    first[transport] = await ask(transport, { message: "Lima?" });
    const { state } = first[transport].last;
    second[transport] = await ask(transport, { message: "Sorry?", state });
  }
  return { upstream, first: all(first), second: all(second) };
}

function all(outcomes: Partial<Record<keyof typeof send, Outcome>>) {
  const { json, sse, socket } = outcomes;
  assert.ok(json && sse && socket);
  return { json, sse, socket };
}

/** What the three requests of one conversation were, three times alike. */
function requests({ calls }: UpstreamServer, path: string): unknown[][] {
  assert.equal(calls.length, 9);
  for (const call of calls) {
    assert.equal(call.path, path);
    assert.equal(call.headers.authorization, "Bearer sk-of-a-test");
  }
  const bodies = calls.map(({ json }) => json);
  assert.deepEqual(bodies.slice(3, 6), bodies.slice(0, 3));
  assert.deepEqual(bodies.slice(6, 9), bodies.slice(0, 3));
  return bodies.slice(0, 3);
}

const TOLD = ["tool_call", "tool_call", "tool_result", "tool_result", "token", "done"];
const types = ({ events }: { events: StreamEvent[] }) => events.map(({ type }) => type);

test("openai/…: two tools, an answer and a continued conversation, alike on all transports", async (t) => {
  const { upstream, first, second } = await converse(t, RESPONSES);
  assertSame(first);
  assertSame(second);
  assert.deepEqual(types(first.sse), TOLD);
  assert.equal(first.json.last.data, "Mild, and noon.");
  assert.deepEqual(first.json.last.state, { previous_response_id: "resp_2" });
  assert.equal(second.json.last.data, "As I said: mild.");
  assert.deepEqual(second.json.last.state, { previous_response_id: "resp_3" });
  assert.ok(first.json.last.type === "done");
  assert.deepEqual(first.json.last.usage, { input_tokens: 20, output_tokens: 10 });

  const [one, two, three] = requests(upstream, RESPONSES.path).map((body) => Object(body));
  assert.deepEqual([one.model, one.instructions, one.stream], ["gpt-5.2", "Be brief.", true]);
  assert.equal(one.previous_response_id, undefined);
  assert.equal(two.previous_response_id, "resp_1");
  assert.deepEqual(two.input, [
    { type: "function_call_output", call_id: "call_w", output: "mild" },
    { type: "function_call_output", call_id: "call_t", output: "12:00" },
  ]);
  assert.equal(three.previous_response_id, "resp_2");
  assert.equal(three.instructions, "Be brief.");
});

test("litellm/…: two tools, an answer and a continued conversation, alike on all transports", async (t) => {
  const { upstream, first, second } = await converse(t, CHAT_COMPLETIONS);
  assertSame(first);
  assertSame(second);
  assert.deepEqual(types(first.sse), TOLD);
  const calls = CALLS.map(({ id, name, args }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
  const history = [
    { role: "user", content: "Lima?" },
    { role: "assistant", content: null, tool_calls: calls },
    { role: "tool", tool_call_id: "call_w", content: "mild" },
    { role: "tool", tool_call_id: "call_t", content: "12:00" },
    { role: "assistant", content: "Mild, and noon." },
  ];
  assert.deepEqual(first.json.last.state, { conversation_history: history });
  const [one, two, three] = requests(upstream, CHAT_COMPLETIONS.path).map((body) => Object(body));
  const system = { role: "system", content: "Be brief." };
  assert.equal(one.model, "team/gpt-5.2");
  assert.deepEqual(one.messages, [system, history[0]]);
  assert.deepEqual(two.messages, [system, ...history.slice(0, 4)]);
  assert.deepEqual(three.messages, [system, ...history, { role: "user", content: "Sorry?" }]);
});
