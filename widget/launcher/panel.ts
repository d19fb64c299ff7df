/** The launcher's panel with the chat: loaded when it is needed. */

// The panel shows an `<agent-chat>`.
import "../chat.ts";
import { html, LitElement, noChange, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import { Directive, directive, type ElementPart } from "lit/directive.js";
import { questionsOf } from "../conversations/messages.ts";
import type { AgentChat } from "../element/agent-chat.ts";
import { LocaleController } from "../element/locale.ts";
import { attributeOf, isValid, type Row, SHARED } from "../element/properties.ts";
import type {
  AgentChatDoneEvent,
  AgentChatErrorEvent,
  AgentChatLauncher,
  AgentChatReadyEvent,
} from "../element/public-types.ts";
import { warnOfText, warnOfValue } from "../element/warnings.ts";
import { panelTexts } from "../i18n/panel-texts.ts";
import { en } from "../i18n/strings.ts";
import { sheetOf } from "../styles/adopt.ts";
import { create, svgIcon } from "../styles/elements.ts";
import panelStyles from "../styles/panel.css";
import previewStyles from "../styles/preview.css";
import surfaceStyles from "../styles/surfaces.css";
import { VisualViewportController } from "../ui/controllers/visual-viewport.ts";
import { hasTouchKeyboard, iconButton } from "../ui/controls.ts";
import { icon, icons } from "../ui/icons.ts";
import { isTaken } from "../ui/keys.ts";
import type { Greeting, GreetingLauncher } from "./greeting.ts";
import { beOwned } from "./owned.ts";
import { LAUNCHER } from "./properties.ts";
import { LauncherMemory, smallScreen } from "./state.ts";

Object.assign(en, panelTexts);

/** The launcher, as its panel needs it. */
export interface PanelLauncher extends GreetingLauncher {
  greeting: Greeting | undefined;
  tag: HTMLScriptElement | undefined;
}

/** Names of all parts and slots of the chat: a page can reach them through the launcher. Inserted by the build. */
declare const PARLEY_CHAT_PARTS: string;
declare const PARLEY_CHAT_SLOTS: string;

/** Without the slot in which the panel also puts its own buttons. */
const CHAT_SLOTS = PARLEY_CHAT_SLOTS.split(",").filter((name) => name !== "header-end");

const FOLD = "M6 9.5l6 6l6-6";
const MORE = "M6 12h.1m5.8 0h.1m5.8 0h.1";
const SHRINK = "M19 10.5h-5.5V5M5 13.5h5.5V19M13.5 10.5l6-6M10.5 13.5l-6 6";

/** Sets the properties that the chat takes from its launcher, before the chat is in the page. */
const forwardFrom = directive(
  class extends Directive {
    override render(_launcher: AgentChatLauncher): unknown {
      return noChange;
    }

    readonly #handed = new Map<string, unknown>();

    override update({ element }: ElementPart, [launcher]: [AgentChatLauncher]): unknown {
      for (const [name, { choices, kind }] of Object.entries<Row>(SHARED)) {
        const value: unknown = Reflect.get(launcher, name);
        // An unchanged value is not set again: it would replace the setting of the agent's owner or of the user.
        const isKnown = (choices || kind === "switch") && this.#handed.has(name) && this.#handed.get(name) === value;
        if (!isKnown) Reflect.set(element, name, value);
        this.#handed.set(name, value);
      }
      return noChange;
    }
  },
);

/** The bubble's sheets have rules for both. The bubble may be loaded later, and then adds sheets of its own. */
const sheets = [surfaceStyles, previewStyles, panelStyles].map(sheetOf);

/** Draws into itself, so that the launcher has one shadow root and a page's `::part` rules reach the panel. */
export class LauncherPanel extends LitElement {
  static override properties: PropertyDeclarations = { isOpen: { state: true }, isBuilt: { state: true } };

  isOpen = false;
  /** The chat is built on first opening, and stays, so that closing loses nothing. */
  private isBuilt = false;
  readonly #launcher: PanelLauncher;
  readonly #memory: LauncherMemory;
  readonly #locale = new LocaleController(this);
  readonly #viewport = new VisualViewportController(this, () => this.#dialog);
  readonly #smallScreen = smallScreen();
  readonly #unread = create("span", "unread");
  /** The attributes of the launcher as last seen. */
  readonly #checked = new Map<string, string>();
  #opener: HTMLElement | null = null;
  #listening = new AbortController();

  /** Takes over the launcher's button, which now shows whether the panel is open and what is new. */
  constructor(launcher: PanelLauncher) {
    super();
    this.#launcher = launcher;
    this.#memory = new LauncherMemory(launcher);
    this.#unread.part.add("unread");
    const fold = svgIcon(FOLD);
    fold.classList.add("fold");
    launcher.shadowRoot?.adoptedStyleSheets.push(...sheets);
    launcher.button.append(fold);
    launcher.button.setAttribute("aria-controls", "panel");
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#listening = new AbortController();
    const { signal } = this.#listening;
    this.#launcher.shadowRoot?.addEventListener("keydown", (event) => this.#keyDown(event as KeyboardEvent), {
      signal,
    });
    this.#smallScreen.addEventListener("change", () => this.#fit(), { signal });
    // Going back shows a page as it was left, but another page may have changed the panel meanwhile.
    addEventListener("pageshow", ({ persisted }) => persisted && this.#resume(), { signal });
    // On a phone, `visibilitychange` may be the last event of a page.
    addEventListener("pagehide", this.#leave, { signal });
    document.addEventListener("visibilitychange", this.#leave, { signal });
    // A modal panel that was removed from the page is no longer modal.
    if (this.hasUpdated) this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#listening.abort();
  }

  /** Must be called when a property of the launcher or the page's language has changed. */
  launcherChanged(lang: string, dir: string): void {
    // A change outside of the launcher cannot be observed in its shadow root.
    this.lang = lang;
    this.dir = dir;
    this.#checkAttributes();
    this.#locale.override(this.#launcher.strings);
    this.requestUpdate();
  }

  /** Warns the page's author of each invalid value once, and removes it, so that visitors do not suffer from it. */
  #checkAttributes(): void {
    const known = Object.entries(LAUNCHER).flatMap(([name, row]) => attributeOf(name, row) ?? []);
    // Only names that are nearly right are reported: frameworks and consent managers add attributes as well.
    for (const { name } of this.#launcher.tag?.attributes ?? []) {
      const [, word = ""] = /^data-(?!launcher$|(?:api-)?key$)(.+)/.exec(name) ?? [];
      const meant = !known.includes(word) && known.find((it) => isNear(it, word, it.length < 5 ? 1 : 2));
      if (meant) console.warn(`Parley: the script tag has ${name}. Did you mean data-${meant}?`);
    }
    this.#launcher.tag = undefined;
    for (const [name, row] of Object.entries(LAUNCHER)) {
      const attribute = attributeOf(name, row);
      const value = this.#launcher.getAttribute(attribute ?? name);
      if (value === null) continue;
      const isNew = this.#checked.get(name) !== value;
      this.#checked.set(name, value);
      if (row.kind === "object" && isNew) warnOfText(this.#launcher, name, value);
      if (!attribute || !value || isValid(row, value)) continue;
      if (isNew) warnOfValue(this.#launcher, attribute, row, value);
      // The default applies.
      this.#launcher.removeAttribute(attribute);
    }
  }

  /** Opens the panel if it is closed, and closes it if it is open. */
  async pressed({ detail }: MouseEvent): Promise<void> {
    // The second click of a double click does not toggle again, but it has taken the focus.
    if (detail < 2) await this.#launcher.toggle();
    else if (this.isOpen) this.takeFocus();
  }

  /** Opens the panel and focuses it. */
  async open(): Promise<void> {
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : null;
    await this.show();
    this.takeFocus();
  }

  /** Focuses the text field, or the panel itself if the field would open an on-screen keyboard. */
  takeFocus(): void {
    if (hasTouchKeyboard()) this.#dialog?.focus();
    else this.#launcher.chat?.focusComposer();
  }

  /** Closes the panel, and gives the focus back if it was inside. */
  close(): void {
    if (!this.isOpen) return;
    const hadFocus = document.activeElement === this.#launcher;
    this.isOpen = false;
    // A question still has to be decided.
    if (this.#question) this.#memory.keep({ unread: 1 });
    this.#changed("close");
    if (hadFocus) void this.updateComplete.then(() => this.#giveFocusBack());
  }

  protected override createRenderRoot(): this {
    return this;
  }

  /** The first drawing waits for the language. */
  protected override async scheduleUpdate(): Promise<void> {
    if (!this.hasUpdated) await this.#locale.ready;
    super.scheduleUpdate();
  }

  protected override firstUpdated(): void {
    this.#resume();
  }

  protected override updated(): void {
    this.#fit();
    const { unread } = this.#memory.state;
    const strings = this.#locale.strings;
    const name = this.isOpen ? strings.closeChat : this.#launcher.label || strings.openChat;
    const { button } = this.#launcher;
    button.classList.toggle("is-open", this.isOpen);
    button.setAttribute("aria-expanded", String(this.isOpen));
    const isAsking = !!this.#question;
    const news = isAsking ? strings.toolWaiting : strings.unread(unread);
    button.setAttribute("aria-label", unread > 0 ? `${name}, ${news}` : name);
    this.#unread.textContent = isAsking ? "!" : String(unread);
    if (unread > 0) button.append(this.#unread);
    else if (this.#unread.isConnected) this.#unread.remove();
  }

  protected override render(): TemplateResult {
    const { wide } = this.#memory.state;
    return html`
      <dialog
        id="panel"
        part="panel"
        class=${wide ? "panel wide" : "panel"}
        tabindex="-1"
        aria-label=${this.#locale.strings.chatPanel}
        @close=${this.#closedByBrowser}
        @agent-chat-done=${this.#answered}
        @agent-chat-error=${this.#answered}
      >
        ${this.isBuilt ? this.#renderChat(wide) : nothing}
      </dialog>
    `;
  }

  #renderChat(wide: boolean): TemplateResult {
    const strings = this.#locale.strings;
    const slots = CHAT_SLOTS.filter((name) => this.#launcher.querySelector(`:scope > [slot="${name}"]`));
    return html`
      <agent-chat
        lang=${this.lang}
        dir=${this.dir}
        @agent-chat-ready=${this.#ready}
        @user-left=${this.#userLeft}
        @message-added=${this.#answered}
        exportparts=${[PARLEY_CHAT_PARTS, ...this.#ownParts()].join()}
        ${forwardFrom(this.#launcher)}
      >
        ${slots.map((name) => html`<slot name=${name} slot=${name}></slot>`)}
        <span slot="header-end" class="panel-buttons">
          <slot name="header-end"></slot>
          ${wide ? iconButton("expand", strings.shrink, icon(SHRINK), () => void this.#resize(false)) : this.#renderMore()}
          ${iconButton("close", strings.closeChat, icons.close, () => this.close())}
        </span>
      </agent-chat>
    `;
  }

  /** The menu for buttons that do not fit into the header of a narrow panel. */
  #renderMore(): TemplateResult {
    const { more, expand } = this.#locale.strings;
    const theme = this.#chat?.shadowRoot?.querySelector<HTMLElement>("[part=theme-toggle]");
    const item = (label: string, use: () => void, part?: string) => html`
      <button type="button" part=${part ?? nothing} @click=${use}>${label}</button>
    `;
    return html`
      <details
        class="panel-more"
        @toggle=${() => this.requestUpdate()}
        @click=${this.#closeMore}
        @focusout=${this.#closeMore}
        @keydown=${this.#closeMore}
      >
        <summary part="more" class="icon-button" aria-label=${more} title=${more}>${icon(MORE)}</summary>
        <div class="panel-menu">
          ${item(expand, () => void this.#resize(true), "expand")}
          ${theme ? item(theme.title, () => theme.click()) : nothing}
        </div>
      </details>
    `;
  }

  /** Closes the menu after a choice, on Escape, and when the focus leaves it. */
  readonly #closeMore = (event: Event | KeyboardEvent | FocusEvent): void => {
    const menu = event.currentTarget as HTMLDetailsElement;
    const target = event.target as Element;
    const isChoice = event.type === "click" && !target.closest("summary");
    const isLeft = event instanceof FocusEvent && !menu.contains(event.relatedTarget as Node | null);
    const isEscape = event instanceof KeyboardEvent && event.key === "Escape" && menu.open;
    if (!isChoice && !isLeft && !isEscape) return;
    menu.open = false;
    if (isEscape) event.preventDefault();
    if (!isLeft) menu.querySelector("summary")?.focus();
  };

  /** Names of the page's buttons, which are also the names of their CSS parts. */
  #ownParts(): string[] {
    const { composerActions, messageActions } = this.#launcher;
    return [composerActions, messageActions].flatMap((actions) => (actions ?? []).map(({ name }) => name));
  }

  /** Saves for the next page whether an answer is expected. */
  readonly #leave = (): void => {
    const awaited = this.#chat?.client?.session.lastAnswer?.status === "streaming";
    if (awaited !== this.#memory.state.awaited) this.#memory.keep({ awaited });
  };

  /** Restores the panel as another page of this tab has left it. */
  #resume(): void {
    const { open, awaited, unread } = this.#memory.state;
    // A conversation that is not kept has no news.
    if (this.#launcher.persist === "none") this.#memory.keep({ awaited: false, unread: 0 });
    // Builds the chat in the closed panel, so that the end of the answer is announced. The chat also finds out whether
    // another user is here by now, whom the news do not concern.
    else if (awaited || unread > 0) {
      this.isBuilt = true;
      // The mark depends on the chat, which first has to restore its conversation.
      void this.updateComplete.then(() => this.#chat?.lastAnswer()).then(() => this.requestUpdate());
    }
    // The user has not opened it on this page: the focus stays where it is, and a small screen shows the page.
    if (open && !this.#smallScreen.matches) void this.show();
    else if (!open) this.close();
    this.requestUpdate();
  }

  readonly #ready = ({ info }: AgentChatReadyEvent): void => {
    // Without the theme, because the user may have chosen one by now.
    const { theme: _, ...chat } = info.chat ?? {};
    beOwned(this.#launcher, chat);
  };

  readonly #userLeft = (): void => {
    this.#memory.keep({ awaited: false, unread: 0 });
    this.#launcher.greeting?.hide();
    this.requestUpdate();
  };

  async signOut(): Promise<void> {
    this.isBuilt = true;
    await this.updateComplete;
    await this.#chat?.signOut();
  }

  async show(): Promise<void> {
    if (!this.isOpen) {
      this.isBuilt = true;
      this.isOpen = true;
      this.#memory.keep({ unread: 0 });
      this.#launcher.greeting?.hide();
      this.#changed("open");
    }
    await this.updateComplete;
    await this.#launcher.chat?.updateComplete;
    this.#chat?.warmUp();
  }

  #changed(to: "open" | "close"): void {
    this.#memory.keep({ open: to === "open" });
    this.requestUpdate();
    this.#launcher.dispatchEvent(new Event(`agent-chat-${to}`, { bubbles: true, composed: true }));
  }

  async #resize(wide: boolean): Promise<void> {
    this.#memory.keep({ wide });
    this.requestUpdate();
    await this.updateComplete;
    this.querySelector<HTMLElement>(wide ? '[part="expand"]' : '[part="more"]')?.focus();
  }

  /** Shows what has arrived in a closed panel: a message of the page, or an answer that the user has not stopped. */
  readonly #answered = async (event: Event | AgentChatDoneEvent | AgentChatErrorEvent): Promise<void> => {
    if (this.isOpen || ("text" in event && event.finishReason === "stopped")) return;
    const unread = this.#memory.state.unread + 1;
    this.#memory.keep({ unread });
    const drawn = await this.#chat?.lastAnswer();
    this.requestUpdate();
    if (this.isOpen) return;
    const { strings } = this.#locale;
    const question = this.#question;
    const said = "message" in event ? event.message : drawn || ("text" in event ? event.text : "");
    this.#launcher.greeting?.showAnswer(question || said, question ? strings.toolWaiting : strings.unread(unread));
  };

  /** What the user is asked, if calls wait for a decision. */
  get #question(): string {
    return questionsOf(this.#chat?.client?.session.waitingCalls ?? []);
  }

  get #chat(): AgentChat | null {
    return this.querySelector<AgentChat>("agent-chat");
  }

  get #dialog(): HTMLDialogElement | null {
    return this.querySelector("dialog");
  }

  /** Beside the page the panel is a non-modal dialog; where it fills the screen, it is modal. */
  #fit(): void {
    const dialog = this.#dialog;
    if (!dialog) return;
    const modal = this.#smallScreen.matches;
    const hadFocus = this.isOpen && document.activeElement === this.#launcher;
    if (dialog.open && !(this.isOpen && dialog.matches(":modal") === modal)) dialog.close();
    if (this.isOpen && !dialog.open) {
      if (modal) dialog.showModal();
      // Not `show()`, which moves the focus.
      else dialog.open = true;
      if (hadFocus) this.takeFocus();
    }
    this.#viewport.fit();
  }

  /** The browser itself closes a modal panel on a close request, such as Android's back gesture. */
  readonly #closedByBrowser = (): void => {
    if (!this.#dialog?.open) this.close();
  };

  #giveFocusBack(): void {
    const opener = this.#opener;
    const isOutside = opener?.isConnected && opener !== this.#launcher && opener !== document.body;
    if (isOutside) opener.focus({ preventScroll: true });
    else this.#launcher.button.focus({ preventScroll: true });
  }

  readonly #keyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || isTaken(event) || !this.isOpen) return;
    this.close();
    event.preventDefault();
  };
}

if (!customElements.get("agent-chat-panel")) customElements.define("agent-chat-panel", LauncherPanel);

/** Whether one word becomes the other by adding, removing or changing at most `edits` letters. */
function isNear(a: string, b: string, edits: number): boolean {
  const [left, right] = [a.slice(1), b.slice(1)];
  if (a[0] === b[0]) return a === "" || isNear(left, right, edits);
  return (
    edits > 0 &&
    [
      [left, b],
      [a, right],
      [left, right],
    ].some(([x = "", y = ""]) => isNear(x, y, edits - 1))
  );
}
