/** Speaks to screen readers: apart from the transcript, which would be read out token by token. */

import {
  html,
  type ReactiveController,
  type ReactiveControllerHost,
  type TemplateResult,
} from "lit";
import { strings } from "./strings.ts";

/** Lines that are read and said at a time: the thousands of a long answer would hold the page up. */
const LINES = 50;

/** By then a screen reader has taken over what it will say. */
const HEARD_AFTER_MS = 1_000;

export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite: readonly string[] = [];
  /** What is still to be said, in its order: lines that are only read when it is their turn. */
  #rest: Iterator<string>[] = [];
  #urgent = "";
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
    this.#rest = [];
    this.#urgent = "";
    this.#host.requestUpdate();
  }

  /** As `sayLines`. */
  say(text: string): void {
    this.sayLines(text.split("\n"));
  }

  /**
   * Says them, sentence by sentence, when the reader pauses. They are gone soon, since who browses the page would find them a
   * second time. An alert from before is over then. Not in this turn, which may be the one that sends a message: for the first
   * sentence browsers load what they know of the language.
   */
  sayLines(lines: Iterable<string>): void {
    this.#urgent = "";
    this.#rest.push(lines[Symbol.iterator]());
    this.#goOnIn(0);
  }

  #goOn(): void {
    const lines: string[] = [];
    while (this.#rest[0] && lines.length < LINES) {
      const { done, value } = this.#rest[0].next();
      if (done) this.#rest.shift();
      else lines.push(value);
    }
    if (lines.length === 0) {
      this.clear();
      return;
    }
    this.#polite = [...this.#polite, ...sentencesOf(lines)];
    this.#host.requestUpdate();
    this.#goOnIn(HEARD_AFTER_MS);
  }

  #goOnIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#goOn(), this.#rest.length > 0 ? 0 : ms);
  }

  /** Says it at once: for failures. It is gone as soon, since an alert is said again with whatever shows the element again. */
  interrupt(text: string): void {
    // A live region speaks only when its text changes; a no-break space makes a repeated one differ.
    this.#urgent = text === this.#urgent ? `${text}\u00A0` : text;
    this.#host.requestUpdate();
    this.#goOnIn(HEARD_AFTER_MS);
  }

  render(): TemplateResult {
    return html`
      <div class="visually-hidden" role="status" aria-atomic="false">
        ${this.#polite.map((sentence) => html`<p>${sentence}</p>`)}
      </div>
      <div class="visually-hidden" role="alert">${this.#urgent}</div>
    `;
  }
}

/** So that a listener can leave a long answer between two of them. */
function sentencesOf(lines: readonly string[]): string[] {
  const segmenter = new Intl.Segmenter(strings.lang, { granularity: "sentence" });
  return lines.flatMap((line) => [...segmenter.segment(line)].map(({ segment }) => segment.trim()));
}

const SILENT = new Set(["BUTTON", "STYLE", "SVG"]);
const BLOCKS = /^(P|LI|H[1-6]|PRE|TR|BLOCKQUOTE|DIV|TABLE|UL|OL)$/;

/**
 * What rendered answers say aloud, a line per block: their text without Markdown marks and buttons. They are walked through as
 * far as lines are asked for.
 */
export function* spokenLines(roots: Iterable<Node>): Generator<string> {
  let line = "";
  function* walk(node: Node): Generator<string> {
    if (node.nodeType === Node.TEXT_NODE) line += node.textContent ?? "";
    if (SILENT.has(node.nodeName.toUpperCase())) return;
    const isBlock = BLOCKS.test(node.nodeName);
    if (isBlock) yield* end();
    for (const child of node.childNodes) yield* walk(child);
    if (isBlock) yield* end();
    // Cells of a row are separate words.
    if (node.nodeName === "TD" || node.nodeName === "TH") line += " ";
  }
  function* end(): Generator<string> {
    const said = line.replace(/\s+/g, " ").trim();
    line = "";
    if (said !== "") yield said;
  }
  for (const root of roots) {
    yield* walk(root);
    yield* end();
  }
}
