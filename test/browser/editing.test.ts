/** What is done with messages afterwards: change one, ask again, take an answer along. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiError } from "../../server/protocol/errors.ts";
import { launchBrowser } from "../support/browser.ts";
import { RED_PIXEL } from "../support/files.ts";
import { fail, say } from "../support/scripted-provider.ts";
import { type ChatPage, canCopy, contents, isDrawn, isFocused, openChat, shown } from "./chat-page.ts";
import { chatTag, visit } from "./launcher-page.ts";

const browser = await launchBrowser({ after });

const change = ({ questions }: ChatPage, number: number) =>
  questions.nth(number).getByRole("button", { name: "Change this message" });

test("an earlier message is changed in the composer, the conversation goes on from there, and its last answer is given again", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")], [say("Three.")], [say("Another.")], [say("On.")], [say("On, then.")]],
  });
  await chat.ask("First", "One.");
  await chat.ask("Second", "Two.");
  await chat.ask("Third", "Three.");
  await chat.input.fill("A draft that waits");
  await change(chat, 1).click();
  assert.equal(await chat.input.inputValue(), "Second");
  await chat.page.locator('[part="editing"]').getByText("What follows it will be replaced").waitFor();
  await chat.say("Second, changed");
  await chat.replies.getByText("Another.").waitFor();
  assert.equal(await chat.questions.count(), 2);
  assert.equal(await chat.replies.getByText("Three.").count(), 0);
  assert.deepEqual(contents(chat, 3), ["First", "One.", "Second, changed"]);
  assert.equal(await chat.input.inputValue(), "A draft that waits");
  await chat.ask("And on", "On.");
  const changed = ["First", "One.", "Second, changed", "Another.", "And on"];
  assert.deepEqual(contents(chat, 4), changed);
  await chat.page.getByRole("button", { name: "Answer again" }).click();
  await chat.replies.getByText("On, then.").waitFor();
  assert.equal(await chat.replies.count(), 3);
  assert.deepEqual(contents(chat, 5), changed);
});

test("arrow up in an empty field takes up the last message, Escape leaves it as it was", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")], [say("Better.")]] });
  await chat.ask("Frist", "One.");
  await canCopy(chat.page);
  // With another key it is a command of the browser or of an assistive program.
  for (const modifier of ["Shift", "Alt", "Control", "Meta"]) {
    await chat.input.press(`${modifier}+ArrowUp`);
    assert.equal(await chat.input.inputValue(), "", modifier);
  }
  await chat.input.press("ArrowUp");
  assert.equal(await chat.input.inputValue(), "Frist");
  await chat.input.press("Escape");
  assert.equal(await chat.input.inputValue(), "");
  assert.equal(await chat.replies.count(), 1);
  await chat.input.press("ArrowUp");
  await chat.say("First");
  await chat.replies.getByText("Better.").waitFor();
  assert.deepEqual(contents(chat, 1), ["First"]);
});

test("after a reload a message can still be changed, also where the provider keeps the conversation", async (t) => {
  for (const stateKind of ["conversation_history", "previous_response_id"] as const) {
    const chat = await openChat(t, browser, {
      stateKind,
      turns: [[say("One.")], [say("Two.")], [say("Other.")]],
    });
    await chat.ask("First", "One.");
    await chat.ask("Second", "Two.");
    await chat.page.reload();
    await change(chat, 1).click();
    // What changes messages comes by itself; a draft that is written before is one of its own.
    await chat.page.locator('[part="editing"]').waitFor();
    await chat.say("Changed");
    await chat.replies.getByText("Other.").waitFor();
    const asked = chat.server.model.asked[2];
    if (stateKind === "previous_response_id") assert.equal(asked?.previousId, "resp_1");
    else assert.deepEqual(contents(chat, 2), ["First", "One.", "Changed"]);
  }
});

test("a changed message keeps its files; after a reload it says that they have to be attached again", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("A dot.")], [say("Red.")]] });
  await chat.files.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL });
  const remove = chat.page.getByRole("button", { name: "Remove dot.png" });
  await remove.waitFor();
  await chat.ask("What is it?", "A dot.");
  await change(chat, 0).click();
  await remove.waitFor();
  await chat.say("Which colour?");
  await chat.replies.getByText("Red.").waitFor();
  assert.match(JSON.stringify(contents(chat, 1)), /Which colour\?.*image_url/);
  await chat.page.reload();
  await change(chat, 0).click();
  await chat.page.getByText("attach them again").waitFor();
  assert.equal(await chat.page.getByRole("button", { name: "Answer again" }).count(), 0);
});

test("a picture that waits while a message is changed is there again when that is left, and one that was added is not", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("One.")]] });
  await chat.ask("First", "One.");
  const image = chat.drafts.getByRole("img");
  const add = async (name: string) => {
    await chat.files.setInputFiles({ name, mimeType: "image/png", buffer: RED_PIXEL });
    await isDrawn(image.and(chat.page.getByAltText(name)));
  };
  await add("waiting.png");
  await change(chat, 0).click();
  await image.waitFor({ state: "detached" });
  await add("added.png");
  await chat.input.press("Escape");
  await isDrawn(image.and(chat.page.getByAltText("waiting.png")));
  assert.equal(await image.count(), 1);
});

test("where states are signed, a reload does not pretend that the agent knows a conversation with files", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("A dot.")], [say("Hello.")]],
    env: { PARLEY_STATE_SECRET: "a-secret-of-thirty-two-characters" },
  });
  await chat.files.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL });
  await chat.page.getByRole("button", { name: "Remove dot.png" }).waitFor();
  await chat.ask("What is it?", "A dot.");
  await chat.page.reload();
  await chat.page.getByText("no longer knows what is above").waitFor();
  await chat.ask("Hi", "Hello.");
  assert.deepEqual(contents(chat, 1), ["Hi"]);
});

/** Copies the answer with its button; gives what other programs are handed. */
async function copyAnswer({ page }: ChatPage): Promise<{ text: string; html: string }> {
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const [text = "", html = ""] = await page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    const types = ["text/plain", "text/html"];
    return Promise.all(types.map(async (type) => (await item?.getType(type))?.text()));
  });
  return { text, html };
}

test("a person's own message can be copied as it was written", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Two lines.")]],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.ask("one\n  **two**", "Two lines.");
  await chat.questions.getByRole("button", { name: "Copy message" }).click();
  await chat.questions.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await chat.page.evaluate(() => navigator.clipboard.readText()), "one\n  **two**");
});

test("a copied answer is Markdown for editors, and for others what it looks like, HTML as a line of its own", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [say("# Title\n\n**Bold** and [a link](https://a.example/).\n\n```js\nlet a;\n```\n\n- item\n- item\n  <div>")],
    ],
    browser: { permissions: ["clipboard-read", "clipboard-write"] },
  });
  await chat.say("Go");
  await canCopy(chat.page);
  const { text, html } = await copyAnswer(chat);
  assert.match(text, /^# Title\n\n\*\*Bold\*\*/);
  assert.match(html, /<h1>Title<\/h1>.*<strong>Bold<\/strong>.*<a href="https:\/\/a\.example\/">a link<\/a>/s);
  assert.match(html, /<ul><li>item<\/li><li>item<p>&lt;div&gt;<\/p><\/li><\/ul>$/);
  assert.doesNotMatch(html, /<button|<div|class=|Copy/);
  assert.equal(await shown(chat.questions), "You said:\nGo");
});

test("the buttons of earlier messages come into sight when they are pointed at or have the focus, and are always there for the keyboard", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")]],
    browser: { reducedMotion: "reduce" },
  });
  await chat.page.locator("agent-chat").evaluate((element) => element.setAttribute("feedback", ""));
  await chat.ask("First", "One.");
  await chat.ask("Second", "Two.");
  const first = chat.replies.first().getByRole("button");
  await chat.replies.first().getByRole("button", { name: "Bad answer" }).waitFor();
  const visible = () => first.evaluateAll((buttons) => buttons.map((it) => getComputedStyle(it).opacity).join(" "));
  await chat.page.mouse.move(0, 0);
  assert.equal(await visible(), "0 0 0");
  await chat.replies.first().hover();
  assert.equal(await visible(), "1 1 1");
  await chat.page.mouse.move(0, 0);
  await chat.questions.first().getByRole("button", { name: "Copy message" }).focus();
  for (const name of ["Copy answer", "Good answer", "Bad answer"]) {
    await chat.page.keyboard.press("Tab");
    assert.equal(await isFocused(first.and(chat.page.getByLabel(name))), true, name);
    assert.equal(await visible(), "1 1 1");
  }
});

test("an answer is copied on a page without HTTPS, too, and the focus stays", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say("**Bold**")]],
    env: { PARLEY_ALLOWED_ORIGINS: "*" },
    body: chatTag(400),
    from: "publicUrl",
  });
  const { page } = chat;
  assert.equal(await page.evaluate(() => window.isSecureContext), false);
  await chat.ask("Go", "Bold");
  await page.getByRole("button", { name: "Copy answer" }).click();
  const button = page.getByRole("button", { name: "Copied" });
  await button.waitFor();
  assert.equal(await isFocused(button), true);
  await chat.input.press("ControlOrMeta+V");
  assert.equal(await chat.input.inputValue(), "**Bold**");
});

test("copying an answer asks nobody for its images", async (t) => {
  const chat = await visit(t, browser, {
    turns: [[say("![A dot](https://images.example/dot.png)")]],
    body: chatTag(400),
    browser: { permissions: ["clipboard-write"] },
  });
  const { page } = chat;
  let requests = 0;
  await page.route("https://images.example/**", (route) => {
    requests += 1;
    const headers = { "cache-control": "no-store" };
    return route.fulfill({ body: RED_PIXEL, contentType: "image/png", headers });
  });
  await chat.say("Show me a dot");
  await page.getByRole("button", { name: /Load image/ }).click();
  await page.waitForFunction(() => {
    const root = document.querySelector("agent-chat")?.shadowRoot;
    return root?.querySelector<HTMLImageElement>("img.image")?.naturalWidth === 1;
  });
  await canCopy(page);
  await page.getByRole("button", { name: "Copy answer" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(requests, 1);
});

test("a message whose files are gone is not offered to be sent without the earlier ones", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[fail(new ApiError("conversation_expired", "It has expired."))]],
  });
  await chat.files.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL });
  await chat.page.getByRole("button", { name: "Remove dot.png" }).waitFor();
  await chat.say("What is it?");
  const afresh = chat.page.getByRole("button", { name: "Send without the earlier messages" });
  await afresh.waitFor();
  await chat.page.reload();
  await chat.error.getByText("It has expired.").waitFor();
  assert.equal(await afresh.count(), 0);
});
