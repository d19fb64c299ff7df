/** Files survive reloads: the browser stores them with the conversation, and the agent gets them again. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Locator, Page } from "playwright-core";
import { toolResult } from "../../server/parley-agent.ts";
import type { FileType } from "../../server/protocol/attachments.ts";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { within } from "../support/deadline.ts";
import { attachment, RED_PIXEL } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { call, fail, hang, say, type Turn } from "../support/scripted-provider.ts";
import { define } from "../support/test-tools.ts";
import { type ChatElement, type ChatPage, chatIn, dropLargePdf, isDrawn, openChat } from "./chat-page.ts";
import { fillList, keptName } from "./kept.ts";

const browser = await launchBrowser({ after });

const SECRET = { PARLEY_STATE_SECRET: "a-secret-of-thirty-two-characters" };

const dot = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };
const offer = { name: "offer.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7 an offer") };
const notes = { name: "notes.md", mimeType: "", buffer: Buffer.from("# To do") };
const DATA = [dot, offer].map(({ buffer }) => buffer.toString("base64"));

/** Runs code with the stored rows of files and their table. */
const inFiles = async <Result>(page: Page, work: string): Promise<Result> =>
  page.evaluate(`(async () => {
    const settled = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });
    const database = await settled(indexedDB.open(${JSON.stringify(await keptName(page))}));
    const table = database.transaction("pending", "readwrite").objectStore("pending");
    const rows = (await settled(table.getAll())).filter(({ file }) => file);
    database.close();
    ${work}
  })()`);

const countFiles = (page: Page) => inFiles<number>(page, "return rows.length;");

/** Waits until so many files are stored, which happens a moment after they are shown. */
async function untilFiles(page: Page, count: number): Promise<void> {
  const counted = async () => {
    while ((await countFiles(page)) !== count) await page.evaluate(() => new Promise(requestAnimationFrame));
  };
  await within(counted(), `${count} files that are kept`);
}

async function send(chat: ChatElement, files: readonly (typeof dot)[], text: string, answer: string): Promise<void> {
  await chat.files.setInputFiles([...files]);
  await chat.drafts.nth(files.length - 1).waitFor();
  await chat.ask(text, answer);
}

const told = ({ server }: Pick<ChatPage, "server">) => JSON.stringify(server.model.asked.at(-1)?.messages);
const attached = ({ server }: Pick<ChatPage, "server">) =>
  server.model.asked.at(-1)?.start.attachments.map(({ url, text }) => text ?? url?.replace(/.*,/, ""));
const row = (page: Page, title: string) => page.locator('[part="conversation"]').filter({ hasText: title });
const picture = (chat: ChatElement) => chat.questions.getByRole("img", { name: "dot.png" });
const turnsOf = (...texts: string[]) => texts.map((text) => [say(text)]);

for (const [how, env, row_] of [
  ["signed", SECRET, test],
  ["not signed", {}, it],
] as const) {
  row_(
    `a conversation with files, whose states are ${how}, is whole after another one was shown, after a reload and in another tab`,
    async (t) => {
      const turns = turnsOf("A dot.", "Hello.", "Bob.", "Still Bob.", "Bob it is.");
      const chat = await openChat(t, browser, { turns, env });
      const { page } = chat;
      await send(chat, [dot, offer], "I am Bob", "A dot.");
      const isWhole = async (it: ChatElement, asked: string, answer: string) => {
        await isDrawn(picture(it));
        await it.questions.getByText("offer.pdf").waitFor();
        await it.ask(asked, answer);
        assert.match(told(chat), new RegExp(`I am Bob.*${asked}`));
        for (const data of DATA) assert.ok(told(chat).includes(data), "with its files");
      };
      await page.getByRole("button", { name: "New conversation" }).click();
      await chat.ask("Hi", "Hello.");
      await row(page, "I am Bob").click();
      await isWhole(chat, "Who am I?", "Bob.");
      await page.reload();
      await isWhole(chat, "Sure?", "Still Bob.");
      const other = await page.context().newPage();
      await other.goto(chat.server.url);
      await row(other, "I am Bob").click();
      await isWhole(chatIn(other), "Really?", "Bob it is.");
      // The first tab also shows the answer, with the same picture.
      await chat.replies.getByText("Bob it is.").waitFor();
      await isDrawn(picture(chat));
      await picture(chat).click();
      await isDrawn(page.locator("dialog:modal img"));
      assert.equal(await countFiles(page), 2, "each is kept once");
    },
  );
}

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  it(`after a reload a message is changed, answered again and tried again with its files, with ${stateKind}`, async (t) => {
    const turns = [
      ...turnsOf("A dot.", "Red.", "Still red."),
      [fail(new ApiError("internal", "Ill."))],
      [say("Well.")],
    ];
    const accepts: FileType[] = ["image/png", "application/pdf", "text/markdown"];
    const chat = await openChat(t, browser, { turns, stateKind, env: SECRET, agent: { accepts } });
    const { page } = chat;
    const data = [DATA[0], "# To do", DATA[1]];
    await send(chat, [dot, notes, offer], "What is it?", "A dot.");
    await untilFiles(page, 3);
    await page.reload();
    await isDrawn(picture(chat));
    await page.getByRole("button", { name: "Answer again" }).click();
    await chat.replies.getByText("Red.").waitFor();
    assert.deepEqual(attached(chat), data);
    await page.reload();
    await isDrawn(picture(chat));
    await page.getByRole("button", { name: "Change this message" }).click();
    await page.getByRole("button", { name: "Remove dot.png" }).waitFor();
    await chat.edited.fill("Which colour?");
    await chat.edited.press("Enter");
    await chat.replies.getByText("Still red.").waitFor();
    assert.deepEqual(attached(chat), data);
    await page.getByRole("button", { name: "New conversation" }).click();
    await chat.files.setInputFiles([dot]);
    await chat.drafts.waitFor();
    await chat.say("Once more");
    await chat.retry.waitFor();
    // Where no state has digests, the changed message stores its files again; text files never have digests.
    await untilFiles(page, stateKind === "conversation_history" ? 5 : 7);
    await page.reload();
    await isDrawn(picture(chat));
    await chat.retry.click();
    await chat.replies.getByText("Well.").waitFor();
    assert.deepEqual(attached(chat), DATA.slice(0, 1));
  });
}

for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
  it(`pictures of a tool are in its row, open large and are there after a reload and in another tab, with ${stateKind}`, async (t) => {
    const red = { data: RED_PIXEL, mimeType: "image/png" } as const;
    const large = { data: String(attachment("image/png", { bytes: 1_100_000 }).data), mimeType: "image/png" } as const;
    const images = [red, red, large, large, large];
    const draw = define("draw", () => toolResult({ text: "A dot", images }));
    const turns: Turn[] = [[call("c1", "draw")], [say("Drawn.")]];
    const chat = await openChat(t, browser, { turns, stateKind, env: SECRET, agent: { tools: [draw] } });
    const { page } = chat;
    await chat.ask("Draw a dot", "Drawn.");
    const isWhole = async (on: Page) => {
      const pictures = on.locator('[part="tool"] .pictures');
      await isDrawn(pictures.getByRole("img", { name: "draw" }).first());
      assert.equal(await pictures.getByRole("img").count(), 2);
      await pictures.getByText("3 pictures are not shown.").waitFor();
      await pictures.getByRole("button").first().click();
      await isDrawn(on.locator("dialog:modal img"));
      await on.locator("dialog:modal").getByText("1 / 2").waitFor();
      await on.keyboard.press("Escape");
    };
    await isWhole(page);
    // The picture is stored once; if the agent's state has a digest of it, also under that.
    await untilFiles(page, stateKind === "previous_response_id" ? 1 : 3);
    await page.reload();
    await isWhole(page);
    const other = await page.context().newPage();
    await other.goto(chat.server.url);
    await row(other, "Draw a dot").click();
    await isWhole(other);
  });
}

it("a picture of a tool that the browser has lost is counted in its row", async (t) => {
  const draw = define("draw", () => toolResult({ images: [{ data: RED_PIXEL, mimeType: "image/png" }] }));
  const turns: Turn[] = [[call("c1", "draw")], [say("Drawn.")]];
  const chat = await openChat(t, browser, { turns, agent: { tools: [draw] } });
  const { page } = chat;
  await chat.ask("Draw a dot", "Drawn.");
  await untilFiles(page, 2);
  await inFiles(page, "for (const { id } of rows) table.delete(id);");
  await page.reload();
  await page.getByText("1 picture is not shown.").waitFor();
});

it("the files of a message are kept before its answer ends, also of one that is not the first", async (t) => {
  const half = [say("Half"), hang];
  const chat = await openChat(t, browser, { turns: [...turnsOf("Hello."), half, half] });
  const { page } = chat;
  await chat.ask("Hi", "Hello.");
  for (const count of [1, 2]) {
    await chat.files.setInputFiles([dot]);
    await chat.drafts.waitFor();
    await chat.say("See");
    await chat.replies.nth(count).getByText("Half").waitFor();
    await untilFiles(page, count);
    await page.reload();
    await isDrawn(picture(chat).nth(count - 1));
    await chat.stop.click();
    await chat.answered(count + 1);
  }
});

it("a file whose data is damaged, or that the browser has lost, is a card, cannot be sent again, and the agent is told of it", async (t) => {
  const chat = await openChat(t, browser, { turns: turnsOf("A dot.", "Seen."), env: SECRET });
  const { page } = chat;
  await send(chat, [dot, offer], "See", "A dot.");
  await untilFiles(page, 2);
  await inFiles(
    page,
    `
    for (const { id, file } of rows) {
      if (file.type === "image/png") table.put({ id, file: file.slice(0, 9, file.type) });
      else table.delete(id);
    }`,
  );
  await page.reload();
  await chat.questions.getByText("PNG", { exact: true }).waitFor();
  await chat.ask("And now?", "Seen.");
  assert.match(told(chat), /"omitted".*"mime_type":"image\/png".*"omitted".*"name":"offer\.pdf".*And now\?/);
  for (const data of DATA) assert.ok(!told(chat).includes(data));
  await page.reload();
  await chat.replies.getByText("Seen.").waitFor();
  await page.getByRole("button", { name: "Change this message" }).first().click();
  await chat.questions.getByText("dot.png and offer.pdf: no longer here, please attach again.").waitFor();
});

it("of more than 20 MB the newest files are kept, and the others are asked for again", async (t) => {
  const chat = await openChat(t, browser, { turns: turnsOf("One.", "Two.", "Again."), env: SECRET });
  const { page } = chat;
  for (const [name, answer] of [
    ["a.pdf", "One."],
    ["b.pdf", "Two."],
  ] as const) {
    await dropLargePdf(chat, name, 11_000_000);
    await chat.drafts.waitFor();
    await chat.ask(name, answer);
  }
  await page.reload();
  await page.getByRole("button", { name: "Answer again" }).click();
  await chat.replies.getByText("Again.").waitFor();
  assert.equal(attached(chat)?.[0]?.length, Math.ceil(11_000_000 / 3) * 4);
  await page.getByRole("button", { name: "Change this message" }).first().click();
  await chat.questions.getByText("a.pdf: no longer here, please attach again.").waitFor();
  assert.equal(await countFiles(page), 1);
});

it("of more than 200 MB in all, the files of the oldest conversations go", async (t) => {
  const chat = await openChat(t, browser, { turns: turnsOf("A dot.", "Hello.") });
  const { page } = chat;
  await send(chat, [dot], "See", "A dot.");
  await untilFiles(page, 1);
  await page.evaluate(fillList(1, 1));
  await inFiles(
    page,
    `const file = new Blob([new Uint8Array(20 * 1024 * 1024)]);
    for (let index = 0; index < 10; index += 1) table.put({ id: "filled0 #" + index, file });`,
  );
  await untilFiles(page, 11);
  await send(chat, [offer], "And this?", "Hello.");
  // The new file is written before an old one is deleted.
  const isDone = 'return rows.length === 11 && rows.some(({ file }) => file.type === "application/pdf");';
  const done = async () => {
    while (!(await inFiles<boolean>(page, isDone))) await page.evaluate(() => new Promise(requestAnimationFrame));
  };
  await within(done(), "the newest file in the place of an old one");
  await page.reload();
  await isDrawn(picture(chat));
  assert.equal(await countFiles(page), 11);
});

it("what is deleted takes its files with it, and brings them back", async (t) => {
  const chat = await openChat(t, browser, { turns: turnsOf("A dot.", "Hello."), env: SECRET });
  const { page } = chat;
  await send(chat, [dot, offer], "See", "A dot.");
  await untilFiles(page, 2);
  // The id range that an earlier build deletes with a conversation, on another page of the site.
  const isPart =
    'rows.every(({ id }) => IDBKeyRange.bound(id.split(" ")[0], id.split(" ")[0] + " answer").includes(id))';
  assert.equal(await inFiles(page, `return ${isPart};`), true);
  await page.getByRole("button", { name: "New conversation" }).click();
  await chat.ask("Hi", "Hello.");
  await row(page, "See").press("Delete");
  await untilFiles(page, 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "See").click();
  await isDrawn(picture(chat));
  await page.getByRole("button", { name: "Forget everything" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await untilFiles(page, 0);
});

it("a message stands in its place before its picture is read, and a message that is sent meanwhile waits for it", async (t) => {
  const chat = await openChat(t, browser, { turns: turnsOf("A square.", "Blue."), env: SECRET });
  const { page } = chat;
  const drawn = await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 600, height: 400 });
    canvas.getContext("2d")?.fillRect(0, 0, 600, 400);
    return canvas.toDataURL().replace(/.*,/, "");
  });
  await send(chat, [{ ...dot, buffer: Buffer.from(drawn, "base64") }], "See", "A square.");
  await isDrawn(picture(chat));
  const box = (it: Locator) => it.first().boundingBox();
  const boxes = () => Promise.all([box(chat.questions), box(chat.replies)]);
  await page.addInitScript(() => {
    const { readAsDataURL } = FileReader.prototype;
    FileReader.prototype.readAsDataURL = function (file) {
      addEventListener("go-on", () => readAsDataURL.call(this, file), { once: true });
      document.documentElement.dataset.reads = "yes";
    };
  });
  await page.reload();
  await page.locator("[data-reads]").waitFor();
  await chat.questions.getByText("PNG", { exact: true }).waitFor({ state: "attached" });
  assert.equal(await picture(chat).count(), 0);
  const before = await boxes();
  assert.ok(before[0] && before[0].height > 200, "its place is held");
  await chat.say("Which colour?");
  for (let time = 0; time < 5; time += 1) await page.evaluate(() => fetch("api/info").then(() => {}));
  assert.equal(await chat.questions.count(), 1);
  await page.evaluate(() => dispatchEvent(new Event("go-on")));
  await chat.replies.getByText("Blue.").waitFor();
  assert.ok(told(chat).includes(drawn));
  await isDrawn(picture(chat));
  const heights = (all: typeof before) => all.map((it) => it?.height);
  assert.deepEqual(heights(await boxes()), heights(before));
});

it("where there is no room for a file, or for words beside files, all that was said is kept", async (t) => {
  const long = "Pears. ".repeat(30_000).trim();
  const chat = await openChat(t, browser, { turns: turnsOf("A dot.", long, "Yes."), env: SECRET });
  const { page } = chat;
  await page.addInitScript(`{
    const { put } = IDBObjectStore.prototype;
    let hasFiles = false;
    IDBObjectStore.prototype.put = function (row) {
      const isLarge = JSON.stringify(row).length > 100_000;
      if ((row.file && window.isFull) || (isLarge && !window.isFull)) throw new DOMException("full", "QuotaExceededError");
      return put.call(this, row);
    };
    const remove = IDBObjectStore.prototype.delete;
    IDBObjectStore.prototype.delete = function (key) {
      if (String(key).includes(" #")) window.isFull = true;
      return remove.call(this, key);
    };
  }`);
  await page.reload();
  await send(chat, [dot], "See", "A dot.");
  await untilFiles(page, 1);
  await chat.say("Tell me of pears");
  await chat.answered(2);
  await untilFiles(page, 0);
  await page.reload();
  await chat.questions.getByText("PNG", { exact: true }).waitFor();
  await page.evaluate("isFull = true");
  await send(chat, [offer], "And this?", "Yes.");
  await page.reload();
  await chat.replies.getByText("Yes.").waitFor();
  assert.equal(await page.getByText("The browser does not keep").count(), 0);
  assert.deepEqual([await chat.questions.count(), await countFiles(page)], [3, 0]);
});
