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

/** Parts and slots of the chat that a page can reach through the launcher, which are all: put here by the build. */
declare const PARLEY_CHAT_PARTS: string;
declare const PARLEY_CHAT_SLOTS: string;

/** The last one is also the panel's own place for buttons. */
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
        // An attribute that is absent keeps the setting of the agent's owner or of the person.
        const isKnown = (choices || kind === "switch") && this.#handed.has(name) && this.#handed.get(name) === value;
        if (!isKnown) Reflect.set(element, name, value);
        this.#handed.set(name, value);
      }
      return noChange;
    }
  },
);

/** The sheets of the bubble have rules for both, and the bubble may come later, with sheets of its own. */
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
  /** The attributes of the launcher as they were seen last. */
  readonly #checked = new Map<string, string>();
  #opener: HTMLElement | null = null;
  #listening = new AbortController();

  /** Takes over the launcher's button, which says now whether the panel is open and what is new. */
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
    // "Back" shows a page as it was left, and another page may have changed the panel meanwhile.
    addEventListener("pageshow", ({ persisted }) => persisted && this.#resume(), { signal });
    // The latter is the last moment that a phone grants.
    addEventListener("pagehide", this.#leave, { signal });
    document.addEventListener("visibilitychange", this.#leave, { signal });
    // Taken out of the page, a modal panel is modal no more.
    if (this.hasUpdated) this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#listening.abort();
  }

  /** To be called when a property of the launcher or the page's language has changed. */
  launcherChanged(lang: string, dir: string): void {
    // A change around the launcher is not seen in its shadow root.
    this.lang = lang;
    this.dir = dir;
    this.#checkAttributes();
    this.#locale.override(this.#launcher.strings);
    this.requestUpdate();
  }

  /** Warns the page's author of wrong values, once of each. The visitors must not suffer from them. */
  #checkAttributes(): void {
    const known = Object.entries(LAUNCHER).flatMap(([name, row]) => attributeOf(name, row) ?? []);
    // Others than the page's author add attributes, too: frameworks, and what asks visitors for their consent.
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

  /** Opens the panel when it is closed, and the other way round. */
  async pressed({ detail }: MouseEvent): Promise<void> {
    // The second click of two meant the same as the first, and has taken the focus.
    if (detail < 2) await this.#launcher.toggle();
    else if (this.isOpen) this.takeFocus();
  }

  /** Opens the panel, and puts the cursor into it. */
  async open(): Promise<void> {
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : null;
    await this.show();
    this.takeFocus();
  }

  /** Puts the cursor into the text field; where that would open a keyboard on the screen, the panel has the focus. */
  takeFocus(): void {
    if (hasTouchKeyboard()) this.#dialog?.focus();
    else this.#launcher.chat?.focusComposer();
  }

  /** Closes the panel, and gives the focus back if it was inside. */
  close(): void {
    if (!this.isOpen) return;
    const hadFocus = document.activeElement === this.#launcher;
    this.isOpen = false;
    // What is asked is still to be decided.
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

  /** In a narrow panel, what its header has no room for. */
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

  /** After a choice, and with Escape or the focus elsewhere. */
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

  /** Names of the page's buttons, which are also those of their parts. */
  #ownParts(): string[] {
    const { composerActions, messageActions } = this.#launcher;
    return [composerActions, messageActions].flatMap((actions) => (actions ?? []).map(({ name }) => name));
  }

  /** Keeps for the next page whether an answer is expected. */
  readonly #leave = (): void => {
    const awaited = this.#chat?.client?.session.lastAnswer?.status === "streaming";
    if (awaited !== this.#memory.state.awaited) this.#memory.keep({ awaited });
  };

  /** Goes on as another page of this tab has left it. */
  #resume(): void {
    const { open, awaited, unread } = this.#memory.state;
    // A conversation that is not kept has no news.
    if (this.#launcher.persist === "none") this.#memory.keep({ awaited: false, unread: 0 });
    // Behind the closed panel, so that the end of the answer is announced.
    // News are a user's, who may be another one by now.
    else if (awaited || unread > 0) {
      this.isBuilt = true;
      // The mark says what is new, which the chat knows once it has found its conversation.
      void this.updateComplete.then(() => this.#chat?.lastAnswer()).then(() => this.requestUpdate());
    }
    // The person has not asked for it on this page: the cursor stays where it is, and a small screen shows the page.
    if (open && !this.#smallScreen.matches) void this.show();
    else if (!open) this.close();
    this.requestUpdate();
  }

  readonly #ready = ({ info }: AgentChatReadyEvent): void => {
    // By now the reader may have chosen a theme.
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

  /** Shows what has come behind the closed panel: a message of the page, or an answer that the person has not stopped. */
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

  /** What the person is asked, where calls wait. */
  get #question(): string {
    return questionsOf(this.#chat?.client?.session.waitingCalls ?? []);
  }

  get #chat(): AgentChat | null {
    return this.querySelector<AgentChat>("agent-chat");
  }

  get #dialog(): HTMLDialogElement | null {
    return this.querySelector("dialog");
  }

  /** Beside the page the panel is an ordinary dialog; where it fills the screen, the page behind it is out of reach. */
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

  /** A request to close, such as Android's gesture to go back, closes a modal panel without asking. */
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

/** Whether one word becomes the other when at most so many letters are added, removed or changed. */
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
