import type { ReactiveController, ReactiveControllerHost } from "lit";
import { loadLocale, partTexts } from "../i18n/load-strings.ts";
import { languageAt } from "../i18n/page-language.ts";
import { en, type Locale, type Strings, type StringsOverride, stringsOf } from "../i18n/strings.ts";
import { PageTable } from "./page-table.ts";

/** How long the first drawing waits for a language, in milliseconds; after that it begins in English. */
const WAIT_MS = 3_000;

/** In which language an element speaks, and in which direction that is written. */
export class LocaleController implements ReactiveController {
  /** Another object means other texts. */
  strings: Strings = en;
  direction: "ltr" | "rtl" = "ltr";
  /**
   * Resolves when the texts are there, cannot be loaded or take too long: to draw before would flash in English. And
   * not in the same task: to run the script and to draw at once would hold a phone up for longer than a person should
   * notice.
   */
  ready: Promise<unknown> = Promise.resolve();
  readonly #host: ReactiveControllerHost & HTMLElement;
  readonly #watcher = new MutationObserver(() => this.#update());
  #locale: Locale = en;
  readonly #override = new PageTable<StringsOverride>();
  /** The reader's language, which may be one that we have no texts in. */
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
    // Inside another element's shadow root, changes of the document are not seen.
    this.#watcher.observe(this.#host, options);
  }

  hostDisconnected(): void {
    this.#watcher.disconnect();
    this.#loading.abort();
    // Is found again when the element is back in a page.
    this.tag = "";
  }

  /** Texts of the site's own, for what it wants to say differently. */
  override(texts: StringsOverride | undefined): void {
    const isAnother = this.#override.set(texts);
    const strings = stringsOf(this.#locale, this.#override.table);
    // A function of the site may say something else now.
    const isSame = Object.entries(this.strings).every(
      ([name, text]) => typeof text === "function" || strings[name as keyof Strings] === text,
    );
    if (isAnother || !isSame) this.strings = strings;
    if (isAnother) void this.#needPartTexts();
  }

  /** A site's text replaces one of ours as a text or as a function, as ours is one. English comes in two parts. */
  async #needPartTexts(): Promise<void> {
    const isKnown = (name: string) => Object.hasOwn(this.strings, name);
    if (Object.keys(this.#override.table).every(isKnown)) return;
    await partTexts.loadEventually();
    this.strings = stringsOf(this.#locale, this.#override.table);
    this.#host.requestUpdate();
  }

  /** The nearest element that names a language decides, and without one the browser's setting. */
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
