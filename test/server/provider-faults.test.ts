/** Failing upstreams: one proper end on each transport, the next message is answered, and no connection stays open. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertSame,
  type ChatMessage,
  post,
  send,
  stateOf,
  TRANSPORTS,
  type TransportName,
  typesOf,
} from "../support/chat-transports.ts";
import { start } from "../support/command.ts";
import { turns, within } from "../support/deadline.ts";
import { startWithClient } from "../support/socket-client.ts";
import { type Cleanup, startServer } from "../support/start-server.ts";
import { stopClock } from "../support/stopped-clock.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import { temporaryProject } from "../support/temporary-project.ts";
import { CHAT_COMPLETIONS, RESPONSES, type UpstreamApi } from "../support/upstream-replies.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";
import { answerOf, FAULTS, joined, startFaultyUpstream } from "../support/wire-faults.ts";

/** Limit for the first chunk and between chunks: much longer than any step of these tests. */
const LIMIT_MS = 20_000;

for (const api of STREAMED_APIS) {
  const kind = api.contentType === "text/event-stream" ? "events" : "frames";
  const isFirst = STREAMED_APIS.find(({ contentType }) => contentType === api.contentType) === api;
  // Faults without any bytes of this API are tested once, because all APIs share the code.
  const faults = FAULTS.filter(({ only = kind, answer }) => only === kind && (isFirst || answer.length > 1));
  for (const [index, fault] of faults.entries()) {
    const { name, answer, end, tries = 1, hasBegun = false } = fault;
    // Alternates between transports, because what the provider yields does not depend on them.
    const transport = TRANSPORTS[index % TRANSPORTS.length] ?? "json";
    test(`${api.name} upstream that ${name}: one ${end} over ${transport}, and the next message is answered`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const limits = { firstChunkMs: LIMIT_MS, idleMs: LIMIT_MS };
      const server = await startServer(t, { provider: await api.provider(upstream, limits) });
      const good = answerOf(api);
      const heal = () => upstream.answer((socket) => socket.end(joined(good.ok, good.start, good.rest)));

      heal();
      const first = await send.sse(t, server, { message: "Hi" });
      assert.ok(first.last.type === "done");
      const { state, data: answered } = first.last;

      const before = upstream.requests;
      const faulted = new Promise<void>((resolve) => {
        upstream.answer((socket) => {
          void answer(socket, good);
          resolve();
        });
      });
      const clock = end === "provider_timeout" ? stopClock(t) : undefined;
      const sent = send[transport](t, server, { message: "And?", state });
      if (clock !== undefined) {
        await within(faulted, "the request");
        // Text sent before is delivered, and chunks that arrive halfway do not extend the limit.
        for (const half of [LIMIT_MS / 2, LIMIT_MS / 2]) {
          await turns();
          clock.tick(half);
        }
      }
      const { last, events } = await within(sent, "the end of the run");
      if (clock !== undefined) {
        const sentence = hasBegun ? /stopped sending in the middle of its answer for 20 / : /did not answer within 20 /;
        assert.match(server.log.join("\n"), sentence);
      }
      const said = events.map((event) => (event.type === "token" ? event.data : "")).join("");
      assert.ok(answered.startsWith(said), said);
      assert.equal(last.type === "error" ? last.code : last.type, end);
      assert.doesNotMatch(last.data, /127\.0\.0\.1|HTTP\/|HPE_|ECONN|sk-/);
      assert.equal(upstream.requests - before, tries);
      if (last.type === "error" && transport !== "json") assert.deepEqual(last.state, state);

      heal();
      const { state: next = state } = last;
      const again = await send.sse(t, server, { message: "And now?", state: next });
      assert.equal(again.last.data, answered);
      await upstream.allClosed();
    });
  }
}

// The built command with a project outside this repository, on OpenAI's APIs, as users run it.

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

const TOLD = ["tool_call", "tool_call", "tool_result", "tool_result", "token", "done"];

/** A conversation of two messages over each transport: three model requests each. */
async function converse(t: Cleanup, api: UpstreamApi) {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const folder = temporaryProject(t, project(api.model));
  const address = await start(t, [folder], { env: api.env(upstream.url) });
  const ask = async (transport: TransportName, message: ChatMessage) => {
    const outcome = await send[transport](t, address, message);
    assert.equal(outcome.last.type, "done", JSON.stringify(outcome.last));
    return outcome;
  };
  const both = async (transport: TransportName) => {
    upstream.reply(
      api.calls(CALLS, "resp_1"),
      api.text("Mild, and noon.", "resp_2"),
      api.text("As I said: mild.", "resp_3"),
    );
    const first = await ask(transport, { message: "Lima?" });
    return { first, second: await ask(transport, { message: "Sorry?", state: first.last.state }) };
  };
  const [json, sse, socket] = [await both("json"), await both("sse"), await both("socket")];
  const first = { json: json.first, sse: sse.first, socket: socket.first };
  const second = { json: json.second, sse: sse.second, socket: socket.second };
  assertSame(first);
  assertSame(second);
  assert.deepEqual(typesOf(first.sse.events), TOLD);
  return { upstream, first: first.json.last, second: second.json.last };
}

/** The three requests of one conversation, which must be the same for all three transports. */
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

test("openai/…: two tools, an answer and a continued conversation, alike on all transports", async (t) => {
  const { upstream, first, second } = await converse(t, RESPONSES);
  assert.equal(first.data, "Mild, and noon.");
  assert.deepEqual(stateOf(first), { previous_response_id: "resp_2" });
  assert.equal(second.data, "As I said: mild.");
  assert.deepEqual(stateOf(second), { previous_response_id: "resp_3" });
  assert.ok(first.type === "done");
  assert.deepEqual(first.usage, { input_tokens: 20, output_tokens: 10 });

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
  const { upstream, first } = await converse(t, CHAT_COMPLETIONS);
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
  assert.deepEqual(stateOf(first), { conversation_history: history });
  const [one, two, three] = requests(upstream, CHAT_COMPLETIONS.path).map((body) => Object(body));
  const system = { role: "system", content: "Be brief." };
  assert.equal(one.model, "team/gpt-5.2");
  assert.deepEqual(one.messages, [system, history[0]]);
  assert.deepEqual(two.messages, [system, ...history.slice(0, 4)]);
  assert.deepEqual(three.messages, [system, ...history, { role: "user", content: "Sorry?" }]);
});

test("stop and clear close the upstream connection", async (t) => {
  const upstream = await startUpstream(RESPONSES.stall("Half"), RESPONSES.stall("Half"));
  t.after(() => upstream.close());
  const { client } = await startWithClient(t, { agent: { model: RESPONSES.model }, env: RESPONSES.env(upstream.url) });
  for (const type of ["stop", "clear"]) {
    client.send({ message: "Hi" });
    await client.until("token");
    client.send({ type });
    await client.until("done", "cleared");
    const closed = upstream.calls.at(-1)?.closed;
    assert.ok(closed);
    assert.equal(await within(closed, "the end of the connection"), "aborted");
  }
});

test("at the level debug the log has what the provider said of a failure, without the server's keys", async (t) => {
  const said = { error: { message: "Incorrect API key provided: sk-of-a-test. Ticket 4711" } };
  const upstream = await startUpstream(jsonReply(401, said));
  t.after(() => upstream.close());
  for (const level of ["debug", "info"]) {
    upstream.reply(jsonReply(401, said));
    const env = { ...RESPONSES.env(upstream.url), PARLEY_LOG_LEVEL: level };
    const server = await startServer(t, { agent: { model: RESPONSES.model }, env });
    await post(server, { message: "Hi", stream: false });
    const log = server.log.join("\n");
    assert.match(log, /provider_auth: OpenAI refused the API key/);
    assert.equal(log.includes("Ticket 4711"), level === "debug");
    assert.doesNotMatch(log, /sk-of-a-test/);
  }
});
