/** The button in the corner and its panel, as a site sets them by `data-*` on the script tag. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launchBrowser } from "../support/browser.ts";
import { isFocused } from "./chat-page.ts";
import { button, PHONE, panel, script, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

for (const [position, html, side] of [
  ["bottom-end", "", "bottom right"],
  ["bottom-start", "", "bottom left"],
  ["top-end", "", "top right"],
  ["top-start", "", "top left"],
  ["bottom-end", 'dir="rtl"', "bottom left"],
  ["top-start", 'lang="ar"', "top right"],
] as const) {
  test(`data-position="${position}" with ${html || "nothing"} on the page is the ${side}, for button and panel`, async (t) => {
    const { page } = await visit(t, browser, { script: `data-position="${position}"`, html });
    await button(page).click();
    await panel(page).waitFor();
    // The button grows a little under the pointer.
    await page.mouse.move(600, 300);
    for (const part of [button(page), panel(page)]) {
      const box = await part.boundingBox();
      assert.ok(box);
      const { width = 0, height = 0 } = page.viewportSize() ?? {};
      assert.equal(box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height, true);
      const right = Math.round(width - box.x - box.width) === 20;
      const left = Math.round(box.x) === 20;
      assert.deepEqual([left, right], [side.endsWith("left"), side.endsWith("right")]);
    }
    const top = (await button(page).boundingBox())?.y ?? 0;
    assert.equal(top === 20, side.startsWith("top"));
  });
}

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

test("a double-click on the button opens the panel, as one click does", async (t) => {
  const { page, input } = await visit(t, browser);
  await button(page).dblclick();
  await input.waitFor();
  assert.equal(await isFocused(input), true);
  await button(page).click();
  await panel(page).waitFor({ state: "hidden" });
});

test("each wrong value is reported with the attribute's name and what it takes, and the button still appears", async (t) => {
  const { page, complaints } = await visit(t, browser, {
    script:
      'data-position="middle" data-icon="https://evil.example/i.png" data-size="9" data-auto-open="soon" data-colour="red"',
  });
  await button(page).waitFor();
  const reports = complaints.splice(0).sort();
  assert.equal(reports.length, 5, reports.join("\n"));
  for (const [index, pattern] of [
    /auto-open must be a time in milliseconds, a part of the page such as "50%", "exit", or several of them, not "soon"/,
    /data-colour must be one of .*data-accent.*data-position.*not "red"/,
    /icon must be one of chat, spark, question, not "https:\/\/evil.example\/i.png"/,
    /position must be one of bottom-end, bottom-start, top-end, top-start, not "middle"/,
    /size must be one of medium, small, large, not "9"/,
  ].entries()) {
    assert.match(reports[index] ?? "", pattern);
  }
});

test("data-auto-open opens once a session without taking the focus; what is open stays open on the next page", async (t) => {
  const chat = await visit(t, browser, {
    script: 'data-auto-open="10"',
    body: "<input id=name autofocus>",
  });
  await chat.input.waitFor();
  assert.equal(await isFocused(chat.page.locator("#name")), true);
  await chat.page.goto(new URL("/next", chat.page.url()).href);
  await chat.input.waitFor();
  assert.equal(await isFocused(chat.page.locator("#name")), true);
  await chat.page.getByRole("button", { name: "Close chat" }).last().click();
  const events = await chat.page.evaluate(async () => {
    const launcher = document.createElement("agent-chat-launcher");
    launcher.server = document.querySelector("agent-chat-launcher")?.server ?? "";
    launcher.autoOpen = 0;
    document.body.append(launcher);
    await launcher.updateComplete;
    // Had a timer been set, it would have been for this turn of the event loop.
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
  assert.equal(await isFocused(chat.input), true);
  assert.equal(await panel(page).evaluate((it) => it.matches(":modal")), true);
  for (let stops = 0; stops < 12; stops++) {
    await page.keyboard.press("Tab");
    assert.equal(await isFocused(page.locator("#page")), false);
  }
  assert.equal(await page.locator('[part="expand"]').isVisible(), false);
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  assert.equal(await isFocused(button(page)), true);
});

test("a window that becomes small while the panel is open keeps text and focus", async (t) => {
  const chat = await visit(t, browser);
  await button(chat.page).click();
  await chat.input.fill("Half a sent");
  await chat.page.setViewportSize({ width: 400, height: 800 });
  await chat.page.waitForFunction(() =>
    document.querySelector("agent-chat-launcher")?.shadowRoot?.querySelector("dialog:modal"),
  );
  assert.equal(await chat.input.inputValue(), "Half a sent");
  assert.equal(await isFocused(chat.input), true);
  await chat.page.setViewportSize({ width: 1000, height: 800 });
  await chat.page.waitForFunction(() =>
    document.querySelector("agent-chat-launcher")?.shadowRoot?.querySelector("dialog:not(:modal)"),
  );
  assert.equal(await isFocused(chat.input), true);
});

test("the panel's size button makes it large and small again, inside the window", async (t) => {
  const { page } = await visit(t, browser);
  await button(page).click();
  await panel(page).waitFor();
  const before = await panel(page).boundingBox();
  await page.getByRole("button", { name: "Enlarge chat" }).click();
  const large = await panel(page).boundingBox();
  assert.ok(before && large && large.width > before.width && large.x >= 20 && large.y >= 20);
  await page.getByRole("button", { name: "Make chat smaller" }).click();
  assert.deepEqual(await panel(page).boundingBox(), before);
});

test("the page opens and closes it by code, hears of it, and gets its focus back", async (t) => {
  const { page, input } = await visit(t, browser, { body: "<button id=help>Help</button>" });
  await button(page).waitFor();
  await script(
    page,
    `window.heard = [];
     for (const name of ["agent-chat-open", "agent-chat-close"]) document.addEventListener(name, ({ type }) => heard.push(type));
     document.querySelector("#help").onclick = () => document.querySelector("agent-chat-launcher").toggle();`,
  );
  await page.locator("#help").click();
  await input.waitFor();
  assert.equal(await isFocused(input), true);
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "hidden" });
  assert.equal(await isFocused(page.locator("#help")), true);
  assert.deepEqual(await script(page, "heard"), ["agent-chat-open", "agent-chat-close"]);
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
});
