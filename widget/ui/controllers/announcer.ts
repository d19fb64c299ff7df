import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";
import type { Strings } from "../../i18n/strings.ts";

/** By then a screen reader has taken over what it will say. */
export const HEARD_AFTER_MS = 1_000;

/** So much of a long answer is drawn for screen readers at once, in characters: all of it would hold up the page. */
const CHARACTERS_AT_A_TIME = 16_000;

/**
 * Where a listener can leave a long answer: after what ends a sentence, and what closes a quote. `Intl.Segmenter` knows
 * more of it, but its data takes a phone 50 ms and longer to load.
 */
export const SENTENCE_END = /(?<=\p{STerm}["'\p{Pe}\p{Pf}]?)\s+(?![\p{Ll}\d])|(?<=[。！？])(?![\p{Pe}\p{Pf}。！？])/u;

/** Speaks to screen readers: apart from the conversation, which would be read out token by token. */
export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite: readonly string[] = [];
  #urgent = "";
  /** What of an answer is still to be said. */
  #rest: Iterator<string> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: ReactiveControllerHost) {
    this.#host = host;
    host.addController(this);
  }

  hostConnected(): void {
    this.clear();
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer);
  }

  /** Takes back what was said. */
  clear(): void {
    this.#polite = [];
    this.#urgent = "";
    this.#rest = undefined;
    this.#host.requestUpdate();
  }

  /** Says texts, sentence by sentence, when the reader pauses. An alert from before is over then. */
  say(...texts: string[]): void {
    this.#urgent = "";
    this.#polite = [...this.#polite, ...texts.flatMap((text) => text.split(SENTENCE_END))];
    this.#drawForAMoment();
  }

  /** Says texts of any length. What was still to be said of others is left out. */
  sayAll(texts: Iterable<string>): void {
    this.#rest = texts[Symbol.iterator]();
    this.#sayNext();
  }

  /** Says it at once: for failures. */
  interrupt(text: string): void {
    // A live region speaks only when its text changes; a no-break space makes a repeated one differ.
    this.#urgent = text === this.#urgent ? `${text}\u00A0` : text;
    this.#drawForAMoment();
  }

  render(): TemplateResult {
    return html`
      <div class="visually-hidden" role="status" aria-atomic="false">
        ${this.#polite.map((sentence) => html`<p>${sentence}</p>`)}
      </div>
      <div class="visually-hidden" role="alert">${this.#urgent}</div>
    `;
  }

  /**
   * A person would find the texts a second time while browsing the page, and an alert is said again each time that the
   * element is shown.
   */
  #drawForAMoment(): void {
    this.#host.requestUpdate();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#heard(), HEARD_AFTER_MS);
  }

  #heard(): void {
    const rest = this.#rest;
    this.clear();
    if (!rest) return;
    this.#rest = rest;
    // Once the texts before are gone: of two equal ones, the second would be no change.
    this.#timer = setTimeout(() => this.#sayNext());
  }

  #sayNext(): void {
    const texts: string[] = [];
    for (let characters = 0; this.#rest && characters < CHARACTERS_AT_A_TIME; ) {
      const { value, done } = this.#rest.next();
      if (done) this.#rest = undefined;
      else {
        texts.push(value);
        characters += value.length;
      }
    }
    this.say(...texts);
  }
}

/** Elements of an answer whose text is spoken on its own. */
const BLOCKS = /^(P|H\d|LI|PRE|TR|DIV)$/;

/** A program or a table with as many lines or rows is spoken as its kind and its size. */
const LONG = 10;

/** The spoken texts of rendered answers, one per block: without Markdown marks and buttons. */
export function* spokenTexts(roots: Iterable<Node>, strings: Strings): Generator<string> {
  for (const root of roots) {
    // Block by block, as they are asked for.
    if (root instanceof Element && root.matches(".markdown, .section")) yield* spokenTexts(root.childNodes, strings);
    else
      yield* textOf(root, strings)
        .split("\0")
        .map(inOneRow)
        .filter((text) => text !== "");
  }
}

function inOneRow(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** With a character between blocks that no text has. */
function textOf(node: Node, strings: Strings): string {
  if (node instanceof Text) return node.data;
  const { nodeName } = node;
  if (nodeName === "BUTTON") return "";
  // Cells of a row are separate words.
  const edge = BLOCKS.test(nodeName) ? "\0" : nodeName[0] === "T" ? " " : "";
  const text = summaryOf(node, strings) ?? [...node.childNodes].map((child) => textOf(child, strings)).join("");
  return edge + text + edge;
}

/** What is spoken in place of a long program or table, or of a formula that was drawn. */
function summaryOf(node: Node, strings: Strings): string | undefined {
  if (!(node instanceof HTMLElement)) return undefined;
  if (node.matches(".rendered")) return node.dataset.source;
  if (!node.matches(".code, .table")) return undefined;
  const [code, table] = [node.querySelector("pre"), node.querySelector("table")];
  const label = node.querySelector(".code-language")?.textContent.trim() ?? "";
  const lines = code?.textContent.split("\n").length ?? 0;
  if (lines >= LONG) return strings.spokenCode(label === strings.code ? "" : label, lines);
  const rows = table ? table.rows.length - 1 : 0;
  return table && rows >= LONG ? strings.spokenTable(table.rows[0]?.cells.length ?? 0, rows) : undefined;
}
