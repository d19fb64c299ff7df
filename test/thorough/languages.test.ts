/** The language of the chat: chosen by the page, mirrored for right-to-left scripts, and never wider than a phone. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Locator } from "playwright-core";
import { en } from "../../widget/i18n/strings.ts";
import { chatIn, failOnComplaints, openChat } from "../browser/chat-page.ts";
import { fillList } from "../browser/kept.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { call, type Step, say } from "../support/scripted-provider.ts";
import { sitePage, startSite } from "../support/site.ts";
import { startServer } from "../support/start-server.ts";
import { define } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

test("the chat page speaks the browser's language, and says so to screen readers", async (t) => {
  const chat = await openChat(t, browser, { browser: { locale: "de-CH" } });
  await chat.page.getByRole("button", { name: "Zum dunklen Design wechseln" }).waitFor();
  assert.equal(await chat.page.locator("html").getAttribute("lang"), "de");
});

interface SiteOptions {
  html?: string;
  chat?: string;
  locale?: string;
}

async function openSite(t: TestContext, { html = "", chat = "", locale = "en" }: SiteOptions) {
  const server = await startServer(t, { turns: [[say("Bonjour **toi**.")]] });
  const site = await startSite(t, {
    "/": sitePage(
      `<script src="${server.url}/widget.js"></script><section><agent-chat ${chat} style="height: 400px"></agent-chat></section>`,
    ).replace('<html lang="en"', `<html ${html}`),
  });
  const { page, complaints } = await openPage(t, browser, { locale });
  failOnComplaints(t, complaints);
  await page.goto(site.url);
  const root = page.locator("agent-chat .chat");
  await root.waitFor();
  return { page, root, ...chatIn(page) };
}

for (const [what, options, lang, dir] of [
  ["the page's language wins over the browser's", { html: 'lang="fr"', locale: "de" }, "fr", "ltr"],
  ["the element's own language wins over the page's", { html: 'lang="fr"', chat: 'lang="ja"' }, "ja", "ltr"],
  ["a page without a language leaves it to the browser", { locale: "es-MX" }, "es", "ltr"],
  ["Arabic is laid out from right to left", { html: 'lang="ar"' }, "ar", "rtl"],
  ["a direction on the page decides without a language", { html: 'dir="rtl"' }, "en", "rtl"],
  ["a language without a chunk is English, from its own side", { html: 'lang="he"' }, "en", "rtl"],
  ["Persian is laid out from right to left", { html: 'lang="fa-IR"' }, "en", "rtl"],
  ["Urdu is laid out from right to left", { html: 'lang="ur"' }, "en", "rtl"],
] as const) {
  test(what, async (t) => {
    const { page, root } = await openSite(t, options);
    await root.and(page.locator(`[lang="${lang}"]`)).waitFor();
    assert.equal(await root.evaluate((it) => getComputedStyle(it).direction), dir);
  });
}

test("each text of an answer has its own direction, and what holds texts has that of its first one", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [
      [
        say(
          "# عنوان\n\n1. أولاً\n\n   - [x] منجز\n2. English\n\n> اقتباس\n\n| اسم | value |\n|---|---|\n| أ | b |\n\n```\nx\n```\n\n- English\n- نقطة\n\nنص[^1][^2]\n\n[^1]: Source, page 2.\n[^2]: مصدر",
        ),
      ],
    ],
  });
  await chat.say("Show me");
  await chat.answer.getByText("نقطة").waitFor();
  await chat.send.waitFor();
  const notes = chat.answer.locator(".footnotes li");
  await notes.nth(1).waitFor();
  const directions = (selector: string) =>
    chat.answer.locator(selector).evaluateAll((all) => all.map((it) => getComputedStyle(it).direction).join(" "));
  assert.equal(await directions(":scope > ol, ol ul, blockquote, table"), "rtl rtl rtl rtl");
  assert.equal(await directions("pre, :scope > ul"), "ltr ltr");
  assert.equal(await directions(".footnotes li"), "ltr rtl");
  // Each note has room for its number at the side where its text begins.
  const rooms = await notes.evaluateAll((all) =>
    all.map((note) => {
      const [list, box] = [note.parentElement as Element, note].map((it) => it.getBoundingClientRect());
      return list && box ? [box.left - list.left > 12, list.right - box.right > 12] : [];
    }),
  );
  assert.deepEqual(rooms, [
    [true, false],
    [false, true],
  ]);
  const sides = await chat.answer.locator("h1, p, td").evaluateAll((all) =>
    all.map((block) => {
      const range = document.createRange();
      range.selectNodeContents(block);
      const text = range.getBoundingClientRect();
      const box = block.getBoundingClientRect();
      return `${block.textContent?.trim()}: ${text.left - box.left < box.right - text.right ? "left" : "right"}`;
    }),
  );
  assert.deepEqual(sides, [
    "عنوان: right",
    "أولاً: right",
    "منجز: right",
    "English: left",
    "اقتباس: right",
    "أ: right",
    // Aligned like its table column.
    "b: right",
    "English: left",
    "نقطة: right",
    "نص12: right",
    "Source, page 2.: left",
    "مصدر: right",
  ]);
});

test("a file's kind stands before its size in Arabic, too", async (t) => {
  const { page } = await openChat(t, browser, { browser: { locale: "ar" } });
  const buffer = Buffer.from("%PDF-1.7\n");
  await page.locator('[part="empty"]').waitFor();
  await page.locator('input[type="file"]').setInputFiles([{ name: "offer.pdf", mimeType: "application/pdf", buffer }]);
  const places = await page.locator(".file-kind").evaluate((kind) => {
    const texts = document.createTreeWalker(kind, NodeFilter.SHOW_TEXT);
    const left: Record<string, number> = {};
    for (let text = texts.nextNode() as Text | null; text; text = texts.nextNode() as Text | null) {
      for (const part of ["PDF", "9"]) {
        const at = text.data.indexOf(part);
        if (at === -1) continue;
        const range = new Range();
        range.setStart(text, at);
        range.setEnd(text, at + part.length);
        left[part] = range.getBoundingClientRect().left;
      }
    }
    return left;
  });
  assert.ok((places.PDF ?? 0) > (places[9] ?? 0), JSON.stringify(places));
});

/** The right edges of the texts in whole pixels, without duplicates. */
const rightEdges = (texts: Locator): Promise<number[]> =>
  texts.evaluateAll((all) => {
    const edges = all.map((it) => {
      const range = new Range();
      range.selectNodeContents(it);
      return Math.round(range.getBoundingClientRect().right);
    });
    return [...new Set(edges)];
  });

const source = (found: object): Step => ({ type: "source", source: found as never });

test("in Arabic, English names, values, titles and passages begin at the right, and what is open points down", async (t) => {
  const cancel = define("cancel_order", () => "cancelled", { needsApproval: true });
  const { page } = await openChat(t, browser, {
    agent: { tools: [cancel] },
    turns: [
      [
        say("Two days."),
        source({ title: "Delivery", url: "https://acme.example/", quote: "Two days." }),
        source({ title: "terms.pdf", file: "terms.pdf" }),
      ],
      [call("c1", "cancel_order", { order: 4711, city: "Springfield", late: true })],
    ],
    browser: { locale: "ar", viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" },
  });
  const field = page.locator('[part="input"]');
  const ask = async (text: string) => {
    await field.fill(text);
    await field.press("Enter");
  };
  await ask("How long?");
  await page.locator('[part="sources"] summary').click();
  const chevron = page.locator('[part="sources"] .chevron');
  assert.deepEqual(await chevron.evaluate((it) => [getComputedStyle(it).rotate, getComputedStyle(it).scale]), [
    "90deg",
    "none",
  ]);
  assert.equal(
    (await rightEdges(page.locator('[part="sources"] :is(a, .source-title, .source-host:not(:empty))'))).length,
    1,
  );
  await ask("Cancel it");
  await page.locator('[part="approval"]').waitFor();
  for (const column of ["dt > bdi", "dd > bdi"])
    assert.equal((await rightEdges(page.locator(`[part="approval"] ${column}`))).length, 1, column);
  const attach = await page.locator('[part="attach"]').boundingBox();
  await field.fill("w".repeat(40));
  const box = await field.boundingBox();
  assert.ok(attach && box && box.x + box.width <= attach.x + 1, "what is written is not under the button");
});

test("in Arabic, an English passage that was found is in view, and its title begins at the right", async (t) => {
  const { page } = await openChat(t, browser, {
    turns: [[say("One.")], [say("Two.")]],
    browser: { locale: "ar", viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" },
  });
  const ask = async (text: string) => {
    await page.locator('[part="input"]').fill(text);
    await page.locator('[part="input"]').press("Enter");
  };
  await ask("First");
  await page.locator('[part="ask-again"]').waitFor();
  await page.evaluate(fillList(14, 2));
  await page.locator('[part="reset"]').press("Enter");
  await ask("Second");
  await page.locator(".list-search").fill("pears");
  await page.locator("mark").first().waitFor();
  assert.equal((await rightEdges(page.locator(".list-row:has(mark) .list-title"))).length, 1);
  const [passage, hit] = await Promise.all(
    [".list-row small", "mark"].map((it) => page.locator(it).first().boundingBox()),
  );
  assert.ok(passage && hit && hit.x >= passage.x && hit.x + hit.width <= passage.x + passage.width, "it is in view");
});

test("a page that changes its language changes the chat, with its messages and the draft", async (t) => {
  const chat = await openSite(t, { html: 'lang="en"' });
  await chat.say("Salut");
  await chat.replies.getByText("Bonjour").waitFor();
  await chat.send.waitFor();
  await chat.input.fill("A draft");
  await chat.page.evaluate(() => {
    document.documentElement.lang = "ar";
  });
  await chat.page.getByRole("button", { name: "نسخ الإجابة" }).waitFor({ state: "attached" });
  assert.equal(await chat.page.locator('[part="input"]').inputValue(), "A draft");
  assert.equal(await chat.replies.getByText("Bonjour").count(), 1);
  const bubble = await chat.page.locator('[part~="user"] .bubble').boundingBox();
  const column = await chat.page.locator("agent-chat").boundingBox();
  assert.ok(
    bubble && column && bubble.x + bubble.width < column.x + column.width / 2,
    "the bubble is at the end: the left",
  );
});

test("a site's own texts replace ours, and take part in a change of language", async (t) => {
  const chat = await openSite(t, { html: 'lang="de"' });
  await chat.page.evaluate(`document.querySelector("agent-chat").strings = {
    placeholder: (agent) => "Ask " + agent + " about bicycles",
    send: "Ride!",
  }`);
  await chat.page.getByRole("button", { name: "Ride!" }).waitFor();
  // The agent's name comes from the server, possibly after the texts.
  await chat.page.getByPlaceholder(/^Ask .+ about bicycles$/).waitFor();
  await chat.page.getByRole("button", { name: "Dateien anhängen" }).waitFor();
});

test("texts that are half as long again overflow nothing at 320 pixels", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("Hi.")]],
    agent: { chat: { suggestions: ["What can you do?"] } },
    browser: { viewport: { width: 320, height: 600 } },
  });
  const longer = Object.entries(en).flatMap(([name, text]) =>
    typeof text === "string" && name !== "lang" ? [[name, `[${text} ${"~".repeat(text.length / 2)}]`]] : [],
  );
  const texts = JSON.stringify(Object.fromEntries(longer));
  await chat.page.evaluate(`document.querySelector("agent-chat").strings = ${texts}`);
  const wide = () =>
    chat.page
      .locator("agent-chat .chat")
      .evaluate((root) => [
        document.documentElement.scrollWidth - innerWidth,
        ...[...root.querySelectorAll(".scroller, .dock, .header, .composer")].map((it) =>
          Math.max(0, it.scrollWidth - it.clientWidth),
        ),
      ]);
  await chat.page.getByRole("button", { name: "[Send message" }).waitFor();
  assert.ok(
    (await wide()).every((excess) => excess <= 0),
    String(await wide()),
  );
  await chat.page.locator('[part="input"]').fill("Hi");
  await chat.page.locator('[part="input"]').press("Enter");
  await chat.replies.getByText("Hi.").waitFor();
  assert.ok(
    (await wide()).every((excess) => excess <= 0),
    String(await wide()),
  );
});
