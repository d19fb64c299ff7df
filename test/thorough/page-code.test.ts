import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { chatIn, contents, failOnComplaints } from "../browser/chat-page.ts";
import { button, chatTag, type Visit, visit } from "../browser/launcher-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { startProxy } from "../support/proxy.ts";
import { call, hang, say, think, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

/** Asserts that Escape during an input method's composition leaves the panel open. */
async function assertCompositionHoldsEscape({ page, input }: Visit): Promise<void> {
  await input.focus();
  const device = await page.context().newCDPSession(page);
  const key = { type: "rawKeyDown", key: "Escape", code: "Escape" } as const;
  const text = { text: "にほん", selectionStart: 3, selectionEnd: 3 };
  await device.send("Input.imeSetComposition", text);
  await device.send("Input.dispatchKeyEvent", { ...key, windowsVirtualKeyCode: 27 });
  await device.send("Input.imeSetComposition", { text: "", selectionStart: 0, selectionEnd: 0 });
  // Safari sends this key event after the end of the composition, with key code 229.
  await device.send("Input.dispatchKeyEvent", { ...key, windowsVirtualKeyCode: 229 });
  assert.equal(await button(page).getAttribute("aria-expanded"), "true");
  await input.press("Escape");
  await page.locator('[part="launcher"][aria-expanded="false"]').waitFor();
}

test("Escape first stops an answer and only then closes the panel, which loses nothing: text, draft and state are there again", async (t) => {
  const chat = await visit(t, browser, { turns: [[say("Partial"), hang], [say("Two.")]] });
  await button(chat.page).click();
  await chat.say("First");
  await chat.replies.getByText("Partial").waitFor();
  await chat.page.keyboard.press("Escape");
  await chat.replies.getByText("You stopped this answer.").waitFor();
  assert.equal(await chat.input.isVisible(), true);
  await chat.input.fill("Second");
  await chat.page.keyboard.press("Escape");
  await chat.input.waitFor({ state: "hidden" });
  await button(chat.page).click();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.input.press("Enter");
  await chat.replies.getByText("Two.").waitFor();
  assert.equal(await chat.replies.count(), 2);
  assert.deepEqual(contents(chat, 1), ["First", "Partial", "Second"]);
  await assertCompositionHoldsEscape(chat);
});

/** Additions of old versions of Prototype.js to all objects, arrays, texts and numbers of a page. */
const PROTOTYPE_JS = `<script>
  Object.prototype.each = function () {};
  for (const { prototype } of [Array, String, Number, Boolean, Object]) {
    Object.defineProperty(prototype, "toJSON", { value() { return "spoiled"; } });
  }
  window.Hash = function () {};
</script>`;

for (const upgrades of ["pass", "refuse"] as const) {
  test(`beside a library that gives arrays and texts a toJSON, messages with files work and are kept, upgrades: ${upgrades}`, async (t) => {
    const server = await startServer(t, { turns: [[say("One.")], [say("Two.")]] });
    const proxy = await startProxy(t, server.port, { upgrades });
    const tag = `<script src="${proxy.url}/widget.js"></script>`;
    const site = await startSite(t, { "/": sitePage(chatTag(400) + tag, PROTOTYPE_JS) });
    const { page } = await openPage(t, browser);
    await page.goto(site.url);
    const chat = { page, server, ...chatIn(page.locator("agent-chat")) };
    await chat.files.setInputFiles({ name: "red.png", mimeType: "image/png", buffer: RED_PIXEL });
    await chat.drafts.waitFor();
    await chat.ask("First", "One.");
    await chat.ask("Second", "Two.");
    assert.equal(server.model.asked[0]?.start.attachments.length, 1);
    assert.match(JSON.stringify(contents(chat, 1)), /First.*One\..*Second/);
    await chat.input.fill("Half a thou");
    await page.reload();
    await chat.replies.getByText("Two.").waitFor();
    assert.equal(await chat.input.inputValue(), "Half a thou");
  });
}

for (const [tag, chatBody] of [
  ["agent-chat", chatTag(400, "", '<button slot="header-end">Menu</button>')],
  ["agent-chat-launcher", ""],
] as const) {
  test(`a key that the page has used is left alone by <${tag}>`, async (t) => {
    // A menu in the chat, and shortcuts that the page handles in the capture phase.
    const using = `<script>
      window.used = [];
      addEventListener("keydown", (event) => {
        if (!event.altKey && event.target.slot !== "header-end") return;
        used.push(event.key);
        event.preventDefault();
      }, true);
    </script>`;
    const chat = await visit(t, browser, { turns: [[say("One.")], [say("Half"), hang]], body: chatBody, head: using });
    const { page, input } = chat;
    if (tag === "agent-chat-launcher") {
      await page.evaluate(() => {
        const menu = Object.assign(document.createElement("button"), { slot: "header-end", textContent: "Menu" });
        document.querySelector("agent-chat-launcher")?.append(menu);
      });
      await button(page).click();
    }
    const menu = page.getByRole("button", { name: "Menu" });
    await chat.ask("First", "One.");
    await input.press("Alt+ArrowUp");
    await menu.press("Escape");
    assert.equal(await input.inputValue(), "");
    await input.fill("Second");
    await input.press("Alt+Enter");
    assert.equal(await input.inputValue(), "Second");
    assert.equal(await chat.questions.count(), 1);
    await input.press("Enter");
    await chat.replies.getByText("Half").waitFor();
    await menu.press("Escape");
    assert.equal(await chat.stop.isEnabled(), true);
    assert.equal(await input.isVisible(), true);
    assert.deepEqual(await page.evaluate("used"), ["Alt", "ArrowUp", "Escape", "Alt", "Enter", "Escape"]);
    // Keys that the page does not use work in the chat.
    await input.press("Escape");
    await chat.replies.getByText("You stopped this answer.").waitFor();
  });
}

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
  const { page, input } = await visit(t, browser, { body: chatTag(400), head: shortcuts });
  await input.focus();
  await page.keyboard.type("yes/no");
  assert.equal(await input.inputValue(), "yes/no");
  for (const key of ["Control+k", "Escape", "Tab"]) await page.keyboard.press(key);
  assert.deepEqual(await page.evaluate("heard"), ["Control", "k", "Escape", "Tab"]);
});

test("what is typed into a field that the page has put into a slot is the page's", async (t) => {
  const listening = `<script>
    window.heard = [];
    for (const type of ["keydown", "keypress", "keyup"]) document.addEventListener(type, () => heard.push(type));
  </script>`;
  const field = '<input slot="before-composer" aria-label="Order">';
  const { page } = await visit(t, browser, { body: chatTag(400, "", field), head: listening });
  await page.getByLabel("Order").press("1");
  assert.deepEqual(await page.evaluate("heard"), ["keydown", "keypress", "keyup"]);
});

test("a script that is added later, without a place of its own, works as well", async (t) => {
  const server = await startServer(t);
  const site = await startSite(t, { "/": sitePage("") });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  await page.evaluate((src) => {
    const late = document.createElement("script");
    late.src = src;
    document.head.append(late);
  }, `${server.url}/widget.js`);
  await button(page).waitFor();
});

test("what a page puts into the slots stands before the agent's name, after the buttons and above the composer", async (t) => {
  const content = `<b slot="header-start">First</b><b slot="header-end">Last</b><b slot="before-composer">Above</b>`;
  const { page, input } = await visit(t, browser, { body: chatTag(400, "", content) });
  await input.waitFor();
  assert.equal(
    await page.locator("agent-chat-launcher").count(),
    0,
    "with a chat of the page's own there is no button",
  );
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

/** Like translators of browsers and pages: replaces each text by elements of its own, also later ones. */
const TRANSLATOR = `<script>
  const translate = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const around = text.parentElement;
      if (!text.data.trim() || !around || around.closest("font, style, textarea, [translate=no]")) continue;
      const font = document.createElement("font");
      font.append(Object.assign(document.createElement("font"), { textContent: text.data.toUpperCase() }));
      text.replaceWith(font);
    }
  };
  addEventListener("agent-chat-ready", ({ target: { shadowRoot } }) => {
    const observer = new MutationObserver(() => translate(shadowRoot));
    observer.observe(shadowRoot, { subtree: true, childList: true, characterData: true });
    translate(shadowRoot);
  });
</script>`;

test("a page that is translated shows all of a growing answer, and what changes around it, but leaves code as it is", async (t) => {
  const [first, second, third] = [gate(), gate(), gate()];
  const turn = [
    ...[think("Hm"), wait(first.opened), think(", yes"), wait(second.opened)],
    ...[say("A **big** wor"), wait(third.opened), say("ld of `code`.\n\n```js\nlet a;\n```\n\n- one\n- two\n\nEnd.")],
  ];
  const chat = await visit(t, browser, {
    body: chatTag(600, 'thinking="open"'),
    head: TRANSLATOR,
    agent: { tools: [echo] },
    turns: [[...turn], [call("c1", "echo", { text: "ping" })], [say("Two.")]],
  });
  await chat.say("Go");
  await chat.thinking.getByText("HM", { exact: true }).waitFor();
  first.open();
  await chat.thinking.getByText("HM, YES", { exact: true }).waitFor();
  await chat.thinking.getByText("THINKING", { exact: true }).waitFor();
  second.open();
  await chat.answer.getByText("WOR").waitFor();
  await chat.thinking
    .getByText("THOUGHT BRIEFLY")
    .or(chat.thinking.getByText(/^THOUGHT FOR/))
    .waitFor();
  third.open();
  await chat.answered();
  await chat.answer.getByText("END.").waitFor();
  const blocks = await chat.answer.evaluate((markdown) => [...markdown.children].map((block) => block.textContent));
  assert.deepEqual(blocks.slice(2), ["ONETWO", "END."]);
  assert.equal(blocks[0], "A BIG WORLD OF code.");
  assert.match(blocks[1] ?? "", /let a;$|let a;WRAP LINES$/);
  await chat.say("Call");
  await chat.answered(2);
  await chat.tools.getByText("Echo", { exact: true }).waitFor();
});
