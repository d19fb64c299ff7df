/**
 * `<agent-chat-launcher>`: the round button in the corner. It is drawn without Lit, because most visitors of a page
 * never press it; the panel with the chat is loaded when it is needed.
 */

import {
  attributeOf,
  checkProperty,
  initialValue,
  PROPERTIES,
  type PropertyName,
  rowsOf,
  warnOfValue,
} from "../element/properties.ts";
import type { AgentChat, AgentChatLauncher as PublicLauncher } from "../element/public-types.ts";
import { languageAt } from "../i18n/page-language.ts";
import type { Lazy } from "../loading/lazy.ts";
import { sheetOf } from "../styles/adopt.ts";
import launcherStyles from "../styles/launcher.css";
import tokenStyles from "../styles/tokens.css";
import type { ButtonState, Launcher, LauncherPanel } from "./panel.ts";
import { hasOpened } from "./state.ts";

/** What the button is called without a label, by language: put here by the build. */
declare const PARLEY_OPEN_CHAT: string;

const openChat: Readonly<Record<string, string>> = JSON.parse(PARLEY_OPEN_CHAT);

const rows = rowsOf("launcher").filter(([, { kind }]) => kind !== "inherited");

const PATHS = {
  chat: "M20.5 11.5a8 8 0 0 1-8 8H4.5l1.7-3.1a8 8 0 1 1 14.3-4.9zM9 11.5v.1m3.5-.1v.1m3.5-.1v.1",
  question: "M9 9.3a3 3 0 1 1 4.6 2.5c-1 .6-1.6 1.2-1.6 2.4m0 3v.1M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18z",
  spark: "M12 2.5c.7 5.3 3.7 8.5 9.5 9.5c-5.8 1-8.8 4.2-9.5 9.5c-.7-5.3-3.7-8.5-9.5-9.5c5.8-1 8.8-4.2 9.5-9.5z",
  fold: "M6 9.5l6 6l6-6",
};

/** Its properties come from the table; see the static block. */
export interface AgentChatLauncher extends PublicLauncher {}

/**
 * A round button in the corner that opens the chat in a panel; what `/widget.js` adds to the pages of other sites.
 *
 * @fires {Event} agent-chat-open - The panel has opened.
 * @fires {Event} agent-chat-close - The panel has closed.
 * @slot launcher-icon - Replaces the icon of the button.
 * @cssprop --agent-chat-inset-block - Distance of the button from the upper or lower edge of the window. Default: 20px.
 * @cssprop --agent-chat-inset-inline - Distance of the button from the side. Default: 20px.
 * @csspart launcher - The round button.
 * @csspart unread - The number of answers that arrived while the panel was closed.
 * @csspart preview - The bubble beside the closed button.
 * @csspart preview-close - The button that closes the bubble.
 * @csspart panel - The panel with the chat.
 * @csspart expand - The button that enlarges the panel.
 * @csspart close - The button that closes the panel.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the table declares the properties of the class.
export class AgentChatLauncher extends HTMLElement implements Launcher {
  static readonly observedAttributes = rows.flatMap(([name]) => attributeOf("launcher", name) ?? []);

  /** Where the elements of this script find their server, unless they name one. */
  static defaultServer = "";

  /** The panel with the chat, which is loaded when it is needed. */
  static panel: Lazy<typeof import("./panel.ts")>;

  static {
    for (const [name] of rows) {
      Object.defineProperty(AgentChatLauncher.prototype, name, {
        get(this: AgentChatLauncher) {
          return this.#values[name] || (name === "server" ? AgentChatLauncher.defaultServer : this.#values[name]);
        },
        set(this: AgentChatLauncher, value: unknown) {
          this.#set(name, value);
        },
      });
    }
  }

  readonly #values: Record<string, unknown> = Object.fromEntries(rows.map(([name, row]) => [name, initialValue(row)]));
  readonly #root = this.attachShadow({ mode: "open" });
  readonly #box = element("div", "launcher-root");
  readonly #button = element("button", "launcher");
  readonly #slot = element("slot", "");
  readonly #icon = svgIcon(PATHS.chat);
  readonly #fold = svgIcon(PATHS.fold);
  readonly #label = element("span", "label");
  readonly #unread = element("span", "unread");
  /** Direction and accent: the element's `style` belongs to the site. */
  readonly #sheet = sheetOf(":host{}");
  readonly #watcher = new MutationObserver(() => this.#requestDraw());
  #connection = new AbortController();
  #drawing: Promise<boolean> | undefined;
  #loading: Promise<LauncherPanel | undefined> | undefined;
  #panel: LauncherPanel | undefined;
  #state: ButtonState | undefined;
  /** Whether the panel will be loaded without a press of the button. */
  #isLoadPlanned = false;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheetOf(launcherStyles), sheetOf(tokenStyles), this.#sheet];
    this.#slot.name = "launcher-icon";
    this.#slot.append(this.#icon);
    this.#unread.part.add("unread");
    this.#button.type = "button";
    this.#button.part.add("launcher");
    this.#button.append(this.#slot);
    this.#button.addEventListener("click", (event) => void this.#pressed(event));
    for (const type of ["pointerenter", "focus"]) {
      this.#button.addEventListener(type, () => void this.#load(), { once: true });
    }
    this.#box.append(this.#button);
    this.#root.append(this.#box);
  }

  /** Whether the panel is open. */
  get opened(): boolean {
    return this.#state?.isOpen ?? false;
  }

  /** The chat in the panel, once it has been opened for the first time. */
  get chat(): AgentChat | null {
    return this.#root.querySelector("agent-chat");
  }

  /** Resolves when what was set so far has been drawn. */
  get updateComplete(): Promise<boolean> {
    return (this.#drawing ?? Promise.resolve(true)).then(() => this.#panel?.updateComplete ?? true);
  }

  /**
   * Opens the panel and puts the cursor into its text field; resolves when both are done, or the launcher has left the
   * page.
   */
  async open(): Promise<void> {
    const panel = await this.#load();
    await panel?.open();
  }

  /** Closes the panel. The focus, if it was inside, goes back to where it was before. */
  close(): void {
    this.#panel?.close();
  }

  /** Opens the panel if it is closed, and the other way round. */
  async toggle(): Promise<void> {
    if (this.opened) this.close();
    else await this.open();
  }

  /** @internal The panel calls it. */
  showState(state: ButtonState): void {
    this.#state = state;
    this.#drawButton();
  }

  /** @internal */
  focusButton(): void {
    this.#button.focus({ preventScroll: true });
  }

  connectedCallback(): void {
    for (const [name] of rows) this.#adoptOwn(name);
    this.#connection = new AbortController();
    this.#watcher.observe(document, { attributeFilter: ["lang", "dir"], subtree: true });
    // Inside another element's shadow root the document's changes are not its own.
    this.#watcher.observe(this, { attributeFilter: ["lang", "dir"] });
    this.#requestDraw();
    addEventListener("pageshow", this.#resume, { signal: this.#connection.signal });
    this.#resume();
  }

  disconnectedCallback(): void {
    this.#watcher.disconnect();
    this.#connection.abort();
    this.#isLoadPlanned = false;
  }

  attributeChangedCallback(attribute: string, before: string | null, value: string | null): void {
    const [name, row] = rows.find(([it]) => attributeOf("launcher", it) === attribute) ?? [];
    if (!name || value === before) return;
    if (row?.kind === "boolean") this.#set(name, value !== null);
    else if (String(this.#values[name]) !== value) this.#set(name, value);
  }

  /** A property that was set before the element was defined hides the one of the class. */
  #adoptOwn(name: string): void {
    if (!Object.hasOwn(this, name)) return;
    const element = this as unknown as Record<string, unknown>;
    const value = element[name];
    delete element[name];
    element[name] = value;
  }

  #set(name: PropertyName, value: unknown): void {
    this.#values[name] = value ?? initialValue(PROPERTIES[name]);
    this.#requestDraw();
  }

  #requestDraw(): void {
    this.#drawing ??= Promise.resolve().then(() => {
      this.#drawing = undefined;
      this.#draw();
      return true;
    });
  }

  #draw(): void {
    for (const [name, { reflect }] of rows) {
      checkProperty(this, name);
      const value = String(this.#values[name]);
      if (reflect && this.getAttribute(name) !== value) this.setAttribute(name, value);
    }
    const [tag, direction] = languageAt(this);
    const [code = ""] = tag.toLowerCase().split("-");
    this.#box.lang = code in openChat ? code : "en";
    this.#box.dir = direction;
    this.#sheet.replaceSync(`:host{direction:${direction}!important}`);
    const isColor = CSS.supports("color", this.accent);
    if (isColor) (this.#sheet.cssRules[0] as CSSStyleRule).style.setProperty("--_accent", this.accent);
    else if (this.accent) warnOfValue(this, "accent", this.accent, "a CSS colour");
    this.#icon.firstElementChild?.setAttribute("d", PATHS[this.icon]);
    this.#icon.classList.toggle("solid", this.icon === "spark");
    this.#drawButton();
    if (this.#panel) {
      // A change around the launcher is not seen in its shadow root.
      this.#panel.lang = tag;
      this.#panel.dir = direction;
      this.#panel.launcherChanged();
    }
    if (this.isConnected && !this.#isLoadPlanned && (this.autoOpen !== null || this.preview.trim())) {
      this.#isLoadPlanned = true;
      // After all that the page itself loads.
      afterLoad(() => void this.#load());
    }
  }

  #drawButton(): void {
    const { isOpen, unread, name } = this.#state ?? { isOpen: false, unread: 0, name: "" };
    const button = this.#button;
    button.classList.toggle("is-open", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
    button.setAttribute("aria-label", name || this.label || (openChat[this.#box.lang] ?? ""));
    const icon = isOpen ? this.#fold : this.#slot;
    if (button.firstElementChild !== icon) button.firstElementChild?.replaceWith(icon);
    setText(button, this.#label, isOpen ? "" : this.label);
    setText(button, this.#unread, unread > 0 ? String(unread) : "");
  }

  /** Opens the panel, unless the person has gone on to something else by the time it can be opened. */
  async #pressed({ detail }: MouseEvent): Promise<void> {
    if (this.#panel) {
      // The second click of two meant the same as the first, and has taken the focus.
      if (detail < 2) await this.toggle();
      else if (this.opened) this.chat?.focusComposer();
      return;
    }
    const before = document.activeElement;
    this.#button.setAttribute("aria-busy", "true");
    const panel = await this.#load();
    this.#button.removeAttribute("aria-busy");
    const { activeElement } = document;
    if (activeElement === this || activeElement === document.body || activeElement === before) await panel?.open();
  }

  /** The panel is open, or has news, where it was opened in this tab before. */
  readonly #resume = (): void => {
    if (hasOpened(this.server)) void this.#load();
  };

  #load(): Promise<LauncherPanel | undefined> {
    this.#loading ??= this.#loadPanel();
    return this.#loading;
  }

  async #loadPanel(): Promise<LauncherPanel | undefined> {
    const { signal } = this.#connection;
    const module = await AgentChatLauncher.panel.loadEventually(signal);
    if (!module || signal.aborted) {
      this.#loading = undefined;
      return undefined;
    }
    const panel = new module.LauncherPanel(this);
    this.#panel = panel;
    this.#draw();
    this.#root.adoptedStyleSheets.push(...module.styles);
    this.#button.setAttribute("aria-controls", "panel");
    // Before the button, so that a bubble is read before the button that it explains.
    this.#box.prepend(panel);
    await panel.updateComplete;
    return panel;
  }
}

/** The element with the text is there as long as there is a text. */
function setText(parent: Element, child: HTMLElement, text: string): void {
  child.textContent = text;
  if (text === "") child.remove();
  else if (!child.isConnected) parent.append(child);
}

function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}

function svgIcon(path: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.appendChild(document.createElementNS(svg.namespaceURI, "path")).setAttribute("d", path);
  return svg;
}

function afterLoad(task: () => void): void {
  if (document.readyState === "complete") setTimeout(task);
  else addEventListener("load", () => setTimeout(task), { once: true });
}
