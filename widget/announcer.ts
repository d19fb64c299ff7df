/** Speaks to screen readers: apart from the transcript, which would be read out token by token. */

import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";

/** Lines that are read and said at a time (paragraphs, items, rows, blocks of code): the thousands of a long answer would hold the page up. */
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

  /** As the lines of an answer: see there. */
  say(text: string): void {
    this.sayLines([text]);
  }

  /**
   * Says them, sentence by sentence, when the reader pauses. They are gone soon, since who browses the page would find them a
   * second time. An alert from before is over then. Not in this turn, which may be the one that sends a message.
   */
  sayLines(lines: Iterable<string>): void {
    this.#urgent = "";
    this.#rest.push(lines[Symbol.iterator]());
    this.#wait();
  }

  #goOn(): void {
    const lines: string[] = [];
    while (this.#rest[0] && lines.length < LINES) {
      const { done, value } = this.#rest[0].next();
      if (done) this.#rest.shift();
      else lines.push(value);
    }
    this.#polite = [...this.#polite, ...lines.flatMap((line) => line.split(SENTENCE_END))];
    this.#host.requestUpdate();
    this.#wait();
  }

  /** For the turn of the next lines; after the last ones, until they are heard. */
  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#rest[0] ? setTimeout(() => this.#goOn()) : setTimeout(() => this.clear(), HEARD_AFTER_MS);
  }

  /** Says it at once: for failures. It is gone as soon, since an alert is said again with whatever shows the element again. */
  interrupt(text: string): void {
    // A live region speaks only when its text changes; a no-break space makes a repeated one differ.
    this.#urgent = text === this.#urgent ? `${text}\u00A0` : text;
    this.#host.requestUpdate();
    this.#wait();
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

/**
 * Where a listener can leave a long answer: after what ends a sentence, and what closes a quote. `Intl.Segmenter` knows more of it,
 * and has a phone load that for 50 ms and longer.
 */
const SENTENCE_END = /(?<=\p{STerm}["'\p{Pe}\p{Pf}]?)\s+(?![\p{Ll}\d])|(?<=[。！？])(?![\p{Pe}\p{Pf}。！？])/u;

/** Elements of an answer whose text is a line of its own; all others that are no part of a line have such elements in them. */
const BLOCKS = /^(P|H\d|LI|PRE|TR|DIV)$/;

/** What has nothing but such elements and buttons in it, and can be long. */
const HOLDERS = "div,table,tbody,ul,ol";

/**
 * What rendered answers say aloud, a line per block: their text without Markdown marks and buttons. Each block is read when its
 * lines are asked for, and of a list or a table each item or row.
 */
export function* spokenLines(roots: Iterable<Node>): Generator<string> {
  for (const root of roots) {
    for (const block of root.childNodes) {
      if ((block as Partial<Element>).matches?.(HOLDERS)) {
        yield* spokenLines([block]);
        continue;
      }
      for (const line of textOf(block).split("\0")) {
        const said = line.replace(/\s+/g, " ").trim();
        if (said) yield said;
      }
    }
  }
}

/** With a character between blocks that no text has. */
function textOf(node: Node): string {
  if (node instanceof Text) return node.data;
  const { nodeName } = node;
  if (nodeName === "BUTTON") return "";
  // Cells of a row are separate words.
  const edge = BLOCKS.test(nodeName) ? "\0" : nodeName[0] === "T" ? " " : "";
  return edge + Array.from(node.childNodes, textOf).join("") + edge;
}
