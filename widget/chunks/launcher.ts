/** The launcher's button and panel: what `<agent-chat-launcher>` does. Only pages that have one load it. */

import type { ReactiveController, TemplateResult } from "lit";
import { launcherSheet } from "./launcher.styles.ts";
import { type LauncherHost, type LauncherKit, launcherView } from "./launcher-view.ts";

/** Where the panel fills the screen, and is modal: too small for a page beside it. */
const smallScreen = matchMedia("(width <= 480px), (height <= 480px) and (pointer: coarse)");

/** The first word is the default. */
const CHOICES = {
  position: ["bottom-end", "bottom-start", "top-end", "top-start"],
  icon: ["chat", "spark", "question"],
  size: ["medium", "small", "large"],
};

export class LauncherPanel implements ReactiveController {
  readonly #host: LauncherHost;
  readonly #kit: LauncherKit;
  #isOpen = false;
  /** The chat is built on first opening, and stays, so that closing loses nothing. */
  #isBuilt = false;
  #isWide = false;
  #unread = 0;
  #plannedFor: LauncherHost["autoOpen"] = null;
  #autoOpenTimer: ReturnType<typeof setTimeout> | undefined;
  #wasDrawn = false;
  #opener: HTMLElement | null = null;

  constructor(host: LauncherHost, kit: LauncherKit) {
    this.#host = host;
    this.#kit = kit;
    host.shadowRoot?.adoptedStyleSheets.push(launcherSheet());
    host.addController(this);
    host.requestUpdate();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  hostConnected(): void {
    smallScreen.addEventListener("change", this.#applyPanel);
    visualViewport?.addEventListener("resize", this.#fitKeyboard);
    visualViewport?.addEventListener("scroll", this.#fitKeyboard);
  }

  hostDisconnected(): void {
    smallScreen.removeEventListener("change", this.#applyPanel);
    visualViewport?.removeEventListener("resize", this.#fitKeyboard);
    visualViewport?.removeEventListener("scroll", this.#fitKeyboard);
    clearTimeout(this.#autoOpenTimer);
  }

  hostUpdate(): void {
    for (const [name, words] of Object.entries(CHOICES)) {
      this.#kit.checkChoice(this.#host, name, words);
    }
    if (this.#host.autoOpen !== this.#plannedFor) this.#planOpening();
  }

  hostUpdated(): void {
    this.#applyPanel();
    if (this.#wasDrawn) return;
    this.#wasDrawn = true;
    // Nobody asked for it on this page: the cursor stays where it is, and a small screen shows the page.
    if (this.#memory === "open" && !smallScreen.matches) void this.#show();
  }

  /** Opens the panel, and puts the cursor into it. */
  async open(): Promise<void> {
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : null;
    await this.#show();
    this.#host.chat?.focusComposer();
  }

  /** Closes the panel, and gives the focus back if it was inside. */
  close(): void {
    if (!this.#isOpen) return;
    const hadFocus = document.activeElement === this.#host;
    this.#isOpen = false;
    this.#changed("close");
    if (hadFocus) void this.#host.updateComplete.then(() => this.#giveFocusBack());
  }

  render(): TemplateResult {
    return launcherView(this.#kit, this.#host, {
      open: this.#isOpen,
      built: this.#isBuilt,
      wide: this.#isWide,
      unread: this.#unread,
      onToggle: () => void this.#host.toggle(),
      onClose: () => this.close(),
      // Android's gesture to go back closes a modal panel without asking.
      onClosed: () => {
        if (!this.#panel?.open) this.close();
      },
      onWide: () => {
        this.#isWide = !this.#isWide;
        this.#host.requestUpdate();
      },
      onAnswer: () => {
        if (this.#isOpen) return;
        this.#unread += 1;
        this.#host.requestUpdate();
      },
      onKeyDown: this.#keyDown,
    });
  }

  get #panel(): HTMLDialogElement | null {
    return this.#host.renderRoot.querySelector("dialog");
  }

  get #memoryName(): string {
    return `agent-chat-panel:${this.#host.server}`;
  }

  /** What this tab knows of the panel: `open`, `closed`, or nothing if it has never been open. */
  get #memory(): string | undefined {
    return this.#kit.recall(this.#memoryName, "sessionStorage");
  }

  async #show(): Promise<void> {
    if (!this.#isOpen) {
      this.#isBuilt = true;
      this.#isOpen = true;
      this.#unread = 0;
      this.#changed("open");
    }
    await this.#host.updateComplete;
    await this.#host.chat?.updateComplete;
  }

  #changed(to: "open" | "close"): void {
    clearTimeout(this.#autoOpenTimer);
    this.#kit.remember(this.#memoryName, to === "open" ? "open" : "closed", "sessionStorage");
    this.#host.requestUpdate();
    this.#host.dispatchEvent(new Event(`agent-chat-${to}`, { bubbles: true, composed: true }));
  }

  #planOpening(): void {
    clearTimeout(this.#autoOpenTimer);
    const { autoOpen } = this.#host;
    this.#plannedFor = autoOpen;
    // An attribute that was taken away is null.
    if (autoOpen === null) return;
    const delay = autoOpen === "" ? Number.NaN : Number(autoOpen);
    if (delay >= 0) {
      if (this.#memory !== undefined || smallScreen.matches) return;
      this.#autoOpenTimer = setTimeout(() => void this.#show(), delay);
    } else {
      this.#kit.reportAttribute(this.#host, "auto-open", autoOpen, "a time in milliseconds");
    }
  }

  /** Beside the page the panel is an ordinary dialog; where it fills the screen, the page behind it is out of reach. */
  readonly #applyPanel = (): void => {
    const panel = this.#panel;
    if (!panel) return;
    const modal = smallScreen.matches;
    const hadFocus = this.#isOpen && document.activeElement === this.#host;
    if (panel.open && !(this.#isOpen && panel.matches(":modal") === modal)) panel.close();
    if (this.#isOpen && !panel.open) {
      if (modal) panel.showModal();
      // Not `show()`, which moves the focus.
      else panel.open = true;
      if (hadFocus) this.#host.chat?.focusComposer();
    }
    this.#fitKeyboard();
  };

  /** A phone's keyboard covers a page without making it smaller; what is left is the visual viewport. */
  readonly #fitKeyboard = (): void => {
    const style = this.#panel?.style;
    // Zoomed by two fingers, the visual viewport is a detail of the page.
    if (!style || !visualViewport || visualViewport.scale > 1.01) return;
    style.setProperty("--_top", `${visualViewport.offsetTop}px`);
    style.setProperty("--_height", `${visualViewport.height}px`);
  };

  #giveFocusBack(): void {
    const opener = this.#opener;
    const outside = opener?.isConnected && opener !== this.#host && opener !== document.body;
    const button = this.#host.renderRoot.querySelector<HTMLElement>(".launcher");
    (outside ? opener : button)?.focus({ preventScroll: true });
  }

  readonly #keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented || !this.#isOpen) return;
    // It took back what an input method was about to write.
    if (event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.close();
  };
}
