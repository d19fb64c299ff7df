/** The launcher button and its panel: configured by `data-*`, and kept from one page of a site to the next. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Page } from "playwright-core";
import type { AgentChatLauncher } from "../../widget/element/public-types.ts";
import { axeFindings } from "../support/axe.ts";
import { complained, launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { readMarkdown, tableRows } from "../support/markdown-file.ts";
import { it, test } from "../support/rows.ts";
import { call, say, think, wait } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { hasFocus, isFocused } from "./chat-page.ts";
import { button, PHONE, panel, preview, script, type Visit, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

test("its position is a corner for button and panel, on the side that the page's direction makes of it", async (t) => {
  const { page } = await visit(t, browser, { script: 'data-position="bottom-end"' });
  await button(page).click();
  await panel(page).waitFor();
  // The button grows a little under the pointer.
  await page.mouse.move(600, 300);
  const { width = 0, height = 0 } = page.viewportSize() ?? {};
  for (const [position, dir, lang, side] of [
    ["bottom-end", "", "", "bottom right"],
    ["bottom-start", "", "", "bottom left"],
    ["top-end", "", "", "top right"],
    ["top-start", "", "", "top left"],
    ["bottom-end", "rtl", "", "bottom left"],
    ["top-start", "", "ar", "top right"],
  ] as const) {
    await page.evaluate(
      async ([place, ...page]) => {
        [document.documentElement.dir = "", document.documentElement.lang = ""] = page;
        const launcher = document.querySelector("agent-chat-launcher");
        launcher?.setAttribute("position", place);
        await launcher?.updateComplete;
      },
      [position, dir, lang] as const,
    );
    for (const part of [button(page), panel(page)]) {
      const box = await part.boundingBox();
      assert.ok(box);
      assert.equal(box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height, true);
      const right = Math.round(width - box.x - box.width) === 20;
      const left = Math.round(box.x) === 20;
      assert.deepEqual([left, right], [side.endsWith("left"), side.endsWith("right")], `${position} ${dir}${lang}`);
    }
    const top = (await button(page).boundingBox())?.y ?? 0;
    assert.equal(top === 20, side.startsWith("top"));
  }
});

test("label, icon, size and accent are those of the script tag", async (t) => {
  const { page } = await visit(t, browser, {
    script: 'data-label="Ask us" data-icon="question" data-size="large" data-accent="#ffe600"',
  });
  const named = page.getByRole("button", { name: "Ask us" });
  await named.getByText("Ask us").waitFor();
  assert.equal((await named.boundingBox())?.height, 64);
  const [color, background] = await named.evaluate((it) => {
    const style = getComputedStyle(it);
    return [style.color, style.backgroundColor];
  });
  assert.equal(background, "rgb(255, 230, 0)");
  assert.match(color ?? "", /^color\(xyz-d65 0 0 0\)$/, "black on yellow");
});

test("a double-click opens the panel as one click does; it is made large and small, and keeps text and focus in a small window", async (t) => {
  const { page, input } = await visit(t, browser);
  await button(page).dblclick();
  await input.and(page.locator(":focus")).waitFor();
  const before = await panel(page).boundingBox();
  const more = page.locator('[part="more"]');
  const inHeader = page.locator("agent-chat .header button, .panel-buttons > button, .panel-buttons summary");
  const boxes = await inHeader.filter({ visible: true }).evaluateAll((all) => {
    const places = all.map((it) => it.getBoundingClientRect()).sort((one, other) => one.x - other.x);
    return places.map(({ x }, index) => x - (places[index - 1]?.right ?? x));
  });
  assert.deepEqual(boxes, [0, 4, 4], "a new conversation, more, close: with equal gaps");
  const dark = page.getByRole("button", { name: "Switch to dark theme" });
  await more.press("Enter");
  await dark.waitFor();
  await page.keyboard.press("Escape");
  await dark.waitFor({ state: "hidden" });
  await hasFocus(more);
  await more.click();
  await dark.click();
  await page.locator('agent-chat[theme="dark"]').waitFor();
  await more.click();
  await page.getByRole("button", { name: "Switch to light theme" }).waitFor();
  assert.deepEqual(await axeFindings(page), []);
  await page.getByRole("button", { name: "Enlarge chat" }).click();
  await hasFocus(page.getByRole("button", { name: "Make chat smaller" }));
  const large = await panel(page).boundingBox();
  assert.ok(before && large && large.width > before.width && large.x >= 20 && large.y >= 20);
  await page.getByRole("button", { name: "Make chat smaller" }).click();
  assert.deepEqual(await panel(page).boundingBox(), before);
  await input.fill("Half a sent");
  for (const [width, selector] of [
    [400, "dialog:modal"],
    [1000, "dialog:not(:modal)"],
  ] as const) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForFunction(
      (it) => document.querySelector("agent-chat-launcher")?.shadowRoot?.querySelector(it),
      selector,
    );
    assert.equal(await input.inputValue(), "Half a sent");
    await hasFocus(input);
  }
  await button(page).click();
  await panel(page).waitFor({ state: "hidden" });
});

it("each wrong value and misspelt name is reported once, others' attributes are not, and the chat still opens", async (t) => {
  const { page, complaints } = await visit(t, browser, {
    script:
      'data-position="middle" data-icon="https://evil.example/i.png" data-size="9" data-auto-open="soon" data-poistion="top-end" data-nscript="afterInteractive" data-cookieconsent="marketing"',
  });
  // Set like this by frameworks that render before the element is defined.
  await page.evaluate(() =>
    document.querySelector("agent-chat-launcher")?.setAttribute("toolRenderers", "[object Object]"),
  );
  await button(page).click();
  await panel(page).waitFor();
  const expected = [
    /auto-open must be a time in milliseconds, not "soon"/,
    /icon must be one of chat, spark, question, not "https:\/\/evil.example\/i.png"/,
    /position must be one of bottom-end, bottom-start, top-end, top-start, not "middle"/,
    /size must be one of medium, small, large, not "9"/,
    /^<agent-chat-launcher> toolRenderers must be set as a property once the element is defined, not "\[object Object\]"/,
    /the script tag has data-poistion\. Did you mean data-position\?/,
  ];
  for (const pattern of expected) await complained({ page, complaints }, pattern);
  const reports = complaints.splice(0).sort();
  assert.equal(reports.length, expected.length, reports.join("\n"));
  for (const [index, pattern] of expected.entries()) assert.match(reports[index] ?? "", pattern);
});

const loaded = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    performance.getEntriesByType("resource").flatMap(({ name }) => /[^/]*\.js$/.exec(name)?.[0].split("-")[0] ?? []),
  );

for (const [what, attributes, context, files] of [
  ["a bubble that is shown", 'data-preview="Questions?" data-preview-after="0"', {}, ["widget.js", "greeting"]],
  ["a time that has not come", 'data-auto-open="86400000"', {}, ["widget.js", "greeting"]],
  ["a phone, where nothing opens by itself,", 'data-auto-open="0"', PHONE, ["widget.js"]],
] as const) {
  it(`${what} has no chat loaded, and a press of the button opens it`, async (t) => {
    const { page, input } = await visit(t, browser, { script: attributes, browser: context });
    if (attributes.includes("preview")) await preview(page).waitFor();
    else if (files.length > 1) await page.locator('.launcher-root > [role="status"]').waitFor({ state: "attached" });
    else {
      await button(page).waitFor();
      await page.waitForLoadState();
      // Files that load after the page's own would be requested now.
      await page.evaluate(() => new Promise((resolve) => setTimeout(() => setTimeout(resolve))));
    }
    assert.deepEqual(await loaded(page), files);
    await button(page).click();
    await input.waitFor();
    assert.equal(await preview(page).count(), 0);
  });
}

test("data-auto-open opens once a session without taking the focus; what is open stays open on the next page", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-auto-open="10"',
    body: "<input id=name autofocus>",
  });
  await chat.input.waitFor();
  await hasFocus(chat.page.locator("#name"));
  await chat.page.goto(new URL("/next", chat.page.url()).href);
  await chat.input.waitFor();
  await hasFocus(chat.page.locator("#name"));
  await chat.page.getByRole("button", { name: "Close chat" }).last().click();
  const events = await chat.page.evaluate(async () => {
    const launcher = document.createElement("agent-chat-launcher");
    launcher.server = document.querySelector("agent-chat-launcher")?.server ?? "";
    launcher.autoOpen = 0;
    document.body.append(launcher);
    await launcher.updateComplete;
    // A timer, if there were one, would fire in this turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
    return launcher.opened;
  });
  assert.equal(events, false);
});

test("on a phone the panel is modal: the page is out of reach, and nothing opens by itself", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-auto-open="0"',
    body: "<button id=page>Buy</button>",
    browser: PHONE,
  });
  const { page } = chat;
  await button(page).waitFor();
  assert.equal(await panel(page).isVisible(), false);
  await button(page).click();
  await chat.input.waitFor();
  // The panel, not the text field, which would open the screen keyboard.
  await panel(page).and(page.locator(":focus")).waitFor();
  assert.equal(await panel(page).evaluate((it) => it.matches(":modal")), true);
  for (let stops = 0; stops < 12; stops++) {
    await page.keyboard.press("Tab");
    assert.equal(await isFocused(page.locator("#page")), false);
  }
  assert.equal(await page.locator('[part="expand"]').isVisible(), false);
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  await hasFocus(button(page));
});

for (const [what, profile] of [
  ["beside the page", { viewport: { width: 1000, height: 700 } }],
  ["on a phone", PHONE],
] as const) {
  it(`${what} neither a transform of the body nor a high layer reaches button and panel, and a modal dialog is above both`, async (t) => {
    const { page, input } = await visit(t, browser, {
      head: "<style>body { transform: translateY(300px); filter: grayscale(1) } #banner { position: fixed; inset: auto 0 0; height: 900px; z-index: 2147483647; background: gold }</style>",
      body: "<div id=banner></div><dialog><button>Buy</button></dialog>",
      browser: profile,
    });
    const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
    const box = await button(page).boundingBox();
    assert.deepEqual(box, { x: width - 76, y: height - 76, width: 56, height: 56 });
    await button(page).click();
    await input.click();
    const inside = await panel(page).boundingBox();
    assert.ok(inside && inside.y >= 0 && inside.x >= 0, JSON.stringify(inside));
    assert.ok(inside.y + inside.height <= height && inside.x + inside.width <= width, JSON.stringify(inside));
    await script(page, "document.querySelector('dialog').showModal()");
    await page.getByRole("button", { name: "Buy" }).click();
    await script(page, "document.activeElement.blur()");
    await input.focus();
    assert.equal(await isFocused(input), false, "it is out of reach");
    await script(page, "document.querySelector('dialog').close()");
    await input.focus();
    await hasFocus(input);
  });
}

test("the site's shortcut opens the chat and closes it again; keys that are used, composed or typed do nothing", async (t) => {
  const { page, input } = await visit(t, browser, {
    script: 'data-shortcut="Ctrl+Shift+K"',
    body: "<input id=field>",
    expectedComplaints: /shortcut must be like Ctrl\+Shift\+K, not "K"/,
  });
  const field = page.locator("#field");
  const keys = (value: string) => page.locator(`[part="launcher"][aria-keyshortcuts="${value}"]`);
  await keys("Control+Shift+K Meta+Shift+K").waitFor();
  await field.focus();
  await page.keyboard.press("Control+Shift+K");
  await panel(page).waitFor();
  await input.and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Control+Shift+K");
  await panel(page).waitFor({ state: "hidden" });
  await hasFocus(field);
  const isUsed = (init: Readonly<Record<string, string | boolean>>) =>
    field.evaluate((it, options) => {
      const rest = { code: "KeyK", shiftKey: true, bubbles: true, cancelable: true };
      return !it.dispatchEvent(new KeyboardEvent("keydown", { ...rest, ...options }));
    }, init);
  for (const init of [
    { key: "K" },
    { key: "K", ctrlKey: true, isComposing: true },
    { key: "K", ctrlKey: true, altKey: true },
    { key: "K", ctrlKey: true, repeat: true },
    // Events from autofill have no key.
    { key: "", ctrlKey: true },
  ]) {
    assert.equal(await isUsed(init), false, JSON.stringify(init));
  }
  assert.equal(await isUsed({ key: "k", metaKey: true }), true);
  await panel(page).waitFor();
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  await script(page, "addEventListener('keydown', (event) => event.preventDefault(), { capture: true, once: true })");
  await isUsed({ key: "K", ctrlKey: true });
  const set = (value: string) =>
    page.locator("agent-chat-launcher").evaluate(async (it, text) => {
      it.setAttribute("shortcut", text);
      await (it as AgentChatLauncher).updateComplete;
    }, value);
  // With Shift, a digit key produces another character.
  await set("Ctrl+Shift+1");
  assert.equal(await isUsed({ key: "!", code: "Digit1", ctrlKey: true }), true);
  await panel(page).waitFor();
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  // A single letter without a modifier would be triggered by typing.
  await set("K");
  assert.equal(await button(page).getAttribute("aria-keyshortcuts"), null);
  assert.equal(await isUsed({ key: "k", shiftKey: false }), false);
  await set("");
  assert.equal(await isUsed({ key: "K", ctrlKey: true }), false);
  assert.equal(await panel(page).isVisible(), false);
});

test("a request to close, such as Android's Back, closes the panel that fills the screen, and does not leave the page", async (t) => {
  const { page, input } = await visit(t, browser, { browser: PHONE });
  const address = page.url();
  await button(page).click();
  await input.waitFor();
  // Escape is also a close request if no listener gets it first.
  await script(page, "addEventListener('keydown', (event) => event.stopImmediatePropagation(), { capture: true })");
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  // The browser closes the panel before the button is notified.
  await button(page).and(page.locator('[aria-expanded="false"]')).waitFor();
  assert.equal(page.url(), address);
  await button(page).click();
  await panel(page).waitFor();
});

test("a page opens the chat by code, before anything of it is loaded, hears of it, and gets its focus back", async (t) => {
  const { page } = await visit(t, browser, { body: "<button id=help>Help</button>" });
  await button(page).waitFor();
  await script(
    page,
    `window.heard = [];
     for (const name of ["agent-chat-open", "agent-chat-close"]) document.addEventListener(name, ({ type }) => heard.push(type));
     const launcher = document.querySelector("agent-chat-launcher");
     launcher.strings = { composerLabel: "Your question" };
     document.querySelector("#help").onclick = async () => {
       await launcher.toggle();
       heard.push(launcher.opened, launcher.chat?.localName);
     };`,
  );
  await page.locator("#help").click();
  await page.getByRole("textbox", { name: "Your question" }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  await hasFocus(page.locator("#help"));
  assert.deepEqual(await script(page, "heard"), ["agent-chat-open", true, "agent-chat", "agent-chat-close"]);
});

it("what a page has set before the script came is taken over; what it has not set reads as the default", async (t) => {
  const { page, input } = await visit(t, browser, {
    script: 'data-launcher="none"',
    body: `<agent-chat-launcher icon="spark" size="huge"></agent-chat-launcher><script>
      Object.assign(document.querySelector("agent-chat-launcher"), {
        label: "Early", apiKey: "k", theme: "dark", previewAfter: 5, strings: { closeChat: "Bye" },
      });
    </script>`,
    expectedComplaints: /size must be one of/,
  });
  await page.getByRole("button", { name: "Early" }).waitFor();
  const read = await page.locator("agent-chat-launcher").evaluate((it) => {
    const launcher = it as HTMLElementTagNameMap["agent-chat-launcher"];
    const { label, apiKey, theme, icon, position, previewAfter, autoOpen, feedback, actions, renderers } = launcher;
    launcher.label = "";
    return [label, apiKey, theme, icon, position, previewAfter, autoOpen, feedback, actions, renderers === undefined];
  });
  assert.deepEqual(read, ["Early", "k", "dark", "spark", "bottom-end", "5", null, undefined, "all", true]);
  assert.equal(await page.locator("agent-chat-launcher").getAttribute("api-key"), null);
  await page.getByRole("button", { name: "Open chat" }).click();
  await input.waitFor();
  assert.equal(await button(page).getAttribute("aria-label"), "Bye");
  // The panel falls back to a valid size.
  assert.equal(await page.locator("agent-chat-launcher").evaluate((it) => Reflect.get(it, "size")), "medium");
});

test("parts, variables and slots reach the chat through the launcher", async (t) => {
  const { page } = await visit(t, browser, {
    script: 'data-launcher="none"',
    head: `<style>
      agent-chat-launcher { --agent-chat-surface: rgb(1, 2, 3); --agent-chat-inset-block: 90px; --agent-chat-inset-inline: 30px }
      agent-chat-launcher::part(header) { background: rgb(4, 5, 6) }
      agent-chat-launcher::part(launcher) { background: rgb(7, 8, 9) }
    </style>`,
    body: `<agent-chat-launcher>
      <b slot="launcher-icon">Hi</b><p slot="footer">Made by us.</p><p slot="empty">Welcome, friend.</p>
    </agent-chat-launcher>`,
  });
  await button(page).getByText("Hi").isVisible();
  const backgroundOf = (selector: string) =>
    page.locator(selector).evaluate((it) => getComputedStyle(it).backgroundColor);
  assert.equal(await backgroundOf('[part="launcher"]'), "rgb(7, 8, 9)");
  const { width = 0, height = 0 } = page.viewportSize() ?? {};
  const at = await button(page).boundingBox();
  assert.ok(at);
  assert.deepEqual([width - at.x - at.width, height - at.y - at.height], [30, 90]);
  await page.locator("agent-chat-launcher").evaluate((it: HTMLElementTagNameMap["agent-chat-launcher"]) => it.open());
  await page.getByText("Made by us.").waitFor();
  assert.ok(((await panel(page).boundingBox())?.y ?? -1) >= 20, "the panel is inside the window");
  await page.getByText("Welcome, friend.").waitFor();
  assert.equal(await backgroundOf('[part="header"]'), "rgb(4, 5, 6)");
  assert.equal(await backgroundOf('[part="send"]:disabled'), "rgb(1, 2, 3)");
  const exported = (await page.locator("agent-chat").getAttribute("exportparts"))?.split(",");
  const documented = tableRows(readMarkdown("docs/element.md"), "part").map(([name = ""]) => name);
  assert.deepEqual(exported?.toSorted(), documented.toSorted());
  await page.locator("agent-chat-launcher").evaluate((it: HTMLElementTagNameMap["agent-chat-launcher"]) => {
    const action = { name: "", label: "Own", icon: "M5 5h14", run() {} };
    it.composerActions = [{ ...action, name: "own-date" }];
    it.messageActions = [{ ...action, name: "own-save" }];
  });
  await page.locator('agent-chat[exportparts$=",own-date,own-save"]').waitFor({ state: "attached" });
});

test("data-thinking, data-tools and data-persist hold for the chat in the panel", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-thinking="open" data-tools="hidden" data-persist="none"',
    agent: { tools: [echo] },
    turns: [[think("First this."), call("c1", "echo", { text: "ping" })], [say("Done.")]],
  });
  await button(chat.page).click();
  await chat.ask("Go", "Done.");
  await chat.thinking.getByText("First this.").waitFor();
  assert.equal(await chat.tools.count(), 0);
  await chat.page.reload();
  await chat.greeting.waitFor();
  assert.equal(await chat.questions.count(), 0, "nothing was kept");
});

/** Ways to close the panel while its chat is scrolled to the middle, away from both ends. */
const CLOSINGS: readonly ((chat: Visit) => Promise<void>)[] = [
  async ({ page, messages }) => {
    await messages.evaluate((box) => box.scrollTo({ top: 300, behavior: "instant" }));
    // From the conversation to the text field, then out of the panel.
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
  },
  // Closes before the scroll event, which the browser dispatches on the next frame, when the panel is hidden.
  ({ messages }) =>
    messages.evaluate(async (box) => {
      box.scrollTo({ top: 600, behavior: "instant" });
      await new Promise((next) => box.addEventListener("scroll", next, { once: true }));
      box.scrollTo({ top: 300, behavior: "instant" });
      document.querySelector("agent-chat-launcher")?.close();
    }),
];

it("a launcher that a router moves while the chat is loading opens at the next press", async (t) => {
  const loads = gate();
  const { page, input } = await visit(t, browser);
  await page.route(/\/chunks\/panel-/, async (route) => {
    await loads.opened;
    await route.continue();
  });
  const asked = page.waitForRequest(/\/chunks\/panel-/);
  await button(page).click();
  await asked;
  await page.evaluate(() => {
    document.documentElement.replaceChild(document.createElement("body"), document.body);
  });
  await button(page).click();
  loads.open();
  await input.waitFor();
});

it("a button behind which nothing comes any more, after a new build of the server, says so and loads the page again", async (t) => {
  const { page, input } = await visit(t, browser, { expectedComplaints: /Failed to load resource/ });
  const chunks = "**/chunks/*-*";
  // From now on, the pause between two requests is longer than the test.
  await page.evaluate("Math.random = () => 1_000; document.documentElement.lang = 'de-CH'");
  await page.route(chunks, (route) => route.fulfill({ status: 404 }));
  await button(page).click();
  const reload = page.getByRole("button", { name: "Seite neu laden" });
  await reload.waitFor();
  await page.unroute(chunks);
  await Promise.all([page.waitForEvent("load"), reload.click()]);
  await button(page).click();
  await input.waitFor();
});

it("a reader who had scrolled up finds the same place when the panel was closed and is opened again", async (t) => {
  const long = Array.from({ length: 60 }, (_, index) => `Paragraph ${index}.`).join("\n\n");
  const chat = await visit(t, browser, { turns: [[say(long)]] });
  await button(chat.page).click();
  await chat.ask("Go", long);
  const jump = chat.page.locator('[part="jump"]');
  for (const close of CLOSINGS) {
    await chat.messages.press("Home");
    await jump.waitFor();
    await close(chat);
    await panel(chat.page).waitFor({ state: "hidden" });
    await button(chat.page).click();
    await jump.waitFor();
    // The resize observers report the panel's new size only after a frame.
    await chat.page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
    assert.equal(await chat.messages.evaluate((box) => box.scrollTop), 300);
    assert.equal(await jump.count(), 1);
  }
});

test("an answer that ends after the next page has loaded is told of there, and still counted on the one after", async (t) => {
  const left = gate();
  const chat = await visit(t, browser, {
    turns: [[say("Let me"), wait(left.opened), say(" see.")]],
  });
  const { page } = chat;
  await button(page).click();
  await chat.say("Go");
  await chat.replies.getByText("Let me").waitFor();
  await page.getByRole("button", { name: "Close chat" }).last().click();
  await page.goto(new URL("/next", page.url()).href);
  await button(page).waitFor();
  left.open();
  await page.getByRole("button", { name: "Let me see." }).waitFor();
  await page.goto(new URL("/", page.url()).href);
  const news = page.getByRole("button", { name: "Open chat, 1 new message" });
  await news.waitFor();
  assert.equal(await chat.input.count(), 0, "nothing is awaited, and no chat was built");
  await news.click();
  await chat.replies.getByText("Let me see.").waitFor();
  await page.reload();
  await chat.input.waitFor();
  assert.equal(await page.locator('[part="unread"]').count(), 0);
});

it("a panel that was made large is large on the next page, and one that was closed there is closed after going back", async (t) => {
  const { page, input } = await visit(t, browser, { body: "<input id=name autofocus>" });
  await button(page).click();
  await page.locator('[part="more"]').click();
  await page.getByRole("button", { name: "Enlarge chat" }).click();
  await page.goto(new URL("/next", page.url()).href);
  await page.getByRole("button", { name: "Make chat smaller" }).waitFor();
  await hasFocus(page.locator("#name"));
  // Simulates restoring the page from the back/forward cache.
  await page.evaluate(() => {
    const [name = ""] = Object.keys(sessionStorage).filter((it) => /^agent-chat-panel:/.test(it));
    const state = JSON.parse(sessionStorage.getItem(name) ?? "");
    sessionStorage.setItem(name, JSON.stringify({ ...state, open: false }));
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  });
  await panel(page).waitFor({ state: "hidden" });
  await input.waitFor({ state: "hidden" });
});

it("what else is in the launcher's place of the storage is taken for nothing", async (t) => {
  const { page } = await visit(t, browser);
  await button(page).click();
  await panel(page).waitFor();
  await page.waitForFunction(() => Object.keys(sessionStorage).some((name) => name.startsWith("agent-chat-panel:")));
  for (const text of ["open", "null", '{"open":1,"unread":"<b>","wide":"yes","preview":{}}']) {
    await page.evaluate((value) => {
      for (const name of Object.keys(sessionStorage)) {
        if (name.startsWith("agent-chat-panel:")) sessionStorage.setItem(name, value);
      }
    }, text);
    await page.reload();
    await page.getByRole("button", { name: "Open chat", exact: true }).waitFor();
    assert.equal(await panel(page).isVisible(), false);
  }
});
