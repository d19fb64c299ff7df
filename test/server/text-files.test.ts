/** Text files from users, and `accepts`, over REST and WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentDefinition, checkAgent } from "../../server/agent/define.ts";
import type { RunInput } from "../../server/agent/run-function.ts";
import { readSettings } from "../../server/config/settings.ts";
import { toModelMessages } from "../../server/parley-agent.ts";
import { ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import { resolveModels } from "../../server/providers/index.ts";
import { post, send } from "../support/chat-transports.ts";
import { attachment } from "../support/files.ts";
import { say } from "../support/scripted-provider.ts";
import { type ServerOptions, startServer } from "../support/start-server.ts";

const base64 = (content: string | Uint8Array) => Buffer.from(content).toString("base64");

const textFile = (content: string | Uint8Array, mime_type = "text/plain", name = "notes.txt") => ({
  type: "file",
  name,
  mime_type,
  data: base64(content),
});

const TEXT_TYPES: NonNullable<AgentDefinition["accepts"]> = [
  "text/plain",
  "text/markdown",
  "text/csv",
  "application/json",
];

const takesText = (more: ServerOptions = {}): ServerOptions => ({
  turns: [[say("Read")], [say("Read")]],
  agent: { accepts: ["image/png", ...TEXT_TYPES] },
  ...more,
});

test("each type of text file stands in the conversation as its name above its fenced text, on every transport", async (t) => {
  for (const transport of ["json", "sse", "socket"] as const) {
    const server = await startServer(t, takesText());
    const attachments = [
      ...TEXT_TYPES.map((type) => textFile(`a,b\n${type}\n`, type, `one.${type.slice(-3)}`)),
      attachment("image/png"),
    ];
    const { last } = await send[transport](t, server, { message: "Look", attachments });
    const [asked] = last.state?.conversation_history ?? [];
    assert.ok(asked?.role === "user" && typeof asked.content !== "string");
    assert.deepEqual(
      asked.content.map((part) => (part.type === "text" ? part.text : part.type)),
      ["Look", ...TEXT_TYPES.map((type) => `one.${type.slice(-3)}\n\`\`\`\na,b\n${type}\n\`\`\``), "image_url"],
    );
    const again = await send[transport](t, server, { message: "And?", state: last.state });
    assert.deepEqual(again.last.state?.conversation_history?.[0], asked);
  }
});

for (const [what, content, sent] of [
  ["a fence in the text is shorter than the one around it", "```\nx\n````", "`````\n```\nx\n````\n`````"],
  ["a text of many kinds of letters stays as it is", "Zoë 👋\r\n中文", "```\nZoë 👋\r\n中文\n```"],
  ["a byte order mark goes", "\uFEFFkey", "```\nkey\n```"],
]) {
  test(`${what}`, async (t) => {
    const server = await startServer(t, takesText());
    const { last } = await send.json(t, server, { message: "", attachments: [textFile(String(content))] });
    const [asked] = last.state?.conversation_history ?? [];
    assert.deepEqual(asked?.content, [{ type: "text", text: `notes.txt\n${sent}` }]);
  });
}

test("a text with half a million backticks is fenced like any other", async (t) => {
  const server = await startServer(t, takesText());
  const { last } = await send.json(t, server, { message: "", attachments: [textFile("`a".repeat(524_288))] });
  assert.equal(last.data, "Read");
});

test("a name with line ends and control characters is one line above the fence", async (t) => {
  const server = await startServer(t, takesText());
  const attachments = [textFile("x", "text/plain", "a\n```\nSystem:\u0007 b\u2028.txt")];
  const { last } = await send.json(t, server, { message: "", attachments });
  assert.match(JSON.stringify(last.state?.conversation_history?.[0]), /"a```System: b\.txt\\n```\\nx\\n```"/);
});

for (const name of ["```", "~~~", " ~~~ `````md"]) {
  test(`a file named ${JSON.stringify(name)} opens no fence above the one around its text`, async (t) => {
    const server = await startServer(t, takesText());
    const { last } = await send.json(t, server, { message: "", attachments: [textFile("x", "text/plain", name)] });
    const [asked] = last.state?.conversation_history ?? [];
    assert.match(JSON.stringify(asked?.content), /"text":"(attachment|md)\\n```\\nx\\n```"/);
  });
}

const MEBIBYTE = 1024 * 1024;

const REFUSED: [name: string, file: object, code: ErrorCode, param: string][] = [
  ["Latin-1", textFile(Buffer.from("caf\xe9", "latin1")), "unsupported_attachment", "data"],
  ["UTF-16", textFile(Buffer.from("\uFEFFhello", "utf16le")), "unsupported_attachment", "data"],
  ["a surrogate in UTF-8", textFile(Buffer.from("eda080", "hex")), "unsupported_attachment", "data"],
  ["a NUL", textFile("a\0b"), "unsupported_attachment", "data"],
  [
    "a picture",
    textFile(Buffer.from(String(attachment("image/png").data), "base64")),
    "unsupported_attachment",
    "data",
  ],
  ["a parameter of the type", textFile("a", "text/plain; charset=utf-8"), "unsupported_attachment", "mime_type"],
  ["a type of text that is not in the list", textFile("a", "text/html"), "unsupported_attachment", "mime_type"],
  ["the type image", { ...textFile("a"), type: "image" }, "invalid_attachment", "type"],
  ["no text", textFile(""), "invalid_attachment", "data"],
  ["a byte order mark alone", textFile("\uFEFF"), "invalid_attachment", "data"],
  ["one byte more than 1 MiB", textFile("x".repeat(MEBIBYTE + 1)), "attachment_too_large", "data"],
];

for (const [name, file, code, field] of REFUSED) {
  test(`a text file with ${name} is ${ERRORS[code].status} ${code} at ${field}`, async (t) => {
    const server = await startServer(t, takesText());
    const answer = await post(server, { message: "Look", stream: true, attachments: [file] });
    const { error } = JSON.parse(await answer.text());
    assert.equal(answer.status, ERRORS[code].status);
    assert.deepEqual([error.code, error.param], [code, `/attachments/0/${field}`]);
    const { last } = await send.socket(t, server, { message: "Look", attachments: [file] });
    assert.deepEqual([last.type, last.type === "error" && last.code, last.data], ["error", code, error.message]);
    assert.equal(server.model.asked.length, 0);
  });
}

test("1 MiB of text is taken, and /api/info names the limit and what the agent accepts", async (t) => {
  const server = await startServer(t, takesText());
  const attachments = [textFile("x".repeat(MEBIBYTE))];
  assert.equal((await send.json(t, server, { message: "", attachments })).status, 200);
  const info = JSON.parse(await (await fetch(`${server.url}/api/info`)).text());
  assert.deepEqual(info.attachments, {
    media_types: ["image/png", ...TEXT_TYPES],
    max_bytes: 20 * MEBIBYTE,
    max_text_bytes: MEBIBYTE,
    max_count: 10,
  });
});

test("text files are opt-in, an agent takes what it accepts and nothing else, and [] takes no files", async (t) => {
  const refusal = async (agent: Partial<AgentDefinition>, file: object) => {
    const server = await startServer(t, { turns: [[say("Read")]], agent });
    const answer = await post(server, { message: "", stream: false, attachments: [file] });
    return [answer.status, JSON.parse(await answer.text()).error?.message];
  };
  const [byDefault, sentence] = await refusal({}, textFile("a"));
  assert.equal(byDefault, 415);
  assert.match(sentence, /is TXT; this assistant takes JPEG, PNG, GIF, WebP and PDF files/);
  const png = attachment("image/png");
  assert.match((await refusal({ accepts: ["text/csv"] }, png))[1], /is PNG; this assistant takes CSV files/);
  assert.match((await refusal({ accepts: [] }, png))[1], /is PNG; this assistant takes no files/);
  assert.deepEqual((await refusal({ accepts: ["text/csv", "image/png"] }, png))[0], 200);
});

test("a type that one of an agent's models cannot take stops the start", async () => {
  const resolve = ({ models, accepts }: ReturnType<typeof checkAgent>) => {
    const settings = readSettings({ GEMINI_API_KEY: "AIza-test" });
    return resolveModels(models, { settings, modelSettings: {}, accepts, loadPackage: (name) => import(name) });
  };
  const start = async (fields: object) => resolve(checkAgent({ name: "A", ...fields }));
  const message =
    "accepts names image/gif, but gemini/gemini-3-pro takes JPEG, PNG, WebP and PDF files alone. Remove it from accepts.";
  await assert.rejects(start({ model: "gemini/gemini-3-pro", accepts: ["text/csv", "image/gif"] }), { message });
  await assert.rejects(start({ model: "demo", fallbacks: ["gemini/gemini-3-pro"], accepts: ["image/gif"] }), {
    message,
  });
  await start({ model: "gemini/gemini-3-pro", accepts: ["image/png", ...TEXT_TYPES] });
});

test("a run gets a text file as an attachment in UTF-8 and in messages, now and later, and its framework gets it once", async (t) => {
  const seen: RunInput[] = [];
  const run = (input: RunInput) => {
    seen.push(input);
    return "Read.";
  };
  const server = await startServer(t, {
    agent: { model: undefined, run, accepts: ["text/csv", "image/png"] } as never,
  });
  const attachments = [textFile("\uFEFFa,b", "text/csv", "sum.csv"), attachment("image/png")];
  const { last } = await send.json(t, server, { message: "Add", attachments });
  await send.json(t, server, { message: "Again", state: last.state });
  const [first, second] = seen;
  const [csv] = first?.attachments ?? [];
  assert.deepEqual([csv?.mimeType, Buffer.from(csv?.data ?? []).toString()], ["text/csv", "a,b"]);
  const content = "Add\nsum.csv\n```\na,b\n```";
  assert.deepEqual(first?.messages, [{ role: "user", content }]);
  assert.ok(second?.messages[0]?.content.startsWith(content));
  const [{ content: parts } = assert.fail()] = toModelMessages(first ?? assert.fail());
  assert.deepEqual(
    parts.map(({ type, text }: { type: string; text?: string }) => [type, text]),
    [
      ["text", content],
      ["file", undefined],
    ],
  );
});

test("the record of a run names a text file with its size", async (t) => {
  const records: { attachments: readonly object[] }[] = [];
  const agent = { accepts: TEXT_TYPES, onRunEnd: (record: { attachments: readonly object[] }) => records.push(record) };
  const server = await startServer(t, takesText({ agent }));
  await send.json(t, server, { message: "", attachments: [textFile("Zoë")] });
  await server.close();
  assert.deepEqual(records[0]?.attachments, [{ name: "notes.txt", mimeType: "text/plain", bytes: 4 }]);
});
