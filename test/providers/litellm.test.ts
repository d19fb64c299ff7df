/** A LiteLLM proxy with the providers behind it; LiteLLM with Claude also is in chat-quirks.test.ts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, runTools, serve, stream, WEATHER } from "../support/chat-servers.ts";
import { ask, failureOf, open, said } from "../support/upstream-conversation.ts";
import { jsonReply, startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const litellm = (upstream: UpstreamServer, model: string, settings = {}) =>
  serve(`litellm/${model}`, { LITELLM_BASE_URL: upstream.url, LITELLM_API_KEY: "sk-l" }, settings);

test("LiteLLM: the model's name goes through unchanged, a PDF is a file part, an image an image_url", async () => {
  await using upstream = await startUpstream(ok());
  await ask(
    open(await litellm(upstream, "bedrock/us.anthropic.claude"), {
      attachments: [
        {
          type: "image",
          name: "a.gif",
          mime_type: "image/gif",
          url: "data:image/gif;base64,R0lGODlh",
        },
        {
          type: "file",
          name: "b.pdf",
          mime_type: "application/pdf",
          url: "data:application/pdf;base64,JVBERi0=",
        },
      ],
    }),
  );
  const { model, messages } = upstream.calls[0]?.json ?? {};
  assert.equal(model, "bedrock/us.anthropic.claude");
  assert.deepEqual(messages[1].content.slice(1), [
    { type: "image_url", image_url: { url: "data:image/gif;base64,R0lGODlh" } },
    {
      type: "file",
      file: { filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
    },
  ]);
});

test("LiteLLM with Gemini: signatures on message and call go back verbatim, and the usage chunk counts", async () => {
  await using upstream = await startUpstream(stream("chat-completions/litellm-gemini-signature"), ok());
  const conversation = open(await litellm(upstream, "gemini-3-pro"), { tools: [WEATHER] });
  const [turn] = await runTools(conversation);
  assert.equal(said(turn, "thinking"), "I need the weather.");
  assert.deepEqual(turn.events.at(-1), {
    type: "end",
    finish: "stop",
    usage: { input_tokens: 50, output_tokens: 20 },
  });
  assert.deepEqual(upstream.calls[1]?.json.messages[2], {
    reasoning_content: "I need the weather.",
    provider_specific_fields: { thought_signatures: ["CsQBsig"] },
    role: "assistant",
    content: null,
    tool_calls: [
      {
        provider_specific_fields: { thought_signature: "CsQBsig" },
        id: "call_1__thought__CsQBsig",
        type: "function",
        function: { name: "get_weather", arguments: '{"city": "Lima"}' },
      },
    ],
  });
});

test("LiteLLM: thinking blocks of a finished turn go back, its plain reasoning does not", async () => {
  await using upstream = await startUpstream(ok());
  const block = { type: "thinking", thinking: "Hm.", signature: "EqoB" };
  const conversation_history = [
    { role: "user" as const, content: "Hello" },
    {
      role: "assistant" as const,
      content: "Hi",
      reasoning_content: "Hm.",
      thinking_blocks: [block],
    },
  ];
  await ask(open(await litellm(upstream, "claude"), { state: { conversation_history } }));
  assert.deepEqual(upstream.calls[0]?.json.messages[2], {
    thinking_blocks: [block],
    role: "assistant",
    content: "Hi",
  });
});

test("LiteLLM: the exceptions of the providers behind it have their codes", async () => {
  const cases = [
    [429, { type: "throttling_error", code: "429" }, { "retry-after": "30" }, "provider_rate_limited"],
    [401, { type: "auth_error", code: "401" }, {}, "provider_auth"],
    [400, { type: "no_db_connection", message: "No connected db." }, {}, "provider_auth"],
    [400, { message: "litellm.ContextWindowExceededError: too long" }, {}, "context_too_long"],
    [400, { message: "litellm.ContentPolicyViolationError: no" }, {}, "content_filtered"],
    [400, { message: "/chat/completions: Invalid model name passed in model=x" }, {}, "provider_error"],
    [
      400,
      {
        message:
          "litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort'], for model=gpt-4o.",
        type: "invalid_request_error",
        param: null,
        code: "400",
      },
      {},
      "provider_error",
    ],
  ] as const;
  await using upstream = await startUpstream(
    ...cases.map(([status, error, headers]) => jsonReply(status, { error }, headers)),
  );
  const provider = await litellm(upstream, "x");
  for (const [, , headers, code] of cases) {
    const failure = failureOf(await ask(open(provider)));
    assert.equal(failure.code, code);
    assert.equal(failure.retryAfter, "retry-after" in headers ? 30 : undefined);
  }
});
