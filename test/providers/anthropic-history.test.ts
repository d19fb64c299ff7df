/** A history must be sendable to Claude, whatever happened in it and whoever else has answered in it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { claude, sentWith, stream, WEATHER } from "../support/anthropic.ts";
import { ask, open } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

function call(id: string, name: string, written: string, more: object = {}) {
  return { ...more, id, type: "function" as const, function: { name, arguments: written } };
}

const next = { type: "text", text: "Next" };

test("anthropic: messages of one role are one turn, and blank texts and empty turns stay behind", async () => {
  const { messages } = await sentWith([
    { role: "user", content: "One" },
    { role: "user", content: " \n" },
    { role: "assistant", content: "" },
    { role: "user", content: [{ type: "text", text: "Two" }] },
    { role: "assistant", content: "A" },
    { role: "assistant", content: "B" },
  ]);
  assert.deepEqual(messages, [
    {
      role: "user",
      content: [
        { type: "text", text: "One" },
        { type: "text", text: "(no text)" },
        { type: "text", text: "Two" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
    },
    { role: "user", content: [next] },
  ]);
});

test("anthropic: after a cancelled call the result is an error, and the next message follows it", async () => {
  await using upstream = await startUpstream(stream("thinking-and-tool"), stream("text"));
  const provider = await claude(upstream);
  const conversation = open(provider, { tools: [WEATHER] });
  await ask(conversation);
  conversation.interrupt("");
  const state = conversation.state();
  await ask(open(provider, { tools: [WEATHER], state, message: "Next" }));
  const [, , results] = upstream.calls[1]?.json.messages ?? [];
  assert.equal(results.content[0].is_error, true);
  assert.match(results.content[0].content, /^Cancelled/);
  assert.equal(results.content[1].text, "Next");
});

test("anthropic: a result is an error by its flag, never by its text", async () => {
  const call = (id: string) => ({
    id,
    type: "function" as const,
    function: { name: "get_weather", arguments: "{}" },
  });
  const result = (id: string, content: string) => ({ role: "tool" as const, tool_call_id: id, content });
  const { messages } = await sentWith([
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: [call("a"), call("b"), call("c")] },
    result("a", "Error: 0 lines in the log"),
    { ...result("b", "closed"), is_error: true },
    { ...result("c", " "), is_error: true },
  ]);
  assert.deepEqual(messages[2].content.slice(0, 3), [
    { type: "tool_result", tool_use_id: "a", content: "Error: 0 lines in the log" },
    { type: "tool_result", tool_use_id: "b", content: "closed", is_error: true },
    { type: "tool_result", tool_use_id: "c" },
  ]);
});

test("anthropic: another provider's fields, ids, names and broken arguments do not break the request", async () => {
  const { messages } = await sentWith([
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: null,
      reasoning_content: "Hm.",
      extra_content: { google: { thought_signature: "x" } },
      tool_calls: [
        call("functions.get:0", "get.weather", "{broken", { thought_signature: "y" }),
        call("b", "get_weather", "[1]"),
      ],
    },
    { role: "tool", tool_call_id: "b", content: "two" },
    { role: "tool", tool_call_id: "functions.get:0", content: "one" },
    { role: "assistant", content: "Done.", tool_calls: [call("b", "get_weather", "{}")] },
    { role: "tool", tool_call_id: "b", content: "again" },
  ]);
  assert.deepEqual(messages.slice(1), [
    {
      role: "assistant",
      content: [
        { type: "tool_use", id: "call00000", name: "get_weather", input: { unparsed_arguments: "{broken" } },
        { type: "tool_use", id: "b", name: "get_weather", input: { unparsed_arguments: "[1]" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "b", content: "two" },
        { type: "tool_result", tool_use_id: "call00000", content: "one" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Done." },
        { type: "tool_use", id: "call00002", name: "get_weather", input: {} },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "call00002", content: "again" }, next] },
  ]);
});

test("anthropic: calls of tools that the agent no longer has are declared, and none may be called", async () => {
  const body = await sentWith(
    [
      { role: "user", content: "Hi" },
      { role: "assistant", content: null, tool_calls: [call("a", "old.tool", "{}")] },
      { role: "tool", tool_call_id: "a", content: "ok" },
    ],
    { tools: [] },
  );
  assert.deepEqual(body.tools, [
    { name: "old_tool", description: "No longer available: do not call it.", input_schema: { type: "object" } },
  ]);
  assert.deepEqual(body.tool_choice, { type: "none" });
});

test("anthropic: a history that begins with the assistant is sent", async () => {
  const { messages } = await sentWith([{ role: "assistant", content: "Welcome" }]);
  assert.deepEqual(messages[0], { role: "user", content: [{ type: "text", text: "(no text)" }] });
});
