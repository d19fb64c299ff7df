/** The sources of answers: marks in the texts, a card that a mark opens, and a list. Loaded with the first source. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { type AssistantMessage, type Block, joinedBlocks, sourcesIn } from "../conversations/messages.ts";
import { en, type Strings } from "../i18n/strings.ts";
import type { MarkdownText } from "../markdown/markdown-text.ts";
import { type Mark, SourceMarks, tools, withFootnotes } from "../markdown/source-marks.ts";
import { partSheets } from "../styles/part-sheets.ts";
import styles from "../styles/sources.css";
import { ChatPart } from "./chat-part.ts";
import { icons } from "./icons.ts";

/** A page or a file that an answer is based on. */
export interface ShownSource {
  /** Counts from 1 in an answer. */
  readonly number: number;
  readonly title: string;
  readonly url?: string;
  readonly file?: string;
  /** The words that the answer is based on. */
  readonly quote?: string;
}

interface Found {
  readonly sources: readonly ShownSource[];
  readonly marks: readonly (Mark & Pick<ShownSource, "quote">)[][];
}

/** The sources of an answer, each once, and the marks of each of its texts. */
export function sourcesOf(blocks: readonly Block[], { sourceOf }: Pick<Strings, "sourceOf"> = en): Found {
  const known = new Map<string, ShownSource>();
  const ends: { end: number; index: number; length: number }[] = [];
  let end = 0;
  blocks.forEach((block, place) => {
    if (block.type !== "text") return;
    end += block.text.length;
    const texts = joinedBlocks(blocks.slice(0, place + 1)).filter((it) => it.type === "text");
    ends.push({ end, index: texts.length - 1, length: texts.at(-1)?.text.length ?? 0 });
  });
  const marks: Found["marks"] = ends.map(() => []);
  for (const { title, url, file, quote, at } of sourcesIn({ blocks })) {
    const isPage = typeof url === "string" && /^https?:\/\//i.test(url) && URL.canParse(url);
    const key = isPage ? url : file;
    if (typeof title !== "string" || typeof key !== "string") continue;
    const words = typeof quote === "string" ? { quote } : {};
    const source = known.get(key) ?? { number: known.size + 1, title, ...(isPage ? { url } : { file: key }), ...words };
    known.set(key, source);
    const text = Number.isInteger(at) ? ends.find(({ end }) => end >= Number(at)) : undefined;
    const { number } = source;
    const list = text ? marks[text.index] : undefined;
    const place = text ? text.length - text.end + Number(at) : 0;
    if (list?.some((it) => it.at === place && it.number === number)) continue;
    list?.push({
      number,
      at: place,
      id: `${text?.index}-${list.length}`,
      label: sourceOf(number, source.title),
      ...words,
    });
  }
  return { sources: [...known.values()], marks };
}

/** The texts of an answer with footnote references, and after them, as the last item, all notes. */
export function footnoted({ blocks }: Pick<AssistantMessage, "blocks">, name = ""): string[] {
  const { sources, marks } = sourcesOf(blocks);
  const texts = joinedBlocks(blocks).flatMap((block) => (block.type === "text" ? [block.text] : []));
  // The model may have written footnotes of its own.
  const prefix = name || (texts.some((text) => /\[\^\d/.test(text)) ? "source-" : "");
  const label = (number: number) => `[^${prefix}${number}]`;
  const notes = sources.map(({ number, title, url, file }) => `${label(number)}: ${title}, ${url ?? file}`);
  return [...texts.map((text, index) => withFootnotes(text, marks[index] ?? [], label).trim()), notes.join("\n")];
}

export class SourcesElement extends ChatPart {
  static override sheets = partSheets(styles);
  static override properties = {
    ...ChatPart.properties,
    message: { attribute: false },
    opened: { state: true },
  };
  message!: AssistantMessage;
  opened: ShownSource | undefined;
  #mark: HTMLElement | undefined;
  readonly #drawings = new WeakMap<Element, SourceMarks>();
  #found: ReturnType<typeof sourcesOf> = { sources: [], marks: [] };

  override connectedCallback(): void {
    super.connectedCallback();
    this.parentElement?.addEventListener("click", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.parentElement?.removeEventListener("click", this.#press);
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("message") || changed.has("context"))
      this.#found = sourcesOf(this.message.blocks, this.context.strings);
  }

  protected override render(): TemplateResult {
    const { strings } = this.context;
    const { sources } = this.#found;
    const { opened } = this;
    return html`
      <div
        part="source-card"
        class="source-card"
        popover
        tabindex="-1"
        role="dialog"
        aria-label=${opened ? strings.sourceOf(opened.number, opened.title) : ""}
        @toggle=${this.#toggle}
        @keydown=${(event: Event) => event.stopPropagation()}
      >${opened ? this.#renderSource(opened) : nothing}</div>
      ${
        this.message.status === "streaming" || sources.length === 0
          ? nothing
          : html`<details part="sources" class="sources">
              <summary>${strings.sourcesCount(sources.length)}<span class="chevron">${icons.next}</span></summary>
              <ol>${sources.map((source) => html`<li>${this.#renderSource(source)}</li>`)}</ol>
            </details>`
      }
    `;
  }

  #renderSource({ title, url, file = "", quote }: ShownSource): TemplateResult {
    const link = url === undefined ? undefined : new URL(url);
    return html`
      ${
        link
          ? html`<a href=${link.href} target="_blank" rel="noopener noreferrer nofollow">${title}</a>`
          : html`<span class="source-title">${title}</span>`
      }
      <bdi class="source-host">${link?.host ?? (file === title ? "" : file)}</bdi>
      ${quote ? html`<q>${quote}</q>` : nothing}
    `;
  }

  protected override updated(): void {
    const texts = this.parentElement?.querySelectorAll<MarkdownText>(":scope > agent-chat-markdown") ?? [];
    [...texts].forEach((text, index) => {
      text.onDrawn = (source) => this.#draw(text, index, source);
      text.requestUpdate();
    });
  }

  #draw(text: MarkdownText, index: number, source: string): void {
    const drawing = this.#drawings.get(text) ?? new SourceMarks();
    this.#drawings.set(text, drawing);
    const sources = sourcesIn(this.message);
    const last = sources.at(-1);
    for (const [listener, heard] of text.listeners) {
      if (heard === last) continue;
      text.listeners.set(listener, last);
      // In a microtask, so that a listener that throws stops nothing.
      queueMicrotask(() => listener(sources));
    }
    const { strings, renderers } = this.context;
    drawing.draw(
      text,
      source,
      !text.isStreaming && source === text.text,
      this.#found.marks[index] ?? [],
      strings,
      tools().delimitersOf(renderers),
    );
  }

  /** Shows the card of a pressed mark, below it in the top layer. */
  readonly #press = (event: Event): void => {
    const mark = (event.target as Element).closest<HTMLButtonElement>(".source-mark");
    const card = this.querySelector<HTMLElement>(".source-card");
    if (!mark || !card) return;
    // So that the browser does not treat a press on the mark as one outside of the popover.
    mark.popoverTargetElement = card;
    event.preventDefault();
    const isAgain = mark === this.#mark && card.matches(":popover-open");
    card.hidePopover();
    if (isAgain) return;
    this.#mark = mark;
    const { number = 0, quote } = this.#found.marks.flat().find(({ id }) => id === mark.dataset.mark) ?? {};
    const source = this.#found.sources[number - 1];
    this.opened = source && { ...source, ...(quote === undefined ? {} : { quote }) };
    this.performUpdate();
    card.showPopover();
    this.#place();
    card.focus({ preventScroll: true });
  };

  #toggle({ newState, target }: ToggleEvent): void {
    window[newState === "open" ? "addEventListener" : "removeEventListener"]("scroll", this.#place, true);
    const { activeElement } = this.getRootNode() as ShadowRoot;
    const isLost = !activeElement || (target as Element).contains(activeElement);
    if (newState === "closed" && isLost) this.#mark?.focus({ preventScroll: true });
  }

  readonly #place = (): void => {
    const card = this.querySelector<HTMLElement>(".source-card:popover-open");
    if (!card || !this.#mark) return;
    const { left, top, bottom } = this.#mark.getBoundingClientRect();
    const isBelow = bottom + card.offsetHeight + 12 < innerHeight;
    const across = Math.min(left - 12, innerWidth - card.offsetWidth - 16);
    card.style.left = `${Math.max(16, across)}px`;
    card.style.top = `${isBelow ? bottom + 4 : Math.max(8, top - card.offsetHeight - 4)}px`;
  };

  /** The whole answer with footnotes, to be copied. */
  footnoted(): string {
    return footnoted(this.message)
      .filter((text) => text !== "")
      .join("\n\n");
  }
}
