/**
 * Recorded streams, cut off anywhere, with and without an HTTP error: at line ends and at some bytes in between, or at
 * every byte with EVERY_BYTE set (`npm run test:cuts`), which takes a minute.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { textContent } from "../../server/providers/history.ts";
import type { ModelEvent } from "../../server/providers/provider.ts";
import { ok, WEATHER } from "../support/chat-servers.ts";
import { STREAMED_APIS } from "../support/streamed-apis.ts";
import {
  ask,
  chatProvider,
  failureOf,
  open,
  PATIENT,
  responsesProvider,
  said,
  type Turn,
} from "../support/upstream-conversation.ts";
import { eventStream, startUpstream, type UpstreamReply } from "../support/upstream-server.ts";
import { chunk, chunkedHead, head, startFaultyUpstream } from "../support/wire-faults.ts";

const TOOLS = ["get_weather", "get_time"].map((name) => ({
  name,
  description: "For a test.",
  parameters: { type: "object" },
}));

const callsIn = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => (event.type === "call" ? [event.call] : []));

/** Lengths to cut the bytes to. The stride is prime, so that the cuts differ from line to line. */
function cuts(all: Buffer): number[] {
  const stride = process.env.EVERY_BYTE === undefined ? 61 : 1;
  const isNear = (length: number) => all.subarray(Math.max(0, length - 2), length + 1).includes(10);
  return [...all.keys()].filter((length) => length % stride === 0 || isNear(length));
}

/** Alternates between a chunked response without its last chunk and one that ends with the connection. */
function answer(part: Buffer, headers: Record<string, string>): Buffer {
  if (part.length % 2 === 1) return Buffer.concat([Buffer.from(head("200 OK", headers)), part]);
  const body = part.length === 0 ? [] : [chunk(part)];
  return Buffer.concat([Buffer.from(chunkedHead("200 OK", headers)), ...body]);
}

for (const { name, contentType, bytes, fixtures, provider } of STREAMED_APIS) {
  for (const kind of ["text", "calls"] as const) {
    test(`${name}: ${kind} cut at any byte has one end, says nothing wrong, and changes no state`, async (t) => {
      const upstream = await startFaultyUpstream(t);
      const model = await provider(upstream, PATIENT);
      const all = bytes(fixtures[kind]);
      const headers = { "content-type": contentType };
      const turn = async () => {
        const conversation = open(model, { tools: TOOLS });
        return { conversation, ...(await ask(conversation)) };
      };
      upstream.answer((socket) => socket.end(Buffer.concat([Buffer.from(head("200 OK", headers)), all])));
      const whole = await turn();
      assert.equal(whole.error, undefined);
      assert.equal(callsIn(whole.events).length > 1, kind === "calls");

      const ends = { broken: 0, whole: 0 };
      for (const length of cuts(all)) {
        upstream.answer((socket) => socket.end(answer(all.subarray(0, length), headers)));
        const cut = await turn();
        const at = `cut after ${length} of ${all.length} bytes`;
        assert.ok(said(whole).startsWith(said(cut)), at);
        const isEnd = cut.events.map(({ type }) => type === "end");
        if (cut.error === undefined) {
          // All that matters was received: only a last line without meaning is missing.
          ends.whole++;
          assert.deepEqual(isEnd.indexOf(true), isEnd.length - 1, at);
          assert.deepEqual(callsIn(cut.events), callsIn(whole.events), at);
          assert.equal(said(cut), said(whole), at);
        } else {
          ends.broken++;
          const { code, retryable } = failureOf(cut);
          assert.ok(code === "provider_truncated" || code === "provider_error", `${at}: ${code}`);
          assert.ok(retryable, at);
          assert.ok(!isEnd.includes(true), at);
          assert.deepEqual(cut.conversation.state(), {}, at);
        }
      }
      assert.ok(ends.broken > ends.whole, JSON.stringify(ends));
      await upstream.allClosed();
    });
  }
}

// Answers that end in the middle of a tool call: incomplete calls do not count.

const WHOLE = { id: "a", name: "get_weather", arguments: '{"city":"Lima"}' };

/** The outcome of a turn: the arguments of its calls, and its finish reason. */
function outcome({ events, error }: Turn) {
  assert.equal(error, undefined);
  const calls = events.flatMap((event) => (event.type === "call" ? [event.call.arguments] : []));
  const end = events.at(-1);
  return [...calls, end?.type === "end" ? end.finish : end?.type];
}

function chat(finish: string | null, ...calls: { id: string; name: string; arguments: string }[]) {
  const pieces = calls.map(({ id, ...fn }, index) => ({
    index,
    id,
    type: "function",
    function: fn,
  }));
  const delta = { content: "Let me look.", tool_calls: pieces };
  return { body: [eventStream({ choices: [{ index: 0, delta, finish_reason: finish }] }, "[DONE]")] };
}

for (const [what, reply, expected] of [
  ["in its arguments", chat("length", { ...WHOLE, arguments: '{"ci' }), ["length"]],
  ["before its arguments", chat("length", { ...WHOLE, arguments: "" }), ["length"]],
  ["after a whole one", chat("length", WHOLE, { ...WHOLE, id: "b", arguments: "{" }), [WHOLE.arguments, "length"]],
  ["not at all", chat("length", WHOLE), [WHOLE.arguments, "length"]],
  ["by a filter", chat("content_filter", WHOLE), ["content_filter"]],
  ["where only [DONE] says so", chat(null, WHOLE, { ...WHOLE, id: "b", arguments: '{"ci' }), [WHOLE.arguments, "stop"]],
  ["not at all, where only [DONE] says so", chat(null, WHOLE), [WHOLE.arguments, "stop"]],
] as const) {
  test(`Chat Completions: a call that the end of the answer cuts ${what}`, async () => {
    await using upstream = await startUpstream(reply);
    const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
    assert.deepEqual(outcome(await ask(conversation)), expected);
  });
}

test("Chat Completions: text after a call without arguments does not cut the call", async () => {
  const call = { index: 0, id: "a", function: { name: "get_weather", arguments: "" } };
  const deltas = [{ tool_calls: [call] }, { content: "One moment." }];
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  const end = { choices: [{ index: 0, delta: {}, finish_reason: "length" }] };
  await using upstream = await startUpstream({ body: [eventStream(...chunks, end)] });
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["{}", "length"]);
});

/** A response with these calls that ended at the token limit. */
function incomplete(...items: object[]): UpstreamReply {
  const response = {
    id: "resp_cut",
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    output: items,
  };
  const done = items.map((item, output_index) => ({ type: "response.output_item.done", output_index, item }));
  return { body: [eventStream(...done, { type: "response.incomplete", response })] };
}

const item = (call_id: string, args: string, status: string) => ({
  type: "function_call",
  id: `fc_${call_id}`,
  call_id,
  name: "get_weather",
  arguments: args,
  status,
});

test("OpenAI: a call that was cut is not made, and its response is open in the state", async () => {
  await using upstream = await startUpstream(incomplete(item("a", "", "incomplete")));
  const state = { previous_response_id: "resp_before" };
  const conversation = open(responsesProvider(upstream), { state, tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["length"]);
  conversation.interrupt("The answer was cut.");
  const messages = [
    { role: "tool", tool_call_id: "a", content: "Cancelled: the run ended before this call was finished." },
    { role: "assistant", content: "The answer was cut." },
  ];
  assert.deepEqual(conversation.state(), { ...state, open: { response: "resp_cut", messages } });
});

test("OpenAI: when another call is made, the one that was cut is answered as cancelled", async () => {
  await using upstream = await startUpstream(
    incomplete(item("a", WHOLE.arguments, "completed"), item("b", '{"ci', "incomplete")),
    { body: [eventStream({ type: "response.completed", response: { id: "resp_2" } })] },
  );
  const conversation = open(responsesProvider(upstream), { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), [WHOLE.arguments, "length"]);
  conversation.answer([{ id: "a", name: "get_weather", content: textContent("mild"), failed: false }]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.input, [
    { type: "function_call_output", call_id: "a", output: "mild" },
    { type: "function_call_output", call_id: "b", output: "Cancelled: the run ended before this call was finished." },
  ]);
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_2" });
});

test("OpenAI: a call that was cut beside one that waits for a person is answered as cancelled, too", async () => {
  await using upstream = await startUpstream(
    incomplete(item("a", WHOLE.arguments, "completed"), item("b", '{"ci', "incomplete")),
    { body: [eventStream({ type: "response.completed", response: { id: "resp_2" } })] },
  );
  const provider = responsesProvider(upstream);
  const conversation = open(provider, { tools: [WEATHER] });
  await ask(conversation);
  const calls = [{ id: "a", name: "get_weather", arguments: WHOLE.arguments }];
  const state = conversation.openState({ calls, nonce: "n", ledger: "l", expires_at: "" });
  const next = open(provider, { state, message: "", goesOn: true });
  next.answer([{ id: "a", name: "get_weather", content: textContent("mild"), failed: false }]);
  await ask(next);
  assert.deepEqual(
    upstream.calls[1]?.json.input.map(({ call_id, output }: { call_id: string; output: string }) => [call_id, output]),
    [
      ["b", "Cancelled: the run ended before this call was finished."],
      ["a", "mild"],
    ],
  );
});

test("OpenAI with store: false: a call that was cut is not part of the history", async () => {
  await using upstream = await startUpstream(incomplete(item("a", "", "incomplete")), ok());
  const provider = responsesProvider(upstream, { settings: { store: false } });
  const conversation = open(provider, { tools: [WEATHER] });
  assert.deepEqual(outcome(await ask(conversation)), ["length"]);
  assert.deepEqual(conversation.state(), { conversation_history: [{ role: "user", content: "Hi" }] });
});
