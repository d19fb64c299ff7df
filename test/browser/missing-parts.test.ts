/** Parts of the chat that cannot be loaded: after a new build, without a network, or because they are blocked. */

import assert from "node:assert/strict";
import { after } from "node:test";
import type { Page } from "playwright-core";
import { tool } from "../../server/parley-agent.ts";
import { approval, asked, startAskingSite } from "../support/asking-agent.ts";
import { axeFindings } from "../support/axe.ts";
import { launchBrowser, openPage } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { it, test } from "../support/rows.ts";
import { call, say, wait } from "../support/scripted-provider.ts";
import { done, token } from "../widget/scripted-server.ts";
import { chatIn, openChat, press, shown, untilTaken } from "./chat-page.ts";
import { listen, untilHeard } from "./listening.ts";

const browser = await launchBrowser({ after });

const CHUNKS = "**/chunks/**";
const CARD = "**/chunks/approval-*";
const OUT_OF_DATE = "This page is out of date.";
const BLOCKED = "A part of this chat could not be loaded.";

const expectedComplaints = /Failed to load resource/;

/** Simulates a new build on the server. Returns the number of requests per missing file. */
async function deploy(page: Page): Promise<Map<string, number>> {
  const requests = new Map<string, number>();
  await page.route(CHUNKS, (route) => {
    const [url = ""] = route.request().url().split("#");
    requests.set(url, (requests.get(url) ?? 0) + 1);
    return route.fulfill({ status: 404, json: { error: { code: "not_found" } } });
  });
  return requests;
}

/** Waits until the parts that render messages and plain questions are loaded, before any file is missing. */
const talkIsThere = (page: Page) =>
  page.evaluate(async () => {
    await customElements.whenDefined("agent-chat-message");
    await customElements.whenDefined("agent-chat-plain-question");
  });

/** Makes pauses between requests as short as possible. */
const hurry = (page: Page) => page.evaluate("Math.random = () => 0");

test("after a new build of the server what waits is asked and decided, the page says once that it is out of date, and a reload keeps draft, queue and conversation", async (t) => {
  const ran: unknown[] = [];
  const cancel = tool({
    name: "cancel_order",
    title: "Cancel the order",
    description: "Cancels.",
    parameters: { type: "object", properties: { order: { type: "number" } } },
    needsApproval: true,
    danger: true,
    approvalText: ({ order }) => `Cancel order ${order}?`,
    execute: (args) => {
      ran.push(args);
      return "cancelled";
    },
  });
  const slow = gate();
  const chat = await openChat(t, browser, {
    agent: { tools: [cancel] },
    turns: [
      [say("Hi.")],
      [call("a", "cancel_order", { order: 4711 })],
      [say("Cancelled.")],
      [say("So "), wait(slow.opened), say("slow.")],
      [say("Next.")],
    ],
    expectedComplaints,
  });
  const { page } = chat;
  const part = (name: string) => page.locator(`[part~="${name}"]`);
  await chat.ask("Hello", "Hi.");
  await talkIsThere(page);
  const requests = await deploy(page);
  await chat.say("Cancel my order");
  assert.match(
    await shown(part("approval")),
    /^Cancel order 4711\?\s+Cancel the order\s+cancel_order {"order":4711}\s/,
  );
  assert.equal(await part("missing").filter({ hasText: OUT_OF_DATE }).count(), 1);
  assert.equal(await shown(part("approve")), "Cancel the order");
  assert.deepEqual(await axeFindings(page), []);
  await press(part("approve"));
  await chat.replies.getByText("Cancelled.").waitFor();
  assert.deepEqual(ran, [{ order: 4711 }]);

  await chat.say("Slowly");
  await chat.replies.getByText("So").waitFor();
  await chat.say("And then?");
  await untilTaken(chat);
  await chat.input.fill("My draft");
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  // One request for the file itself, and one that checks whether it exists.
  assert.ok(
    [...requests.values()].every((times) => times <= 2),
    JSON.stringify([...requests]),
  );
  assert.equal(await part("missing").count(), 1);
  await page.unroute(CHUNKS);
  await part("reload").click();
  await part("pending").getByText("And then?").waitFor();
  assert.equal(await part("missing").count(), 0);
  assert.equal(await chat.input.inputValue(), "My draft");
  slow.open();
  await chat.replies.getByText("Next.").waitFor();
  assert.match(await chat.messages.innerText(), /Cancel my order.*Cancelled\..*Slowly.*So slow\..*And then\?.*Next\./s);
  assert.equal(ran.length, 1);
});

async function openAskingChat(...[t, options]: Parameters<typeof startAskingSite>) {
  const { agent, url } = await startAskingSite(t, options);
  const { page } = await openPage(t, browser);
  await page.goto(url);
  const chat = chatIn(page);
  await chat.input.focus();
  await talkIsThere(page);
  return { page, chat, turn: agent.turn, part: (name: string) => page.locator(`[part~="${name}"]`) };
}

it("without its card a question writes out what cannot be seen, counts no early press, and sends several decisions together", async (t) => {
  const { page, chat, turn, part } = await openAskingChat(t);
  await deploy(page);
  await chat.say("Both");
  const args = { to: "ada\u202e@example.org", text: `<b>${"x".repeat(900)}</b>\nEnd${" ".repeat(9)}.` };
  const [first, second] = ["Write to Ada\u200b?", "Cancel order 4711?"];
  (await turn()).send(
    approval("1", first, args),
    approval("2", second, {}, { danger: true, title: "Cancel" }),
    asked(),
  );
  const question = part("approval");
  await question.waitFor();
  // Moves and clicks in one step, which is too early even on a slow machine.
  await part("decline")
    .first()
    .evaluate((button) => {
      document.querySelector("agent-chat")?.setAttribute("style", "position: fixed; inset: 20px");
      button.dispatchEvent(new MouseEvent("click", { detail: 1, bubbles: true, composed: true }));
    });
  const pressed = () =>
    page.locator("agent-chat-plain-question button").evaluateAll((all) => all.map((it) => it.ariaPressed));
  assert.deepEqual(await pressed(), ["false", "false", "false", "false"]);
  const text = await shown(question);
  assert.match(text, /Write to Ada\\u200b\?/);
  assert.ok(text.includes(JSON.stringify(args).replace("\u202e", "\\u202e")), text);
  await press(part("approve").first());
  assert.deepEqual(await pressed(), ["false", "true", "false", "false"]);
  await press(part("decline").last());
  const { approvals } = (await turn()).body;
  assert.deepEqual(approvals, [
    { id: "1", approved: true },
    { id: "2", approved: false },
  ]);
});

it("a question is heard without its card, and without the code that speaks of tool calls", async (t) => {
  const { page, chat, turn } = await openAskingChat(t);
  const heard = await listen(page);
  await deploy(page);
  await chat.say("Cancel");
  (await turn()).send(approval("1", "Cancel order 4711?"), asked());
  await untilHeard(page, heard, "! Cancel order 4711?");
});

it("a question that can no longer be answered says so without its card", async (t) => {
  const { page, chat, turn, part } = await openAskingChat(t);
  await deploy(page);
  await chat.say("Cancel");
  (await turn()).send(approval("1", "Cancel order 4711?"), asked());
  await press(part("approve"));
  (await turn()).send({ type: "error", data: "", code: "approval_expired", retryable: false });
  await part("approval").getByText("This request is no longer valid.").waitFor();
  assert.equal(await part("approve").count(), 0);
});

it("without a network a part is waited for in silence, and is there as soon as the network is", async (t) => {
  const { page, chat, turn, part } = await openAskingChat(t);
  await page.route(CARD, (route) => route.abort());
  await hurry(page);
  await page.evaluate('Object.defineProperty(navigator, "onLine", { value: false, configurable: true })');
  const failed = page.waitForEvent("requestfailed");
  await chat.say("Cancel");
  (await turn()).send(approval("1", "Cancel order 4711?"), asked());
  await failed;
  await page.locator("agent-chat-plain-question").waitFor();
  assert.equal(await part("missing").count(), 0);
  await page.unroute(CARD);
  await page.evaluate('delete navigator.onLine; dispatchEvent(new Event("online"))');
  await page.locator("agent-chat-approval").waitFor();
  assert.equal(await page.locator("agent-chat-plain-question").count(), 0);
});

it("what is blocked is said until it comes or the person has read it", async (t) => {
  const { page, chat, turn, part } = await openAskingChat(t);
  await page.route(CARD, (route) => route.abort());
  await hurry(page);
  await chat.say("Cancel");
  (await turn()).send(approval("1", "Cancel order 4711?"), asked());
  const notice = part("missing").filter({ hasText: BLOCKED });
  await notice.waitFor();
  await page.unroute(CARD);
  await page.evaluate('dispatchEvent(new Event("online"))');
  await notice.waitFor({ state: "detached" });
  await press(part("approve"));
  const goesOn = await turn();
  await page.route(CHUNKS, (route) => route.abort());
  const code = "```\n1\n```";
  goesOn.send(token(code), done(code));
  await notice.waitFor();
  assert.deepEqual(await axeFindings(page), []);
  await part("dismiss").click();
  assert.equal(await notice.count(), 0);
});

it("while the card is loaded as usual, the question without it is in no frame", async (t) => {
  const { page, chat, turn } = await openAskingChat(t);
  const mayCome = gate();
  await page.route(CARD, async (route) => {
    await mayCome.opened;
    await route.continue();
  });
  await page.evaluate(`
    window.frames_ = [];
    const root = document.querySelector("agent-chat").shadowRoot;
    const look = () => {
      frames_.push(["plain-question", "approval"].filter((it) => root.querySelector("agent-chat-" + it)).join());
      requestAnimationFrame(look);
    };
    look();
  `);
  await chat.say("Cancel");
  (await turn()).send(approval("1", "Cancel order 4711?"), asked());
  // Half a second, like a slow network.
  await page.waitForFunction("frames_.length > 30");
  mayCome.open();
  await page.waitForFunction('frames_.at(-1) === "approval"');
  assert.deepEqual(await page.evaluate("[...new Set(frames_)]"), ["", "approval"]);
});
