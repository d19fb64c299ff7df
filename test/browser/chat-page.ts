/** The chat page of a real server in a real browser, and the actions of a user. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Browser, BrowserContextOptions, Frame, Locator, Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { openPage } from "../support/browser.ts";
import { DEADLINE_MS, gate } from "../support/deadline.ts";
import { type ProxyOptions, startProxy, type TestProxy } from "../support/proxy.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

/**
 * The visible text, with line breaks between blocks. An exchange that has just scrolled into view is rendered, and has
 * a visible text, one frame later.
 */
export async function shown(locator: Locator): Promise<string> {
  await locator.waitFor();
  let text = "";
  await untilTrue(async () => {
    const [found = ""] = await locator.allInnerTexts();
    text = found.trim();
    return text !== "";
  });
  return text;
}

/** Waits until the condition is true, but at most `DEADLINE_MS`. */
async function untilTrue(isSo: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + DEADLINE_MS;
  while (!(await isSo()) && performance.now() < until);
}

/** One `<agent-chat>`, located by visible texts and public parts. */
export interface ChatElement {
  readonly input: Locator;
  /** The text field that replaces a message while it is edited. */
  readonly edited: Locator;
  readonly send: Locator;
  readonly stop: Locator;
  readonly retry: Locator;
  readonly greeting: Locator;
  readonly error: Locator;
  readonly questions: Locator;
  readonly replies: Locator;
  /** The text of the last answer. */
  readonly answer: Locator;
  readonly tools: Locator;
  readonly thinking: Locator;
  readonly messages: Locator;
  readonly keyField: Locator;
  /** The file input. */
  readonly files: Locator;
  /** Attachments of the next message; each appears once it has been read. */
  readonly drafts: Locator;
  /** Types a message and sends it: with Enter, or with the button where Enter inserts a line break. */
  say(text: string): Promise<void>;
  /** Waits until `count` answers are complete. The send button alone would also be visible before an answer begins. */
  answered(count?: number): Promise<void>;
  /** Sends a message and waits until its answer is complete with this text. */
  ask(text: string, answer: string): Promise<void>;
}

/** Finds the parts of the chat inside a page, a frame or an element. */
export function chatIn(root: Page | Frame | Locator): ChatElement {
  const part = (name: string) => root.locator(`[part~="${name}"]`);
  const input = root.getByRole("textbox", { name: "Message", exact: true });
  const replies = part("assistant");
  const send = root.getByRole("button", { name: "Send message" });
  const say = async (text: string) => {
    await input.fill(text);
    const touch = await input.evaluate(() => matchMedia("(hover: none) and (pointer: coarse)").matches);
    await (touch ? send.click() : input.press("Enter"));
  };
  const answered = (count = 1) =>
    replies
      .nth(count - 1)
      .and(root.locator('[aria-busy="false"]'))
      .waitFor();
  return {
    input,
    edited: root.getByRole("textbox", { name: "Change this message" }),
    send,
    stop: root.getByRole("button", { name: "Stop answering" }),
    retry: root.getByRole("button", { name: "Try again" }),
    greeting: part("empty"),
    error: part("error"),
    questions: part("user"),
    replies,
    answer: replies.last().locator('[part="markdown"]').last(),
    tools: part("tool"),
    thinking: part("thinking"),
    messages: part("messages"),
    keyField: root.getByLabel("Access key"),
    files: root.locator('agent-chat-composer:not([part]) input[type="file"]'),
    drafts: root.locator('agent-chat-composer:not([part]) [part="attachment"]'),
    say,
    answered,
    ask: async (text, answer) => {
      const number = await replies.count();
      await say(text);
      await answered(number + 1);
      assert.equal(await shown(replies.nth(number).locator('[part="markdown"]')), answer);
    },
  };
}

export interface ChatPage extends ChatElement {
  readonly page: Page;
  readonly server: TestServer;
  /** The proxy between browser and server, if the test asked for one. */
  readonly proxy: TestProxy;
  /** Errors and warnings of the console. */
  readonly complaints: string[];
}

export interface ChatPageOptions extends ServerOptions {
  path?: string;
  browser?: BrowserContextOptions;
  proxy?: ProxyOptions;
  /** Console messages that are allowed; any other fails the test. */
  expectedComplaints?: RegExp;
}

/** Starts a server and opens its page. Unexpected console messages fail the test. */
export async function openChat(
  t: TestContext,
  browser: Browser,
  { path = "/", browser: context = {}, proxy: between, expectedComplaints, ...options }: ChatPageOptions = {},
): Promise<ChatPage> {
  const server = await startServer(t, options);
  const proxy = await startProxy(t, server.port, between);
  // Opened after the servers and so closed before them: otherwise the page would log failed connections.
  const { page, complaints } = await openPage(t, browser, context);
  failOnComplaints(t, complaints, expectedComplaints);
  await page.goto((between ? proxy.url : server.url) + path);
  return { page, server, proxy, complaints, ...chatIn(page) };
}

/** Fails the test at its end if the page has unexpected complaints. */
export function failOnComplaints(t: TestContext, complaints: readonly string[], expected?: RegExp): void {
  t.after(() => {
    const others = complaints.filter((text) => expected === undefined || !expected.test(text));
    assert.deepEqual(others, [], "the page complained");
  });
}

/** Sums up the layout shifts of the next page load, as browsers measure them. */
export async function watchShifts(page: Page): Promise<() => Promise<number>> {
  await page.addInitScript(() => {
    const shifts: number[] = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push((entry as PerformanceEntry & { value: number }).value);
    }).observe({ type: "layout-shift", buffered: true });
    Object.assign(window, { shifts });
  });
  return () => page.evaluate<number>("shifts.reduce((sum, value) => sum + value, 0)");
}

/** Collects all addresses that a page requests from now on. */
export function watchAddresses(page: Page): { requests: string[]; sockets: string[] } {
  const requests: string[] = [];
  const sockets: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("websocket", (socket) => sockets.push(socket.url()));
  return { requests, sockets };
}

/** Makes the server's page request its agent's info, like an element on another site; returns how to answer. */
export async function holdInfo(page: Page): Promise<() => void> {
  const answered = gate();
  await page.route(/\/(?:\?.*)?$/, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/(?<=id="page-data">)[^<]*/, "{}");
    await route.fulfill({ response, body });
  });
  await page.route("**/api/info", async (route) => {
    await answered.opened;
    await route.continue();
  });
  return answered.open;
}

/** Makes the page's chat ask before it loads images of other servers, as on a site: our own page loads none. */
export async function askForImages({ page }: Pick<ChatPage, "page">): Promise<void> {
  await page.locator("agent-chat").evaluate(async (element) => {
    const chat = element as AgentChat;
    chat.images = "ask";
    chat.requestUpdate();
    await chat.updateComplete;
  });
}

/** Drops a file of that size, created in the page because sending it there would take too long. */
export async function dropLargePdf(
  { page, messages }: Pick<ChatPage, "page" | "messages">,
  name: string,
  size: number,
): Promise<void> {
  const file = { name, size };
  const dataTransfer = await page.evaluateHandle((made) => {
    const bytes = new Uint8Array(made.size);
    bytes.set(new TextEncoder().encode("%PDF-"));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], made.name, { type: "application/pdf" }));
    return transfer;
  }, file);
  await messages.dispatchEvent("drop", { dataTransfer });
}

/** A `DataTransfer` with files, as in a drag or a paste. */
export function transferOf(page: Page, files: readonly { name: string; mimeType: string; buffer: Buffer }[]) {
  const plain = files.map(({ name, mimeType, buffer }) => ({ name, mimeType, data: [...buffer] }));
  return page.evaluateHandle((items) => {
    const transfer = new DataTransfer();
    for (const { name, mimeType, data } of items) {
      transfer.items.add(new File([new Uint8Array(data)], name, { type: mimeType }));
    }
    return transfer;
  }, plain);
}

/** Pastes a text; returns whether the browser's default action remains. */
export function paste(field: Locator, text: string): Promise<boolean> {
  return field.evaluate((it, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    return it.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Texts of the conversation in a model request. */
export const contents = ({ server }: Pick<ChatPage, "server">, turn: number) =>
  server.model.asked[turn]?.messages.map(({ content }) => content);

/** Waits until an empty chat has loaded, while idle, all parts that a conversation needs. */
export async function untilLoaded({ page }: Pick<ChatPage, "page">): Promise<void> {
  await page.waitForFunction(
    (names) => {
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      return names.every((name) => loaded.some((url) => url.includes(`/${name}-`)));
    },
    ["talk", "indexed-db", "edit-in-place"],
  );
}

/** Waits until an answer is complete, when it can be copied. */
export const canCopy = (page: Page) =>
  page.locator('.answer-actions [part="copy"]').last().waitFor({ state: "attached" });

/** Opens all collapsed rows in the replies, of which one must have steps, once no row closes by itself any more. */
export async function openRows({ replies, tools, thinking }: ChatElement): Promise<void> {
  await tools.or(thinking).first().waitFor({ state: "attached" });
  await replies.locator('[aria-expanded="true"]').first().waitFor({ state: "detached" });
  const closed = replies.locator('[aria-expanded="false"]').filter({ visible: true });
  while ((await closed.count()) > 0) await closed.first().click();
}

/**
 * Resolves when the text field is empty again. A message that has to wait for the end of an answer stays in the field
 * until it is stored, and nothing else can be sent.
 */
export async function untilTaken({ input }: Pick<ChatElement, "input">): Promise<void> {
  await untilTrue(async () => (await input.inputValue()) === "");
  assert.equal(await input.inputValue(), "");
}

/** Whether exactly this element has the focus. */
export function isFocused(locator: Locator): Promise<boolean> {
  return locator.evaluate((element) => {
    const root = element.getRootNode();
    return (root instanceof Document || root instanceof ShadowRoot) && root.activeElement === element;
  });
}

/** Waits until the element has the focus, which moves a little after its cause. */
export async function hasFocus(locator: Locator, message?: string): Promise<void> {
  await untilTrue(() => isFocused(locator));
  assert.equal(await isFocused(locator), true, message);
}

/** Waits until a card's button accepts pointer clicks: it ignores them right after the card has appeared or moved. */
export async function untilSettled(button: Locator): Promise<void> {
  await button.scrollIntoViewIfNeeded();
  await button.evaluate(async (it) => {
    // The chat checks the card's position ten times per second, so it may not have noticed a move yet.
    for (let still = 0, box = ""; still < 10; still += 1) {
      await new Promise(requestAnimationFrame);
      const now = JSON.stringify(it.getBoundingClientRect());
      if (now !== box || it.closest("[data-settling]")) still = -1;
      box = now;
    }
  });
}

/** Clicks a button of the card once it accepts clicks. */
export async function press(button: Locator): Promise<void> {
  await untilSettled(button);
  await button.click();
}

/** Waits until an image is decoded. */
export async function isDrawn(image: Locator): Promise<void> {
  await image.waitFor();
  await image.evaluate((element) => (element as HTMLImageElement).decode());
}

/**
 * Stops the installed clock of a page, which then advances only on command. On a slow machine the chosen moment may
 * have passed: the clock stops even so, and the second attempt uses a later moment.
 */
export async function stopTime(page: Page): Promise<void> {
  const stop = async () => page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
  await stop().catch(stop);
}

/**
 * Fixes the time that a page reads, independent of the machine's speed. Returns a function that advances it and runs
 * due timers; timers also continue to run by themselves.
 */
export async function holdTime({ clock }: Page): Promise<(ms: number) => Promise<void>> {
  let now = Date.now();
  const pass = async (ms: number) => {
    now += ms;
    await clock.setFixedTime(now);
    await clock.runFor(ms);
  };
  await pass(0);
  return pass;
}

/** Waits until a box and its scroll position have not changed for ten frames; returns the box. */
export async function standsAt(locator: Locator): Promise<DOMRect> {
  return locator.evaluate(async (element) => {
    const places: string[] = [];
    while (places.length < 10 || new Set(places.slice(-10)).size > 1) {
      await new Promise(requestAnimationFrame);
      const { scrollTop, scrollHeight } = element;
      places.push(JSON.stringify([element.getBoundingClientRect(), scrollTop, scrollHeight]));
    }
    return element.getBoundingClientRect().toJSON();
  });
}

/** Call this before the page is opened. The returned function resolves once the page has no object URL. */
export async function watchObjectUrls(page: Page): Promise<() => Promise<unknown>> {
  await page.addInitScript(() => {
    const held = new Set<string>();
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => {
      const url = createObjectURL(blob);
      held.add(url);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      held.delete(url);
      revokeObjectURL(url);
    };
    Object.assign(window, { heldUrls: held });
  });
  return () => page.waitForFunction("heldUrls.size === 0");
}
