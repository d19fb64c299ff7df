import type { ReactiveController, TemplateResult } from "lit";
import type { AgentChatDoneEvent, AgentChatErrorEvent } from "../agent-chat.events.ts";
import { Announcer, spokenLines } from "../announcer.ts";
import { checkChoice, reportAttribute } from "../attribute-checks.ts";
import { launcherButtonStyles } from "../styles/launcher-button.styles.ts";
import { launcherStyles } from "./launcher.styles.ts";
import { LauncherMemory } from "./launcher-memory.ts";
import { LauncherPreview } from "./launcher-preview.ts";
import { type LauncherHost, launcherView } from "./launcher-view.ts";
import { atMoment, MOMENT } from "./moment.ts";
import { PanelFit, smallScreen } from "./panel-fit.ts";
import { previewStyles } from "./preview.styles.ts";

/** The first word is the default. */
const CHOICES = {
  position: ["bottom-end", "bottom-start", "top-end", "top-start"],
  icon: ["chat", "spark", "question"],
  size: ["medium", "small", "large"],
};

export class LauncherPanel implements ReactiveController {
  readonly #host: LauncherHost;
  readonly #memory: LauncherMemory;
  readonly #announcer: Announcer;
  readonly #preview: LauncherPreview;
  readonly #fit: PanelFit;
  #isOpen = false;
  /** The chat is built on first opening, and stays, so that closing loses nothing. */
  #isBuilt = false;
  #plannedFor: LauncherHost["autoOpen"] = null;
  #cancelOpening: (() => void) | undefined;
  #wasDrawn = false;
  #opener: HTMLElement | null = null;
  #listening = new AbortController();

  constructor(host: LauncherHost) {
    this.#host = host;
    this.#memory = new LauncherMemory(host);
    this.#announcer = new Announcer(host);
    this.#preview = new LauncherPreview(host, this.#memory, this.#announcer);
    this.#fit = new PanelFit(host, () => this.#isOpen);
    // After the tokens and the base, which the script has.
    for (const { styleSheet } of [launcherButtonStyles, launcherStyles, previewStyles]) {
      if (styleSheet) host.shadowRoot?.adoptedStyleSheets.push(styleSheet);
    }
    host.addController(this);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  hostConnected(): void {
    this.#listening = new AbortController();
    const { signal } = this.#listening;
    this.#fit.listen(signal);
    // "Back" shows a page as it was left, and it may have gone otherwise on another one meanwhile.
    addEventListener("pageshow", ({ persisted }) => persisted && this.#resume(), { signal });
    // The latter is the last moment that a phone grants.
    addEventListener("pagehide", this.#leave, { signal });
    document.addEventListener("visibilitychange", this.#leave, { signal });
    this.#host.requestUpdate();
  }

  hostDisconnected(): void {
    this.#listening.abort();
    this.#cancelOpening?.();
    this.#plannedFor = null;
    this.#preview.stop();
  }

  hostUpdate(): void {
    for (const [name, words] of Object.entries(CHOICES)) checkChoice(this.#host, name, words);
    if (this.#host.autoOpen !== this.#plannedFor) this.#planOpening();
    this.#preview.plan();
  }

  hostUpdated(): void {
    this.#fit.apply();
    if (this.#wasDrawn) return;
    this.#wasDrawn = true;
    this.#resume();
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
    const { wide = false, unread = 0 } = this.#memory.state;
    return launcherView(this.#host, {
      open: this.#isOpen,
      built: this.#isBuilt,
      wide,
      unread,
      preview: this.#preview.text,
      announcements: this.#announcer.render(),
      onToggle: () => void this.#host.toggle(),
      onClose: () => this.close(),
      // Android's gesture to go back closes a modal panel without asking.
      onClosed: () => {
        if (!this.#fit.panel?.open) this.close();
      },
      onWide: () => {
        this.#memory.keep({ wide: !wide });
        this.#host.requestUpdate();
      },
      onDismiss: this.#dismiss,
      onAnswer: (event) => void this.#answered(event),
      onKeyDown: this.#keyDown,
    });
  }

  /** Leaves word for the next page. */
  readonly #leave = (): void => {
    const awaited = this.#host.chat?.shadowRoot?.querySelector('[aria-busy="true"]') != null;
    if (awaited !== (this.#memory.state.awaited ?? false)) this.#memory.keep({ awaited });
  };

  /** Goes on as another page of this tab has left it. */
  #resume(): void {
    this.#memory.reload();
    const { open, awaited } = this.#memory.state;
    // What is not kept has no news.
    if (this.#host.persist === "none") this.#memory.keep({ awaited: false, unread: 0 });
    // Behind the closed panel, so that the answer's end is told.
    else if (awaited) this.#isBuilt = true;
    // Nobody asked for it on this page: the cursor stays where it is, and a small screen shows the page.
    if (open && !smallScreen.matches) void this.#show();
    else if (!open) this.close();
    this.#host.requestUpdate();
  }

  async #show(): Promise<void> {
    if (!this.#isOpen) {
      this.#isBuilt = true;
      this.#isOpen = true;
      this.#memory.keep({ unread: 0 });
      this.#preview.hide();
      this.#changed("open");
    }
    await this.#host.updateComplete;
    await this.#host.chat?.updateComplete;
  }

  #changed(to: "open" | "close"): void {
    this.#cancelOpening?.();
    this.#memory.keep({ open: to === "open" });
    this.#host.requestUpdate();
    this.#host.dispatchEvent(new Event(`agent-chat-${to}`, { bubbles: true, composed: true }));
  }

  /** Tells of an answer that nobody sees; whoever has stopped it knows what there is. */
  async #answered(event: AgentChatDoneEvent | AgentChatErrorEvent): Promise<void> {
    if (this.#isOpen || ("text" in event && event.finishReason === "stopped")) return;
    const unread = (this.#memory.state.unread ?? 0) + 1;
    this.#memory.keep({ unread });
    this.#host.requestUpdate();
    const { chat, language } = this.#host;
    await chat?.updateComplete;
    if (this.#isOpen) return;
    // As it is drawn: without Markdown's marks.
    const texts = chat?.shadowRoot?.querySelectorAll(".assistant:last-of-type .markdown") ?? [];
    const drawn = spokenLines([...texts].slice(-1));
    this.#preview.tell("text" in event ? drawn : [], "text" in event ? event.text : event.message);
    this.#announcer.sayLines([language.table.unread(unread), this.#preview.text]);
  }

  #planOpening(): void {
    this.#cancelOpening?.();
    const { autoOpen } = this.#host;
    this.#plannedFor = autoOpen;
    // An attribute that was taken away is null.
    if (autoOpen === null) return;
    this.#cancelOpening = atMoment(autoOpen, () => {
      const isKnown = this.#memory.state.open !== undefined || this.#preview.isDismissed;
      if (!isKnown && !smallScreen.matches) void this.#show();
    });
    if (!this.#cancelOpening) reportAttribute(this.#host, "auto-open", autoOpen, MOMENT);
  }

  #giveFocusBack(): void {
    const opener = this.#opener;
    const outside = opener?.isConnected && opener !== this.#host && opener !== document.body;
    (outside ? opener : this.#button)?.focus({ preventScroll: true });
  }

  get #button(): HTMLElement | null {
    return this.#host.renderRoot.querySelector(".launcher");
  }

  readonly #dismiss = (): void => {
    const hadFocus = this.#host.renderRoot.querySelector(".preview:focus-within") !== null;
    this.#preview.dismiss();
    if (hadFocus) this.#button?.focus({ preventScroll: true });
  };

  readonly #keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    // It took back what an input method was about to write.
    if (event.isComposing || event.keyCode === 229) return;
    if (this.#isOpen) this.close();
    else if (this.#preview.text) this.#dismiss();
    else return;
    event.preventDefault();
  };
}
