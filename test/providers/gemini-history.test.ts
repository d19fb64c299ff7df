/** A history that another model made, as Google takes it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../server/protocol/chat.ts";
import { FOREIGN_HISTORY, ok, serve } from "../support/chat-servers.ts";
import { ask, open } from "../support/upstream-conversation.ts";
import { startUpstream, type UpstreamServer } from "../support/upstream-server.ts";

const gemini = (upstream: UpstreamServer, model: string) =>
  serve(`gemini/${model}`, { GEMINI_API_KEY: "AIza-test", GEMINI_BASE_URL: upstream.url });

for (const [model, extra] of [
  ["gemini-3-flash-preview", { extra_content: { google: { thought_signature: "skip_thought_signature_validator" } } }],
  ["gemini-2.5-flash", {}],
] as const) {
  test(`gemini: another model's history is sent to ${model} without what Google refuses`, async () => {
    await using upstream = await startUpstream(ok());
    const state = { conversation_history: FOREIGN_HISTORY };
    await ask(open(await gemini(upstream, model), { state, instructions: "" }));
    const note = "[an image (GIF) was attached here, which this model cannot read]";
    assert.deepEqual(upstream.calls[0]?.json.messages, [
      {
        role: "user",
        content: [
          { type: "text", text: "Weather here?" },
          { type: "text", text: note },
          { type: "image_url", image_url: { url: "data:application/pdf;base64,JVBERi0=" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            ...extra,
            id: "toolu_01",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Lima"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "toolu_01", content: "mild" },
      { role: "assistant", content: "Mild." },
      { role: "user", content: "Hi" },
    ]);
  });
}

test("gemini: of another model's parallel calls, the first alone carries the stand-in for a signature", async () => {
  const call = (id: string) => ({
    id,
    type: "function" as const,
    function: { name: "get_weather", arguments: "{}" },
  });
  const conversation_history: HistoryMessage[] = [
    { role: "user", content: "Weather?" },
    { role: "assistant", content: null, tool_calls: [call("a"), call("b")] },
    { role: "tool", tool_call_id: "a", content: "mild" },
    { role: "tool", tool_call_id: "b", content: "cold" },
  ];
  await using upstream = await startUpstream(ok());
  const state = { conversation_history };
  await ask(open(await gemini(upstream, "gemini-3-flash-preview"), { state }));
  const calls: object[] = upstream.calls[0]?.json.messages[2].tool_calls;
  assert.deepEqual(
    calls.map((sent) => "extra_content" in sent),
    [true, false],
  );
});
