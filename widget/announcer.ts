/** Speaks to screen readers: apart from the transcript, which would be read out token by token. */

import {
  html,
  type ReactiveController,
  type ReactiveControllerHost,
  type TemplateResult,
} from "lit";

export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite = "";
  #urgent = "";

  constructor(host: ReactiveControllerHost) {
    this.#host = host;
    host.addController(this);
  }

  hostConnected(): void {
    this.clear();
  }

  /** Takes back what was said: a reader who browses the page would still find it. */
  clear(): void {
    this.#polite = "";
    this.#urgent = "";
    this.#host.requestUpdate();
  }

  /** Says it when the reader pauses. An alert from before is over then. */
  say(text: string): void {
    this.#urgent = "";
    this.#polite = different(text, this.#polite);
    this.#host.requestUpdate();
  }

  /** Says it at once: for failures. */
  interrupt(text: string): void {
    this.#urgent = different(text, this.#urgent);
    this.#host.requestUpdate();
  }

  render(): TemplateResult {
    return html`
      <div class="visually-hidden" role="status">${this.#polite}</div>
      <div class="visually-hidden" role="alert">${this.#urgent}</div>
    `;
  }
}

/** A live region speaks only when its text changes; a no-break space makes a repeated one differ. */
function different(text: string, previous: string): string {
  return text === previous ? `${text}\u00A0` : text;
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
