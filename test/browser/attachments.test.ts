import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { RED_PIXEL as PNG } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { hang, say } from "../support/scripted-provider.ts";
import { type ChatPage, hasFocus, holdInfo, isDrawn, openChat, transferOf, watchObjectUrls } from "./chat-page.ts";
import { visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

const PDF = Buffer.concat([Buffer.from("%PDF-1.7\n"), randomBytes(100_000)]);
const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const PDF_URL = `data:application/pdf;base64,${PDF.toString("base64")}`;

const picture = { name: "red.png", mimeType: "image/png", buffer: PNG };
const document = { name: "offer.pdf", mimeType: "application/pdf", buffer: PDF };

const refusals = (chat: ChatPage) => chat.page.locator('[part="refusals"]');
const received = (chat: ChatPage) => chat.server.model.asked.at(-1)?.start.attachments;

test("picked files show as thumbnail and name, and arrive as they are", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Received.")]] });
  await chat.files.setInputFiles([picture, document]);
  const thumbnail = chat.drafts.getByRole("img", { name: "red.png" });
  await thumbnail.waitFor();
  await chat.drafts.getByText("offer.pdf").waitFor();
  const source = await thumbnail.getAttribute("src");
  assert.match(source ?? "", /^blob:/);
  await chat.page.waitForFunction(
    (image) => image instanceof HTMLImageElement && image.naturalWidth === 1,
    await thumbnail.elementHandle(),
  );
  await chat.ask("Look", "Received.");
  assert.deepEqual(received(chat), [
    { type: "image", name: "red.png", mime_type: "image/png", url: PNG_URL },
    { type: "file", name: "offer.pdf", mime_type: "application/pdf", url: PDF_URL },
  ]);
  assert.equal(await chat.drafts.count(), 0, "the next message starts without files");
  await chat.questions.getByRole("img", { name: "red.png" }).waitFor();
  await chat.questions.getByText("offer.pdf").waitFor();
});

it("files that are dropped before the server has said what it takes wait for it, and are named meanwhile", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")]] });
  const answer = await holdInfo(chat.page);
  await chat.page.reload();
  await chat.input.fill("What is it?");
  const dataTransfer = await transferOf(chat.page, [picture]);
  await chat.messages.dispatchEvent("drop", { dataTransfer });
  await chat.page.locator('[part="composer"]').getByText("red.png").waitFor();
  assert.equal(await chat.send.isDisabled(), true);
  answer();
  await chat.drafts.getByRole("img").waitFor();
  await chat.input.press("Enter");
  await chat.answer.getByText("A dot.").waitFor();
  assert.equal(received(chat)?.length, 1);
});

test("the attach button opens the picker for the kinds that the model takes", async (t) => {
  const chat = await openChat(t, browser, { turns: [], mediaTypes: ["image/png"] });
  const opened = chat.page.waitForEvent("filechooser");
  await chat.page.getByRole("button", { name: "Attach files" }).click();
  const chooser = await opened;
  assert.equal(chooser.isMultiple(), true);
  assert.equal(await chat.files.getAttribute("accept"), "image/png");
  await chooser.setFiles(picture);
  await chat.drafts.getByRole("img", { name: "red.png" }).waitFor();
});

test("a model that takes no files has no attach button, and a dropped file is refused", async (t) => {
  const chat = await openChat(t, browser, { turns: [], mediaTypes: [], agent: { agent: "Ann" } });
  await chat.input.waitFor();
  await chat.page.getByText("Ann").first().waitFor();
  assert.equal(await chat.page.getByRole("button", { name: "Attach files" }).count(), 0);
  const dataTransfer = await transferOf(chat.page, [picture]);
  await chat.messages.dispatchEvent("drop", { dataTransfer });
  await refusals(chat).getByText("Ann does not take files.").waitFor();
});

test("files can be dropped anywhere on the chat, which shows that they may, and are a message without a word", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Caught.")]] });
  const dataTransfer = await transferOf(chat.page, [picture, document]);
  const overlay = chat.page.getByText("Drop files to attach them");
  await chat.messages.dispatchEvent("dragover", { dataTransfer });
  await overlay.waitFor();
  await chat.messages.dispatchEvent("drop", { dataTransfer });
  await overlay.waitFor({ state: "hidden" });
  await chat.drafts.nth(1).waitFor();
  await chat.send.click();
  await chat.replies.getByText("Caught.").waitFor();
  assert.equal(chat.server.model.asked[0]?.start.message, "");
  assert.deepEqual(
    received(chat)?.map(({ url }) => url),
    [PNG_URL, PDF_URL],
  );
});

test("a picture is pasted as a file, also beside its name, and formatted text beside a picture as text", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Pasted.")]] });
  const paste = async (texts: Record<string, string>) =>
    chat.input.evaluate(
      (field, [transfer, beside]) => {
        for (const [type, text] of Object.entries(beside)) transfer.setData(type, text);
        const event = new ClipboardEvent("paste", {
          clipboardData: transfer,
          bubbles: true,
          cancelable: true,
        });
        return field.dispatchEvent(event);
      },
      [await transferOf(chat.page, [picture]), texts] as const,
    );
  const cells = { "text/plain": "a table's cells", "text/html": "<td>a table's cells" };
  assert.equal(await paste(cells), true, "left to the browser, which inserts the text");
  assert.equal(await chat.drafts.count(), 0);
  // Like a file copied in the macOS Finder.
  assert.equal(await paste({ "text/plain": "red.png" }), false);
  await chat.drafts.getByRole("img", { name: "red.png" }).waitFor();
  await chat.page.getByRole("button", { name: "Remove red.png" }).click();
  // Like an image copied in a browser.
  assert.equal(await paste({ "text/html": "<img>" }), false);
  await chat.drafts.getByRole("img", { name: "red.png" }).waitFor();
  await chat.ask("See", "Pasted.");
  assert.equal(received(chat)?.[0]?.url, PNG_URL);
});

it("text files are picked, dropped and pasted where the agent accepts them, and named by their endings", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Read.")]],
    agent: { accepts: ["text/markdown", "text/csv"] },
  });
  const text = (name: string) => ({ name, mimeType: "", buffer: Buffer.from(`the text of ${name}`) });
  await chat.files.setInputFiles([text("picked.md")]);
  await chat.messages.dispatchEvent("drop", { dataTransfer: await transferOf(chat.page, [text("dropped.csv")]) });
  await chat.input.evaluate(
    (field, clipboardData) => field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true })),
    await transferOf(chat.page, [text("pasted.markdown"), text("notes.txt")]),
  );
  await chat.drafts.nth(2).waitFor();
  await refusals(chat).getByText("notes.txt: only Markdown and CSV files are taken.").waitFor();
  await chat.ask("See", "Read.");
  assert.deepEqual(
    received(chat)?.map(({ name, mime_type, text }) => [name, mime_type, text]),
    [
      ["picked.md", "text/markdown"],
      ["dropped.csv", "text/csv"],
      ["pasted.markdown", "text/markdown"],
    ].map(([name, type]) => [name, type, `the text of ${name}`]),
  );
  await chat.questions.getByText("Markdown").first().waitFor();
});

test("a file can be taken out again, and with the keyboard several one after the other", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One file.")]] });
  const third = { ...document, name: "third.pdf", buffer: Buffer.from("%PDF-1.4\n") };
  await chat.files.setInputFiles([picture, document, third]);
  await chat.drafts.nth(2).waitFor();
  const button = (name: string) => chat.page.getByRole("button", { name: `Remove ${name}` });
  for (const [name, next] of [
    ["offer.pdf", button("third.pdf")],
    ["third.pdf", button("red.png")],
    ["red.png", chat.input],
  ] as const) {
    await button(name).press("Enter");
    await button(name).waitFor({ state: "detached" });
    await hasFocus(next, `after ${name}`);
  }
  await chat.files.setInputFiles([picture, document]);
  await chat.drafts.nth(1).waitFor();
  await button("red.png").click();
  await chat.drafts.nth(1).waitFor({ state: "detached" });
  await chat.ask("Look", "One file.");
  assert.deepEqual(
    received(chat)?.map(({ name }) => name),
    ["offer.pdf"],
  );
});

it("a file that takes long to read is shown meanwhile, and nothing is sent without it", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Read.")]] });
  await chat.page.evaluate(() => {
    const { readAsDataURL } = FileReader.prototype;
    FileReader.prototype.readAsDataURL = function (file) {
      addEventListener("go-on", () => readAsDataURL.call(this, file), { once: true });
      dispatchEvent(new Event("reads"));
    };
  });
  const reads = await chat.page.evaluateHandle(() => ({
    begun: new Promise((next) => addEventListener("reads", next, { once: true })),
  }));
  await chat.files.setInputFiles(document);
  const reading = chat.page.locator('[part="composer"]').getByText("offer.pdf");
  await reading.waitFor();
  await reads.evaluate(({ begun }) => begun.then(() => {}));
  await chat.input.fill("Look");
  assert.equal(await chat.send.isDisabled(), true);
  await chat.page.evaluate(() => dispatchEvent(new Event("go-on")));
  await chat.drafts.waitFor();
  assert.equal(await reading.count(), 1, "it is named once");
  await chat.ask("Look", "Read.");
  assert.equal(received(chat)?.length, 1);
});

it("pictures hold no memory of the page once they are drawn, and are there when a chat returns to the page", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Received.")]] });
  const noneHeld = await watchObjectUrls(chat.page);
  await chat.page.reload();
  await chat.files.setInputFiles(picture);
  await chat.drafts.waitFor();
  await chat.ask("Look", "Received.");
  await chat.files.setInputFiles([{ ...picture, name: "draft.png" }]);
  const images = chat.page.locator('[part="attachment"] img');
  const areDrawn = async () => {
    for (const image of [chat.questions.locator("img"), chat.drafts.locator("img")]) await isDrawn(image);
  };
  await areDrawn();
  assert.equal(await images.count(), 2);
  await noneHeld();
  await chat.page.locator("agent-chat").evaluate(async (element) => {
    const parent = element.parentElement;
    element.remove();
    await new Promise((resolve) => setTimeout(resolve));
    parent?.append(element);
  });
  await areDrawn();
  assert.equal(await images.count(), 2);
});

it("a message that waits is not taken back into a text field whose files are too many with its own: it stays, which is said, and nothing is lost", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Half"), hang], [say("Received.")]],
    env: { PARLEY_MAX_ATTACHMENTS: "2" },
  });
  const { page } = chat;
  await chat.say("Trains?");
  await chat.replies.getByText("Half").waitFor();
  await chat.files.setInputFiles([picture, document]);
  await chat.drafts.nth(1).waitFor();
  await chat.say("These two");
  const waiting = page.locator(".pending-message");
  await waiting.waitFor();
  await chat.drafts.first().waitFor({ state: "detached" });
  await chat.files.setInputFiles([{ ...document, name: "other.pdf", buffer: Buffer.concat([PDF, PDF]) }]);
  await chat.drafts.waitFor();
  await chat.input.fill("And this one");
  await waiting.getByRole("button", { name: "Change" }).click();
  await refusals(chat).getByText("red.png and offer.pdf: not attached, a message takes at most 2 files.").waitFor();
  await waiting.getByText("These two").waitFor();
  assert.deepEqual([await chat.input.inputValue(), await chat.drafts.count()], ["And this one", 1]);
  await chat.drafts.getByRole("button", { name: /Remove/ }).click();
  await waiting.getByRole("button", { name: "Change" }).click();
  await waiting.waitFor({ state: "detached" });
  assert.deepEqual([await chat.input.inputValue(), await chat.drafts.count()], ["These two\n\nAnd this one", 2]);
  await chat.input.press("Enter");
  await waiting.waitFor();
  await page.getByRole("button", { name: "Send now" }).click();
  await chat.replies.getByText("Received.").waitFor();
  assert.equal(received(chat)?.length, 2);
});

test("images that were sent and those in an answer open large, one after the other, and give the focus back", async (t) => {
  const drawn = `![Chart one](${PNG_URL}) and ![](${PNG_URL}) in a [![link](${PNG_URL})](https://example.org)`;
  const { page, ...chat } = await visit(t, browser, { turns: [[say(drawn), hang]] });
  await page.getByRole("button", { name: "Open chat" }).click();
  await chat.files.setInputFiles([
    picture,
    document,
    { ...picture, name: "blue.png", buffer: Buffer.concat([PNG, Buffer.of(0)]) },
  ]);
  await chat.drafts.nth(2).waitFor();
  await chat.say("Look");
  const large = page.locator("dialog:modal");
  const shows = async (name: string, count: string) => {
    await page.getByRole("dialog", { name }).waitFor();
    await isDrawn(large.locator("img"));
    assert.match((await large.locator("p").textContent()) ?? "", new RegExp(`${count}$`));
  };
  const blue = chat.questions.getByRole("button", { name: "blue.png" });
  await blue.click();
  await shows("blue.png", "2 / 2");
  await page.keyboard.press("ArrowRight");
  await shows("red.png", "1 / 2");
  await large.getByRole("button", { name: "Previous image" }).click();
  await shows("blue.png", "2 / 2");
  await page.keyboard.press("Escape");
  await large.waitFor({ state: "detached" });
  await hasFocus(blue);
  const chart = chat.replies.getByRole("button", { name: "Chart one" });
  await chart.press("Enter");
  await shows("Chart one", "1 / 2");
  await page.keyboard.press("ArrowLeft");
  await shows("Enlarge image", "2 / 2");
  await large.getByRole("button", { name: "Close" }).click();
  await large.waitFor({ state: "detached" });
  await hasFocus(chart);
  assert.equal(await chat.replies.getByRole("link", { name: "link" }).getByRole("button").count(), 0);
  // Escape did not stop the answer or close the panel.
  assert.equal(await chat.stop.isVisible(), true);
});
