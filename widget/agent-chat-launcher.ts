import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import type { AgentChat } from "./agent-chat.ts";
import type { ScriptTag } from "./script-tag.ts";
import { strings } from "./strings.ts";
import { launcherStyles } from "./styles/launcher.styles.ts";
import * as icons from "./views/icons.ts";

/** Parts of the chat that a page can style through the launcher: all of them. */
const CHAT_PARTS =
  "header,theme-toggle,reset,forget-key,messages,message,user,assistant,markdown,steps,thinking,tool,note,error,retry,copy," +
  "empty,suggestions,suggestion,jump,composer,input,attach,attachments,attachment,refusals,send,stop,key-form";

/**
 * A round button in the corner that opens the chat in a panel; what `/widget.js` adds to other sites' pages.
 *
 * @tagname agent-chat-launcher
 * @csspart launcher - The round button.
 * @csspart panel - The panel with the chat.
 */
export class AgentChatLauncher extends LitElement {
  static override styles = launcherStyles;

  static override properties: PropertyDeclarations = {
    server: {},
    apiKey: { attribute: false },
  };

  server = "";

  /** The site's key. A property only, so that it does not appear in the page a second time. */
  apiKey = "";

  #panelOpen = false;

  /** The chat is built on first opening, and stays, so that closing loses nothing. */
  #opened = false;

  async open(): Promise<void> {
    this.#opened = true;
    this.#panelOpen = true;
    this.requestUpdate();
    await this.updateComplete;
    await this.#chat?.updateComplete;
    this.#chat?.focusComposer();
  }

  close(): void {
    if (!this.#panelOpen) return;
    this.#panelOpen = false;
    this.requestUpdate();
    void this.updateComplete.then(() => this.#button?.focus({ preventScroll: true }));
  }

  protected override render(): TemplateResult {
    const label = this.#panelOpen ? strings.closeChat : strings.openChat;
    return html`
      <section
        id="panel"
        part="panel"
        class="panel"
        role="dialog"
        aria-label=${strings.chatPanel}
        ?hidden=${!this.#panelOpen}
        @keydown=${this.#keyDown}
      >
        ${this.#opened ? this.#chatView() : nothing}
      </section>
      <button
        type="button"
        part="launcher"
        class=${this.#panelOpen ? "launcher is-open" : "launcher"}
        aria-label=${label}
        aria-expanded=${this.#panelOpen}
        aria-controls="panel"
        @click=${() => (this.#panelOpen ? this.close() : this.open())}
      >
        ${this.#panelOpen ? icons.fold : icons.chat}
      </button>
    `;
  }

  get #chat(): AgentChat | null {
    return this.renderRoot.querySelector("agent-chat");
  }

  get #button(): HTMLButtonElement | null {
    return this.renderRoot.querySelector(".launcher");
  }

  #chatView(): TemplateResult {
    return html`
      <agent-chat exportparts=${CHAT_PARTS} .server=${this.server} .apiKey=${this.apiKey}>
        <button
          slot="header-end"
          type="button"
          class="close"
          aria-label=${strings.closeChat}
          title=${strings.closeChat}
          @click=${() => this.close()}
        >
          ${icons.close}
        </button>
      </agent-chat>
    `;
  }

  readonly #keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    this.close();
  };
}

/** Adds the launcher, unless the page has placed the chat itself or wants none. */
export function addLauncher({ server, key, wantsLauncher }: ScriptTag): void {
  if (!wantsLauncher || document.querySelector("agent-chat, agent-chat-launcher")) return;
  const launcher = new AgentChatLauncher();
  launcher.server = server;
  launcher.apiKey = key;
  document.body.append(launcher);
}

declare global {
  interface HTMLElementTagNameMap {
    "agent-chat-launcher": AgentChatLauncher;
  }
}
