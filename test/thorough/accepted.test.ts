/** A message's text leaves the text field when the message is accepted, not before. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { AgentChat } from "../../widget/element/agent-chat.ts";
import { type ChatPage, type ChatPageOptions, contents, openChat, untilTaken } from "../browser/chat-page.ts";
import { launchBrowser } from "../support/browser.ts";
import { type Gate, gate } from "../support/deadline.ts";
import { RED_PIXEL } from "../support/files.ts";
import { say, wait } from "../support/scripted-provider.ts";

const browser = await launchBrowser({ after });

interface HeldChat extends ChatPage {
  /** Releases the second answer. */
  rest: Gate;
}

/** A chat after its first answer. The second answer waits, the third does not. */
async function openAnswered(t: TestContext, options: ChatPageOptions = {}): Promise<HeldChat> {
  const rest = gate();
  t.after(rest.open);
  const turns = [[say("One.")], [wait(rest.opened), say("Two.")], [say("Three.")]];
  const chat = await openChat(t, browser, { turns, ...options });
  await chat.ask("First", "One.");
  return { ...chat, rest };
}

declare global {
  var dot: File;
  /** Actions of a test in the page, all before the next frame. */
  var here: {
    chat: AgentChat;
    /** Puts the text into the field and presses Enter there. */
    send: (text: string) => void;
    click: (part: string) => void;
  };
}

/** As text, because `tsx` compiles named functions to code with a helper that the page does not have. */
const HERE = `{
  const chat = document.querySelector("agent-chat");
  const part = (name) => chat.shadowRoot.querySelector('[part~="' + name + '"]');
  globalThis.here = {
    chat,
    send(text) {
      const field = part("input");
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true }));
      const enter = { key: "Enter", bubbles: true, composed: true, cancelable: true };
      field.dispatchEvent(new KeyboardEvent("keydown", enter));
    },
    click: (name) => part(name)?.click(),
  };
}`;

/** Runs code in the page without a frame between its steps. */
async function atOnce({ page }: ChatPage, code: () => unknown): Promise<void> {
  await page.evaluate(HERE);
  await page.evaluate(code);
}

/** Completes the second answer; then sends the text that stayed in the field, which gets the third answer. */
async function goOn(chat: HeldChat, kept: string): Promise<void> {
  await chat.replies.and(chat.page.locator('[aria-busy="true"]')).waitFor();
  assert.equal(await chat.input.inputValue(), kept);
  chat.rest.open();
  await chat.replies.getByText("Two.").waitFor();
  await chat.send.click();
  await chat.replies.getByText("Three.").waitFor();
}

const ALL = ["First", "One.", "Second", "Two.", "Third"];

test("what is sent before the first message is drawn stays in the field: a second Enter and clicks send nothing more", async (t) => {
  const chat = await openAnswered(t);
  await atOnce(chat, () => {
    here.send("Second");
    here.click("send");
    here.send("");
    here.send("Third");
    here.click("send");
  });
  await goOn(chat, "Third");
  assert.deepEqual(contents(chat, 2), ALL);
  assert.equal(await chat.input.inputValue(), "");
});

test("keys that follow each other faster than the screen is drawn lose no text", async (t) => {
  const chat = await openAnswered(t);
  const device = await chat.page.context().newCDPSession(chat.page);
  await chat.input.focus();
  const enter = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 } as const;
  await Promise.all([
    device.send("Input.insertText", { text: "Second" }),
    device.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter }),
    device.send("Input.insertText", { text: "Third" }),
    device.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter }),
    device.send("Input.dispatchKeyEvent", { type: "keyUp", ...enter }),
  ]);
  chat.rest.open();
  await chat.replies.getByText("Two.").waitFor();
  // An Enter after the first message was accepted queues the text, which is then sent; an earlier one leaves the text.
  if ((await chat.input.inputValue()) === "Third") await chat.input.press("Enter");
  await chat.replies.getByText("Three.").waitFor();
  assert.deepEqual(contents(chat, 2), ALL);
});

test("a message that is sent right behind what the page offers, or an answer that is asked for again, stays in the field", async (t) => {
  const offered = await openAnswered(t);
  await atOnce(offered, async () => {
    here.chat.suggest(["Second"]);
    await here.chat.updateComplete;
    here.click("suggestion");
    here.click("suggestion");
    here.send("Third");
  });
  await goOn(offered, "Third");
  assert.deepEqual(contents(offered, 2), ALL);
  const again = await openAnswered(t);
  await atOnce(again, () => {
    here.click("ask-again");
    here.click("ask-again");
    here.send("Third");
  });
  await goOn(again, "Third");
  assert.deepEqual(contents(again, 2), ["First", "Two.", "Third"]);
});

test("of two messages of the page at once one is refused, and the draft stays", async (t) => {
  const chat = await openAnswered(t);
  await chat.input.fill("Third");
  await atOnce(chat, async () => {
    void here.chat.send("Second");
    await here.chat.send("Never").catch(({ message }) => here.chat.setAttribute("title", message));
  });
  const title = await chat.page.locator("agent-chat").getAttribute("title");
  assert.equal(title, "cannot send while the session is running");
  await goOn(chat, "Third");
  assert.deepEqual(contents(chat, 2), ALL);
});

test("a message that is being changed stays while another one is answered", async (t) => {
  const chat = await openAnswered(t);
  await chat.input.fill("A draft that waits");
  await chat.page.getByRole("button", { name: "Change this message" }).click();
  await chat.edited.waitFor();
  await atOnce(chat, () => {
    here.chat.addEventListener("agent-chat-message", () => here.send("First, changed"), {
      once: true,
    });
    void here.chat.send("Second");
  });
  await chat.replies.nth(1).waitFor();
  assert.equal(await chat.edited.inputValue(), "First, changed");
  await chat.edited.press("Enter");
  await chat.questions.locator(".busy-note").waitFor();
  chat.rest.open();
  await chat.replies.getByText("Two.").waitFor();
  await chat.page.locator('[part="send-edit"]').click();
  await chat.replies.getByText("Three.").waitFor();
  assert.deepEqual(contents(chat, 2), ["First, changed"]);
  assert.equal(await chat.input.inputValue(), "A draft that waits");
});

const DOT = { name: "dot.png", mimeType: "image/png", buffer: RED_PIXEL };

test("a message that is sent right behind the page's own waits with its files, and goes with them", async (t) => {
  const chat = await openAnswered(t);
  await chat.files.setInputFiles(DOT);
  await chat.drafts.waitFor();
  await atOnce(chat, () => {
    here.chat.addEventListener("agent-chat-message", () => here.send("Third"), { once: true });
    void here.chat.send("Second");
  });
  await chat.page.locator('[part="pending"]').waitFor();
  await untilTaken(chat);
  assert.equal(await chat.drafts.count(), 0);
  chat.rest.open();
  await chat.replies.getByText("Three.").waitFor();
  assert.match(JSON.stringify(contents(chat, 2)?.at(-1)), /Third.*image_url/);
});

test("Enter while a file is still being read waits for the file", async (t) => {
  const chat = await openAnswered(t, { turns: [[say("One.")], [say("A dot.")]] });
  await chat.files.evaluate(
    (_, bytes) => {
      globalThis.dot = new File([new Uint8Array(bytes)], "dot.png", { type: "image/png" });
    },
    [...RED_PIXEL],
  );
  await atOnce(chat, () => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(dot);
    const drop = new DragEvent("drop", { dataTransfer, bubbles: true, composed: true, cancelable: true });
    here.chat.shadowRoot?.querySelector('[part~="messages"]')?.dispatchEvent(drop);
    here.send("What is it?");
  });
  await chat.drafts.waitFor();
  assert.equal(await chat.input.inputValue(), "What is it?");
  await chat.send.click();
  await chat.replies.getByText("A dot.").waitFor();
  assert.match(JSON.stringify(contents(chat, 1)?.at(-1)), /What is it\?.*image_url/);
});
