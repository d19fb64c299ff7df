/** Requirements of people with a keyboard, touch or forced colours for every control (WCAG 2.4.7, 1.4.11, 2.5.5). */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { ApiError } from "../../server/protocol/errors.ts";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { askForImages, type ChatPage, hasFocus, openChat, openRows, paste, untilTaken } from "../browser/chat-page.ts";
import { fillList } from "../browser/kept.ts";
import { launchBrowser } from "../support/browser.ts";
import { gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { call, fail, say, think, wait } from "../support/scripted-provider.ts";
import { broken, define, echo } from "../support/test-tools.ts";

const browser = await launchBrowser({ after });

const ANSWER = `See [the page](https://example.org) and ![a chart](https://example.org/chart.png)

${"```"}ts
const a = 1; // ${"wide ".repeat(50)}
${"```"}

| ${"wide column | ".repeat(12)}
|${"---|".repeat(12)}
| ${"some cell | ".repeat(12)}
`;

/** A conversation that shows every kind of control. */
async function openFull(t: TestContext, options: BrowserContextOptions): Promise<ChatPage> {
  const failing = gate();
  const chat = await openChat(t, browser, {
    agent: { tools: [echo, broken], chat: { suggestions: ["Everything"] } },
    turns: [
      [say("One.")],
      [think("Hm."), call("c1", "echo", { text: "x" }), call("c2", "broken")],
      [say(ANSWER)],
      [wait(failing.opened), fail(new ApiError("provider_error", "The model is ill."))],
    ],
    // Without motion, so that no colour is in transition.
    browser: { viewport: { width: 800, height: 2400 }, reducedMotion: "reduce", ...options },
  });
  await chat.ask("First", "One.");
  await chat.page.evaluate(fillList(12, 2));
  await chat.page.reload();
  await askForImages(chat);
  // On touch screens, the buttons appear with a tap on their message.
  await chat.questions.locator(".bubble").click();
  await chat.questions.getByRole("button", { name: "Change this message" }).click();
  await chat.edited.fill("Everything");
  await chat.edited.press("Control+Enter");
  await chat.page.getByText("2/2").waitFor();
  await chat.replies.getByText("some cell").first().waitFor();
  await chat.send.waitFor();
  await chat.page.getByRole("button", { name: "Copy: Table" }).waitFor();
  await openRows(chat);
  await chat.say("Fail");
  await chat.questions.nth(1).waitFor();
  await chat.say("Later");
  await chat.page.locator('[part="pending"]').waitFor();
  await untilTaken(chat);
  failing.open();
  await chat.retry.waitFor();
  await chat.page.getByRole("button", { name: "Send anyway?" }).waitFor();
  await chat.files.setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: RED_PIXEL },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ]);
  await chat.page.locator('[part="refusals"]').waitFor();
  await chat.input.fill("A draft");
  return chat;
}

/** Opens the list over the chat, with the menu of a conversation. */
async function openList({ page }: ChatPage): Promise<void> {
  await page.getByRole("button", { name: "Conversations" }).click();
  await page
    .getByRole("button", { name: /^Options for/ })
    .first()
    .click();
  await page.getByRole("button", { name: "Rename" }).waitFor();
}

/** The focused element: its name, and the contrast between its focus indicator and the background. */
function focused(page: Page): Promise<{ name: string; contrast: number }> {
  return page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    if (element === null || element === document.body) return { name: "", contrast: 0 };
    const text = element.getAttribute("aria-label") ?? (element.textContent || element.id);
    const name = text.trim().replace(/\s+/g, " ").slice(0, 40);
    // The focus of the text field is shown by the border of its card.
    const card = element.matches("textarea") ? element.closest('[part="composer"]') : null;
    const style = getComputedStyle(card ?? element);
    const isShown = card !== null || (style.outlineStyle !== "none" && style.outlineWidth >= "2px");
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    if (!canvas || !isShown) return { name, contrast: 0 };
    // Background colours from the page upwards.
    const layers: string[] = [];
    let node: Node | null = (card ?? element).parentNode;
    while (node) {
      if (node instanceof Element) layers.unshift(getComputedStyle(node).backgroundColor);
      node = node instanceof ShadowRoot ? node.host : node.parentNode;
    }
    const luminances = [];
    for (const colours of [layers, [card ? style.borderTopColor : style.outlineColor]]) {
      for (const colour of colours) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      const [red = 0, green = 0, blue = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      luminances.push(0.2126 * red + 0.7152 * green + 0.0722 * blue);
    }
    const [dark = 0, light = 0] = luminances.sort((a, b) => a - b);
    return { name, contrast: (light + 0.05) / (dark + 0.05) };
  });
}

/** Names of all Tab stops, from the first of the page to the last; asserts that each shows its focus. */
async function assertFocusShown(page: Page): Promise<string[]> {
  // After the last stop the focus leaves the page, and returns at the first.
  while ((await focused(page)).name !== "") await page.keyboard.press("Tab");
  const names: string[] = [];
  for (;;) {
    await page.keyboard.press("Tab");
    const { name, contrast } = await focused(page);
    if (name === "") return names;
    assert.ok(contrast >= 3, `the focus on "${name}" has a contrast of ${contrast}`);
    names.push(name);
  }
}

/** Cards and controls without a border of a distinct colour. */
const edgeless = (page: Page) =>
  page.locator("agent-chat").evaluate((element) => {
    const root = element.shadowRoot as ShadowRoot;
    const boxes = root.querySelectorAll(
      '[part="composer"], [part="error"], .bubble, .icon-button, .small-button, .code, .table, button.image, [part="remove"]',
    );
    return [...boxes]
      .filter((box) => {
        const { borderTopWidth, borderTopColor, backgroundColor } = getComputedStyle(box);
        return borderTopWidth === "0px" || borderTopColor === backgroundColor;
      })
      .map((box) => box.getAttribute("aria-label") ?? box.className);
  });

const STOPS = [
  /^Switch to/,
  /^New conversation$/,
  /^Conversations$/,
  /^Conversation$/,
  /^Previous$/,
  /steps/,
  /^Echo/,
  /^Copy: Arguments$/,
  /^the page$/,
  /^Load image/,
  /^Wrap lines$/,
  /^Copy: Table$/,
  /^Copy answer$/,
  /^Try again$/,
  /^Send anyway\?$/,
  /^Dismiss$/,
  /^Remove red.png$/,
  /^Attach files$/,
  /^Message$/,
  /^Send message$/,
];

test("the focus is seen on every control, 3 : 1 at least, in both themes; with forced colours, too, where all keep an edge", async (t) => {
  const chat = await openFull(t, { colorScheme: "light" });
  const assertStops = async (stops: readonly RegExp[]) => {
    for (const colours of [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }] as const) {
      await chat.page.emulateMedia({ forcedColors: "none", ...colours });
      const names = await assertFocusShown(chat.page);
      for (const name of stops) {
        assert.ok(
          names.some((stop) => name.test(stop)),
          `${name} is not among ${names.join(", ")}`,
        );
      }
    }
    assert.deepEqual(await edgeless(chat.page), []);
  };
  await assertStops(STOPS);
  await openList(chat);
  await assertStops([/^Search/, /^Everything/, /^Options for/, /^Rename$/, /^Delete$/, /^Forget everything$/]);
  await chat.page.getByRole("button", { name: "Close the list" }).click();
  await chat.page.locator('[part="reset"]').click();
  await chat.greeting.waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await chat.page.emulateMedia({ forcedColors: "none", colorScheme });
    assert.ok((await assertFocusShown(chat.page)).includes("Everything"));
  }
});

test("the key form takes the focus, which is seen in both themes, and says what is wrong with a key", async (t) => {
  const chat = await openChat(t, browser, {
    turns: [],
    env: { PARLEY_CHAT_KEY: "c-1" },
    browser: { reducedMotion: "reduce" },
  });
  await chat.keyField.waitFor();
  await hasFocus(chat.keyField);
  const assertSeen = async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      await chat.page.emulateMedia({ colorScheme });
      assert.ok((await assertFocusShown(chat.page)).includes("key"));
    }
  };
  await assertSeen();
  await chat.keyField.fill("wrong");
  await chat.keyField.press("Enter");
  await chat.page.getByRole("alert").getByText("That key was not accepted.").waitFor();
  assert.equal(await chat.keyField.getAttribute("aria-invalid"), "true");
  await assertSeen();
});

test("a finger has 44 px for every control", async (t) => {
  const chat = await openFull(t, {
    viewport: { width: 390, height: 2400 },
    isMobile: true,
    hasTouch: true,
  });
  const buttons = chat.page.locator("agent-chat").locator("button, input, textarea").filter({ visible: true });
  const assertLarge = async (least: number) => {
    const small = await buttons.evaluateAll((all) =>
      all.flatMap((button) => {
        const { width, height } = button.getBoundingClientRect();
        // The target may be larger than the visible button.
        const more = getComputedStyle(button, "::after");
        const around = more.content === "none" ? 0 : -2 * Number.parseFloat(more.top);
        if (width + around >= 44 && height + around >= 44) return [];
        return [`${button.getAttribute("aria-label") ?? button.textContent}: ${width} × ${height}`];
      }),
    );
    assert.deepEqual(small, []);
    const count = await buttons.count();
    assert.ok(count > least, `${count} controls`);
  };
  await paste(chat.input, "one\n".repeat(100));
  await chat.page.locator('[part="unfold"]').waitFor();
  await assertLarge(20);
  for (const question of await chat.questions.all()) {
    const opacity = () => question.locator("time").evaluate((it) => getComputedStyle(it).opacity);
    assert.equal(await opacity(), "0");
    await question.locator(".bubble").tap();
    assert.equal(await opacity(), "1", "a message that is touched says when it was sent");
  }
  await openList(chat);
  await assertLarge(5);
  await chat.page.getByRole("button", { name: "Close" }).first().tap();
  await chat.page.locator('[part="reset"]').tap();
  const pill = await chat.page.getByRole("button", { name: "Everything" }).boundingBox();
  assert.ok(pill && pill.height >= 44);
});

test("when a button is gone that had the focus, or cannot be used any more, the text field has it", async (t) => {
  const long = "A paragraph.\n\n".repeat(80);
  const [pressed, moved] = [gate(), gate()];
  const chat = await openChat(t, browser, {
    proxy: { upgrades: "pass" },
    expectedComplaints: /^WebSocket connection to|^Failed to load resource: net::|Content Security/,
    turns: [
      [fail(new ApiError("provider_error", "The model is ill."))],
      [say("One.")],
      [wait(pressed.opened), say(`${long}![a chart](https://example.org/chart.png)`)],
      [wait(moved.opened), say("More.")],
    ],
  });
  await askForImages(chat);
  const part = (name: string) => chat.page.locator(`[part="${name}"]`);
  const press = async (button: Locator, next = chat.input) => {
    await button.focus();
    await chat.page.keyboard.press("Enter");
    await button.waitFor({ state: "detached" });
    await hasFocus(next);
    await chat.input.focus();
  };
  await chat.say("First");
  await press(chat.retry);
  await chat.replies.getByText("One.").waitFor();
  await press(part("ask-again"));
  pressed.open();
  const image = chat.answer.getByRole("button", { name: /Load image/ });
  await image.waitFor();
  // The focus moves to where the user reads on.
  await press(image, chat.messages);
  // A button that becomes disabled, because the page starts an answer.
  await chat.questions.last().locator('[part="edit"]:enabled').focus();
  await chat.page.evaluate(() => void (document.querySelector("agent-chat") as AgentChat).send("More"));
  await chat.input.and(chat.page.locator(":focus")).waitFor();
  moved.open();
  await chat.replies.getByText("More.").waitFor();
  await chat.messages.press("Home");
  await press(part("jump"));
  await chat.files.setInputFiles({
    name: "notes.txt",
    mimeType: "text/plain",
    buffer: Buffer.from("notes"),
  });
  await press(part("dismiss"));
  await chat.proxy.down();
  await chat.say("Second");
  await press(part("withdraw"));
});

test("the focus is taken from no field of the page, also if the chat had it when it began to draw", async (t) => {
  const next = gate();
  const chat = await openChat(t, browser, { turns: [[say("One"), wait(next.opened), say(" two.")]] });
  await chat.say("Hi");
  await chat.answer.getByText("One").waitFor();
  await chat.input.focus();
  await chat.page.evaluate(() => {
    const field = Object.assign(document.createElement("input"), { id: "name" });
    document.body.append(field);
    let isOver = false;
    (document.querySelector("agent-chat") as AgentChat).addController({
      hostUpdated() {
        if (!isOver) field.focus();
        isOver = true;
      },
    });
  });
  next.open();
  await chat.answered();
  await chat.page.evaluate(() => (document.querySelector("agent-chat") as AgentChat).updateComplete);
  assert.equal(await chat.page.evaluate(() => document.activeElement?.id), "name");
});

test("when the page draws a call anew whose button was pressed, the text field has the focus", async (t) => {
  const pressed = gate();
  const chat = await openChat(t, browser, {
    agent: {
      tools: [
        define("slow", async () => {
          await pressed.opened;
          return "ok";
        }),
      ],
    },
    turns: [[call("c1", "slow")], [say("Done.")]],
  });
  await chat.page.locator("agent-chat").evaluate((element) => {
    (element as AgentChat).toolRenderers = {
      slow({ status }) {
        return Object.assign(document.createElement("button"), { textContent: `Card ${status}` });
      },
    };
  });
  await chat.say("Go");
  await chat.page.getByRole("button", { name: "Card running" }).focus();
  pressed.open();
  await chat.page.getByRole("button", { name: "Card completed" }).waitFor();
  await chat.answered();
  assert.equal((await focused(chat.page)).name, "Message");
});
