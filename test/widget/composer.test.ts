/** Which files a message may have, and how much room they have beside its other content. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Window as HappyWindow } from "happy-dom";
import type { Attachment } from "../../server/protocol/attachments.ts";
import { mount, until } from "./mount.ts";
import { done, INFO, type ScriptOptions, startScriptedServer } from "./scripted-server.ts";

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

const png = (name: string, more = 0) => new File([PNG, "x".repeat(more)], name, { type: "image/png" });

async function open(t: TestContext, options: ScriptOptions = {}) {
  const server = await startScriptedServer(t, options);
  // Users are only asked for a key on pages of the server itself.
  (window as unknown as HappyWindow).happyDOM.setURL(server.url);
  const page = await mount(t, { server: server.url });
  await page.shown("textarea");
  const attach = async (...files: File[]) => {
    await page.chat.attach(files);
    await page.chat.updateComplete;
  };
  const converse = async () => {
    const sent = page.chat.send("Hello");
    const conversation_history = [{ role: "user" as const, content: "x".repeat(2_000) }];
    (await server.turn()).send(done("Hi.", { conversation_history }));
    await sent;
    await page.chat.updateComplete;
  };
  return { server, page, attach, converse };
}

/** A server with a low limit: a file of 2 kB fits if nothing else is sent. */
const openSmall = (t: TestContext, max_body_bytes: unknown = 16_384 + 4_000) =>
  open(t, { info: { max_body_bytes: max_body_bytes as number } });

const TOO_LARGE = /^a\.png: not attached, .* 1\.\d kB together/;

const refusals: [string, File, ScriptOptions, RegExp][] = [
  ["an unknown type", new File(["hi"], "notes.txt"), {}, /^notes\.txt: only PNG and PDF/],
  [
    "bytes that are not what the name says",
    new File(["hi"], "fake.png", { type: "image/png" }),
    {},
    /^fake\.png: not a PNG/,
  ],
  ["a type that this agent does not take", new File(["GIF89a"], "a.gif"), {}, /^a\.gif: only PNG and PDF/],
  ["an empty file", new File([], "empty.pdf"), {}, /^empty\.pdf: empty/],
  [
    "a file over the limit",
    png("big.png"),
    { info: { attachments: { ...INFO.attachments, max_bytes: 10 } } },
    /^big\.png: larger than 10 bytes/,
  ],
  [
    "any file for an agent that takes none",
    png("a.png"),
    { info: { attachments: { ...INFO.attachments, media_types: [] } } },
    /^Concierge does not take files/,
  ],
];

for (const [what, file, options, reason] of refusals) {
  test(`${what} is refused with the reason, in place and aloud`, async (t) => {
    const { page, attach } = await open(t, options);
    await attach(file);
    assert.match(page.text("[part=refusals]"), reason);
    await until(page.chat, () => reason.test(page.text("[role=status]")));
    assert.equal(page.find(".draft-files"), null);
    await page.click('[part=refusals] [aria-label="Dismiss"]');
    assert.equal(page.find("[part=refusals]"), null);
  });
}

test("a picture is sent as base64 with its proven type, and a preview of its own is kept in the transcript", async (t) => {
  const { server, page, attach } = await open(t);
  await attach(new File([PNG], "photo.jpg", { type: "image/jpeg" }));
  await page.press({ key: "Enter" });
  const { body } = await server.turn();
  assert.equal(body.message, "");
  const data = Buffer.from(PNG).toString("base64");
  assert.deepEqual(body.attachments, [{ type: "image", name: "photo.jpg", mime_type: "image/png", data }]);
  assert.match((await page.shown<HTMLImageElement>(".sent-files img")).src, /^blob:/);
  assert.equal(page.find(".draft-files"), null);
});

const TEXT_TYPES = ["text/plain", "text/markdown", "text/csv", "application/json"];
const takesText = {
  info: { attachments: { ...INFO.attachments, max_count: 6, media_types: ["image/png", ...TEXT_TYPES] } },
};

test("text files have the type of their ending, whatever the browser says, and the picker offers them by it", async (t) => {
  const { server, page, attach } = await open(t, takesText);
  const accept = page.find("input[type=file]")?.getAttribute("accept");
  assert.equal(
    accept,
    "image/png,text/plain,.txt,.log,text/markdown,.md,.markdown,text/csv,.csv,application/json,.json",
  );
  const names = ["a.txt", "b.LOG", "c.md", "d.x.markdown", "e.csv", "f.json"];
  await attach(...names.map((name) => new File([`%PDF-1.7 ${name}`], name, { type: "application/vnd.ms-excel" })));
  assert.equal(page.text(".draft-files li:nth-child(3) .file-kind"), "Markdown · 13 bytes");
  await page.press({ key: "Enter" });
  const { body } = await server.turn();
  const [plain, markdown, csv, json] = TEXT_TYPES;
  assert.deepEqual(
    (body.attachments as Attachment[]).map(({ type, name, mime_type, data }) => [type, name, mime_type, atob(data)]),
    [plain, plain, markdown, markdown, csv, json].map((type, index) => {
      return ["file", names[index], type, `%PDF-1.7 ${names[index]}`];
    }),
  );
});

for (const [what, content, sentence] of [
  ["in another encoding", new Uint8Array([0x63, 0x61, 0x66, 0xe9]), "cafe.csv: not text in UTF-8."],
  ["with a NUL", "a\0b", "cafe.csv: not text in UTF-8."],
  ["of nothing but a byte order mark", "\uFEFF", "cafe.csv: empty."],
  ["of more than 1 MiB", "x".repeat(1024 * 1024 + 1), "cafe.csv: larger than 1 MB."],
] as const) {
  test(`a text file ${what} is refused`, async (t) => {
    const { page, attach } = await open(t, takesText);
    await attach(new File([content], "cafe.csv"));
    assert.equal(page.text("[part=refusals] li"), sentence);
    assert.equal(page.find(".draft-files"), null);
  });
}

test("a text file that the agent does not accept is refused with what it takes, also if it begins as a PDF does", async (t) => {
  const { page, attach } = await open(t);
  await attach(new File(["%PDF-1.7"], "notes.md", { type: "application/pdf" }));
  assert.equal(page.text("[part=refusals] li"), "notes.md: only PNG and PDF files are taken.");
});

test("the same file is attached once, whatever its name", async (t) => {
  const { page, attach } = await open(t);
  await attach(png("a.png"), png("b.png"));
  assert.match(page.text("[part=refusals]"), /^b\.png: attached already/);
  assert.equal(page.all(".draft-files li").length, 1);
});

test("one file more than the limit of 2 is refused, the others stay", async (t) => {
  const { page, attach } = await open(t);
  await attach(png("a.png"), png("b.png", 1), png("c.png", 2));
  assert.match(page.text("[part=refusals]"), /^c\.png: not attached, a message takes at most 2 files/);
  assert.equal(page.all(".draft-files li").length, 2);
});

test("files of two drops at once are judged one after the other, as those of one are", async (t) => {
  const { page, attach } = await open(t);
  await Promise.all([attach(png("a.png"), png("b.png", 1)), attach(png("again.png"), png("c.png", 2))]);
  assert.deepEqual(
    page.all(".draft-files img").map((image) => image.getAttribute("alt")),
    ["a.png", "b.png"],
  );
  assert.match(page.text("[part=refusals]"), /^again\.png and c\.png: not attached/);
});

test("files that are refused for one reason share a sentence, in place and aloud", async (t) => {
  const { page, attach } = await open(t);
  const texts = ["notes.txt", "IMG_1.heic", "report.docx"].map((name) => new File(["hi"], name));
  await attach(...texts, new File([], "empty.pdf"));
  const sentence = "notes.txt, IMG_1.heic, and report.docx: only PNG and PDF files are taken.";
  assert.deepEqual(
    page.all("[part=refusals] li").map(({ textContent }) => textContent),
    [sentence, "empty.pdf: empty."],
  );
  assert.equal(page.text("[role=status]"), `${sentence}empty.pdf: empty.`);
});

test("a file with which the message would be larger than the server takes is refused before anything is sent", async (t) => {
  const { page, attach } = await openSmall(t);
  await attach(png("a.png", 2_000), png("b.png", 1_000));
  assert.match(
    page.text("[part=refusals]"),
    /^b\.png: not attached, the files of this message may have 2\.9 kB together/,
  );
  assert.equal(page.all(".draft-files li").length, 1);
});

test("the size of the conversation that goes with the message leaves less room for files", async (t) => {
  const { page, attach, converse } = await openSmall(t);
  await converse();
  await attach(png("a.png", 2_000));
  assert.match(page.text("[part=refusals]"), TOO_LARGE);
});

test("a long text leaves less room for files", async (t) => {
  const { page, attach } = await openSmall(t);
  await page.type("x".repeat(2_000));
  await attach(png("a.png", 2_000));
  assert.match(page.text("[part=refusals]"), TOO_LARGE);
});

test("beside an earlier message that is changed only what was said before it counts", async (t) => {
  const { page, converse } = await openSmall(t);
  await converse();
  await page.click("[part=edit]");
  await page.shown("[part=editor]");
  await page.chat.editor?.addFiles([png("a.png", 2_000)]);
  await page.chat.updateComplete;
  assert.equal(page.all(".draft-files li").length, 1);
});

test("a size that is no number limits nothing", async (t) => {
  const { page, attach } = await openSmall(t, "1");
  await attach(png("a.png", 2_000));
  assert.equal(page.all(".draft-files li").length, 1);
});

test("an Enter in the same turn as the end of a composition belongs to it, the next one sends", async (t) => {
  const { server, page } = await open(t);
  const input = await page.type("にほん");
  input.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
  const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true });
  input.dispatchEvent(enter);
  assert.equal(enter.defaultPrevented, false);
  assert.equal(input.value, "にほん");
  await new Promise((resolve) => setTimeout(resolve));
  await page.press({ key: "Enter" });
  assert.equal((await server.turn()).body.message, "にほん");
});

test("what was typed survives the form that asks for a key", async (t) => {
  const { server, page } = await open(t, { key: "right" });
  const field = () => page.shown<HTMLTextAreaElement>("agent-chat-composer:not([hidden]) textarea");
  await page.enterKey("right");
  await field();
  await page.type("Half a thou");
  await page.click("[part=forget-key]");
  await page.shown("agent-chat-composer[hidden]");
  await page.enterKey("right");
  assert.equal((await field()).value, "Half a thou");
  await page.press({ key: "Enter" });
  assert.equal((await server.turn()).body.message, "Half a thou");
});
