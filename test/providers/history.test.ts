import assert from "node:assert/strict";
import { test } from "node:test";
import type { AssistantMessage, HistoryMessage } from "../../server/protocol/chat.ts";
import { createProvider } from "../../server/providers/create-provider.ts";
import { slimHistory, textContent } from "../../server/providers/history.ts";
import type { Model } from "../../server/providers/provider.ts";
import { ask, open as openConversation } from "../support/upstream-conversation.ts";

/** A model that answers with these messages in turn and records the messages of its requests. */
function scripted(...answers: AssistantMessage[]) {
  const shown: HistoryMessage[][] = [];
  const model: Model = async function* ({ messages, keep }) {
    shown.push([...messages]);
    const message = answers.shift();
    if (message === undefined) return;
    keep(message);
    yield [{ type: "end", finish: "stop" }];
  };
  return { model, shown };
}

function open(model: Model, start: Parameters<typeof openConversation>[1] = {}) {
  const provider = createProvider(
    { id: "scripted", label: "The model", mediaTypes: [] },
    "conversation_history",
    model,
  );
  return openConversation(provider, start);
}

const HI: HistoryMessage = { role: "user", content: "Hi" };
const YES: AssistantMessage = { role: "assistant", content: "Yes" };
const CALLS: AssistantMessage = {
  role: "assistant",
  content: "Let me look.",
  tool_calls: ["a", "b"].map((id) => ({
    id,
    type: "function",
    function: { name: "f", arguments: "{}" },
  })),
};
const answer = (id: string, output = "ok", failed = false) => ({ id, name: "f", content: textContent(output), failed });
const cancelled = (id: string): HistoryMessage => ({
  role: "tool",
  tool_call_id: id,
  content: "Cancelled: the run ended before this call was finished.",
  is_error: true,
});

test("until an answer without calls, the state is the one that the run came with", async () => {
  const { model } = scripted(CALLS, YES);
  const past = [HI, YES];
  const conversation = open(model, { state: { conversation_history: past }, message: "And?" });
  assert.deepEqual(conversation.state(), { conversation_history: past });
  await ask(conversation);
  assert.deepEqual(conversation.state(), { conversation_history: past });
  conversation.answer([answer("b"), answer("a", "no", true)]);
  await ask(conversation);
  assert.deepEqual(conversation.state(), {
    conversation_history: [
      ...past,
      { role: "user", content: "And?" },
      CALLS,
      { role: "tool", tool_call_id: "b", content: "ok" },
      { role: "tool", tool_call_id: "a", content: "no", is_error: true },
      YES,
    ],
  });
  assert.equal(past.length, 2);
});

test("the texts of a result are one plain string in the state", async () => {
  const { model } = scripted(CALLS, YES);
  const conversation = open(model);
  await ask(conversation);
  conversation.answer([{ ...answer("a"), content: [...textContent("one"), ...textContent("two")] }, answer("b", "")]);
  await ask(conversation);
  const contents = conversation.state().conversation_history?.map(({ content }) => content);
  assert.deepEqual(contents, ["Hi", "Let me look.", "one\ntwo", "", "Yes"]);
});

test("stopped during the tools: open calls are answered as cancelled, answered ones are not", async () => {
  const conversation = open(scripted(CALLS).model);
  await ask(conversation);
  conversation.answer([answer("b")]);
  conversation.interrupt("");
  assert.deepEqual(conversation.state(), {
    conversation_history: [HI, CALLS, { role: "tool", tool_call_id: "b", content: "ok" }, cancelled("a")],
  });
});

test("asking on with an open call, and answering a call that is not open, are bugs that throw", async () => {
  const conversation = open(scripted(CALLS, YES).model);
  await ask(conversation);
  conversation.answer([answer("a")]);
  assert.match(String((await ask(conversation)).error), /not answered/);
  conversation.answer([answer("a")]);
  assert.match(String((await ask(conversation)).error), /no open call/);
});

const image = (base64: string): HistoryMessage => ({
  role: "user",
  content: [
    { type: "text", text: "See:" },
    { type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } },
  ],
});
const pdf = (base64: string): HistoryMessage => ({
  role: "user",
  content: [{ type: "file", file: { filename: "r.pdf", file_data: `data:application/pdf;base64,${base64}` } }],
});
const noticeOf = (text: string) => ({ type: "text", text });

test("attachments stay in the state up to the limit; beyond it the oldest become a text", () => {
  const full = [image("A".repeat(400)), YES, pdf("B".repeat(600))];
  assert.deepEqual(slimHistory(full, 1000), full);
  const [first, ...rest] = slimHistory(full, 999);
  assert.deepEqual(first?.content, [
    { type: "text", text: "See:" },
    noticeOf("[an image (PNG, 1 kB) was attached here earlier and is no longer included]"),
  ]);
  assert.deepEqual(rest, full.slice(1));
});

test("one attachment beyond the limit does not take the smaller ones with it", () => {
  const big = pdf("B".repeat(4_000_000));
  const slim = slimHistory([image("A".repeat(400)), big], 1000);
  assert.deepEqual(slim[0], image("A".repeat(400)));
  assert.deepEqual(slim[1]?.content, [
    noticeOf("[r.pdf (PDF, 3.0 MB) was attached here earlier and is no longer included]"),
  ]);
});

test("the model of the current run sees a large file whole; the state holds the notice, within 8 MiB", async () => {
  const url = `data:application/pdf;base64,${"A".repeat(9 * 1024 * 1024)}`;
  const { model, shown } = scripted(YES);
  const conversation = open(model, {
    message: "",
    attachments: [{ type: "file", name: "r.pdf", mime_type: "application/pdf", url }],
  });
  await ask(conversation);
  assert.ok(JSON.stringify(shown[0]).length > url.length);
  assert.match(JSON.stringify(conversation.state()), /^.{0,400}\[r\.pdf \(PDF, 7\.1 MB\).{0,200}$/);
});
