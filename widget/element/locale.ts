import type { ReactiveController, ReactiveControllerHost } from "lit";
import { loadLocale, partTexts } from "../i18n/load-strings.ts";
import { languageAt } from "../i18n/page-language.ts";
import { en, type Locale, type Strings, type StringsOverride, stringsOf } from "../i18n/strings.ts";
import { PageTable } from "./page-table.ts";

/** How long the first drawing waits for a language, in milliseconds; after that it begins in English. */
const WAIT_MS = 3_000;

/** The language of an element's texts, and its direction. */
export class LocaleController implements ReactiveController {
  /** Replaced by another object when the texts change. */
  strings: Strings = en;
  direction: "ltr" | "rtl" = "ltr";
  /**
   * Resolves when the texts are loaded, cannot be loaded or take too long: drawing earlier would flash in English.
   * Never in the same task: running the script and drawing in one task would block a phone for longer than a person
   * should notice.
   */
  ready: Promise<unknown> = Promise.resolve();
  readonly #host: ReactiveControllerHost & HTMLElement;
  readonly #watcher = new MutationObserver(() => this.#update());
  #locale: Locale = en;
  readonly #override = new PageTable<StringsOverride>();
  /** The reader's language tag, even if the chat has no texts in that language. */
  tag = "";
  #loading = new AbortController();

  constructor(host: ReactiveControllerHost & HTMLElement) {
    this.#host = host;
    host.addController(this);
  }

  hostConnected(): void {
    this.#update();
    const options = { attributeFilter: ["lang", "dir"], subtree: true };
    this.#watcher.observe(document, options);
    // Inside another element's shadow root, the observer of the document does not see changes.
    this.#watcher.observe(this.#host, options);
  }

  hostDisconnected(): void {
    this.#watcher.disconnect();
    this.#loading.abort();
    // Determined again when the element is back in a page.
    this.tag = "";
  }

  /** Sets the site's own texts, which replace the built-in ones. */
  override(texts: StringsOverride | undefined): void {
    const isAnother = this.#override.set(texts);
    const strings = stringsOf(this.#locale, this.#override.table);
    // A function of the site may return another text now.
    const isSame = Object.entries(this.strings).every(
      ([name, text]) => typeof text === "function" || strings[name as keyof Strings] === text,
    );
    if (isAnother || !isSame) this.strings = strings;
    if (isAnother) void this.#needPartTexts();
  }

  /** Loads the texts of lazy parts if the site replaces one: it becomes a text or a function, as ours is. */
  async #needPartTexts(): Promise<void> {
    const isKnown = (name: string) => Object.hasOwn(this.strings, name);
    if (Object.keys(this.#override.table).every(isKnown)) return;
    await partTexts.loadEventually();
    this.strings = stringsOf(this.#locale, this.#override.table);
    this.#host.requestUpdate();
  }

  /** The nearest element with `lang` decides, or else the browser's language. */
  #update(): void {
    const [tag, direction] = languageAt(this.#host);
    if (direction !== this.direction) {
      this.direction = direction;
      this.#host.requestUpdate();
    }
    if (tag === this.tag) return;
    this.tag = tag;
    this.#loading.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    const isDecided = new Promise<void>((resolve) => void this.#load(tag, signal, resolve).then(resolve));
    this.ready = Promise.race([isDecided, delay(WAIT_MS)]).then(() => delay(0));
  }

  async #load(tag: string, signal: AbortSignal, onFailure: () => void): Promise<void> {
    const locale = await loadLocale(tag, signal, onFailure);
    // The page may have named another language meanwhile.
    if (signal.aborted || locale === this.#locale) return;
    this.#locale = locale;
    this.strings = stringsOf(locale, this.#override.table);
    this.#host.requestUpdate();
    void this.#needPartTexts();
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
