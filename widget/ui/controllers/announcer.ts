import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";

/**
 * Texts that are read and said at a time (paragraphs, items, rows, blocks of code): the thousands of a long answer
 * would hold the page up.
 */
const TEXTS_AT_A_TIME = 50;

/** By then a screen reader has taken over what it will say. */
const HEARD_AFTER_MS = 1_000;

/** Speaks to screen readers: apart from the conversation, which would be read out token by token. */
export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite: readonly string[] = [];
  /** Texts that are still to be said, in their order. Each is read when it is its turn. */
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

  /** As `sayAll`. */
  say(text: string): void {
    this.sayAll([text]);
  }

  /**
   * Says texts, sentence by sentence, when the reader pauses. They are gone soon, since a person who browses the page
   * would find them a second time. An alert from before is over then. Nothing is read in this task, which may be the
   * one that sends a message.
   */
  sayAll(texts: Iterable<string>): void {
    this.#urgent = "";
    this.#rest.push(texts[Symbol.iterator]());
    this.#wait();
  }

  /**
   * Says it at once: for failures. It is gone as soon, since an alert is said again with whatever shows the element
   * again.
   */
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

  #continue(): void {
    const texts: string[] = [];
    while (this.#rest[0] && texts.length < TEXTS_AT_A_TIME) {
      const { done, value } = this.#rest[0].next();
      if (done) this.#rest.shift();
      else texts.push(value);
    }
    this.#polite = [...this.#polite, ...texts.flatMap((text) => text.split(SENTENCE_END))];
    this.#host.requestUpdate();
    this.#wait();
  }

  /** Until the next texts are due; after the last ones, until they are heard. */
  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#rest[0] ? setTimeout(() => this.#continue()) : setTimeout(() => this.clear(), HEARD_AFTER_MS);
  }
}

/**
 * Where a listener can leave a long answer: after what ends a sentence, and what closes a quote. `Intl.Segmenter` knows
 * more of it, but its data takes a phone 50 ms and longer to load.
 */
const SENTENCE_END = /(?<=\p{STerm}["'\p{Pe}\p{Pf}]?)\s+(?![\p{Ll}\d])|(?<=[。！？])(?![\p{Pe}\p{Pf}。！？])/u;

/**
 * Elements of an answer whose text is spoken on its own; all others that are no part of a line have such elements in
 * them.
 */
const BLOCKS = /^(P|H\d|LI|PRE|TR|DIV)$/;

/** Elements that have nothing but such elements and buttons in them, and can be long. */
const CONTAINERS = "div,table,thead,tbody,ul,ol";

/**
 * The spoken texts of rendered answers, one per block: without Markdown marks and buttons. Each block is read when its
 * text is asked for, and of a list or a table each item or row.
 */
export function* spokenTexts(roots: Iterable<Node>): Generator<string> {
  for (const root of roots) {
    for (const block of root.childNodes) {
      if ((block as Partial<Element>).matches?.(CONTAINERS)) {
        yield* spokenTexts([block]);
        continue;
      }
      for (const text of textOf(block).split("\0")) {
        const spoken = text.replace(/\s+/g, " ").trim();
        if (spoken) yield spoken;
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
