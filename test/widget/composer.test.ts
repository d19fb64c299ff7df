import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { mount, until } from "./mount.ts";
import { done, INFO, type ScriptOptions, startScriptedServer } from "./scripted-server.ts";

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

const png = (name: string, more = 0) => new File([PNG, "x".repeat(more)], name, { type: "image/png" });

async function open(t: TestContext, options: ScriptOptions = {}) {
  const server = await startScriptedServer(t, options);
  const page = await mount(t, { server: server.url });
  const drop = (...files: File[]) => {
    const dataTransfer = { types: ["Files"], files, dropEffect: "none" };
    const event = Object.assign(new Event("drop", { bubbles: true, cancelable: true }), {
      dataTransfer,
    });
    page.find(".chat")?.dispatchEvent(event);
  };
  return { server, page, drop };
}

test("Enter sends and empties the field, Shift+Enter does not", async (t) => {
  const { server, page } = await open(t);
  const input = await page.type("Hello");
  const shifted = await page.press({ key: "Enter", shiftKey: true });
  assert.equal(shifted.defaultPrevented, false);
  assert.equal(input.value, "Hello");
  await page.press({ key: "Enter" });
  assert.equal((await server.turn()).body.message, "Hello");
  assert.equal(input.value, "");
});

test("the Enter that ends an input method's composition does not send", async (t) => {
  const { page } = await open(t);
  const input = await page.type("にほん");
  await page.press({ key: "Enter", isComposing: true });
  // Safari: the composition has ended before the key arrives.
  await page.press({ key: "Enter", keyCode: 229 });
  assert.equal(input.value, "にほん");
  assert.equal(page.find(".message"), null);
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

test("white space alone is not sent, and the button says so", async (t) => {
  const { page } = await open(t);
  await page.type("  \n ");
  await page.press({ key: "Enter" });
  assert.equal(page.find(".message"), null);
  assert.equal(page.find<HTMLButtonElement>("[part=send]")?.disabled, true);
});

test("while an answer runs send is stop, and the next message can be typed but not sent", async (t) => {
  const { server, page } = await open(t);
  await page.type("One");
  await page.press({ key: "Enter" });
  const turn = await server.turn();
  await page.shown("[part=stop]");
  assert.equal(page.find("[part=send]"), null);
  const input = await page.type("Two");
  await page.press({ key: "Enter" });
  assert.equal(input.value, "Two");
  turn.send(done("ok"));
  await page.shown("[part=send]");
  await page.press({ key: "Enter" });
  assert.equal((await server.turn()).body.message, "Two");
});

test("a dropped picture is shown, sent as base64 with its proven type, and kept in the transcript", async (t) => {
  const { server, page, drop } = await open(t);
  drop(new File([PNG], "photo.jpg", { type: "image/jpeg" }));
  await page.shown(".draft-files img");
  await page.press({ key: "Enter" });
  const { body } = await server.turn();
  assert.equal(body.message, "");
  assert.deepEqual(body.attachments, [
    {
      type: "image",
      name: "photo.jpg",
      mime_type: "image/png",
      data: Buffer.from(PNG).toString("base64"),
    },
  ]);
  assert.match((await page.shown<HTMLImageElement>(".sent-files img")).src, /^blob:/);
  assert.equal(page.find(".draft-files"), null);
});

test("a file can be removed again", async (t) => {
  const { page, drop } = await open(t);
  drop(png("a.png"));
  await page.click('[aria-label="Remove a.png"]');
  assert.equal(page.find(".draft-files"), null);
});

const refusals: [string, File, ScriptOptions, RegExp][] = [
  ["an unknown type", new File(["hi"], "notes.txt"), {}, /^notes\.txt cannot be attached: only PNG and PDF/],
  [
    "bytes that are not what the name says",
    new File(["hi"], "fake.png", { type: "image/png" }),
    {},
    /^fake\.png cannot be attached: it is not a PNG/,
  ],
  ["a type that this agent does not take", new File(["GIF89a"], "a.gif"), {}, /^a\.gif .*only PNG and PDF/],
  ["an empty file", new File([], "empty.pdf"), {}, /^empty\.pdf is empty/],
  [
    "a file over the limit",
    png("big.png"),
    { info: { attachments: { ...INFO.attachments, max_bytes: 10 } } },
    /^big\.png is larger than 10B/,
  ],
  [
    "any file for an agent that takes none",
    png("a.png"),
    { info: { attachments: { media_types: [], max_bytes: 0, max_count: 0 } } },
    /^Concierge does not take files/,
  ],
];

for (const [what, file, options, reason] of refusals) {
  test(`${what} is refused with the reason, in place and aloud`, async (t) => {
    const { page, drop } = await open(t, options);
    drop(file);
    await page.shown("[part=refusals]");
    assert.match(page.text("[part=refusals]"), reason);
    await until(page.chat, () => reason.test(page.text("[role=status]")));
    assert.equal(page.find(".draft-files"), null);
    await page.click('[part=refusals] [aria-label="Dismiss"]');
    assert.equal(page.find("[part=refusals]"), null);
  });
}

test("the same file is attached once, whatever its name", async (t) => {
  const { page, drop } = await open(t);
  drop(png("a.png"), png("b.png"));
  await page.shown("[part=refusals]");
  assert.match(page.text("[part=refusals]"), /^b\.png is attached already/);
  assert.equal(page.all(".draft-files li").length, 1);
});

test("one file more than the limit of 2 is refused, the others stay", async (t) => {
  const { page, drop } = await open(t);
  drop(png("a.png"), png("b.png", 1), png("c.png", 2));
  await page.shown("[part=refusals]");
  assert.match(page.text("[part=refusals]"), /^c\.png was not attached: a message takes at most 2 files/);
  assert.equal(page.all(".draft-files li").length, 2);
});

test("a file with which the message would be larger than the server takes is refused before anything is sent", async (t) => {
  const { page, drop } = await open(t, { info: { max_body_bytes: 16_384 + 4_000 } });
  drop(png("a.png", 2_000), png("b.png", 1_000));
  await page.shown("[part=refusals]");
  assert.match(
    page.text("[part=refusals]"),
    /^b\.png was not attached: the files of this message may have 2\.9 kB together/,
  );
  assert.equal(page.all(".draft-files li").length, 1);
});

test("files of two drops at once are judged one after the other, as those of one are", async (t) => {
  const { page } = await open(t);
  await Promise.all([
    page.chat.attach([png("a.png"), png("b.png", 1)]),
    page.chat.attach([png("again.png"), png("c.png", 2)]),
  ]);
  await page.chat.updateComplete;
  assert.deepEqual(
    page.all(".draft-files img").map((image) => image.getAttribute("alt")),
    ["a.png", "b.png"],
  );
  assert.match(page.text("[part=refusals]"), /again\.png.*c\.png was not attached/);
});

test("a pasted picture is attached, but a picture beside text is not what was meant", async (t) => {
  const { page } = await open(t);
  const input = await page.shown("textarea");
  const paste = (text: string) => {
    const clipboardData = { files: [png("image.png")], getData: () => text };
    const event = new Event("paste", { bubbles: true, cancelable: true });
    input.dispatchEvent(Object.assign(event, { clipboardData }));
    return event.defaultPrevented;
  };
  assert.equal(paste("a table"), false);
  assert.equal(paste(""), true);
  await page.shown(".draft-files");
  assert.equal(page.all(".draft-files li").length, 1);
});

test("what was typed survives the form that asks for a key", async (t) => {
  const { server, page } = await open(t, { key: "right" });
  await page.enterKey("right");
  await page.type("Half a thou");
  await page.click("[part=forget-key]");
  await page.shown("#key");
  await page.enterKey("right");
  const input = await page.shown<HTMLTextAreaElement>("textarea");
  assert.equal(input.value, "Half a thou");
  await page.press({ key: "Enter" });
  assert.equal((await server.turn()).body.message, "Half a thou");
});
