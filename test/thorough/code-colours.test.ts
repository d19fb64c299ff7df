import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { chatIn, failOnComplaints, openChat, watchAddresses } from "../browser/chat-page.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { say, wait } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";

const browser = await launchBrowser({ after });

const CODE = '```ts\n// why\nconst answer: number = 42;\nfetchIt("url");\n```\n';

/** Waits for so many keywords; returns the coloured texts, in order, by the name of their highlight. */
async function painted(page: Page, keywords: number): Promise<Record<string, string[]>> {
  await page.waitForFunction((count) => (CSS.highlights.get("agent-chat-keyword")?.size ?? 0) >= count, keywords);
  return page.evaluate(() =>
    Object.fromEntries(
      [...CSS.highlights].map(([name, highlight]) => [
        name.replace("agent-chat-", ""),
        [...highlight]
          .map(({ startContainer, startOffset, endContainer, endOffset }) => {
            const range = new Range();
            range.setStart(startContainer, startOffset);
            range.setEnd(endContainer, endOffset);
            return range.toString();
          })
          .sort(),
      ]),
    ),
  );
}

test("a block with a known language is coloured, without a change to its text", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say(CODE)]] });
  await chat.say("Show me");
  const roles = await painted(chat.page, 1);
  assert.deepEqual(roles.keyword, ["const"]);
  assert.deepEqual(roles.string, ['"url"']);
  assert.deepEqual(roles.number, ["42"]);
  assert.deepEqual(roles.comment, ["// why\n"]);
  assert.deepEqual(roles.function, ["fetchIt"]);
  const code = chat.answer.locator("pre code");
  assert.equal(await code.locator("span:not(.code-chunk)").count(), 0);
  assert.equal(
    await code.evaluate((it) => getComputedStyle(it, "::highlight(agent-chat-number)").color),
    "rgb(161, 69, 10)",
  );
});

test("with forced colours code has none, which would look like a selection, also when they are switched on later, and all of it again when they are switched off", async (t) => {
  const chat = await openChat(t, browser, {
    turns: ["one", "two", "three"].map((text) => [say(`\`\`\`js\nlet a; // ${text}\n\`\`\`\n`)]),
  });
  await chat.say("Show me");
  const first = chat.replies.first().locator("pre code");
  await painted(chat.page, 1);
  await chat.page.emulateMedia({ forcedColors: "active" });
  await chat.page.waitForFunction(() => CSS.highlights.size === 0);
  await chat.say("Again");
  await chat.answer.getByText("two").waitFor();
  await chat.send.waitFor();
  // By then, code in view has been considered for colouring.
  await chat.page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
  assert.equal(await chat.page.evaluate(() => CSS.highlights.size), 0);
  // Code that leaves the view removes its ranges, although there are no highlights.
  await first.evaluate((code) => {
    code.style.display = "none";
    // Notified after the element's own observer, which was created first.
    return new Promise<void>((done) => {
      new IntersectionObserver(([entry]) => entry?.isIntersecting || done()).observe(code);
    });
  });
  assert.equal(await chat.page.evaluate(() => CSS.highlights.size), 0);
  await first.evaluate((code) => code.removeAttribute("style"));
  await chat.page.emulateMedia({ forcedColors: "none" });
  assert.deepEqual((await painted(chat.page, 2)).comment, ["// one", "// two"]);
  await chat.say("And again");
  await chat.answer.getByText("three").waitFor();
  assert.deepEqual((await painted(chat.page, 3)).comment, ["// one", "// three", "// two"]);
});

test("languages that are unknown or not named load nothing", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("```\nconst a = 1;\n```\n\n```brainf\nconst b = 2;\n```\n\n    const c = 3;")]],
  });
  const asked: string[] = [];
  chat.page.on("request", (request) => asked.push(request.url()));
  await chat.say("Show me");
  await chat.answer.getByText("const c = 3;").waitFor();
  assert.deepEqual(
    asked.filter((url) => url.includes("/highlight-")),
    [],
  );
});

test("a block that goes on after a pause is coloured to its end, and a selection in it survives", async (t) => {
  const more = gate();
  const chat = await openChat(t, browser, {
    turns: [[say("```js\nlet first;\n"), wait(more.opened), say("let second;\n```\n\nDone.")]],
  });
  await chat.say("Show me");
  await painted(chat.page, 1);
  const code = chat.answer.locator("pre code");
  await code.evaluate((it) => getSelection()?.selectAllChildren(it));
  more.open();
  await chat.answer.getByText("Done.").waitFor();
  assert.deepEqual((await painted(chat.page, 2)).keyword, ["let", "let"]);
  assert.match(await chat.page.evaluate(() => String(getSelection())), /^let first;/);
});

test("two chats share the page's highlights, and a conversation that ends takes only its own away", async (t) => {
  const server = await startServer(t, { turns: [[say(CODE)], [say(CODE)], [say(CODE)]] });
  const chats = `<agent-chat id="a"></agent-chat><agent-chat id="b"></agent-chat>`;
  const scripts = `<script src="${server.url}/widget.js"></script>`.repeat(2);
  const site = await startSite(t, {
    "/": sitePage(chats + scripts, "<style>agent-chat { block-size: 700px }</style>"),
  });
  const { page, complaints } = await openPage(t, browser, {
    viewport: { width: 900, height: 1800 },
  });
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  const [a, b] = [chatIn(page.locator("#a")), chatIn(page.locator("#b"))];
  await a.say("Show me");
  await painted(page, 1);
  await b.say("Show me");
  assert.deepEqual((await painted(page, 2)).keyword, ["const", "const"]);
  await page.locator("#a").evaluate((chat) => chat.remove());
  await b.say("Once more");
  await b.replies.nth(1).locator("pre").waitFor();
  await page.waitForFunction(() => {
    const ranges = [...(CSS.highlights.get("agent-chat-keyword") ?? [])];
    return ranges.length === 2 && ranges.every((range) => range.startContainer.isConnected);
  });
});

test("a new conversation and an element that goes leave no colours behind, and one that comes back has them again", async (t) => {
  const filler = "A paragraph.\n\n".repeat(80);
  const chat = await openChat(t, browser, {
    turns: [[say(CODE)], [say(`${filler}${CODE}`)], [say(CODE)]],
    browser: { viewport: { width: 700, height: 600 } },
  });
  const count = (expected: number) =>
    chat.page.waitForFunction(
      (size) => [...CSS.highlights].every(([, highlight]) => highlight.size === size),
      expected,
    );
  await chat.say("Show me");
  await painted(chat.page, 1);
  // By then, the first code is far out of view and not coloured.
  await chat.say("Another");
  await chat.answer.locator("pre").scrollIntoViewIfNeeded();
  await count(1);
  await chat.send.waitFor();
  await chat.page.getByRole("button", { name: "New conversation" }).click();
  await count(0);
  await chat.say("Once more");
  await painted(chat.page, 1);
  await chat.send.waitFor();
  const element = await chat.page.locator("agent-chat").elementHandle();
  await element?.evaluate((it) => it.remove());
  await count(0);
  await element?.evaluate((it) => document.body.append(it));
  await painted(chat.page, 1);
});

test("without the chunk the answer is whole, and has its colours as soon as the chunk can be had", async (t) => {
  const server = await startServer(t, { turns: [[say(CODE)]] });
  const { page, complaints } = await openPage(t, browser);
  let refusals = 1;
  await page.route("**/highlight-*", (route) => (refusals-- > 0 ? route.abort() : route.continue()));
  await page.goto(server.url);
  const chat = chatIn(page);
  await chat.say("Show me");
  await chat.answer.getByText('fetchIt("url");').waitFor();
  assert.deepEqual((await painted(page, 1)).keyword, ["const"]);
  assert.ok(refusals < 0, "it was asked for again");
  assert.deepEqual(
    complaints.filter((text) => !/net::ERR_FAILED/.test(text)),
    [],
  );
});

test("a browser that paints no ranges shows code in one colour, and loads nothing for it", async (t) => {
  const server = await startServer(t, { turns: [[say(CODE)]] });
  const { page, complaints } = await openPage(t, browser);
  failOnComplaints(t, complaints);
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "Highlight"));
  const { requests } = watchAddresses(page);
  await page.goto(server.url);
  const chat = chatIn(page);
  await chat.say("Show me");
  await chat.answer.locator(".code-header > .enlarge").waitFor({ state: "attached" });
  await chat.answered();
  assert.equal(await chat.answer.locator("code").textContent(), '// why\nconst answer: number = 42;\nfetchIt("url");');
  assert.doesNotMatch(requests.join(), /highlight-/);
});
