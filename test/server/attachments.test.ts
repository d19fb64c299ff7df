/** Which files may be attached, and errors for all others, over REST and WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_MEDIA_TYPES, type MediaType } from "../../server/protocol/attachments.ts";
import { ERRORS, type ErrorCode } from "../../server/protocol/errors.ts";
import type { MessageRules } from "../../server/routes/message.ts";
import { parseChatRequest } from "../../server/routes/parse-message.ts";
import { post, send } from "../support/chat-transports.ts";
import { attachment, received } from "../support/files.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";

const MEBIBYTE = 1024 * 1024;

test("every type of the list reaches the model on every transport", async (t) => {
  const attachments = ALL_MEDIA_TYPES.map((type) => attachment(type));
  for (const transport of ["json", "sse", "socket"] as const) {
    const server = await startServer(t, { turns: [[say("Seen")]] });
    await send[transport](t, server, { message: "Look", attachments });
    assert.deepEqual(server.model.asked[0]?.start.attachments, attachments.map(received));
  }
});

const png = (changes: Parameters<typeof attachment>[1]) => [attachment("image/png", changes)];

const REFUSED: [name: string, attachments: unknown, code: ErrorCode, param: string][] = [
  ["no array", "x", "invalid_request", "/attachments"],
  ["no object", ["x"], "invalid_request", "/attachments/0"],
  ["an array in place of an object", [[]], "invalid_request", "/attachments/0"],
  ["no type", png({ type: undefined }), "invalid_request", "/attachments/0/type"],
  ["no name", png({ name: undefined }), "invalid_request", "/attachments/0/name"],
  ["no mime_type", png({ mime_type: 5 }), "invalid_request", "/attachments/0/mime_type"],
  ["no data", png({ data: undefined }), "invalid_request", "/attachments/0/data"],
  ["an unknown type", png({ type: "video" }), "invalid_attachment", "/attachments/0/type"],
  ["a type that does not go with mime_type", png({ type: "file" }), "invalid_attachment", "/attachments/0/type"],
  ["a PDF as image", [attachment("application/pdf", { type: "image" })], "invalid_attachment", "/attachments/0/type"],
  ["a data: URL", png({ data: "data:image/png;base64,iVBORw0KGgo=" }), "invalid_attachment", "/attachments/0/data"],
  ["empty data", png({ data: "" }), "invalid_attachment", "/attachments/0/data"],
  ["data without its padding", png({ data: "iVBORw0KGgo" }), "invalid_attachment", "/attachments/0/data"],
  ["padding in the middle of the data", png({ data: "iV==Rw0KGgo=" }), "invalid_attachment", "/attachments/0/data"],
  ["spare bits before the padding", png({ data: "iVBORw0KGgp=" }), "invalid_attachment", "/attachments/0/data"],
  ["too much padding", png({ data: "iVBORw0KGg===" }), "invalid_attachment", "/attachments/0/data"],
  [
    "a type that is not taken",
    png({ mime_type: "image/svg+xml" }),
    "unsupported_attachment",
    "/attachments/0/mime_type",
  ],
  [
    "text as file",
    png({ type: "file", mime_type: "text/plain" }),
    "unsupported_attachment",
    "/attachments/0/mime_type",
  ],
  [
    "the name of something every object has",
    png({ mime_type: "constructor" }),
    "unsupported_attachment",
    "/attachments/0/mime_type",
  ],
  ["bytes of another type", png({ mime_type: "image/gif" }), "unsupported_attachment", "/attachments/0/data"],
  ["bytes of no type", png({ data: btoa("<svg onload=x>") }), "unsupported_attachment", "/attachments/0/data"],
  ["less bytes than a head", png({ data: "iQ==" }), "unsupported_attachment", "/attachments/0/data"],
  [
    "a wrong one after a right one",
    [...png({}), attachment("image/gif", { data: "?" })],
    "invalid_attachment",
    "/attachments/1/data",
  ],
  ["more than ten", Array.from({ length: 11 }, () => attachment("image/png")), "invalid_attachment", "/attachments"],
];

for (const [name, attachments, code, param] of REFUSED) {
  test(`attachments with ${name} are ${ERRORS[code].status} ${code} at ${param}`, async (t) => {
    const server = await startServer(t, { turns: [] });
    const answer = await post(server, { message: "Look", stream: true, attachments });
    const { error } = JSON.parse(await answer.text());
    assert.equal(answer.status, ERRORS[code].status);
    assert.deepEqual([error.code, error.param], [code, param]);
    const { last } = await send.socket(t, server, { message: "Look", attachments });
    assert.ok(last.type === "error");
    assert.deepEqual([last.code, last.data], [code, error.message]);
    assert.equal(server.model.asked.length, 0);
  });
}

test("20 MiB per file are taken on both transports, one byte more is 413 attachment_too_large", async (t) => {
  const most = [attachment("application/pdf", { bytes: 20 * MEBIBYTE })];
  const over = [attachment("application/pdf", { bytes: 20 * MEBIBYTE + 1 })];
  const server = await startServer(t, { turns: [[say("Read")], [say("Read")]], stateKind: "previous_response_id" });
  for (const transport of ["json", "socket"] as const) {
    const taken = await send[transport](t, server, { message: "", attachments: most });
    assert.equal(taken.last.data, "Read");
    const { last } = await send[transport](t, server, { message: "", attachments: over });
    assert.equal(last.type === "error" && last.code, "attachment_too_large");
  }
  const answer = await post(server, { message: "", stream: false, attachments: over });
  assert.equal(answer.status, 413);
  assert.equal(JSON.parse(await answer.text()).error.param, "/attachments/0/data");
});

test("a model that takes no PDF refuses one by its name, and /api/info says what it takes", async (t) => {
  const mediaTypes: MediaType[] = ["image/png", "image/jpeg"];
  const server = await startServer(t, { turns: [], mediaTypes });
  const answer = await post(server, { message: "", stream: false, attachments: [attachment("application/pdf")] });
  assert.equal(answer.status, 415);
  const { error } = JSON.parse(await answer.text());
  assert.equal(error.code, "unsupported_attachment");
  assert.match(error.message, /PDF; this assistant takes PNG and JPEG images/);
  const info = await (await fetch(`${server.url}/api/info`)).text();
  assert.deepEqual(JSON.parse(info).attachments, {
    media_types: mediaTypes,
    max_bytes: 20_971_520,
    max_text_bytes: 1_048_576,
    max_count: 10,
  });
});

test("PARLEY_MAX_ATTACHMENTS sets how many files a message may have; 0 allows none, and messages without one", async (t) => {
  const one = attachment("image/gif");
  for (const most of [1, 0]) {
    const env = { PARLEY_MAX_ATTACHMENTS: String(most) };
    const server = await startServer(t, { turns: [[say("One")]], env });
    const ask = async (files: unknown[]) => (await send.json(t, server, { message: "Hi", attachments: files })).status;
    assert.equal(await ask(Array(most + 1).fill(one)), 400);
    assert.equal(await ask(Array(most).fill(one)), 200);
  }
});

test("a mime_type in capitals is the same type", async (t) => {
  const server = await startServer(t, { turns: [[say("Seen")]] });
  const attachments = png({ mime_type: "Image/PNG" });
  assert.equal((await send.json(t, server, { message: "", attachments })).status, 200);
  assert.equal(server.model.asked[0]?.start.attachments[0]?.mime_type, "image/png");
});

test("a PDF may have up to 1,024 bytes before its head, as readers accept it", async (t) => {
  const server = await startServer(t, { turns: [[say("Seen")]] });
  const ask = async (before: number) => {
    const data = Buffer.from(`${" ".repeat(before)}%PDF-1.7`).toString("base64");
    const attachments = [attachment("application/pdf", { data })];
    return (await send.json(t, server, { message: "", attachments })).status;
  };
  assert.equal(await ask(1020), 415);
  assert.equal(await ask(1019), 200);
});

for (const [given, shown] of [
  ["../../etc/passwd", "passwd"],
  ["C:\\Users\\me\\plan.png", "plan.png"],
  ["a\r\nb\u0000.png", "ab.png"],
  ["gnp.\u202Eexe.png", "gnp.exe.png"],
  ["", "attachment"],
  ["x".repeat(500), "x".repeat(200)],
]) {
  test(`a file named ${JSON.stringify(given?.slice(0, 30))} is shown as ${shown?.slice(0, 30)}`, async (t) => {
    const server = await startServer(t, { turns: [[say("Seen")]] });
    await send.json(t, server, { message: "", attachments: png({ name: given }) });
    assert.equal(server.model.asked[0]?.start.attachments[0]?.name, shown);
  });
}

test("a name of many megabytes is not taken apart, which would take gigabytes", () => {
  const limits = { maxHistoryItems: 1, maxHistoryBytes: 1 };
  const rules: MessageRules = {
    state: {
      kind: "conversation_history",
      agent: "a",
      provider: "demo",
      user: undefined,
      secrets: [],
      ownSecrets: [],
      limits,
    },
    attachments: { maxCount: 1, accepts: ALL_MEDIA_TYPES },
    maxMessageChars: 1,
    maxJsonDepth: 64,
    asksModel: true,
  };
  const attachments = png({ name: "/".repeat(20 * MEBIBYTE) });
  const before = process.cpuUsage();
  const { request } = parseChatRequest({ message: "", stream: true, attachments }, rules);
  assert.ok(process.cpuUsage(before).user < 300_000);
  assert.equal(request.attachments[0]?.name, "attachment");
});
