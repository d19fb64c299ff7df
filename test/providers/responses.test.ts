import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversationStart } from "../../server/providers/provider.ts";
import { ask, failureOf, open, responsesProvider, said } from "../support/upstream-conversation.ts";
import { eventStream, fixture, jsonReply, startUpstream } from "../support/upstream-server.ts";

const WEATHER = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const text = () => ({ body: [fixture("responses/text")] });
const twoCalls = () => ({ body: [fixture("responses/reasoning-and-two-calls")] });

test("a text answer streams its deltas, ends with its usage, and its id becomes the state", async () => {
  await using upstream = await startUpstream(text());
  const conversation = open(responsesProvider(upstream));
  assert.deepEqual(conversation.state(), {});
  const { events, error } = await ask(conversation);
  assert.equal(error, undefined);
  assert.deepEqual(events, [
    { type: "text", delta: "Grüß " },
    { type: "text", delta: "Gott " },
    { type: "text", delta: "👋" },
    { type: "text", delta: "!" },
    { type: "end", finish: "stop", usage: { input_tokens: 37, output_tokens: 11 } },
  ]);
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_text1" });
});

test("the request carries instructions, input, tools that are not strict, and asks to be stored", async () => {
  await using upstream = await startUpstream(text());
  await ask(open(responsesProvider(upstream), { tools: [WEATHER] }));
  assert.equal(upstream.calls[0]?.path, "/v1/responses");
  assert.equal(upstream.calls[0]?.headers.authorization, "Bearer sk-test");
  assert.deepEqual(upstream.calls[0]?.json, {
    model: "gpt-4o",
    instructions: "Be brief.",
    input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    tools: [{ type: "function", ...WEATHER, strict: false }],
    store: true,
    stream: true,
  });
});

test("a state continues: the previous id is sent, and the instructions again", async () => {
  await using upstream = await startUpstream(text());
  await ask(open(responsesProvider(upstream), { state: { previous_response_id: "resp_0" } }));
  assert.equal(upstream.calls[0]?.json.previous_response_id, "resp_0");
  assert.equal(upstream.calls[0]?.json.instructions, "Be brief.");
});

test("images and PDFs travel as data URLs, and an empty message adds no empty text", async () => {
  await using upstream = await startUpstream(text());
  const attachments: ConversationStart["attachments"] = [
    { type: "image", name: "a.png", mime_type: "image/png", url: "data:image/png;base64,iVBORw0=" },
    {
      type: "file",
      name: "b.pdf",
      mime_type: "application/pdf",
      url: "data:application/pdf;base64,JVBERi0=",
    },
  ];
  await ask(open(responsesProvider(upstream), { message: "", attachments }));
  assert.deepEqual(upstream.calls[0]?.json.input[0].content, [
    { type: "input_image", image_url: "data:image/png;base64,iVBORw0=", detail: "auto" },
    { type: "input_file", filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
  ]);
});

test("reasoning summaries are thinking, with a blank line between their parts; calls come whole", async () => {
  await using upstream = await startUpstream(twoCalls());
  const turn = await ask(open(responsesProvider(upstream), { tools: [WEATHER] }));
  assert.equal(said(turn, "thinking"), "**Planning**\n\nTwo cities.\n\n**Calling**");
  assert.deepEqual(
    turn.events.filter((event) => event.type === "call"),
    ["Lima", "Oslo"].map((city) => ({
      type: "call",
      call: { id: `call_${city}`, name: "get_weather", arguments: `{"city":"${city}"}` },
    })),
  );
});

test("answers go back under their call ids, chained to the response that asked", async () => {
  await using upstream = await startUpstream(twoCalls(), text());
  const conversation = open(responsesProvider(upstream), { tools: [WEATHER] });
  await ask(conversation);
  conversation.answer([
    { id: "call_Oslo", name: "get_weather", output: "cold", failed: false },
    { id: "call_Lima", name: "get_weather", output: "no such city", failed: true },
  ]);
  await ask(conversation);
  const second = upstream.calls[1]?.json;
  assert.equal(second.previous_response_id, "resp_tools1");
  assert.equal(second.instructions, "Be brief.");
  assert.deepEqual(second.input, [
    { type: "function_call_output", call_id: "call_Oslo", output: "cold" },
    { type: "function_call_output", call_id: "call_Lima", output: "Error: no such city" },
  ]);
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_text1" });
});

test("an id with open calls never leaves: not after the turn limit, nor after a failed next request", async () => {
  await using upstream = await startUpstream(twoCalls(), jsonReply(400, { error: { code: "x" } }));
  const conversation = open(responsesProvider(upstream), {
    state: { previous_response_id: "resp_0" },
  });
  await ask(conversation);
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_0" });
  conversation.answer([{ id: "call_Lima", name: "get_weather", output: "mild", failed: false }]);
  assert.ok((await ask(conversation)).error);
  conversation.interrupt("I stopped here.");
  assert.deepEqual(conversation.state(), { previous_response_id: "resp_0" });
});

test("a call that only the final snapshot brings is made, once", async () => {
  const item = { type: "function_call", call_id: "c1", name: "get_weather", arguments: "" };
  const response = { id: "resp_1", status: "completed", output: [item] };
  await using upstream = await startUpstream({
    body: [eventStream({ type: "response.completed", response })],
  });
  const conversation = open(responsesProvider(upstream));
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "call", call: { id: "c1", name: "get_weather", arguments: "{}" } },
    { type: "end", finish: "stop" },
  ]);
  assert.deepEqual(conversation.state(), {});
});

test("a refusal is text, and two messages of one response are two paragraphs", async () => {
  const delta = (item_id: string, delta: string) => ({
    type: "response.output_text.delta",
    item_id,
    delta,
  });
  const response = { id: "resp_1", status: "completed", output: [] };
  await using upstream = await startUpstream(
    { body: [fixture("responses/refusal")] },
    {
      body: [
        eventStream(delta("a", "Let me"), delta("a", " see."), delta("b", "Done."), {
          type: "response.completed",
          response,
        }),
      ],
    },
  );
  const provider = responsesProvider(upstream);
  assert.equal(said(await ask(open(provider))), "I can't help with that.");
  assert.equal(said(await ask(open(provider))), "Let me see.\n\nDone.");
});

for (const [name, finish] of [
  ["incomplete-max-output-tokens", "length"],
  ["incomplete-content-filter", "content_filter"],
] as const) {
  test(`response.incomplete: ${name} ends the turn as ${finish}`, async () => {
    await using upstream = await startUpstream({ body: [fixture(`responses/${name}`)] });
    const turn = await ask(open(responsesProvider(upstream)));
    assert.deepEqual(turn.events.at(-1), {
      type: "end",
      finish,
      usage: { input_tokens: 9, output_tokens: 16 },
    });
  });
}

test("response.failed, which the package only yields, is an error in our words", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/failed")] });
  const turn = await ask(open(responsesProvider(upstream)));
  assert.equal(said(turn), "Let me");
  assert.equal(failureOf(turn).code, "provider_error");
  assert.equal(failureOf(turn).detail, "OpenAI had an internal error.");
  assert.doesNotMatch(failureOf(turn).message, /OpenAI/);
});

test("an overload that the stream reports is provider_overloaded", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/overloaded")] });
  const failure = failureOf(await ask(open(responsesProvider(upstream))));
  assert.equal(failure.code, "provider_overloaded");
  assert.equal(failure.retryable, true);
});

test("an error event inside the stream is mapped by its code", async () => {
  await using upstream = await startUpstream({ body: [fixture("responses/error-event")] });
  const failure = failureOf(await ask(open(responsesProvider(upstream))));
  assert.equal(failure.code, "provider_rate_limited");
  assert.doesNotMatch(failure.message, /secret/);
});

test("a stream that ends without a terminal event is truncated, and its id is not kept", async () => {
  const whole = fixture("responses/text");
  const body = whole.slice(0, whole.indexOf("event: response.completed"));
  await using upstream = await startUpstream({ body: [body] }, { body: [`${body}data: [DONE]\n\n`] });
  for (const _ of ["clean end", "[DONE]"]) {
    const conversation = open(responsesProvider(upstream));
    const turn = await ask(conversation);
    assert.equal(said(turn), "Grüß Gott 👋!");
    assert.equal(failureOf(turn).code, "provider_truncated");
    assert.deepEqual(conversation.state(), {});
  }
  assert.equal(upstream.calls.length, 2);
});

test("an unknown previous response is conversation_expired, and no new conversation is begun", async () => {
  const error = {
    message: "Previous response with id 'resp_gone' not found.",
    type: "invalid_request_error",
    param: "previous_response_id",
    code: "previous_response_not_found",
  };
  await using upstream = await startUpstream(jsonReply(400, { error }));
  const state = { previous_response_id: "resp_gone" };
  const failure = failureOf(await ask(open(responsesProvider(upstream), { state })));
  assert.equal(failure.code, "conversation_expired");
  assert.equal(failure.retryable, false);
  assert.equal(upstream.calls.length, 1);
});
