import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import { plain } from "../../widget/ui/plain-text.ts";
import { askForImages, type ChatElement, type ChatPageOptions, openChat, openRows } from "../browser/chat-page.ts";
import { chatTag, visit } from "../browser/launcher-page.ts";
import { HEAVY_ANSWERS, HOSTILE_ANSWERS, type HostileAnswer } from "../fixtures/hostile-answers.ts";
import { launchBrowser } from "../support/browser.ts";
import { call, fail, type Step, say, think } from "../support/scripted-provider.ts";
import type { ServerOptions } from "../support/start-server.ts";
import { echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

declare global {
  interface Window {
    ran: () => void;
    /** The longest time in which the page could not respond, in milliseconds. */
    longestTask: number;
  }
}

/** Reloads the page and records each script that runs, request to another host, dialog and navigation. */
async function watchIncidents(page: Page, hosts: readonly string[]): Promise<string[]> {
  const incidents: string[] = [];
  await page.exposeFunction("ran", () => incidents.push("a script ran"));
  await page.addInitScript(() => {
    window.longestTask = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        window.longestTask = Math.max(window.longestTask, duration);
      }
    }).observe({ type: "longtask" });
  });
  page.on("dialog", (dialog) => {
    incidents.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => incidents.push(`popup ${popup.url()}`));
  page.on("request", (request) => {
    const { host, protocol, href } = new URL(request.url());
    if (!hosts.includes(host) && !/^(blob|data):$/.test(protocol)) {
      incidents.push(`request ${href}`);
    }
  });
  await page.reload();
  page.on("framenavigated", (frame) => incidents.push(`navigation to ${frame.url()}`));
  return incidents;
}

/** All short texts at once, for places that show plain text. */
const EVERYTHING = HOSTILE_ANSWERS.map(({ text }) => text).join("\n");

/** Splits a text at odd lengths, so that syntax, entities and surrogate pairs are cut in two. */
function inPieces(text: string): Step[] {
  const lengths = text.length > 2_000 ? [997, 1, 2003] : [1, 2, 3, 5, 7, 11];
  const steps: Step[] = [];
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = lengths[index % lengths.length] ?? 1;
    steps.push(say(text.slice(at, at + length)));
    at += length;
  }
  return steps;
}

interface Watched extends ChatElement {
  page: Page;
  incidents: string[];
}

/** Opens the chat page, whose policy would block an injection and report it. */
async function openWatched(t: TestContext, options: ChatPageOptions): Promise<Watched> {
  const chat = await openChat(t, browser, options);
  return { ...chat, incidents: await watchIncidents(chat.page, [`127.0.0.1:${chat.server.port}`]) };
}

/** Opens the element on a site without a policy, where an injection would work. */
async function openUnprotected(t: TestContext, options: ServerOptions): Promise<Watched> {
  const chat = await visit(t, browser, { ...options, body: chatTag(500) });
  const hosts = [chat.server.url, chat.site.url].map((url) => new URL(url).host);
  return { ...chat, incidents: await watchIncidents(chat.page, hosts) };
}

/** Forbidden elements, handlers and addresses in a place, by default the messages. */
function forbiddenIn(chat: ChatElement, place: Locator = chat.messages): Promise<string[]> {
  return place.evaluate((root) => {
    const found: string[] = [];
    for (const node of root.querySelectorAll("*")) {
      const name = node.localName;
      const isIcon = node.closest("svg.icon") !== null;
      const isTask = node instanceof HTMLInputElement && node.type === "checkbox" && node.disabled;
      // Rendered by the chat itself.
      const isFormula = node.matches(".rendered.math > math");
      const banned =
        /^(script|style|link|meta|base|iframe|frame|object|embed|form|input|svg|math|video|audio|picture|source|template)$/;
      if (banned.test(name) && !isIcon && !isTask && !isFormula) found.push(`<${name}>`);
      for (const { name: attribute, value } of node.attributes) {
        // The chat itself sets the height of the last exchange.
        const isRoom = attribute === "style" && /^--_[a-z]+: [\d.]+px;$/.test(value) && node.matches(".exchange");
        if (/^on|^style$|^srcdoc$|^ping$|^formaction$/.test(attribute) && !isRoom) {
          found.push(`${name} ${attribute}=${value}`);
        }
      }
      if (node instanceof HTMLAnchorElement && !/^(https?|mailto|tel):$/.test(node.protocol)) {
        found.push(`link ${node.href}`);
      }
      if (node instanceof HTMLImageElement && !/^(blob:|data:image\/(png|jpeg|gif|webp))/.test(node.src)) {
        found.push(`image ${node.src}`);
      }
    }
    return found;
  });
}

/** Answers per conversation: each makes the next one slower. */
const PER_CONVERSATION = 10;

async function sayAll(
  chat: Watched,
  answers: readonly HostileAnswer[],
  judge = async (_name: string) => {},
): Promise<void> {
  for (const [index, { name }] of answers.entries()) {
    await chat.say(name);
    const reply = chat.replies.nth(index % PER_CONVERSATION).and(chat.page.locator('[aria-busy="false"]'));
    await reply.waitFor();
    assert.deepEqual([name, chat.incidents, await forbiddenIn(chat, reply)], [name, [], []]);
    await judge(name);
    if (index % PER_CONVERSATION < PER_CONVERSATION - 1) continue;
    assert.deepEqual(await forbiddenIn(chat), []);
    await chat.page.getByRole("button", { name: "New conversation" }).click();
    await reply.waitFor({ state: "detached" });
  }
}

test(`${HOSTILE_ANSWERS.length} hostile answers run nothing, ask nobody and leave the page usable`, async (t) => {
  const chat = await openUnprotected(t, {
    turns: [...HOSTILE_ANSWERS.map(({ text }) => inPieces(text)), [say("Unharmed.")]],
  });
  await sayAll(chat, HOSTILE_ANSWERS);
  await chat.ask("Are you well?", "Unharmed.");
  await chat.page.evaluate(() => window.ran());
  assert.deepEqual(chat.incidents, ["a script ran"], "only the test's own: it would be seen");
});

test("the page's policy has nothing to complain of when it shows all of them", async (t) => {
  const texts = HOSTILE_ANSWERS.map(({ text }) => text);
  const chat = await openWatched(t, { turns: [texts.map((text) => say(`${text}\n\n`))] });
  await chat.say("Everything, please");
  await chat.replies.and(chat.page.locator('[aria-busy="false"]')).waitFor();
  assert.deepEqual([chat.incidents, await forbiddenIn(chat)], [[], []]);
});

/** Quadratic work takes minutes; harmless work takes a second on a busy machine. */
const FREEZE_MS = 10_000;

// The time limit of a test is four minutes, even on a busy machine: the slowest answers have tests of their own.
for (const [kind, answers] of Object.entries({
  "of one character": HEAVY_ANSWERS.slice(0, 17),
  formulas: HEAVY_ANSWERS.slice(17, 18),
  "references and footnotes": HEAVY_ANSWERS.slice(18, 20),
  code: HEAVY_ANSWERS.slice(20),
}))
  test(`heavy answers never freeze the page: ${kind}`, async (t) => {
    const chat = await openUnprotected(t, {
      turns: [...answers.map(({ text }) => inPieces(text)), [say("Unharmed.")]],
    });
    chat.page.setDefaultTimeout(90_000);
    let slowest = 0;
    await sayAll(chat, answers, async (name) => {
      const longest = await chat.page.evaluate(() => window.longestTask);
      slowest = Math.max(slowest, longest);
      assert.ok(longest < FREEZE_MS, `${name} held the page up for ${longest} ms`);
    });
    t.diagnostic(`longest task: ${slowest.toFixed(0)} ms`);
    assert.deepEqual([chat.incidents, await forbiddenIn(chat)], [[], []]);
    await chat.ask("Are you well?", "Unharmed.");
  });

test("tool names, arguments, outputs and thinking are text, whatever they hold", async (t) => {
  const chat = await openWatched(t, {
    agent: { tools: [echo] },
    turns: [
      [
        think(EVERYTHING),
        call("c1", "echo", { text: EVERYTHING }),
        call("c2", EVERYTHING, { "<img src=x onerror=ran()>": EVERYTHING }),
      ],
      [say("Unharmed.")],
    ],
  });
  await chat.say("Go");
  await chat.replies.getByText("Unharmed.").waitFor();
  await openRows(chat);
  const more = chat.tools.first().getByRole("button", { name: /^Show all/ });
  while ((await more.count()) > 0) await more.first().click();
  const [args, output] = await chat.tools.first().locator("pre").allTextContents();
  assert.equal(args, plain(JSON.stringify({ text: EVERYTHING }, null, 2)));
  assert.equal(output, plain(EVERYTHING.toWellFormed()));
  assert.match((await chat.thinking.textContent()) ?? "", /<script>ran\(\)<\/script>/);
  assert.deepEqual([chat.incidents, await forbiddenIn(chat)], [[], []]);
});

test("names, welcome, suggestions, the person's own message, a file's name and an error are text", async (t) => {
  const markup = `<img src=x onerror=ran()> "'><script>ran()</script> [x](javascript:ran())`;
  const chat = await openWatched(t, {
    agent: {
      name: `${markup} app`,
      agent: markup,
      chat: { welcome: EVERYTHING, suggestions: [markup], disclaimer: markup },
    },
    turns: [[say("Unharmed.")], [fail(new ApiError("provider_error", EVERYTHING))], [say("Well.")]],
  });
  assert.equal(await chat.page.title(), `${markup} app`);
  // Both support links, but none of these is valid.
  const shownMarkup = markup.replace("[x](javascript:ran())", "x");
  assert.equal((await chat.page.locator('[part="disclaimer"]').textContent())?.trim(), shownMarkup);
  assert.match((await chat.greeting.textContent()) ?? "", /<script>ran\(\)<\/script>/);
  assert.deepEqual(await forbiddenIn(chat), []);
  await chat.page.locator('[part="suggestion"]').click();
  await chat.replies.getByText("Unharmed.").waitFor();
  assert.equal(await chat.questions.locator(".bubble").textContent(), markup);
  const name = `"><img src=x onerror=ran()>\u202egnp.pdf`;
  await chat.files.setInputFiles({ name, mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7\n") });
  await chat.page.locator('[part="attachment"]').getByText("onerror").waitFor();
  await chat.send.click();
  await chat.error.getByText("<script>ran()</script>").waitFor();
  assert.equal(await chat.questions.locator(".file-name").textContent(), name);
  assert.deepEqual([chat.incidents, await forbiddenIn(chat)], [[], []]);
  await chat.retry.click();
  await chat.replies.getByText("Well.").waitFor();
});

test("an image of another site is asked for only when the reader clicks", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [[say("![A cat](https://evil.example/cat.png)")]],
    expectedComplaints: /Content Security Policy/,
  });
  await askForImages(chat);
  await chat.say("Show me a cat");
  // At its end the answer is rendered again, which could be between the press and its release.
  await chat.answered();
  const button = chat.answer.getByRole("button", { name: /evil\.example/ });
  await button.waitFor();
  assert.equal(await chat.answer.locator("img").count(), 0);
  await button.click();
  // The page's own policy still blocks other hosts, so the image's text remains.
  await chat.answer.getByText("A cat").waitFor();
  assert.equal(await chat.answer.locator("button.image").count(), 0);
});
