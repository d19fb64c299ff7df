import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn } from "./chat-page.ts";

const browser = await launchBrowser({ after });

for (const [width, mediaTypes] of [
  [1280, undefined],
  [1280, []],
  [390, undefined],
] as const) {
  const files = mediaTypes === undefined ? "files" : "no files";
  test(`at ${width} px the text field keeps its place when the server has answered, with ${files}`, async (t) => {
    const server = await startServer(t, {
      turns: [],
      agent: { chat: { welcome: "Hello,\nwhat can I do?", suggestions: ["One", "Two", "Three"] } },
      ...(mediaTypes === undefined ? {} : { mediaTypes }),
    });
    const { page } = await openPage(t, browser, { viewport: { width, height: 800 } });
    const answered = gate();
    await page.route("**/api/info", async (route) => {
      await answered.opened;
      await route.continue();
    });
    await page.goto(server.url);
    const chat = chatIn(page);
    await chat.input.fill("early");
    const before = await chat.input.boundingBox();
    answered.open();
    await page.getByRole("button", { name: "Three" }).waitFor();
    assert.deepEqual(await chat.input.boundingBox(), before);
    assert.equal(await chat.input.inputValue(), "early");
  });
}
