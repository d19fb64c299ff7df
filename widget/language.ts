/** Which language an element speaks, and in which direction that is written. */

import { loadLocale } from "./locales.ts";
import { languageAt } from "./page-language.ts";
import { english, type Locale, type Strings, type StringsOverride, useStrings } from "./strings.ts";

/** How long the first drawing waits for a language, in milliseconds; after that it starts in English. */
const WAIT_MS = 3_000;

export class Language {
  readonly #host: Element;
  readonly #onChange: () => void;
  readonly #watcher = new MutationObserver(() => this.look());
  #locale: Locale = english;
  #own: StringsOverride = {};
  #table: Strings = english;
  #tag: string | undefined;

  /**
   * Resolves when the texts are there, or will not come: drawing before would flash in English. And not before the next turn:
   * to run the script and to draw at once would hold a phone up for longer than somebody should notice.
   */
  ready: Promise<unknown> | undefined;
  #direction: "ltr" | "rtl" = "ltr";

  /** `onChange` is called when the element has to be drawn in other words or in the other direction. */
  constructor(host: Element, onChange: () => void) {
    this.#host = host;
    this.#onChange = onChange;
  }

  /** What is in use: another object means other texts. */
  get table(): Strings {
    return this.#table;
  }

  get direction(): "ltr" | "rtl" {
    return this.#direction;
  }

  /** Finds the language, and follows what the page says about it. */
  connect(): void {
    this.look();
    const options = { attributeFilter: ["lang", "dir"], subtree: true };
    this.#watcher.observe(document, options);
    // Inside another element's shadow root the document's changes are not its own.
    this.#watcher.observe(this.#host, options);
  }

  disconnect(): void {
    this.#watcher.disconnect();
    // Found again when it is back in a page; until then nothing asks for it.
    this.#tag = undefined;
  }

  /** Makes the element's table the one that views read. */
  use(): void {
    useStrings(this.#table);
  }

  /** Texts of the site's own, for what it wants to say differently. */
  override(texts: StringsOverride = {}): void {
    this.#own = texts;
    this.#compose();
  }

  /** The nearest element that names a language decides, and without one the browser's setting. */
  look(): void {
    const [tag, direction] = languageAt(this.#host);
    if (direction !== this.#direction) {
      this.#direction = direction;
      this.#onChange();
    }
    if (tag === this.#tag) return;
    this.#tag = tag;
    this.ready = Promise.race([this.#load(tag), timer(WAIT_MS)]).then(() => timer());
  }

  async #load(tag: string): Promise<void> {
    const locale = await loadLocale(tag, () => tag === this.#tag && this.#load(tag));
    // The page may have named another language meanwhile.
    if (tag !== this.#tag || locale === this.#locale) return;
    this.#locale = locale;
    this.#compose();
  }

  #compose(): void {
    // English is behind it, as it will be when further chunks have come.
    this.#table = Object.assign(Object.create(english), this.#locale, this.#own);
    this.#onChange();
  }
}

function timer(delayMs?: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
