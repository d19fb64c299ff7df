/** Unfolds a long message of the user, of which only the beginning is shown. Loaded with the first one. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import styles from "../styles/message-fold.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";

/** A message with more lines is folded after this one. `message-fold.css` has the same number. */
const MOST_LINES = 6;

export class MessageFoldElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { isOpen: { state: true } };
  private isOpen = false;
  #bubble: HTMLElement | null = null;
  #lines = 0;
  /** The number of lines depends on the width. */
  readonly #resized = new ResizeObserver(() => this.requestUpdate());

  override connectedCallback(): void {
    super.connectedCallback();
    this.#bubble = this.parentElement?.querySelector<HTMLElement>(".bubble") ?? null;
    this.#bubble?.addEventListener("scroll", this.#found);
    if (this.parentElement) this.#resized.observe(this.parentElement);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
  }

  protected override willUpdate(): void {
    // Counted while folded, without a scrollbar, which would make the lines narrower.
    if (!this.isOpen) this.#bubble?.setAttribute("data-folded", "");
    if (this.#bubble) this.#lines = linesOf(this.#bubble);
  }

  protected override render(): TemplateResult | typeof nothing {
    const { strings } = this.context;
    if (this.#lines <= MOST_LINES) return nothing;
    return html`
      <button type="button" class="small-button" aria-expanded=${this.isOpen} @click=${this.#toggle}>
        ${this.isOpen ? strings.showFewerLines : strings.showAllLines(this.#lines)}
      </button>
    `;
  }

  protected override updated(): void {
    this.#bubble?.toggleAttribute("data-open", this.isOpen);
    this.#bubble?.toggleAttribute("data-folded", this.#lines > MOST_LINES && !this.isOpen);
  }

  readonly #toggle = async (): Promise<void> => {
    this.context.actions.holdScroll();
    this.isOpen = !this.isOpen;
    await this.updateComplete;
    // Folding moves the button far up, where the reader would lose it.
    if (!this.isOpen) this.querySelector("button")?.scrollIntoView({ block: "nearest" });
  };

  /** Unfolds the text if the folded bubble scrolls: by a search in the page, a selection or a screen reader. */
  readonly #found = async (): Promise<void> => {
    const scrollTop = this.#bubble?.scrollTop ?? 0;
    if (scrollTop === 0 || this.isOpen) return;
    this.context.actions.holdScroll();
    this.isOpen = true;
    await this.updateComplete;
    // The bubble no longer scrolls, so the conversation does: the found text stays in view.
    this.closest(".scroller")?.scrollBy(0, scrollTop);
  };
}

/** The number of lines of a bubble as it is laid out. */
function linesOf(bubble: HTMLElement): number {
  const { lineHeight, paddingBlockStart, paddingBlockEnd } = getComputedStyle(bubble);
  const padding = Number.parseFloat(paddingBlockStart) + Number.parseFloat(paddingBlockEnd);
  return Math.round((bubble.scrollHeight - padding) / Number.parseFloat(lineHeight));
}
