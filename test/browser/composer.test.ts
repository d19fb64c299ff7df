import assert from "node:assert/strict";
import { after } from "node:test";
import type { Locator } from "playwright-core";
import type { AgentChat, ComposerAction } from "../../widget/element/public-types.ts";
import { complained, launchBrowser, openPage } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { it, test } from "../support/rows.ts";
import { say } from "../support/scripted-provider.ts";
import { startServer } from "../support/start-server.ts";
import { chatIn, contents, hasFocus, holdInfo, isFocused, openChat, paste, shown } from "./chat-page.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

for (const [width, mediaTypes] of [
  [1280, undefined],
  [1280, []],
  [390, undefined],
] as const) {
  const files = mediaTypes === undefined ? "files" : "no files";
  it(`at ${width} px the text field keeps its place when the server has answered, with ${files}`, async (t) => {
    const server = await startServer(t, {
      turns: [],
      agent: { chat: { welcome: "Hello,\nwhat can I do?", suggestions: ["One", "Two", "Three"] } },
      ...(mediaTypes === undefined ? {} : { mediaTypes }),
    });
    const { page } = await openPage(t, browser, { viewport: { width, height: 800 } });
    const answer = await holdInfo(page);
    await page.goto(server.url);
    const chat = chatIn(page);
    await chat.input.fill("early");
    await page.locator(".bone").waitFor();
    // If no files are accepted, the text moves to the place of their button.
    const place = async () => {
      const [card, field] = [await page.locator('[part="composer"]').boundingBox(), await chat.input.boundingBox()];
      return [card, field?.y, field?.height, mediaTypes === undefined && field?.x];
    };
    const before = await place();
    answer();
    await page.getByRole("button", { name: "Three" }).waitFor();
    assert.deepEqual(await place(), before);
    assert.equal(await page.locator(".bone").count(), 0, "what stood for the greeting is gone");
    assert.equal(await chat.input.inputValue(), "early");
  });
}

test("a text of several lines has the card's whole width, until it is gone", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Hi.")]] });
  const left = (locator: Locator) => locator.evaluate((it) => it.getBoundingClientRect().left);
  /** The indent of the text, and the bottom of the field relative to the top of the send button. */
  const place = async () => ({
    indent: await chat.input.evaluate(
      (it) => it.getBoundingClientRect().left + Number.parseFloat(getComputedStyle(it).paddingLeft),
    ),
    above: await chat.input.evaluate(
      (field, button) => {
        const top = (button as Element).getBoundingClientRect().top;
        return field.getBoundingClientRect().bottom <= top;
      },
      await chat.send.elementHandle(),
    ),
  });
  await chat.page.getByRole("button", { name: "Attach files" }).and(chat.page.locator(":enabled")).waitFor();
  const one = await place();
  assert.equal(one.above, false);
  await chat.input.fill("one\ntwo");
  const two = await place();
  assert.equal(two.above, true, "the buttons stand below");
  assert.ok(two.indent < one.indent, "nothing stands beside the text");
  const edge = await left(chat.input);
  await chat.input.fill("one");
  assert.deepEqual(await place(), two, "no jump while one writes");
  assert.equal(await left(chat.input), edge);
  await chat.input.fill("");
  assert.deepEqual(await place(), one);
});

const PROGRAM = Array.from({ length: 120 }, (_, line) => `  line ${line + 1}`).join("\n");

test("a long text that is pasted stands as a file above the text field, and is sent behind what is written", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("I see.")], [say("All of it.")]] });
  const spoken = await listen(chat.page);
  await chat.input.fill("What is wrong here?");
  assert.equal(await paste(chat.input, "one\ntwo"), true);
  assert.equal(await paste(chat.input, PROGRAM.replaceAll("\n", "\r\n")), false);
  assert.match(await shown(chat.drafts), /^line 1\s*TXT · 1\.2 kB$/);
  await untilHeard(chat.page, spoken, "line 1 attached.");
  assert.equal(await chat.input.inputValue(), "What is wrong here?");
  await chat.input.press("Enter");
  await chat.replies.getByText("I see.").waitFor();
  assert.equal(await chat.drafts.count(), 0);
  assert.deepEqual(contents(chat, 0), [`What is wrong here?\n\n${PROGRAM}`]);
  // Also without other text.
  await paste(chat.input, PROGRAM);
  await chat.send.click();
  await chat.replies.getByText("All of it.").waitFor();
  assert.equal(contents(chat, 1)?.at(-1), PROGRAM.trim());
});

test("a long text that is pasted can be taken out, or be put into the field, where one that replaces words stays", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  await chat.input.fill("Look:");
  await paste(chat.input, PROGRAM);
  await paste(chat.input, `${"x".repeat(5_000)}`);
  await paste(chat.input, "y\n".repeat(100));
  await chat.page.getByRole("button", { name: "Remove x" }).press("Enter");
  await hasFocus(chat.page.getByRole("button", { name: "Remove y" }));
  await chat.page.getByRole("button", { name: "Remove y" }).click();
  await hasFocus(chat.input);
  await chat.drafts.getByRole("button", { name: "line 1 TXT · 1.2 kB", exact: true }).press("Enter");
  await hasFocus(chat.input);
  assert.equal(await chat.drafts.count(), 0);
  assert.equal(await chat.input.inputValue(), `Look:\n\n${PROGRAM}`);
  await chat.input.press("ControlOrMeta+a");
  assert.equal(await paste(chat.input, PROGRAM), true, "left to the browser");
  await chat.input.press("ControlOrMeta+Home");
  assert.equal(await paste(chat.input, PROGRAM), true, "left to the browser, before other words");
  await chat.input.fill("");
  await paste(chat.input, PROGRAM);
  await chat.drafts.getByRole("button", { name: /^line 1/ }).click();
  assert.equal(await chat.input.inputValue(), PROGRAM);
});

test("a long text that is put into the field while it is being sent is sent once, and is gone then", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("I see.")]] });
  await chat.input.fill("Look:");
  await paste(chat.input, PROGRAM);
  await paste(chat.input, "y\n".repeat(100));
  await chat.drafts.nth(1).getByRole("button", { name: /^y/ }).waitFor();
  await chat.input.evaluate((field) => {
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    (field.getRootNode() as ShadowRoot).querySelector<HTMLElement>('[part="unfold"]')?.click();
  });
  await chat.replies.getByText("I see.").waitFor();
  assert.deepEqual(contents(chat, 0), [`Look:\n\n${PROGRAM}\n\n${"y\n".repeat(100).trim()}`]);
  assert.deepEqual([await chat.drafts.count(), await chat.input.inputValue()], [0, ""]);
});

test("a long text that was pasted is there after another conversation, and after a reload in the field", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("Hi.")]] });
  await chat.ask("Hello", "Hi.");
  await chat.input.fill("Look:");
  await paste(chat.input, PROGRAM);
  await chat.drafts.waitFor();
  await chat.page.getByRole("button", { name: "New conversation" }).click();
  await chat.greeting.waitFor();
  assert.deepEqual([await chat.drafts.count(), await chat.input.inputValue()], [0, ""]);
  await chat.page.locator(`[part="conversation"]`).filter({ hasText: "Hello" }).click();
  await chat.drafts.waitFor();
  assert.equal(await chat.input.inputValue(), "Look:");
  await chat.page.reload();
  await chat.replies.getByText("Hi.").waitFor();
  await chat.page.waitForFunction(
    (text) => document.querySelector("agent-chat")?.shadowRoot?.querySelector("textarea")?.value === text,
    `Look:\n\n${PROGRAM}`,
  );
});

it("a press within the card beside the text field puts the cursor there, and keeps it; one that is meant for something else does not", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  const { mouse } = chat.page;
  const card = chat.page.locator('[part="composer"]');
  const files = ["a", "b"].map((name) => {
    // Extra bytes at its end make the picture a different file.
    const buffer = Buffer.concat([RED_PIXEL, Buffer.from(name)]);
    return { name: `${name}.png`, mimeType: "image/png", buffer };
  });
  await chat.files.setInputFiles([...files, { name: "no.txt", mimeType: "text/plain", buffer: Buffer.from("No") }]);
  const chips = card.locator('[part="attachment"]');
  await chips.nth(1).waitFor();
  const refused = card.getByText("no.txt");
  await refused.waitFor();
  await chat.input.fill("one\ntwo");
  const attach = chat.page.locator('[part="attach"]');
  const [outer, chip, left, right] = await Promise.all(
    [card, chips.first(), attach, chat.send].map((it) => it.boundingBox()),
  );
  assert.ok(outer && chip && left && right);
  const places = {
    "between its buttons": [(left.x + right.x) / 2, right.y + right.height / 2],
    "the start of the card": [outer.x + 4, outer.y + outer.height / 2],
    "its lower edge": [outer.x + outer.width / 2, outer.y + outer.height - 4],
    "between two files": [chip.x + chip.width + 4, chip.y + chip.height / 2],
    "behind the files": [outer.x + outer.width - 40, chip.y + chip.height / 2],
  } as const;
  for (const [place, [x, y]] of Object.entries(places)) {
    await chat.input.blur();
    await mouse.click(x, y);
    await hasFocus(chat.input, place);
    await mouse.click(x, y);
    await hasFocus(chat.input, `${place}, again`);
  }
  await chat.input.blur();
  await mouse.click(chip.x + chip.width / 2, chip.y + chip.height / 2);
  assert.equal(await isFocused(chat.input), false, "a file");
  await refused.dblclick();
  assert.equal(await isFocused(chat.input), false, "a text that is selected");
  assert.match(String(await chat.page.evaluate(() => getSelection())), /\w/);
  await attach.hover();
  await mouse.down();
  await hasFocus(attach);
});

it("a draft has the direction of its text; a very long one keeps it, for which a browser need not look through all of it with each key", async (t) => {
  const { input, page } = await openChat(t, browser, { turns: [] });
  for (const [text, is, other] of [
    ["שלום ", "rtl", "Hello "],
    ["Hello ", "ltr", "שלום "],
  ] as const) {
    const direction = () => input.evaluate((field) => getComputedStyle(field).direction);
    await input.fill(text);
    assert.equal(await direction(), is);
    await input.fill(text.repeat(5_000));
    await input.and(page.locator(`[dir="${is}"]`)).waitFor();
    await input.press("End");
    await input.pressSequentially("!");
    assert.equal(await direction(), is);
    await input.fill(other);
    await input.and(page.locator('[dir="auto"]')).waitFor();
    assert.equal(await direction(), is === "rtl" ? "ltr" : "rtl");
  }
});

test("a page adds buttons of its own, which write into the field, are hidden, or fail with a warning", async (t) => {
  const chat = await openChat(t, browser, { turns: [], expectedComplaints: /"(broken|shy)" failed/ });
  const { page } = chat;
  await page.locator("agent-chat").evaluate((element) => {
    const icon = "M5 5h14v14H5z";
    const actions: readonly ComposerAction[] = [
      {
        name: "insert-date",
        label: "Insert the date",
        icon,
        isAvailable({ draft }) {
          return !draft.includes("2026");
        },
        run(composer) {
          composer.insert("2026-11-24");
          composer.focus();
        },
      },
      {
        name: "shy",
        label: "Shy",
        icon,
        isAvailable() {
          throw new Error("No");
        },
        run() {},
      },
      {
        name: "broken",
        label: "Broken",
        icon,
        async run() {
          throw new Error("No");
        },
      },
    ];
    (element as AgentChat).composerActions = actions;
  });
  await chat.input.fill("Today is T, I think");
  await chat.input.evaluate((field) => (field as HTMLTextAreaElement).setSelectionRange(9, 10));
  const insert = page.getByRole("button", { name: "Insert the date" });
  assert.equal(await insert.getAttribute("part"), "insert-date");
  await insert.click();
  assert.equal(await chat.input.inputValue(), "Today is 2026-11-24, I think");
  assert.equal(await chat.input.evaluate((field) => (field as HTMLTextAreaElement).selectionStart), 19);
  await hasFocus(chat.input);
  assert.equal(await insert.count(), 0, "it is not available any more");
  await page.getByRole("button", { name: "Broken" }).click();
  assert.equal(await page.getByRole("button", { name: "Shy" }).count(), 0);
  await complained(chat, /"broken" failed/);
  await complained(chat, /"shy" failed/);
});

it("such a button stands beside the one that sends: on a phone in line with the text, else below it", async (t) => {
  const chat = await openChat(t, browser, { turns: [] });
  await chat.page.locator("agent-chat").evaluate((element) => {
    const action = { name: "date", label: "Date", icon: "M5 5h14v14H5z", run() {} };
    (element as AgentChat).composerActions = [action];
  });
  for (const [width, text] of [
    [390, "one"],
    [1280, "one\ntwo"],
  ] as const) {
    await chat.page.setViewportSize({ width, height: 800 });
    await chat.page.waitForFunction((it) => innerWidth === it, width);
    await chat.input.fill(text);
    const [date, send] = await Promise.all(
      [chat.page.getByRole("button", { name: "Date" }), chat.send].map((it) => it.boundingBox()),
    );
    assert.ok(date && send);
    assert.equal(date.y, send.y);
    assert.ok(send.x - (date.x + date.width) <= 8, "with no gap between them");
  }
});

test("a page puts the cursor into the text field, or into the field for the key while that is asked for", async (t) => {
  const chat = await openChat(t, browser, {
    env: { PARLEY_CHAT_KEY: "open-sesame" },
    turns: [],
    expectedComplaints: /WebSocket|401/,
  });
  const focusComposer = () => chat.page.locator("agent-chat").evaluate((it) => (it as AgentChat).focusComposer());
  await chat.keyField.waitFor();
  await chat.keyField.blur();
  await focusComposer();
  await hasFocus(chat.keyField);
  await chat.keyField.fill("open-sesame");
  await chat.keyField.press("Enter");
  await chat.input.waitFor();
  await chat.input.blur();
  await focusComposer();
  await hasFocus(chat.input);
});
