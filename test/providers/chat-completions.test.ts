import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage, Usage } from "../../server/protocol/chat.ts";
import { textContent } from "../../server/providers/history.ts";
import { claude, stream as claudeStream } from "../support/anthropic.ts";
import { bedrock, stream as bedrockStream } from "../support/bedrock.ts";
import { FOREIGN_HISTORY, historyOf, ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { IMAGE_AND_PDF } from "../support/files.ts";
import { stopClock } from "../support/stopped-clock.ts";
import {
  ask,
  askOnce,
  chatProvider,
  failureOf,
  open,
  responsesProvider,
  said,
} from "../support/upstream-conversation.ts";
import {
  eventStream,
  jsonReply,
  startUpstream,
  type UpstreamReply,
  type UpstreamServer,
} from "../support/upstream-server.ts";

const text = () => stream("chat-completions/text-and-usage");

/** Bedrock's usage includes cached tokens. */
const TEXTS: [name: string, provider: Parameters<typeof askOnce>[0], reply: UpstreamReply, usage: Usage][] = [
  ["Chat Completions", chatProvider, text(), { input_tokens: 19, output_tokens: 10 }],
  ["Claude", claude, claudeStream("text"), { input_tokens: 25, output_tokens: 15 }],
  [
    "Bedrock",
    bedrock,
    bedrockStream("text"),
    { input_tokens: 19, output_tokens: 10, cached_input_tokens: 5, cache_write_tokens: 1 },
  ],
  [
    "Gemini",
    ({ url }) => serve("gemini/gemini-3-flash-preview", { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: url }),
    stream("gemini/text"),
    { input_tokens: 9, output_tokens: 3 },
  ],
];

for (const [name, provider, reply, usage] of TEXTS) {
  test(`${name}: a text answer streams, brings its usage, and makes a history`, async () => {
    const { events, state } = await askOnce(provider, reply);
    assert.deepEqual(events, [
      { type: "text", delta: "Hel" },
      { type: "text", delta: "lo 👋" },
      { type: "end", finish: "stop", usage },
    ]);
    assert.deepEqual(historyOf(state), [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello 👋" },
    ]);
  });
}

test("an answer of a thousand tokens goes whole into the history", async () => {
  const tokens = Array.from({ length: 1000 }, (_, number) => `${number} `);
  const chunks = tokens.map((content) => ({ choices: [{ delta: { content } }] }));
  const last = { choices: [{ delta: {}, finish_reason: "stop" }] };
  await using upstream = await startUpstream({ body: [eventStream(...chunks, last, "[DONE]")] });
  const conversation = open(chatProvider(upstream));
  await ask(conversation);
  assert.equal(historyOf(conversation.state()).at(-1)?.content, tokens.join(""));
});

test("the request: system first, tools, usage asked for, the model's name unchanged", async () => {
  await using upstream = await startUpstream(text());
  const provider = chatProvider(upstream, { model: "anthropic/claude-sonnet-4-5" });
  await ask(open(provider, { tools: [WEATHER] }));
  assert.equal(upstream.calls[0]?.path, "/v1/chat/completions");
  assert.deepEqual(upstream.calls[0]?.json, {
    model: "anthropic/claude-sonnet-4-5",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
    tools: [{ type: "function", function: WEATHER }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("no instructions, no system message; no tools, no tools field", async () => {
  const { calls } = await askOnce(chatProvider, text(), { instructions: "" });
  assert.deepEqual(calls[0]?.json.messages, [{ role: "user", content: "Hi" }]);
  assert.equal("tools" in (calls[0]?.json ?? {}), false);
});

test("attachments travel as image_url and file parts with data URLs", async () => {
  const { calls } = await askOnce(chatProvider, text(), { message: "What is this?", attachments: IMAGE_AND_PDF });
  assert.deepEqual(calls[0]?.json.messages[1].content, [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0=" } },
    { type: "file", file: { filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
  ]);
});

test("parallel calls whose pieces are interleaved by index come whole, in order, and are answered", async () => {
  await using upstream = await startUpstream(stream("chat-completions/two-parallel-calls"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(events, [
    { type: "call", call: { id: "call_a", name: "get_weather", arguments: '{"city":"Lima"}' } },
    { type: "call", call: { id: "call_b", name: "get_time", arguments: '{"city":"Oslo"}' } },
    { type: "end", finish: "stop" },
  ]);
  conversation.answer([
    { id: "call_b", name: "get_time", content: textContent("clock broken"), failed: true },
    { id: "call_a", name: "get_weather", content: textContent("mild"), failed: false },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(2), [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_a",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Lima"}' },
        },
        {
          id: "call_b",
          type: "function",
          function: { name: "get_time", arguments: '{"city":"Oslo"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call_b", content: "Error: clock broken" },
    { role: "tool", tool_call_id: "call_a", content: "mild" },
  ]);
});

test("a result that begins with the word Error is no failure unless the tool has failed", async () => {
  await using upstream = await startUpstream(stream("chat-completions/two-parallel-calls"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  await ask(conversation);
  conversation.answer([
    { id: "call_a", name: "get_weather", content: textContent("Error: is the name of the album"), failed: false },
    { id: "call_b", name: "get_time", content: textContent("clock broken"), failed: true },
  ]);
  await ask(conversation);
  assert.deepEqual(upstream.calls[1]?.json.messages.slice(3), [
    { role: "tool", tool_call_id: "call_a", content: "Error: is the name of the album" },
    { role: "tool", tool_call_id: "call_b", content: "Error: clock broken" },
  ]);
  const { conversation_history: history = [] } = conversation.state();
  assert.deepEqual(
    history.flatMap((message) => (message.role === "tool" ? [message.is_error ?? false] : [])),
    [false, true],
  );
});

test("[DONE] without a finish_reason is the end of an answer that has said something", async () => {
  const turn = await askOnce(chatProvider, stream("chat-completions/done-without-finish"));
  assert.equal(said(turn), "Half an answer");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "stop" });
  assert.equal(historyOf(turn.state).at(-1)?.content, "Half an answer");
});

for (const [what, chunks] of [
  ["neither [DONE] nor a finish_reason", [{ content: "Half" }]],
  ["[DONE] alone", ["[DONE]"]],
  ["[DONE] after thoughts alone", [{ reasoning: "Hm." }, "[DONE]"]],
  [
    "[DONE] after a text and a call that has not begun its arguments",
    [
      { content: "Let me look." },
      { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "" } }] },
      "[DONE]",
    ],
  ],
  [
    "[DONE] inside of a call",
    [{ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"ci' } }] }, "[DONE]"],
  ],
  ...["network_error", "insufficient_system_resource", "abort"].map(
    (finish_reason) =>
      [
        `a server that gave up: ${finish_reason}`,
        [{ content: "Half" }, { choices: [{ delta: {}, finish_reason }] }],
      ] as const,
  ),
] as const) {
  test(`a stream that ends with ${what} is a cut answer, and the history stays as it was`, async () => {
    const events = chunks.map((chunk) =>
      typeof chunk === "string" || "choices" in chunk ? chunk : { choices: [{ delta: chunk }] },
    );
    const past: HistoryMessage[] = [
      { role: "user", content: "Before" },
      { role: "assistant", content: "Yes" },
    ];
    const turn = await askOnce(
      chatProvider,
      { body: [eventStream(...events)] },
      { state: { conversation_history: past } },
    );
    assert.equal(failureOf(turn).code, "provider_truncated");
    assert.deepEqual(turn.state, { conversation_history: past });
  });
}

test("a finish_reason in each chunk is no sign of the end, however long the next one takes", async (t) => {
  const clock = stopClock(t);
  const pieces = ["One ", "two ", "three"].map((content) =>
    eventStream({ choices: [{ delta: { content }, finish_reason: "stop" }] }),
  );
  const [first = "", second = "", third = ""] = pieces;
  const turn = await askOnce(chatProvider, {
    body: [first, () => clock.tick(10_000), second, () => clock.tick(10_000), third],
  });
  assert.equal(said(turn), "One two three");
});

for (const [where, name, code] of [
  ["the stream (OpenRouter)", "openrouter-error-in-stream", "provider_error"],
  ["a choice (OpenRouter)", "openrouter-error-in-choice", "provider_rate_limited"],
  ["x_groq, although the finish reason says stop", "groq-stopped-early", "provider_error"],
] as const) {
  test(`an error object inside ${where} is an error in our words, after what was said before it`, async () => {
    const turn = await askOnce(chatProvider, stream(`chat-completions/${name}`));
    assert.deepEqual([said(turn), failureOf(turn).code, turn.calls.length], ["Once ", code, 1]);
    assert.doesNotMatch(failureOf(turn).detail, /secret/);
  });
}

const forbidden = (name: string) => ({ loc: ["body", name], msg: "Extra inputs are not permitted", input: {} });

for (const [how, body] of [
  ["in its sentence", { error: { message: "Unrecognized field: stream_options" } }],
  ["as the place of a fault", { detail: [forbidden("stream_options")] }],
  ["among other places", { detail: [forbidden("store"), forbidden("stream_options")] }],
] as const) {
  test(`stream_options is given up after one refusal that names it ${how}, and the provider remembers`, async () => {
    await using upstream = await startUpstream(jsonReply("error" in body ? 400 : 422, body), text(), text());
    const provider = chatProvider(upstream);
    assert.equal(said(await ask(open(provider))), "Hello 👋");
    assert.equal(said(await ask(open(provider))), "Hello 👋");
    assert.deepEqual(
      upstream.calls.map((call) => "stream_options" in call.json),
      [true, false, false],
    );
  });
}

test("user messages in a row are sent as one, while the state keeps them apart", async () => {
  const past: HistoryMessage[] = [{ role: "user", content: "First" }];
  await using upstream = await startUpstream(text());
  const conversation = open(chatProvider(upstream), {
    state: { conversation_history: past },
    attachments: [{ type: "image", name: "a.gif", mime_type: "image/gif", url: "data:image/gif;base64,R0lGODlh" }],
  });
  await ask(conversation);
  assert.deepEqual(upstream.calls[0]?.json.messages.slice(1), [
    {
      role: "user",
      content: [
        { type: "text", text: "First" },
        { type: "text", text: "Hi" },
        { type: "image_url", image_url: { url: "data:image/gif;base64,R0lGODlh" } },
      ],
    },
  ]);
  assert.equal(historyOf(conversation.state()).length, 3);
  assert.deepEqual(past, [{ role: "user", content: "First" }]);
});

// Differences of servers that imitate the Chat Completions API.

/** A stream with these deltas, the finish reason and `[DONE]`. */
function deltas(finish: string | null, ...all: object[]) {
  const chunks = all.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  const last = { choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  return { body: [eventStream(...chunks, last, "[DONE]")] };
}

test("LiteLLM with Claude: reasoning is shown once, and the thinking block goes back whole with its signature", async () => {
  await using upstream = await startUpstream(stream("chat-completions/litellm-claude-thinking-and-call"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const turn = await ask(conversation);
  assert.equal(said(turn, "thinking"), "The user wants the weather.");
  assert.equal(said(turn), "Let me look.");
  conversation.answer([{ id: "toolu_01", name: "get_weather", content: textContent("mild"), failed: false }]);
  await ask(conversation);
  const block = { type: "thinking", thinking: "The user wants the weather.", signature: "EqoBCkgIARAB" };
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    reasoning_content: "The user wants the weather.",
    thinking_blocks: [block],
    provider_specific_fields: { thinking_blocks: [block] },
    role: "assistant",
    content: "Let me look.",
    tool_calls: [
      {
        id: "toolu_01",
        type: "function",
        function: { name: "get_weather", arguments: '{"city": "Lima"}' },
      },
    ],
  });
});

test("thinking blocks without reasoning_content are shown; a redacted block stays on its own", async () => {
  const thinking = (thinking: string, signature: string | null = null) => ({ type: "thinking", thinking, signature });
  const redacted = { type: "redacted_thinking", data: "Eo0F" };
  await using upstream = await startUpstream(
    deltas(
      "stop",
      { thinking_blocks: [thinking("One.")] },
      { thinking_blocks: [thinking("", "sig1")] },
      { thinking_blocks: [redacted] },
      { thinking_blocks: [thinking("Two.", "sig2")] },
      { content: "Ok" },
    ),
  );
  const conversation = open(chatProvider(upstream));
  assert.equal(said(await ask(conversation), "thinking"), "One.Two.");
  assert.deepEqual(historyOf(conversation.state())[1], {
    thinking_blocks: [thinking("One.", "sig1"), redacted, thinking("Two.", "sig2")],
    role: "assistant",
    content: "Ok",
  });
});

test("Gemini: calls without an index stay apart, run although finish_reason is stop, and keep their signature", async () => {
  await using upstream = await startUpstream(stream("chat-completions/gemini-calls-without-index"), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const { events } = await ask(conversation);
  assert.deepEqual(
    events.map((event) => (event.type === "call" ? event.call.arguments : event.type)),
    ['{"city": "Lima"}', '{"city": "Oslo"}', "end"],
  );
  for (const id of ["function-call-1", "function-call-2"]) {
    conversation.answer([{ id, name: "get_weather", content: textContent("mild"), failed: false }]);
  }
  await ask(conversation);
  const [first, second] = upstream.calls[1]?.json.messages[2].tool_calls ?? [];
  assert.deepEqual(first.extra_content, { google: { thought_signature: "CsQBsig" } });
  assert.equal("extra_content" in second, false);
});

test("vLLM: the same reasoning in two fields is shown once", async () => {
  const turn = await askOnce(chatProvider, stream("chat-completions/vllm-reasoning"));
  assert.equal(said(turn, "thinking"), "9.8 is larger.");
  assert.equal(said(turn), "9.8");
});

test("CRLF lines and pings are read, and length ends the turn as length", async () => {
  const turn = await askOnce(chatProvider, stream("chat-completions/crlf-lines"));
  assert.equal(said(turn), "Zeile für Zeile");
  assert.deepEqual(turn.events.at(-1), { type: "end", finish: "length" });
});

test("choices that are null or empty are passed over", async () => {
  const body = [
    eventStream(
      { choices: null },
      { choices: [] },
      { choices: [{ index: 0, delta: null, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "content_filter" }] },
    ),
  ];
  const turn = await askOnce(chatProvider, { body });
  assert.deepEqual(turn.events, [
    { type: "text", delta: "ok" },
    { type: "end", finish: "content_filter" },
  ]);
});

test("a call id that the conversation has already is replaced, on the call and on its answer", async () => {
  const call = {
    tool_calls: [{ index: 0, id: "call_0", function: { name: "get_weather", arguments: "{}" } }],
  };
  await using upstream = await startUpstream(deltas("tool_calls", call), deltas("tool_calls", call), text());
  const conversation = open(chatProvider(upstream), { tools: [WEATHER] });
  const ids: string[] = [];
  for (let turn = 0; turn < 2; turn++) {
    for (const event of (await ask(conversation)).events) {
      if (event.type !== "call") continue;
      ids.push(event.call.id);
      conversation.answer([{ id: event.call.id, name: "get_weather", content: textContent("mild"), failed: false }]);
    }
  }
  await ask(conversation);
  assert.equal(ids[0], "call_0");
  assert.match(ids[1] ?? "", /^[0-9a-f]{9}$/);
  const sent = upstream.calls[2]?.json.messages.filter((message: HistoryMessage) => message.role === "tool");
  assert.deepEqual(
    sent.map((message: { tool_call_id: string }) => message.tool_call_id),
    ids,
  );
});

test("a call that never gets a name is an answer that could not be read", async () => {
  const call = { tool_calls: [{ index: 0, id: "c", function: { arguments: "{}" } }] };
  assert.equal(failureOf(await askOnce(chatProvider, deltas("tool_calls", call))).code, "provider_error");
});

test("a field called __proto__ is data like any other", async () => {
  const body = ['data: {"choices":[{"delta":{"content":"ok","__proto__":{"polluted":1}},"finish_reason":"stop"}]}\n\n'];
  await using upstream = await startUpstream({ body });
  const conversation = open(chatProvider(upstream));
  assert.equal(said(await ask(conversation)), "ok");
  assert.equal("polluted" in {}, false);
  assert.match(JSON.stringify(conversation.state()), /"__proto__":\{"polluted":1\}/);
});

for (const [server, usage, output] of [
  ["OpenAI counts thoughts as output", { completion_tokens: 40, total_tokens: 52 }, 40],
  ["Gemini counts them in the total only", { completion_tokens: 3, total_tokens: 52 }, 40],
  ["some servers have no total", { completion_tokens: 40 }, 40],
] as const) {
  test(`usage: ${server}`, async () => {
    const chunk = {
      choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 12, ...usage },
    };
    await using upstream = await startUpstream({ body: [eventStream(chunk)] });
    assert.deepEqual((await ask(open(chatProvider(upstream)))).events.at(-1), {
      type: "end",
      finish: "stop",
      usage: { input_tokens: 12, output_tokens: output },
    });
  });
}

test("Mistral, Zhipu: a full context ends the turn as length", async () => {
  for (const reason of ["model_length", "model_context_window_exceeded"]) {
    const turn = await askOnce(chatProvider, deltas(reason, { content: "Half" }));
    assert.deepEqual(turn.events.at(-1), { type: "end", finish: "length" });
  }
});

test("what Parley keeps for other APIs on a message is not sent to this one", async () => {
  await using upstream = await startUpstream(text());
  const kept = {
    answer_parts: { provider: "acme", parts: [] },
    openai_output: [{}],
    anthropic_layout: ["thinking"],
    ai_sdk: {},
  };
  const conversation_history: HistoryMessage[] = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi", ...kept },
  ];
  await ask(open(chatProvider(upstream), { state: { conversation_history } }));
  const sent = upstream.calls[0]?.json.messages[2];
  assert.deepEqual(sent, { role: "assistant", content: "Hi" });
});

// What a server rejects in a request, recognized in its message, so that the second attempt is accepted.

const compatible = (upstream: UpstreamServer, settings = {}) =>
  serve("compatible/m", { COMPATIBLE_BASE_URL: upstream.url }, settings);

const refusal = (message: string): UpstreamReply =>
  jsonReply(400, { error: { message, type: "invalid_request_error" } });

type Body = Readonly<Record<string, unknown>>;

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
  const reply = jsonReply(400, { error: { message, param: "max_tokens", code: "unsupported_parameter" } });
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

// Messages that a visitor's text causes, or rejections of a single message, do not affect other visitors.

const quoting = (words: string) => refusal(`This message cannot be taken: "${words}"`);

for (const [what, words, provider, answer, fieldOf] of [
  ["usage", "BAD stream_options", compatible, ok, ({ stream_options }: Body) => stream_options],
  [
    "the limit's name",
    "Use max_completion_tokens!",
    (upstream: UpstreamServer) => compatible(upstream, { maxOutputTokens: 300 }),
    ok,
    ({ max_tokens }: Body) => max_tokens,
  ],
  [
    "Gemini's thoughts",
    "My thinking is not clear",
    ({ url }: UpstreamServer) => serve("gemini/gemini-3-flash", { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: url }),
    ok,
    ({ extra_body }: Body) => extra_body,
  ],
  [
    "OpenAI's summaries",
    "what is reasoning?",
    (upstream: UpstreamServer) => responsesProvider(upstream, { model: "gpt-5.2" }),
    () => stream("responses/text"),
    ({ reasoning }: Body) => reasoning,
  ],
  [
    "OpenAI's encrypted reasoning",
    "is this encrypted?",
    (upstream: UpstreamServer) => responsesProvider(upstream, { model: "gpt-5.2", settings: { store: false } }),
    () => stream("responses/text"),
    ({ include }: Body) => include,
  ],
] as const) {
  test(`${what}: a refusal that may quote the visitor counts for this message, and nobody else's`, async () => {
    await using upstream = await startUpstream(quoting(words), answer(), answer());
    const model = await provider(upstream);
    assert.equal((await ask(open(model, { message: words }))).error, undefined);
    assert.equal((await ask(open(model))).error, undefined);
    const sent = upstream.calls.map(({ json }) => fieldOf(json) !== undefined);
    assert.deepEqual(sent, [true, false, true]);
  });

  test(`${what}: what was refused is left out for others only after the server took a message without it`, async () => {
    const refused = refusal(words);
    await using upstream = await startUpstream(refused, refusal("no"), refused, answer(), answer());
    const model = await provider(upstream);
    failureOf(await ask(open(model)));
    for (let message = 0; message < 2; message++) assert.equal((await ask(open(model))).error, undefined);
    const sent = upstream.calls.map(({ json }) => fieldOf(json) !== undefined);
    assert.deepEqual(sent, [true, false, true, false, false]);
  });
}
