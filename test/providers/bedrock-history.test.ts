import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReceivedFile } from "../../server/protocol/attachments.ts";
import type { AssistantMessage, HistoryMessage } from "../../server/protocol/chat.ts";
import { bedrock, stream } from "../support/bedrock.ts";
import { ask, askOnce, failureOf, open } from "../support/upstream-conversation.ts";
import { startUpstream } from "../support/upstream-server.ts";

const PDF = "JVBERi0=";
const pdf = (name: string): ReceivedFile => ({
  type: "file",
  name,
  mime_type: "application/pdf",
  url: `data:application/pdf;base64,${PDF}`,
});

/** What goes upstream for this conversation. */
async function sent(start: Parameters<typeof open>[1], model?: string) {
  const { error, calls } = await askOnce(
    (upstream) => bedrock(upstream, model ? { model } : {}),
    stream("text"),
    start,
  );
  assert.equal(error, undefined);
  return calls[0]?.json;
}

const after = (...conversation_history: HistoryMessage[]) => ({ state: { conversation_history } });

test("images and a PDF travel as bytes, each with its format", async () => {
  const image = (mime_type: "image/png" | "image/jpeg" | "image/gif" | "image/webp") =>
    ({ type: "image", name: "a", mime_type, url: `data:${mime_type};base64,iVBORw0=` }) as const;
  const { messages } = await sent({
    message: "What is this?",
    attachments: [
      image("image/png"),
      image("image/jpeg"),
      image("image/gif"),
      image("image/webp"),
      pdf("Angebot für Müller_(v2).pdf"),
    ],
  });
  const block = (format: string) => ({ image: { format, source: { bytes: "iVBORw0=" } } });
  assert.deepEqual(messages[0].content, [
    { text: "What is this?" },
    block("png"),
    block("jpeg"),
    block("gif"),
    block("webp"),
    { document: { format: "pdf", name: "Angebot fur Muller (v2)", source: { bytes: PDF } } },
  ]);
});

test("document names are ones that the API takes, and no two are the same", async () => {
  const files = ["a.pdf", "a.PDF", "分기보고서.pdf", "John's  report,\t2026.pdf", `${"x".repeat(300)}.pdf`];
  const { messages } = await sent({ message: "Compare", attachments: files.map(pdf) });
  const names = messages[0].content.slice(1).map((block: { document: { name: string } }) => block.document.name);
  assert.deepEqual(names, ["a", "a (2)", "document", "John s report 2026", "x".repeat(190)]);
});

test("a PDF without a word beside it gets a text, which the API demands; an image needs none", async () => {
  const { messages } = await sent({ message: "", attachments: [pdf("a.pdf")] });
  assert.deepEqual(messages[0].content[0], { text: "(no text)" });
  const url = "data:image/png;base64,iVBORw0=";
  const image: ReceivedFile = { type: "image", name: "a", mime_type: "image/png", url };
  const other = await sent({ message: "", attachments: [image] });
  assert.deepEqual(Object.keys(other.messages[0].content[0]), ["image"]);
});

test("a sixth PDF in one message is refused in words, before the call", async () => {
  await using upstream = await startUpstream();
  const attachments = ["1", "2", "3", "4", "5", "6"].map(pdf);
  const failure = failureOf(await ask(open(await bedrock(upstream), { attachments })));
  assert.equal(failure.message, "The assistant takes at most 5 PDF files in one message.");
  assert.equal(failure.code, "invalid_request");
  assert.equal(upstream.calls.length, 0);
});

test("of the PDFs of a whole conversation the newest five go, and the others are named", async () => {
  const file = (filename: string) =>
    ({ type: "file", file: { filename, file_data: `data:application/pdf;base64,${PDF}` } }) as const;
  const { messages } = await sent({
    ...after(
      { role: "user", content: [{ type: "text", text: "Read" }, file("1.pdf"), file("2.pdf")] },
      { role: "assistant", content: "Done" },
    ),
    attachments: ["3", "4", "5", "6"].map(pdf),
  });
  assert.deepEqual(messages[0].content.slice(1), [
    { text: "[1.pdf (PDF) was attached here earlier and is no longer included]" },
    { document: { format: "pdf", name: "2", source: { bytes: PDF } } },
  ]);
  assert.equal(messages[2].content.length, 5);
});

test("messages of one side are joined, and blank ones are left out", async () => {
  const { messages } = await sent({
    ...after(
      { role: "assistant", content: "Welcome" },
      { role: "user", content: "One" },
      { role: "assistant", content: " " },
      { role: "assistant", content: null },
      { role: "user", content: [{ type: "text", text: "Two" }] },
      { role: "user", content: [] },
    ),
    message: "  ",
  });
  assert.deepEqual(messages, [
    { role: "user", content: [{ text: "(no text)" }] },
    { role: "assistant", content: [{ text: "Welcome" }] },
    { role: "user", content: [{ text: "One" }, { text: "Two" }, { text: "(no text)" }, { text: "(no text)" }] },
  ]);
});

const call = (id: string, name = "get_weather", written = "{}") => ({
  id,
  type: "function" as const,
  function: { name, arguments: written },
});
const CALLED: AssistantMessage = { role: "assistant", content: null, tool_calls: [call("a")] };

test("reasoning of earlier messages goes to Claude alone: other models would refuse another's signature", async () => {
  const extra = {
    thinking_blocks: [
      { type: "thinking", thinking: "Hm", signature: "of Gemini" },
      { type: "redacted_thinking", data: "AAAA" },
    ],
    reasoning_content: "Hm",
    anthropic_layout: ["thinking", "tool_use"],
  };
  const history = after(
    { role: "user", content: "Weather?" },
    { ...CALLED, ...extra, tool_calls: [{ ...call("a"), extra_content: { google: {} } }] },
    { role: "tool", tool_call_id: "a", content: "mild" },
    { role: "assistant", content: "Mild.", ...extra },
  );
  const thoughts = [
    { reasoningContent: { reasoningText: { text: "Hm", signature: "of Gemini" } } },
    { reasoningContent: { redactedContent: "AAAA" } },
  ];
  for (const [model, reasoning] of [
    ["us.amazon.nova-2-lite-v1:0", []],
    ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", thoughts],
  ] as const) {
    const { messages } = await sent(history, model);
    const toolUse = { toolUseId: "a", name: "get_weather", input: {} };
    assert.deepEqual(messages[1].content, [...reasoning, { toolUse }]);
    assert.deepEqual(messages[3].content, [...reasoning, { text: "Mild." }]);
  }
});

test("ids, names and arguments of other providers' calls become ones that the API takes", async () => {
  const long = "call_".padEnd(90, "x");
  const { messages } = await sent(
    after(
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [call(long, "dotted.name", "[1]"), call("0", "", '{"cut'), call("b c")],
      },
      { role: "tool", tool_call_id: "b c", content: "third" },
      { role: "tool", tool_call_id: long, content: "first" },
      { role: "tool", tool_call_id: "0", content: "second" },
      { role: "assistant", content: null, tool_calls: [call("0")] },
      { role: "tool", tool_call_id: "0", content: "fourth" },
    ),
  );
  const uses = messages
    .flatMap((message: { content: { toolUse?: unknown }[] }) => message.content)
    .flatMap((block: { toolUse?: unknown }) => block.toolUse ?? []);
  assert.deepEqual(uses, [
    { toolUseId: "call00000", name: "dotted_name", input: { unparsed_arguments: "[1]" } },
    { toolUseId: "0", name: "_", input: { unparsed_arguments: '{"cut' } },
    { toolUseId: "call00002", name: "get_weather", input: {} },
    { toolUseId: "call00003", name: "get_weather", input: {} },
  ]);
  const answers = [...messages[2].content, ...messages[4].content]
    .flatMap((block) => block.toolResult ?? [])
    .map((result) => [result.toolUseId, result.content[0].text]);
  assert.deepEqual(answers, [
    ["call00002", "third"],
    ["call00000", "first"],
    ["0", "second"],
    ["call00003", "fourth"],
  ]);
});

for (const [model, id] of [
  ["mistral.mistral-large-2407-v1:0", "call00000"],
  ["moonshot.kimi-k2-thinking", "functions.get_weather:1"],
  ["us.amazon.nova-2-lite-v1:0", "call00000"],
] as const) {
  test(`${model} is sent the id functions.get_weather:1 as ${id}`, async () => {
    const { messages } = await sent(
      after(
        { role: "user", content: "Go" },
        { ...CALLED, tool_calls: [call("functions.get_weather:1")] },
        { role: "tool", tool_call_id: "functions.get_weather:1", content: "closed", is_error: true },
      ),
      model,
    );
    assert.equal(messages[1].content[0].toolUse.toolUseId, id);
    const { toolUseId, status, content } = messages[2].content[0].toolResult;
    assert.equal(toolUseId, id);
    // Only Claude and Nova know the field.
    const knowsStatus = model.includes("nova");
    assert.equal(status, knowsStatus ? "error" : undefined);
    assert.deepEqual(content, [{ text: knowsStatus ? "closed" : "Error: closed" }]);
  });
}

test("a good result that begins with the word Error is no failure to the model", async () => {
  const { messages } = await sent(
    after({ role: "user", content: "Go" }, CALLED, { role: "tool", tool_call_id: "a", content: "Error: a play" }),
  );
  const { toolResult } = messages[2].content[0];
  assert.deepEqual(toolResult, { toolUseId: "a", content: [{ text: "Error: a play" }] });
});

test("an agent without tools still declares those of the history, which are refused otherwise", async () => {
  const { toolConfig } = await sent(
    after({ role: "user", content: "Go" }, CALLED, {
      role: "tool",
      tool_call_id: "a",
      content: "Cancelled: the run ended before this call was finished.",
    }),
  );
  assert.deepEqual(
    toolConfig.tools.map(({ toolSpec }: { toolSpec: { name: string } }) => toolSpec.name),
    ["get_weather"],
  );
});
