/** Opens a long message of the person, of which the beginning is shown. Loaded with the first one. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import styles from "../styles/message-fold.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";

/** A message with more is folded at this line, as `message-fold.css` has it. */
const MOST_LINES = 6;

export class MessageFoldElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = { isOpen: { state: true } };
  private isOpen = false;
  #bubble: HTMLElement | null = null;
  #lines = 0;
  /** In another width a text has another number of lines. */
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
    // Folded, it has no scrollbar, which would take room from the lines.
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
    // The button is far up again, and has to stay where the reader looks.
    if (!this.isOpen) this.querySelector("button")?.scrollIntoView({ block: "nearest" });
  };

  /** What is folded away comes into view only by a search in the page, a selection or a screen reader. */
  readonly #found = async (): Promise<void> => {
    const scrollTop = this.#bubble?.scrollTop ?? 0;
    if (scrollTop === 0 || this.isOpen) return;
    this.context.actions.holdScroll();
    this.isOpen = true;
    await this.updateComplete;
    // The bubble does not scroll any more, and the text that was found stays in view.
    this.closest(".scroller")?.scrollBy(0, scrollTop);
  };
}

/** How many lines a bubble has as it is laid out. */
function linesOf(bubble: HTMLElement): number {
  const { lineHeight, paddingBlockStart, paddingBlockEnd } = getComputedStyle(bubble);
  const padding = Number.parseFloat(paddingBlockStart) + Number.parseFloat(paddingBlockEnd);
  return Math.round((bubble.scrollHeight - padding) / Number.parseFloat(lineHeight));
}
