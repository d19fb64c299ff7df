/** The launcher's button before its script is there: looks, is called and opens as the launcher's own. */

import { languageAt } from "./page-language.ts";
import { earlyBaseStyles, earlyButtonStyles } from "./styles/early-button.styles.ts";
import { launcherButtonStyles } from "./styles/launcher-button.styles.ts";
import { tokenStyles } from "./styles/tokens.styles.ts";
import { CHAT, QUESTION } from "./views/launcher-icons.ts";
import { SPARK } from "./views/spark-path.ts";

/** What the button is called without a label, by language: put there by the build. */
declare const PARLEY_OPEN_CHAT: Readonly<Record<string, string>>;

/** Attributes of which only the launcher knows what follows from them. */
const NEEDS_ALL = ["auto-open", "preview"];

const SVG = "http://www.w3.org/2000/svg";

export interface EarlyButtonOptions {
  /** The site's key, for the launcher. */
  readonly key: string;
  /** Somebody comes near. */
  preload(): void;
  /** Resolves when the launcher is what it is called. */
  loadWhole(): Promise<void>;
  /** Likewise, and without haste: the launcher has something to do by itself. */
  loadLater(): void;
}

/** What pages call on a launcher. */
interface Launcher extends HTMLElement {
  apiKey: string;
  open(): Promise<void>;
}

export class EarlyButton {
  readonly #launcher: Launcher;
  readonly #options: EarlyButtonOptions;
  readonly #root: ShadowRoot;
  readonly #box = element("div", "launcher-root");
  readonly #button = element("button", "launcher");
  readonly #path = document.createElementNS(SVG, "path");
  readonly #label = element("span", "label");
  /** Direction and accent: the launcher's `style` belongs to the site. */
  readonly #own = new CSSStyleSheet();
  readonly #late: readonly CSSStyleSheet[];
  /** Resolves when the launcher has drawn its own button. */
  readonly #replaced: Promise<void>;
  #onReplaced = () => {};
  /** Whether it comes by itself. */
  #isAwaited = false;
  readonly #watcher = new MutationObserver(() => this.#draw());

  /** Draws into a launcher that is not defined yet. One that is needs nothing but the key. */
  constructor(launcher: HTMLElement, options: EarlyButtonOptions) {
    this.#launcher = launcher as Launcher;
    this.#options = options;
    this.#replaced = new Promise((resolve) => {
      this.#onReplaced = resolve;
    });
    this.#late = [this.#own, ...[launcherButtonStyles, earlyButtonStyles].map(sheetOf)];
    const root = launcher.shadowRoot ?? launcher.attachShadow({ mode: "open" });
    this.#root = root;
    if (!customElements.get(launcher.localName)) this.#begin();
    void customElements.whenDefined(launcher.localName).then(() => this.#handOver());
  }

  #begin(): void {
    const { preload } = this.#options;
    this.#root.adoptedStyleSheets = [tokenStyles, earlyBaseStyles].map(sheetOf).concat(this.#late);
    // As the launcher's own methods, until it has them.
    const open = () => this.#open();
    Object.assign(this.#launcher, { opened: false, chat: null, open, toggle: open, close() {} });
    const icon = document.createElementNS(SVG, "svg");
    icon.setAttribute("viewBox", "0 0 24 24");
    icon.setAttribute("aria-hidden", "true");
    icon.append(this.#path);
    const slot = element("slot", "");
    slot.name = "launcher-icon";
    slot.append(icon);
    this.#button.type = "button";
    this.#button.part.add("launcher");
    this.#button.setAttribute("aria-expanded", "false");
    this.#button.append(slot);
    this.#box.append(this.#button);
    this.#root.append(this.#box);
    this.#button.addEventListener("click", () => void this.#pressed());
    for (const sign of ["pointerenter", "focus"]) {
      this.#button.addEventListener(sign, preload, { once: true });
    }
    this.#draw();
    this.#watcher.observe(this.#launcher, { attributes: true });
    this.#watcher.observe(document, { attributeFilter: ["lang", "dir"], subtree: true });
  }

  #draw(): void {
    // The page may have thrown it away: the document must not hold it.
    if (!this.#launcher.isConnected) {
      this.#watcher.disconnect();
      this.#watcher.observe(this.#launcher, { attributes: true });
    }
    const at = (name: string) => this.#launcher.getAttribute(name) ?? "";
    if (!this.#isAwaited && NEEDS_ALL.some(at)) {
      this.#isAwaited = true;
      this.#options.loadLater();
    }
    const [language, direction] = languageAt(this.#launcher);
    const [code = ""] = language.toLowerCase().split("-");
    const lang = code in PARLEY_OPEN_CHAT ? code : "en";
    const label = at("label");
    this.#own.replaceSync(`:host{direction:${direction}!important}`);
    if (CSS.supports("color", at("accent"))) {
      (this.#own.cssRules[0] as CSSStyleRule).style.setProperty("--_accent", at("accent"));
    }
    this.#box.lang = lang;
    this.#box.dir = direction;
    this.#button.setAttribute("aria-label", label || (PARLEY_OPEN_CHAT[lang] ?? ""));
    this.#label.textContent = label;
    // The style sheet asks whether there is one.
    if (label) this.#button.append(this.#label);
    else this.#label.remove();
    const icon = at("icon");
    this.#path.setAttribute("d", icon === "spark" ? SPARK : icon === "question" ? QUESTION : CHAT);
    this.#path.parentElement?.setAttribute("class", icon === "spark" ? "icon solid" : "icon");
  }

  async #open(): Promise<void> {
    await this.#options.loadWhole();
    await this.#launcher.open();
  }

  /** Opens the chat, unless the person has gone on to something else by the time it can be opened. */
  async #pressed(): Promise<void> {
    const before = document.activeElement;
    this.#button.setAttribute("aria-busy", "true");
    await this.#options.loadWhole();
    await this.#replaced;
    const { activeElement } = document;
    const waits = [this.#launcher, document.body, before].includes(activeElement as HTMLElement);
    if (waits) await this.#launcher.open();
  }

  /** The launcher has just become one: what it does not draw yet stays in view. */
  #handOver(): void {
    const launcher = this.#launcher;
    this.#watcher.disconnect();
    for (const name of ["opened", "chat", "open", "toggle", "close"]) {
      Reflect.deleteProperty(launcher, name);
    }
    // Also one that is not in the page at this moment.
    customElements.upgrade(launcher);
    launcher.apiKey = this.#options.key;
    const root = this.#root;
    if (!launcher.isConnected) this.#box.remove();
    if (!this.#box.isConnected) {
      this.#onReplaced();
      return;
    }
    // It writes its direction to the first that names a language.
    this.#box.removeAttribute("lang");
    // It has put its own sheets in the place of ours.
    root.adoptedStyleSheets.push(...this.#late);
    new MutationObserver((_changes, observer) => {
      const drawn = [...root.querySelectorAll<HTMLElement>(".launcher-root > .launcher")];
      const button = drawn.find((it) => it !== this.#button);
      if (!button) return;
      observer.disconnect();
      const hadFocus = root.activeElement === this.#button;
      this.#box.remove();
      root.adoptedStyleSheets = root.adoptedStyleSheets.filter((it) => !this.#late.includes(it));
      if (hadFocus) button.focus({ preventScroll: true });
      this.#onReplaced();
    }).observe(root, { childList: true });
  }
}

function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string) {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}

function sheetOf({ cssText }: { cssText: string }): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(cssText);
  return sheet;
}
