/** Mounts `<agent-chat>` in the page and waits for its renderings. */

import "./browser-globals.ts";
import type { TestContext } from "node:test";

await import("../../widget/chat.ts");
export const { AgentChat } = await import("../../widget/element/agent-chat.ts");
export type AgentChat = InstanceType<typeof AgentChat>;

/** Resolves with the result of `find` as soon as a rendering makes it find something. */
export async function until<T>(element: AgentChat, find: () => T | null | undefined | false): Promise<T> {
  for (;;) {
    const found = find();
    if (found) return found;
    await new Promise<void>((resolve) => {
      const observer = new MutationObserver(() => end());
      const controller = { hostUpdated: () => end() };
      const end = () => {
        observer.disconnect();
        element.removeController(controller);
        resolve();
      };
      element.addController(controller);
      observer.observe(element.renderRoot, { subtree: true, childList: true, characterData: true, attributes: true });
    });
  }
}

export class ChatPage {
  readonly chat: AgentChat;

  constructor(chat: AgentChat) {
    this.chat = chat;
  }

  find<T extends Element = HTMLElement>(selector: string): T | null {
    return this.chat.renderRoot.querySelector<T>(selector);
  }

  all(selector: string): Element[] {
    return [...this.chat.renderRoot.querySelectorAll(selector)];
  }

  text(selector: string): string {
    return this.find(selector)?.textContent?.replace(/\s+/g, " ").trim() ?? "";
  }

  /** Waits until the selector matches, and returns the element. */
  shown<T extends Element = HTMLElement>(selector: string): Promise<T> {
    return until(this.chat, () => this.find<T>(selector));
  }

  async click(selector: string): Promise<void> {
    (await this.shown(selector)).click();
    await this.chat.updateComplete;
  }

  async type(text: string): Promise<HTMLTextAreaElement> {
    const input = await this.shown<HTMLTextAreaElement>("textarea");
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await this.chat.updateComplete;
    return input;
  }

  async press(init: KeyboardEventInit & { keyCode?: number }): Promise<KeyboardEvent> {
    const input = await this.shown<HTMLTextAreaElement>("textarea");
    const event = new KeyboardEvent("keydown", {
      bubbles: true,
      composed: true,
      cancelable: true,
      ...init,
    });
    input.dispatchEvent(event);
    await this.chat.updateComplete;
    return event;
  }

  async enterKey(key: string): Promise<void> {
    const input = await this.shown<HTMLInputElement>("#key");
    input.value = key;
    input.form?.requestSubmit();
  }
}

/** Mounts the element and waits until the server has described its agent. */
export async function mount(
  t: TestContext,
  properties: Partial<Pick<AgentChat, "server" | "apiKey" | "theme" | "page" | "persist">>,
): Promise<ChatPage> {
  const chat = new AgentChat();
  // happy-dom has no IndexedDB, and the chat would show a note about that.
  Object.assign(chat, { persist: "none" }, properties);
  const ready = new Promise((resolve) => chat.addEventListener("agent-chat-ready", resolve));
  document.body.append(chat);
  t.after(async () => {
    // happy-dom keeps the focus on removed elements, and then cannot determine their root.
    const blur = () => {
      const focused = chat.shadowRoot?.activeElement;
      if (focused instanceof HTMLElement) focused.blur();
    };
    blur();
    await chat.updateComplete;
    blur();
    chat.remove();
  });
  await ready;
  await chat.updateComplete;
  return new ChatPage(chat);
}
