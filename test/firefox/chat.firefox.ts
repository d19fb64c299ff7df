import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { gate } from "../support/deadline.ts";
import { call, hang, say, type Turn, think, wait } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";
import { button, FIELD, send, shown } from "./chat-page.ts";
import { firefoxPath, launchFirefox, openInFirefox } from "./firefox.ts";

if (firefoxPath === undefined) {
  throw new Error("There is no Firefox here: install firefox-esr, or name one in FIREFOX_PATH.");
}
const browser = await launchFirefox({ after }, firefoxPath);

async function open(t: TestContext, turns: readonly Turn[], path = "/") {
  const server = await startServer(t, {
    turns,
    agent: { tools: [echo], chat: { suggestions: ["Ping"] } },
  });
  const { page, complaints } = await openInFirefox(t, browser, server.url + path);
  t.after(() => assert.deepEqual(complaints, [], "the page complained"));
  await page.waitForSelector(">>> .pill");
  return { server, page };
}

test("an answer streams in, with thinking, a tool and Markdown, and the next one remembers", async (t) => {
  const rest = gate();
  const { server, page } = await open(t, [
    [think("Hm."), call("c1", "echo", { text: "ping" })],
    [say("**Po"), wait(rest.opened), say("ng**\n\n| A |\n|---|\n| 1 |\n")],
    [say("Remembered.")],
  ]);
  await send(page, "Go");
  await shown(page, ".markdown", "Po");
  await button(page, "Stop answering");
  rest.open();
  await shown(page, "strong", "Pong");
  await page.waitForSelector(">>> td");
  await button(page, "Send message");
  const row = await page.waitForSelector('>>> [part="tool"] button');
  await row?.press("Enter");
  await shown(page, "pre", "ping");
  await send(page, "And now?");
  await shown(page, ".markdown", "Remembered.");
  assert.equal(server.model.asked.at(-1)?.messages.length, 5);
});

test("Stop and Escape end an answer, and what was said stays", async (t) => {
  const { page } = await open(t, [
    [say("Half"), hang],
    [say("Another half"), hang],
  ]);
  await send(page, "One");
  await shown(page, ".markdown", "Half");
  await (await button(page, "Stop answering"))?.click();
  await shown(page, ".note", "You stopped this answer.");
  await send(page, "Two");
  await shown(page, ".markdown", "Another half");
  await page.keyboard.press("Escape");
  await page.waitForFunction(
    () => document.querySelector("agent-chat")?.shadowRoot?.querySelectorAll(".note").length === 2,
  );
});

test("an answer that was coming goes on after a reload", async (t) => {
  const reloaded = gate();
  const { server, page } = await open(t, [[say("Before, "), wait(reloaded.opened), say("and after.")]]);
  await send(page, "Go");
  await shown(page, ".markdown", "Before,");
  await page.reload();
  await shown(page, ".markdown", "Before,");
  await button(page, "Stop answering");
  reloaded.open();
  await shown(page, ".markdown", "Before, and after.");
  assert.equal(server.model.asked.length, 1, "the agent is not asked again");
});

test("the text field grows with its lines, and shrinks again when they are sent", async (t) => {
  const { page } = await open(t, [[say("Read.")]]);
  const field = await page.waitForSelector(FIELD);
  const height = async () => Math.round((await field?.boundingBox())?.height ?? 0);
  const before = await height();
  await field?.click();
  for (const line of ["a", "b", "c"]) {
    await page.keyboard.type(line);
    await page.keyboard.down("Shift");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Shift");
  }
  assert.equal(await height(), before + 3 * 24);
  await page.keyboard.press("Enter");
  await shown(page, ".markdown", "Read.");
  assert.equal(await height(), before);
});

test("a file is attached, shown and sent; one that is not what it says is refused", async (t) => {
  const { server, page } = await open(t, [[say("Received.")]]);
  await page.evaluate(() => {
    const chat = document.querySelector("agent-chat")?.shadowRoot?.querySelector(".chat");
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["%PDF-1.7\n"], "offer.pdf", { type: "application/pdf" }));
    dataTransfer.items.add(new File(["text"], "fake.pdf", { type: "application/pdf" }));
    chat?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  });
  await shown(page, ".draft-files", "offer.pdf");
  await shown(page, '[part="refusals"]', "fake.pdf");
  await send(page, "Look");
  await shown(page, ".markdown", "Received.");
  assert.deepEqual(
    server.model.asked[0]?.start.attachments?.map(({ name }) => name),
    ["offer.pdf"],
  );
});

test("the theme is toggled, and kept over a reload", async (t) => {
  const { page } = await open(t, []);
  const background = () => page.$eval("agent-chat", (element) => getComputedStyle(element).backgroundColor);
  const before = await background();
  await (await page.waitForSelector('>>> [part="theme-toggle"]'))?.click();
  await page.waitForSelector("agent-chat[theme]:not([theme=auto])");
  const toggled = await background();
  assert.notEqual(toggled, before);
  await page.reload();
  await page.waitForSelector(">>> .pill");
  assert.equal(await background(), toggled);
});

test("an answer is copied as it looks, and rated with a reason that the page hears of", async (t) => {
  const { page } = await open(t, [[say("**Pong**")]]);
  await page.evaluate(() => {
    document.querySelector("agent-chat")?.setAttribute("feedback", "");
    document.addEventListener("agent-chat-feedback", ({ rating, reason, comment }) => {
      document.title = [rating, reason, comment].join(" ");
    });
    document.addEventListener("paste", ({ clipboardData }) => {
      document.title = clipboardData?.getData("text/html") ?? "";
    });
  });
  await send(page, "Ping");
  await shown(page, "strong", "Pong");
  await (await button(page, "Copy answer"))?.click();
  await button(page, "Copied");
  await (await page.waitForSelector(FIELD))?.click();
  await page.keyboard.down("Control");
  await page.keyboard.press("v");
  await page.keyboard.up("Control");
  await page.waitForFunction(() => document.title.includes("<strong>Pong</strong>"));
  await page.waitForFunction(
    (field) =>
      document.querySelector("agent-chat")?.shadowRoot?.querySelector<HTMLTextAreaElement>(field)?.value === "**Pong**",
    {},
    "[part=input]",
  );
  await (await button(page, "Bad answer"))?.click();
  await (await page.waitForSelector('>>> input[value="incomplete"]'))?.click();
  await (await page.waitForSelector('>>> textarea[name="comment"]'))?.click();
  await page.keyboard.type("More!");
  await (await page.waitForSelector('>>> .feedback-form [type="submit"]'))?.click();
  await page.waitForFunction(() => document.title === "down incomplete More!");
});

test("colours of code rest where Firefox skips it, and are there where somebody scrolls to", async (t) => {
  const rest = gate();
  const block = (index: number) => `\`\`\`ts\nconst number${index} = 1;\n\`\`\`\n`;
  const blocks = Array.from({ length: 200 }, (_, index) => block(index));
  const { page } = await open(t, [
    [say(blocks.slice(0, 50).join("")), wait(rest.opened), say(blocks.slice(50).join(""))],
  ]);
  const untilPainted = (isPainted: boolean) =>
    page.waitForFunction(
      (expected) =>
        [...(CSS.highlights.get("agent-chat-keyword") ?? [])].some(({ startContainer }) =>
          startContainer.textContent?.includes("number48 "),
        ) === expected,
      {},
      isPainted,
    );
  await send(page, "Go");
  await untilPainted(true);
  rest.open();
  await button(page, "Send message");
  await untilPainted(false);
  await page.evaluate(() => {
    const root = document.querySelector("agent-chat")?.shadowRoot;
    root?.querySelectorAll("pre")[48]?.scrollIntoView();
  });
  await untilPainted(true);
});
