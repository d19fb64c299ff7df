/** Speaks to screen readers: apart from the transcript, which would be read out token by token. */

import {
  html,
  type ReactiveController,
  type ReactiveControllerHost,
  type TemplateResult,
} from "lit";
import { strings } from "./strings.ts";

/** Lines that are said at a time: the thousands of a long answer would hold the page up. */
const LINES = 50;

/** By then a screen reader has taken over what it will say. */
const HEARD_AFTER_MS = 1_000;

export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite: readonly string[] = [];
  /** Lines that are still to be said. */
  #rest: readonly string[] = [];
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
    this.#polite = this.#rest = [];
    this.#urgent = "";
    this.#host.requestUpdate();
  }

  /**
   * Says it, sentence by sentence, when the reader pauses. It is gone soon, since who browses the page would find it a second
   * time. An alert from before is over then.
   */
  say(text: string): void {
    this.#urgent = "";
    this.#rest = [...this.#rest, ...text.split("\n")];
    this.#goOn();
  }

  #goOn(): void {
    const lines = this.#rest.slice(0, LINES);
    if (lines.length === 0) {
      this.clear();
      return;
    }
    this.#rest = this.#rest.slice(LINES);
    this.#polite = [...this.#polite, ...lines.flatMap(sentencesOf)];
    this.#speak(this.#rest.length > 0 ? 0 : HEARD_AFTER_MS);
  }

  #speak(ms: number): void {
    this.#host.requestUpdate();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#goOn(), ms);
  }

  /** Says it at once: for failures. It is gone as soon, since an alert is said again with whatever shows the element again. */
  interrupt(text: string): void {
    // A live region speaks only when its text changes; a no-break space makes a repeated one differ.
    this.#urgent = text === this.#urgent ? `${text}\u00A0` : text;
    this.#speak(HEARD_AFTER_MS);
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
function sentencesOf(text: string): string[] {
  const segmenter = new Intl.Segmenter(strings.lang, { granularity: "sentence" });
  return [...segmenter.segment(text)].map(({ segment }) => segment.trim());
}

const SILENT = new Set(["BUTTON", "STYLE", "SVG"]);
const BLOCKS = /^(P|LI|H[1-6]|PRE|TR|BLOCKQUOTE|DIV|TABLE|UL|OL)$/;

/** What a rendered answer says aloud: its text without Markdown marks and buttons, a line per block. */
export function spokenText(root: Node): string {
  const lines: string[] = [""];
  const walk = (node: Node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      lines[lines.length - 1] += node.textContent ?? "";
      return;
    }
    if (SILENT.has(node.nodeName.toUpperCase())) return;
    const isBlock = BLOCKS.test(node.nodeName);
    if (isBlock) lines.push("");
    for (const child of node.childNodes) walk(child);
    if (isBlock) lines.push("");
    // Cells of a row are separate words.
    if (node.nodeName === "TD" || node.nodeName === "TH") lines[lines.length - 1] += " ";
  };
  walk(root);
  return lines
    .map((line) => line.replace(/\s+/g, " ").trim())
    .filter((line) => line !== "")
    .join("\n");
}
