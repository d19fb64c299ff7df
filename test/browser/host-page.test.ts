import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { launchBrowser, openPage } from "../support/browser.ts";
import { hang, say, type Turn } from "../support/scripted-provider.ts";
import { type SitePage, sitePage, startSite } from "../support/site.ts";
import { startServer, type TestServer } from "../support/start-server.ts";
import { type ChatElement, chatIn, failOnComplaints, isFocused } from "./chat-page.ts";

const browser = await launchBrowser({ after });

interface Visit extends ChatElement {
  page: Page;
  server: TestServer;
}

/** Opens a page of another site, made for the server's address. */
async function visit(t: TestContext, make: (server: string) => SitePage, turns: readonly Turn[] = []): Promise<Visit> {
  const server = await startServer(t, { turns });
  const site = await startSite(t, { "/": make(server.url) });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  return { page, server, ...chatIn(page.locator("agent-chat")) };
}

const script = (server: string) => `<script src="${server}/widget.js"></script>`;
const withScript = (server: string) => sitePage(script(server));
const launcher = (page: Page) => page.locator('[part="launcher"]');

test("the launcher opens a panel with the cursor in its text field, and Escape closes it", async (t) => {
  const { page, input } = await visit(t, withScript);
  await page.getByRole("button", { name: "Open chat" }).click();
  const panel = page.getByRole("dialog", { name: "Chat" });
  await panel.waitFor();
  await input.waitFor();
  assert.equal(await isFocused(input), true);
  assert.equal(await launcher(page).getAttribute("aria-expanded"), "true");
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "hidden" });
  assert.equal(await isFocused(launcher(page)), true, "the focus is back on the button");
  assert.equal(await launcher(page).getAttribute("aria-expanded"), "false");
});

test("closing the panel loses nothing: text, draft and state are there again", async (t) => {
  const chat = await visit(t, withScript, [[say("One.")], [say("Two.")]]);
  await launcher(chat.page).click();
  await chat.ask("First", "One.");
  await chat.input.fill("Second");
  await chat.page.keyboard.press("Escape");
  await chat.input.waitFor({ state: "hidden" });
  await launcher(chat.page).click();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.input.press("Enter");
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.replies.count(), 2);
  const contents = chat.server.model.asked[1]?.messages.map(({ content }) => content);
  assert.deepEqual(contents, ["First", "One.", "Second"]);
});

test("Escape first stops a running answer and only then closes the panel", async (t) => {
  const chat = await visit(t, withScript, [[say("Partial"), hang]]);
  await launcher(chat.page).click();
  await chat.say("Go");
  await chat.replies.getByText("Partial").waitFor();
  await chat.page.keyboard.press("Escape");
  await chat.replies.getByText("You stopped this answer.").waitFor();
  assert.equal(await chat.input.isVisible(), true);
  await chat.page.keyboard.press("Escape");
  await chat.input.waitFor({ state: "hidden" });
});

test("Escape that takes back an input method's text leaves the panel open", async (t) => {
  const { page, input } = await visit(t, withScript);
  await launcher(page).click();
  await input.focus();
  const device = await page.context().newCDPSession(page);
  const key = { type: "rawKeyDown", key: "Escape", code: "Escape" } as const;
  const text = { text: "にほん", selectionStart: 3, selectionEnd: 3 };
  await device.send("Input.imeSetComposition", text);
  await device.send("Input.dispatchKeyEvent", { ...key, windowsVirtualKeyCode: 27 });
  await device.send("Input.imeSetComposition", { text: "", selectionStart: 0, selectionEnd: 0 });
  // Safari sends the key after the composition has ended, with the code 229.
  await device.send("Input.dispatchKeyEvent", { ...key, windowsVirtualKeyCode: 229 });
  assert.equal(await launcher(page).getAttribute("aria-expanded"), "true");
  await input.press("Escape");
  await page.locator('[part="launcher"][aria-expanded="false"]').waitFor();
});

test("what is typed is no shortcut of the page, which still hears of Ctrl, Tab and Escape", async (t) => {
  const shortcuts = `<script>
    window.heard = [];
    for (const type of ["keydown", "keypress", "keyup"]) {
      document.addEventListener(type, (event) => {
        if (event.target.matches("input, textarea")) return;
        if (type === "keydown") heard.push(event.key);
        if (event.key === "/" || event.key === "s") event.preventDefault();
      });
    }
  </script>`;
  const { page, input } = await visit(t, (server) =>
    sitePage(`<agent-chat style="height: 400px"></agent-chat>${script(server)}`, shortcuts),
  );
  await input.focus();
  await page.keyboard.type("yes/no");
  assert.equal(await input.inputValue(), "yes/no");
  for (const key of ["Control+k", "Escape", "Tab"]) await page.keyboard.press(key);
  assert.deepEqual(await page.evaluate("heard"), ["Control", "k", "Escape", "Tab"]);
});

test("the panel's own button closes it", async (t) => {
  const chat = await visit(t, withScript);
  await launcher(chat.page).click();
  await chat.page.getByRole("dialog").getByRole("button", { name: "Close chat" }).click();
  await chat.input.waitFor({ state: "hidden" });
});

test("a chat that the page has placed by hand shows at once, and no launcher appears", async (t) => {
  const chat = await visit(
    t,
    (server) => sitePage(`<agent-chat server="${server}" style="height: 400px"></agent-chat>${script(server)}`),
    [[say("By hand.")]],
  );
  await chat.ask("Hi", "By hand.");
  assert.equal(await chat.page.locator("agent-chat-launcher").count(), 0);
  const box = await chat.page.locator("agent-chat").boundingBox();
  assert.equal(box?.height, 400);
});

test("a hand-placed chat takes the key from its attribute", async (t) => {
  const server = await startServer(t, {
    turns: [[say("Let in.")]],
    env: { PARLEY_WIDGET_KEY: "w-1" },
  });
  const element = `<agent-chat server="${server.url}" api-key="w-1" style="height: 400px"></agent-chat>`;
  const site = await startSite(t, { "/": sitePage(element + script(server.url)) });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(site.publicUrl);
  await chatIn(page).ask("Hi", "Let in.");
});

test("a script that is loaded twice makes one launcher and no complaint", async (t) => {
  const { page } = await visit(t, (server) => sitePage(script(server) + script(server)));
  await launcher(page).waitFor();
  assert.equal(await page.locator("agent-chat-launcher").count(), 1);
});

test("a script that is added later, without a place of its own, works as well", async (t) => {
  const { page, server } = await visit(t, () => sitePage(""));
  await page.evaluate((src) => {
    const late = document.createElement("script");
    late.src = src;
    document.head.append(late);
  }, `${server.url}/widget.js`);
  await launcher(page).waitFor();
});

test("two chats on one page are two conversations", async (t) => {
  const place = `<agent-chat style="height: 300px"></agent-chat>`;
  const { page, server } = await visit(t, (url) => sitePage(place + place + script(url)), [
    [say("To the first.")],
    [say("To the second.")],
  ]);
  const [first, second] = [0, 1].map((index) => chatIn(page.locator("agent-chat").nth(index)));
  await first?.ask("I am first", "To the first.");
  await second?.ask("I am second", "To the second.");
  assert.equal(await first?.replies.count(), 1);
  assert.deepEqual(
    server.model.asked[1]?.messages.map(({ content }) => content),
    ["I am second"],
  );
});

test("what a page puts into the slots stands before the agent's name, after the buttons and above the composer", async (t) => {
  const content = `<b slot="header-start">First</b><b slot="header-end">Last</b><b slot="before-composer">Above</b>`;
  const { page, input } = await visit(t, (url) =>
    sitePage(`<agent-chat style="height: 400px">${content}</agent-chat>${script(url)}`),
  );
  await input.waitFor();
  const box = async (locator: Locator) => {
    const found = await locator.boundingBox();
    assert.ok(found);
    return { ...found, right: found.x + found.width, bottom: found.y + found.height };
  };
  const [first, last, above] = await Promise.all(
    ["First", "Last", "Above"].map((text) => box(page.getByText(text, { exact: true }))),
  );
  assert.ok(first && last && above);
  const [header, composer] = await Promise.all(
    ["header", "composer"].map((part) => box(page.locator(`[part~="${part}"]`))),
  );
  assert.ok(header && composer);
  const theme = await box(page.getByRole("button", { name: "Switch to dark theme" }));
  assert.ok(first.bottom <= header.bottom && first.right < theme.x, "before");
  assert.ok(last.x >= theme.right && last.bottom <= header.bottom, "after");
  assert.ok(above.bottom <= composer.y && above.y > header.bottom, "above");
});
