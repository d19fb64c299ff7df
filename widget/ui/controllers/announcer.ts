import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";

/** After this time a screen reader has taken over the text of a live region, which can be removed. */
export const HEARD_AFTER_MS = 1_000;

/** Characters of a long answer that are drawn at once for screen readers: all of it would block the page. */
const CHARACTERS_AT_A_TIME = 16_000;

/**
 * The end of a sentence, with a closing quote or bracket: where a listener can stop a long answer. `Intl.Segmenter`
 * would be more precise, but a phone takes 50 ms or more to load its data.
 */
export const SENTENCE_END = /(?<=\p{STerm}["'\p{Pe}\p{Pf}]?)\s+(?![\p{Ll}\d])|(?<=[。！？])(?![\p{Pe}\p{Pf}。！？])/u;

/** Speaks to screen readers in live regions of its own, as the conversation would be read out token by token. */
export class Announcer implements ReactiveController {
  readonly #host: ReactiveControllerHost;
  #polite: readonly string[] = [];
  #urgent = "";
  /** The texts of an answer that are still to be spoken. */
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

  /** Removes all texts, and those still to be spoken. */
  clear(): void {
    this.#polite = [];
    this.#urgent = "";
    this.#rest = undefined;
    this.#host.requestUpdate();
  }

  /** Says texts, sentence by sentence, when the screen reader pauses. Removes an earlier alert. */
  say(...texts: string[]): void {
    this.#urgent = "";
    this.#polite = [...this.#polite, ...texts.flatMap((text) => text.split(SENTENCE_END))];
    this.#drawForAMoment();
  }

  /** Says texts of any length. Drops what was left of earlier ones. */
  sayAll(texts: Iterable<string>): void {
    this.#rest = texts[Symbol.iterator]();
    this.#sayNext();
  }

  /** Says a text at once: for failures. */
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
   * If the texts stayed, people would find them again while browsing the page, and an alert would be spoken each time
   * that the element is shown.
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
    // Only once the earlier texts are gone: repeating an equal text would not change the live region.
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
