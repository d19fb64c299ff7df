import assert from "node:assert/strict";
import { after } from "node:test";
import type { Page } from "playwright-core";
import type { AgentChat } from "../../widget/element/public-types.ts";
import { launchBrowser } from "../support/browser.ts";
import { it, test } from "../support/rows.ts";
import { call, hang, say, think } from "../support/scripted-provider.ts";
import { echo } from "../support/test-tools.ts";
import { hasFocus, openChat } from "./chat-page.ts";

const browser = await launchBrowser({ after });

const RICH = [
  [think("Hm."), call("c1", "echo", { text: "ping" })],
  [say("# Result\n\n**Pong**, see [the page](https://example.org).\n\n```js\nx\n```\n\n- [x] done")],
] as const;

/** The focused element, through shadow roots: its name, and whether it is visible. */
function focused(page: Page): Promise<{ name: string; visible: boolean }> {
  return page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    if (element === null) return { name: "", visible: false };
    const name = element.getAttribute("aria-label") ?? element.textContent?.trim() ?? "";
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const visible = outlineStyle !== "none" && outlineWidth !== "0px";
    return { name: name.replace(/\s+/g, " "), visible };
  });
}

/** Headings of the accessibility tree: level and text. */
async function headingsOf(page: Page): Promise<string[]> {
  const device = await page.context().newCDPSession(page);
  const { nodes } = await device.send("Accessibility.getFullAXTree");
  return nodes
    .filter(({ role }) => role?.value === "heading")
    .map(({ name, properties }) => `${properties?.find((it) => it.name === "level")?.value.value} ${name?.value}`);
}

test("headings lead from the agent's name to each message and into answers, on the page and in an element of a site", async (t) => {
  const chat = await openChat(t, browser, { turns: [[say("# Title\n\nText\n\n### Smaller")]] });
  await chat.say("Hi");
  await chat.answered();
  const article = (name: string) => chat.page.getByRole("article", { name });
  assert.equal(await article("You said:").getByText("Hi").count(), 1);
  assert.equal(await article("Acme Support said:").getByText("Text").count(), 1);
  const levels = async (...levels: readonly number[]) => {
    const names = ["Acme Support", "You said:", "Acme Support said:", "Title", "Smaller"];
    assert.deepEqual(
      await headingsOf(chat.page),
      names.map((name, index) => `${levels[index]} ${name}`),
    );
  };
  const size = () => chat.answer.locator("h1").evaluate((it) => getComputedStyle(it).fontSize);
  const before = await size();
  await levels(1, 2, 2, 3, 5);
  const change = (attribute: string, value?: string) =>
    chat.page.locator("agent-chat").evaluate(
      async (it, [name, text]) => {
        if (text === undefined) it.removeAttribute(name as string);
        else it.setAttribute(name as string, text);
        await (it as AgentChat).updateComplete;
      },
      [attribute, value],
    );
  await change("page");
  await levels(2, 3, 3, 4, 6);
  await change("heading-level", "4");
  await levels(3, 4, 4, 5, 6);
  assert.equal(await size(), before);
});

test("a whole conversation is possible with the keyboard alone, and the focus is always seen", async (t) => {
  const chat = await openChat(t, browser, {
    agent: { tools: [echo] },
    turns: [...RICH, [say("Bye.")]],
  });
  await hasFocus(chat.input);
  await chat.page.keyboard.type("Ping");
  await chat.page.keyboard.press("Enter");
  await chat.replies.getByText("Pong").waitFor();
  await chat.send.waitFor();
  const stops: string[] = [];
  while (stops.at(-1) !== "New conversation" && stops.length < 20) {
    await chat.page.keyboard.press("Shift+Tab");
    const { name, visible } = await focused(chat.page);
    assert.equal(visible, true, `the focus on "${name}" is not seen`);
    stops.push(name);
    if (/^Echo/.test(name)) {
      await chat.page.keyboard.press("Enter");
      await chat.tools.locator("pre").first().waitFor();
    }
  }
  const expected = ["Copy answer", "Copy", "the page", /^Echo/, /^Thought /, "Conversation"];
  for (const name of expected) {
    assert.ok(
      stops.some((stop) => (name instanceof RegExp ? name.test(stop) : stop === name)),
      `${name} is not among ${stops.join(", ")}`,
    );
  }
  await chat.page.keyboard.press("Enter");
  await chat.greeting.waitFor();
  await hasFocus(chat.input, "a new conversation starts in the text field");
  await chat.page.keyboard.type("Bye");
  await chat.page.keyboard.press("Enter");
  await chat.replies.getByText("Bye.").waitFor();
});

it("in a long conversation Tab passes what is in view and the last exchanges, Escape and F6 lead to the text field", async (t) => {
  const answer = (number: number) => say(`[Link ${number}](https://example.org)\n\n${"A paragraph.\n\n".repeat(30)}`);
  const chat = await openChat(t, browser, { turns: [1, 2, 3, 4, 5].map((number) => [answer(number)]) });
  for (const number of [1, 2, 3, 4, 5]) {
    await chat.say(`Question ${number}`);
    await chat.answered(number);
  }
  const press = async (key: string) => {
    await chat.page.keyboard.press(key);
    return (await focused(chat.page)).name;
  };
  const pressUntil = async (key: string, last: string) => {
    const stops: string[] = [];
    while (stops.at(-1) !== last && stops.length < 30) stops.push(await press(key));
    return stops;
  };
  const forth = ["Link 4", "Copy answer", "Change this message", "Link 5", "Copy answer", "Answer again"];
  await chat.messages.press("End");
  await chat.page.getByRole("button", { name: "New conversation" }).focus();
  assert.equal(await press("Tab"), "Conversation");
  const stops = await pressUntil("Tab", "Message");
  assert.deepEqual(
    stops.filter((name) => forth.includes(name)),
    ["Change this message", ...forth],
  );
  const back = await pressUntil("Shift+Tab", "Conversation");
  assert.deepEqual(
    back.filter((name) => forth.includes(name)),
    ["Change this message", ...forth].reverse(),
  );
  assert.equal(await press("F6"), "Message");
  assert.equal(await press("F6"), "Conversation");
  // In the message that is being read, the controls are tab stops, too.
  await press("Home");
  await chat.messages.evaluate(async (scroller) => {
    while (scroller.scrollTop > 0) await new Promise(requestAnimationFrame);
  });
  assert.equal(await press("Tab"), "Change this message");
  assert.equal(await press("Tab"), "Copy message");
  assert.equal(await press("Tab"), "Link 1");
  assert.equal(await press("Escape"), "Message");
  const device = await chat.page.context().newCDPSession(chat.page);
  const { nodes } = await device.send("Accessibility.getFullAXTree");
  const log = nodes.find(({ role }) => role?.value === "log");
  assert.equal(log?.description?.value, "Escape or F6 leads to the text field.");
});

it("Ctrl+Shift+O and ⌘+Shift+O start a new conversation, on every layout, also while the focus is on the page, but not for an input method or against the page", async (t) => {
  const chat = await openChat(t, browser, { turns: ["One.", "Two.", "Three.", "Four."].map((text) => [say(text)]) });
  const reset = chat.page.getByRole("button", { name: "New conversation" });
  assert.equal(await reset.getAttribute("aria-keyshortcuts"), "Control+Shift+O Meta+Shift+O");
  await chat.ask("Hi", "One.");
  const dispatch = (init: Readonly<Record<string, string | boolean>>) =>
    chat.input.evaluate((field, options) => {
      const rest = { code: "KeyO", shiftKey: true, bubbles: true, composed: true, cancelable: true };
      return field.dispatchEvent(new KeyboardEvent("keydown", { ...rest, ...options }));
    }, init);
  const unused = [
    { key: "O", ctrlKey: true, isComposing: true },
    { key: "O", ctrlKey: true, altKey: true },
    { key: "O" },
    // The key at this position of a Dvorak layout.
    { key: "R", ctrlKey: true },
  ];
  for (const init of unused) assert.equal(await dispatch(init), true, JSON.stringify(init));
  await chat.page.evaluate(() => {
    addEventListener("keydown", (event) => event.key === "O" && event.preventDefault(), { capture: true });
  });
  await chat.page.keyboard.press("Control+Shift+O");
  assert.equal(await chat.replies.count(), 1);
  await chat.page.reload();
  await chat.replies.waitFor();
  for (const [number, init] of [
    { key: "O", ctrlKey: true },
    { key: "o", metaKey: true },
    { key: "Щ", ctrlKey: true },
  ].entries()) {
    if (number > 0) await chat.ask("Again", ["", "Two.", "Three."][number] as string);
    assert.equal(await dispatch(init), false);
    await chat.greeting.waitFor();
    await hasFocus(chat.input);
  }
  await chat.page.reload();
  await chat.ask("At last", "Four.");
  await chat.input.evaluate((field) => field.blur());
  await chat.page.keyboard.press("Control+Shift+O");
  await chat.greeting.waitFor();
});

test("the card around the text field shows the cursor in it; who prefers reduced motion sees none, others a spinner turn", async (t) => {
  const chat = await openChat(t, browser, { turns: [[think("Hm."), hang]], browser: { reducedMotion: "reduce" } });
  const border = () => chat.page.locator('[part="composer"]').evaluate((card) => getComputedStyle(card).borderColor);
  await chat.input.focus();
  const focusedBorder = await border();
  await chat.input.blur();
  assert.notEqual(await border(), focusedBorder);
  await chat.say("Hi");
  await chat.thinking.getByText("Hm.").waitFor();
  const moving = () =>
    chat.page.locator("agent-chat").evaluate((element) => element.shadowRoot?.getAnimations().length ?? 0);
  assert.equal(await moving(), 0);
  await chat.page.emulateMedia({ reducedMotion: "no-preference" });
  assert.ok((await moving()) > 0);
});
