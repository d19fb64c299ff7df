import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";

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
