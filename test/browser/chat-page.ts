/** The chat page of a real server in a real browser, and what a person does with it. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Browser, BrowserContextOptions, Frame, Locator, Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { openPage } from "../support/browser.ts";
import { DEADLINE_MS, gate } from "../support/deadline.ts";
import { type ProxyOptions, startProxy, type TestProxy } from "../support/proxy.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/start-server.ts";

/**
 * The text as a person sees it: with line breaks between blocks, without what is hidden. An exchange that has just come into
 * view is drawn, and has such a text, a frame later.
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

/** Resolves when this is so, or the time for it is over. */
async function untilTrue(isSo: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + DEADLINE_MS;
  while (!(await isSo()) && performance.now() < until);
}

/** One `<agent-chat>`, found by what a person sees or by its public parts. */
export interface ChatElement {
  readonly input: Locator;
  /** The text field in the place of a message that is being changed. */
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
  /** Where the file picker puts what was picked. */
  readonly files: Locator;
  /** Files that go with the next message, each once it was read. */
  readonly drafts: Locator;
  /** Types a message and sends it: by Enter, and by the button where Enter makes a line. */
  say(text: string): Promise<void>;
  /** Waits until so many answers are over. The button to send is there before one begins, too. */
  answered(count?: number): Promise<void>;
  /** Sends a message and waits until its answer has ended with this text. */
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
  /** What stands between browser and server, where the test asked for it. */
  readonly proxy: TestProxy;
  /** Errors and warnings of the console. */
  readonly complaints: string[];
}

export interface ChatPageOptions extends ServerOptions {
  path?: string;
  browser?: BrowserContextOptions;
  proxy?: ProxyOptions;
  /** What the browser may write to the console; anything else fails the test. */
  expectedComplaints?: RegExp;
}

/** Starts a server and opens its page. A complaint that nobody expected fails the test. */
export async function openChat(
  t: TestContext,
  browser: Browser,
  { path = "/", browser: context = {}, proxy: between, expectedComplaints, ...options }: ChatPageOptions = {},
): Promise<ChatPage> {
  const server = await startServer(t, options);
  const proxy = await startProxy(t, server.port, between);
  // Behind them, and so closed before them: it would complain of a server that goes.
  const { page, complaints } = await openPage(t, browser, context);
  failOnComplaints(t, complaints, expectedComplaints);
  await page.goto((between ? proxy.url : server.url) + path);
  return { page, server, proxy, complaints, ...chatIn(page) };
}

/** Fails the test for whatever the page complained of and nobody expected. */
export function failOnComplaints(t: TestContext, complaints: readonly string[], expected?: RegExp): void {
  t.after(() => {
    const others = complaints.filter((text) => expected === undefined || !expected.test(text));
    assert.deepEqual(others, [], "the page complained");
  });
}

/** How far things have shifted on the page that is loaded next, as browsers count it. */
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

/** Every address that a page has asked for from now on. */
export function watchAddresses(page: Page): { requests: string[]; sockets: string[] } {
  const requests: string[] = [];
  const sockets: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("websocket", (socket) => sockets.push(socket.url()));
  return { requests, sockets };
}

/** Has the page of the server ask for what it knows of its agent, as an element on another site does. Returns how to answer. */
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

/** Has the page's chat ask before it loads an image of another server, as a chat on a site does: our own page loads none. */
export async function askForImages({ page }: Pick<ChatPage, "page">): Promise<void> {
  await page.locator("agent-chat").evaluate(async (element) => {
    const chat = element as AgentChat;
    chat.images = "ask";
    chat.requestUpdate();
    await chat.updateComplete;
  });
}

/** A file of that size, made in the page: sending it there would take longer than the test. */
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

/** Files as a drag or a paste carries them. */
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

/** Pastes a text as a browser does; answers whether it is left to the browser. */
export function paste(field: Locator, text: string): Promise<boolean> {
  return field.evaluate((it, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    return it.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Texts of the conversation with which the model was asked for a turn. */
export const contents = ({ server }: Pick<ChatPage, "server">, turn: number) =>
  server.model.asked[turn]?.messages.map(({ content }) => content);

/** Resolves when an empty chat has loaded what it does while it is idle: it needs nothing more of the server for a conversation. */
export async function untilLoaded({ page }: Pick<ChatPage, "page">): Promise<void> {
  await page.waitForFunction(
    (names) => {
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      return names.every((name) => loaded.some((url) => url.includes(`/${name}-`)));
    },
    ["talk", "indexed-db", "edit-in-place"],
  );
}

/** Resolves when an answer is over: it can be copied then. */
export const canCopy = (page: Page) =>
  page.locator('.answer-actions [part="copy"]').last().waitFor({ state: "attached" });

/** Opens everything that can be opened in the replies, of which one has steps, once nothing there closes by itself any more. */
export async function openRows({ replies, tools, thinking }: ChatElement): Promise<void> {
  await tools.or(thinking).first().waitFor({ state: "attached" });
  await replies.locator('[aria-expanded="true"]').first().waitFor({ state: "detached" });
  const closed = replies.locator('[aria-expanded="false"]').filter({ visible: true });
  while ((await closed.count()) > 0) await closed.first().click();
}

/**
 * Resolves when the text field is empty again: until a message that waits for the end of an answer is kept, the field keeps
 * it, and sends nothing else.
 */
export async function untilTaken({ input }: Pick<ChatElement, "input">): Promise<void> {
  await untilTrue(async () => (await input.inputValue()) === "");
  assert.equal(await input.inputValue(), "");
}

/** Whether the keyboard's focus is on exactly this element. */
export function isFocused(locator: Locator): Promise<boolean> {
  return locator.evaluate((element) => {
    const root = element.getRootNode();
    return (root instanceof Document || root instanceof ShadowRoot) && root.activeElement === element;
  });
}

/** Waits until the focus is there, which comes a moment after what leads to it. */
export async function hasFocus(locator: Locator, message?: string): Promise<void> {
  await untilTrue(() => isFocused(locator));
  assert.equal(await isFocused(locator), true, message);
}

/** Resolves when a pointer's press on a button of the card counts: the card has just come, or moved, until then. */
export async function untilSettled(button: Locator): Promise<void> {
  await button.scrollIntoViewIfNeeded();
  await button.evaluate(async (it) => {
    // The chat looks at the place ten times in a second: what has just moved it may not have been seen.
    for (let still = 0, box = ""; still < 10; still += 1) {
      await new Promise(requestAnimationFrame);
      const now = JSON.stringify(it.getBoundingClientRect());
      if (now !== box || it.closest("[data-settling]")) still = -1;
      box = now;
    }
  });
}

/** Presses a button of the card with the pointer, once that counts. */
export async function press(button: Locator): Promise<void> {
  await untilSettled(button);
  await button.click();
}

/** Resolves when an image shows its picture. */
export async function isDrawn(image: Locator): Promise<void> {
  await image.waitFor();
  await image.evaluate((element) => (element as HTMLImageElement).decode());
}

/**
 * Stops the installed clock of a page, which then runs only when it is told to. On a slow machine the moment at which it is
 * to stop may be over by then: it stands all the same, and a second try takes it to a later one.
 */
export async function stopTime(page: Page): Promise<void> {
  const stop = async () => page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
  await stop().catch(stop);
}

/**
 * Holds the time that a page reads, however slow the machine is. Returns how to let some pass, with which go timers; those
 * run on by themselves, too.
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

/** Resolves when a box, and what it scrolls, have stood still for a while: to where it stands. */
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

/** To be called before the page is opened. The result resolves when the page holds no object URL. */
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
