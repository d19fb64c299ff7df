/** What a server refuses of a request, learned from its sentence, so that the second try is taken. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { FOREIGN_HISTORY, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { ask, chatProvider, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamReply, type UpstreamServer } from "../support/upstream-server.ts";

const compatible = (upstream: UpstreamServer, settings = {}) =>
  serve("compatible/m", { COMPATIBLE_BASE_URL: upstream.url }, settings);

const refusal = (message: string): UpstreamReply =>
  jsonReply(400, { error: { message, type: "invalid_request_error" } });

/** The assistant messages of a request. */
function assistants(upstream: UpstreamServer, request: number) {
  return upstream.calls[request]?.json.messages.filter((message: HistoryMessage) => message.role === "assistant");
}

for (const [server, reply] of [
  [
    "Groq",
    refusal(
      "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
    ),
  ],
  [
    "Cerebras",
    jsonReply(400, {
      message: "messages.2.assistant.reasoning_content: property is unsupported",
      code: "wrong_api_format",
    }),
  ],
  [
    "Mistral",
    jsonReply(422, {
      object: "error",
      message: {
        detail: [
          {
            type: "extra_forbidden",
            loc: ["body", "messages", 2, "assistant", "reasoning_content"],
            msg: "Extra inputs are not permitted",
          },
        ],
      },
    }),
  ],
] as const) {
  test(`${server}: an extra field that is refused by name is left out of a second try, the others stay`, async () => {
    await using upstream = await startUpstream(reply, ok());
    const state = { conversation_history: FOREIGN_HISTORY };
    assert.equal(said(await ask(open(await compatible(upstream), { state }))), "ok");
    const [before] = assistants(upstream, 0);
    const [after] = assistants(upstream, 1);
    assert.ok("reasoning_content" in before);
    const { reasoning_content: _refused, ...rest } = before;
    assert.deepEqual(after, rest);
  });
}

test("fields are refused one after the other; what one run learned holds for its next request, and for no other", async () => {
  await using upstream = await startUpstream(
    refusal("property 'channel' is unsupported"),
    refusal("property 'thinking_blocks' is unsupported"),
    stream("chat-completions/llama-cpp-reasoning-and-call"),
    ok(),
    ok(),
  );
  const history: HistoryMessage[] = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi", channel: "final", thinking_blocks: [] },
  ];
  const provider = await compatible(upstream);
  const setup = { state: { conversation_history: history }, tools: [WEATHER] };
  const [, second] = await runTools(open(provider, setup));
  assert.equal(said(second), "ok");
  await ask(open(provider, setup));
  const fields = upstream.calls.map((_, at) => Object.keys(assistants(upstream, at)[0]).length);
  assert.deepEqual(fields, [4, 3, 2, 2, 4]);
});

test("a refusal that names nothing that was sent is passed on after one request", async () => {
  await using upstream = await startUpstream(refusal("property 'foo' is unsupported"));
  const state = { conversation_history: FOREIGN_HISTORY };
  const failure = failureOf(await ask(open(await compatible(upstream), { state })));
  assert.equal(failure.code, "invalid_request");
  assert.equal(upstream.calls.length, 1);
});

test("DeepSeek: where reasoning must be passed back, answers of other models get an empty one", async () => {
  const message = "The `reasoning_content` in the thinking mode must be passed back to the API.";
  await using upstream = await startUpstream(refusal(message), ok());
  const history: HistoryMessage[] = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi" },
    { role: "user", content: "How?" },
    { role: "assistant", content: "Well", reasoning_content: "Hm." },
  ];
  const state = { conversation_history: history };
  assert.equal(said(await ask(open(await compatible(upstream), { state }))), "ok");
  assert.deepEqual(assistants(upstream, 1), [
    { reasoning_content: "", role: "assistant", content: "Hi" },
    { reasoning_content: "Hm.", role: "assistant", content: "Well" },
  ]);
});

test("a signature of another model is left out of earlier turns, and kept in the current one", async () => {
  await using upstream = await startUpstream(
    stream("chat-completions/litellm-claude-thinking-and-call"),
    refusal("messages.1.content.0: Invalid `signature` in `thinking` block"),
    ok(),
  );
  const state = { conversation_history: FOREIGN_HISTORY };
  const conversation = open(await compatible(upstream), { state, tools: [WEATHER] });
  const [, second] = await runTools(conversation);
  assert.equal(said(second), "ok");
  const sent = assistants(upstream, 2);
  assert.deepEqual(
    sent.map((message: object) => "thinking_blocks" in message),
    [false, false, true],
  );
});

test("Mistral: ids of another form are replaced by nine letters and digits, the same on call and result", async () => {
  const message = "Tool call id was toolu_01 but must be a-z, A-Z, 0-9, with a length of 9.";
  await using upstream = await startUpstream(refusal(message), ok());
  const state = { conversation_history: FOREIGN_HISTORY };
  assert.equal(said(await ask(open(await compatible(upstream), { state }))), "ok");
  const messages = upstream.calls[1]?.json.messages;
  const id = messages[2].tool_calls[0].id;
  assert.match(id, /^[a-z0-9]{9}$/);
  assert.equal(messages[3].tool_call_id, id);
});

test("Mistral: where a user may not speak after a tool, an interrupted answer stands between them", async () => {
  await using upstream = await startUpstream(refusal("Unexpected role 'user' after role 'tool'"), ok());
  const state = { conversation_history: FOREIGN_HISTORY.slice(0, 3) };
  assert.equal(said(await ask(open(await compatible(upstream), { state }))), "ok");
  assert.deepEqual(
    upstream.calls[1]?.json.messages.map((message: HistoryMessage) => message.role),
    ["system", "user", "assistant", "tool", "assistant", "user"],
  );
});

test("max_tokens is renamed where the server asks for max_completion_tokens, from then on", async () => {
  const message =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  const reply = jsonReply(400, {
    error: { message, param: "max_tokens", code: "unsupported_parameter" },
  });
  await using upstream = await startUpstream(reply, ok(), ok());
  const provider = await compatible(upstream, { maxOutputTokens: 300 });
  assert.equal(said(await ask(open(provider))), "ok");
  assert.equal(said(await ask(open(provider))), "ok");
  assert.deepEqual(
    upstream.calls.map(({ json }) => [json.max_tokens, json.max_completion_tokens]),
    [
      [300, undefined],
      [undefined, 300],
      [undefined, 300],
    ],
  );
});

test("two requests at once that are refused for the same parameter both go through", async () => {
  const reply = refusal("Unrecognized field: stream_options");
  await using upstream = await startUpstream(reply, reply, ok(), ok());
  const provider = await compatible(upstream);
  const turns = await Promise.all([ask(open(provider)), ask(open(provider))]);
  assert.deepEqual(
    turns.map((turn) => said(turn)),
    ["ok", "ok"],
  );
});

test("a refusal that comes again although it was heeded is passed on", async () => {
  const message = "The `reasoning_content` in the thinking mode must be passed back to the API.";
  await using upstream = await startUpstream(...Array.from({ length: 9 }, () => refusal(message)));
  const state = { conversation_history: FOREIGN_HISTORY };
  const failure = failureOf(await ask(open(await compatible(upstream), { state })));
  assert.equal(failure.code, "invalid_request");
  assert.equal(upstream.calls.length, 2);
});

test("a refusal that is not about the request's form teaches nothing, whatever words it holds", async () => {
  const reply = jsonReply(429, { error: { message: "reasoning_content: too many tokens" } });
  await using upstream = await startUpstream(reply, reply, reply);
  const state = { conversation_history: FOREIGN_HISTORY };
  failureOf(await ask(open(chatProvider(upstream), { state })));
  const sent = upstream.calls.map((_, at) => "reasoning_content" in assistants(upstream, at)[0]);
  assert.deepEqual(sent, [true, true, true]);
});
