/**
 * `<agent-chat-launcher>`: the round button in the corner, which most visitors of a page never press. It is drawn from
 * its attributes and without Lit. The panel with the chat, which takes the button over, and the bubble beside the button
 * are loaded when they are needed.
 */

import type { AgentChat, LauncherProperties, AgentChatLauncher as PublicLauncher } from "../element/public-types.ts";
import { languageAt } from "../i18n/page-language.ts";
import type { Lazy } from "../loading/lazy.ts";
import { sheetOf } from "../styles/adopt.ts";
import { create, svgIcon } from "../styles/elements.ts";
import launcherStyles from "../styles/launcher.css";
import tokenStyles from "../styles/tokens.css";
import type { Greeting, GreetingLauncher } from "./greeting.ts";
import type { LauncherPanel, PanelLauncher } from "./panel.ts";
import { hasNews, type OwnersAttributes, smallScreen } from "./state.ts";

/** The properties with their initial values, as JSON; those without one have no attribute. Inserted by the build. */
declare const PARLEY_LAUNCHER_PROPERTIES: string;

const properties: readonly (readonly [name: string, initial?: unknown, attribute?: string])[] =
  JSON.parse(PARLEY_LAUNCHER_PROPERTIES);

/** Names of a button without a label, by language, as JSON. Inserted by the build. */
declare const PARLEY_OPEN_CHAT: string;

const openChat: Readonly<Record<string, string>> = JSON.parse(PARLEY_OPEN_CHAT);

const PATHS = {
  chat: "M20.5 11.5a8 8 0 0 1-8 8H4.5l1.7-3.1a8 8 0 1 1 14.3-4.9zM9 11.5v.1m3.5-.1v.1m3.5-.1v.1",
  question: "M9 9.3a3 3 0 1 1 4.6 2.5c-1 .6-1.6 1.2-1.6 2.4m0 3v.1M12 3a9 9 0 1 1 0 18a9 9 0 0 1 0-18z",
  spark: "M12 2.5c.7 5.3 3.7 8.5 9.5 9.5c-5.8 1-8.8 4.2-9.5 9.5c-.7-5.3-3.7-8.5-9.5-9.5c5.8-1 8.8-4.2 9.5-9.5z",
};

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
 * @csspart more - The button that shows further actions in a narrow panel.
 * @csspart expand - The button that enlarges the panel.
 * @csspart close - The button that closes the panel.
 */
export class AgentChatLauncher
  extends (HTMLElement as new () => HTMLElement & LauncherProperties)
  implements PublicLauncher, PanelLauncher, GreetingLauncher
{
  static readonly observedAttributes = ["lang", "dir"];

  /** Address of the server for elements of this script that name none. */
  static defaultServer: string;

  /** The attributes that the owner of that server's agent has set. */
  static owner: OwnersAttributes;

  /** Loads the panel with the chat. */
  static loadPanel: Lazy<typeof import("./panel.ts")>["loadEventually"];

  /** @internal The script tag that created the launcher: the panel warns of its misspelt attributes. */
  tag: HTMLScriptElement | undefined;

  /** Loads what the launcher does without a press of its button. */
  static loadGreeting: Lazy<typeof import("./greeting.ts")>["loadEventually"];

  /** Imports the texts of the button for when the panel's file is gone. */
  static importReload: () => Promise<typeof import("./reload.ts")>;

  static {
    for (const [name, initial, attribute = name] of properties) {
      const hasAttribute = initial !== undefined;
      if (hasAttribute) AgentChatLauncher.observedAttributes.push(attribute);
      Object.defineProperty(AgentChatLauncher.prototype, name, {
        get(this: AgentChatLauncher) {
          if (!hasAttribute) return this.#held[name];
          // The panel, which knows the valid values, removes an invalid one.
          const text = this.getAttribute(attribute);
          if (initial === 0) return text === null ? undefined : text !== "off";
          return text || (attribute === "server" ? AgentChatLauncher.defaultServer : initial);
        },
        set(this: AgentChatLauncher, value: unknown) {
          if (!hasAttribute) {
            this.#held[name] = value;
            this.#requestDraw();
          } else if (value == null || (value === false && initial !== 0)) this.removeAttribute(attribute);
          else this.setAttribute(attribute, value === true ? "" : value === false ? "off" : String(value));
        },
      });
    }
  }

  /** @internal */
  readonly box = create("div", "launcher-root");
  /** @internal */
  readonly button = create("button", "launcher");
  /** @internal Absent until it is first needed. */
  greeting: Greeting | undefined;
  /** The values of properties that have no attribute. */
  readonly #held: Record<string, unknown> = {};
  readonly #root = this.attachShadow({ mode: "open" });
  readonly #icon = svgIcon("");
  readonly #label = create("span", "label");
  /** For direction and accent, because the element's `style` belongs to the site. */
  readonly #sheet = sheetOf("");
  readonly #watcher = new MutationObserver(() => this.#requestDraw());
  #connection = new AbortController();
  #drawing: Promise<boolean> | undefined;
  #loading: Promise<LauncherPanel | undefined> | undefined;
  #panel: LauncherPanel | undefined;
  /** Present if the panel could not be loaded, though there is a network. */
  #reloadTexts: Readonly<Record<string, string>> | undefined;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheetOf(launcherStyles + tokenStyles), this.#sheet];
    const slot = create("slot");
    slot.name = "launcher-icon";
    slot.append(this.#icon);
    const { button } = this;
    button.part.add("launcher");
    button.ariaExpanded = "false";
    button.append(slot, this.#label);
    button.addEventListener("click", (event) => void this.#pressed(event));
    for (const type of ["pointerenter", "focus"]) button.addEventListener(type, () => void this.#load());
    this.box.append(button);
    this.#root.append(this.box);
  }

  // `public-types.ts` documents the public members.

  get opened(): boolean {
    return this.#panel?.isOpen ?? false;
  }

  get chat(): AgentChat | null {
    return this.#root.querySelector("agent-chat");
  }

  get updateComplete(): Promise<boolean> {
    return (this.#drawing ?? Promise.resolve(true)).then(() => this.#panel?.updateComplete ?? true);
  }

  /** Also resolves if the launcher has left the page. */
  async open(): Promise<void> {
    const panel = await this.#load();
    await panel?.open();
  }

  close(): void {
    this.#panel?.close();
  }

  async toggle(): Promise<void> {
    if (this.opened) this.close();
    else await this.open();
  }

  async signOut(): Promise<void> {
    await (await this.#load())?.signOut();
  }

  /** @internal Opens the panel without a request by the user: the focus stays where it is. */
  async show(): Promise<void> {
    const panel = await this.#load();
    await panel?.show();
  }

  connectedCallback(): void {
    // A property that was set before the element was defined hides the accessor of the class.
    const own = this as Record<string, unknown>;
    for (const [name] of properties) {
      if (!Object.hasOwn(own, name)) continue;
      const value = own[name];
      delete own[name];
      own[name] = value;
    }
    this.#beOwned();
    this.#connection = new AbortController();
    this.#watcher.observe(document, { attributeFilter: ["lang", "dir"], subtree: true });
    this.#requestDraw();
    // In the top layer, if the browser has one, the page's transforms and stacking order do not affect the button.
    this.popover = "manual";
    this.showPopover?.();
    addEventListener("pageshow", this.#resume, { signal: this.#connection.signal });
    this.#resume();
  }

  /** Adds the attributes that the agent's owner has set, and the page has not. */
  #beOwned(): void {
    const [tag] = languageAt(this);
    if (this.server !== AgentChatLauncher.defaultServer) return;
    for (const language of [tag, tag.split("-")[0] as string, ""]) {
      const wanted = AgentChatLauncher.owner[language];
      for (const name in wanted) if (!this.hasAttribute(name)) this.setAttribute(name, wanted[name] as string);
    }
  }

  disconnectedCallback(): void {
    this.#watcher.disconnect();
    this.#connection.abort();
    this.greeting?.stop();
    // A panel that is still loading is for this place in the page: elsewhere it is requested again.
    if (!this.#panel) this.#loading = undefined;
  }

  attributeChangedCallback(): void {
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
    const [tag, direction] = languageAt(this);
    const [code = ""] = tag.toLowerCase().split("-");
    const { accent, box, button, icon } = this;
    box.lang = code in openChat ? code : "en";
    const label = this.#offeredReload?.[box.lang] ?? this.label;
    box.dir = direction;
    const colour = accent && CSS.supports("color", accent) ? `--_accent:var(--agent-chat-accent,${accent})` : "";
    this.#sheet.replaceSync(`:host{direction:${direction}!important;${colour}}`);
    this.#icon.firstElementChild?.setAttribute("d", PATHS[icon] ?? PATHS.chat);
    this.#icon.classList.toggle("solid", icon === "spark");
    this.#label.textContent = label;
    if (this.#panel) {
      this.#panel.launcherChanged(tag, direction);
    } else {
      // Later the panel sets the name, because it knows whether it is open and what is new.
      button.ariaLabel = label || (openChat[box.lang] ?? "");
    }
    if (!this.isConnected) return;
    if (this.greeting) this.greeting.launcherChanged();
    // After everything that the page itself loads.
    else if (this.preview || this.shortcut || (this.autoOpen !== null && !smallScreen().matches))
      afterLoad(() => this.#greet());
  }

  /** Opens the panel, unless the user has focused something else by the time it is loaded. */
  async #pressed(event: MouseEvent): Promise<void> {
    if (this.#panel) return this.#panel.pressed(event);
    if (this.#offeredReload) return location.reload();
    const before = document.activeElement;
    this.button.ariaBusy = "true";
    this.#requestDraw();
    const panel = await this.#load();
    this.button.ariaBusy = null;
    this.#requestDraw();
    const { activeElement } = document;
    if (activeElement === this || activeElement === document.body || activeElement === before) await panel?.open();
  }

  /** Only while somebody waits for the panel. */
  get #offeredReload(): Readonly<Record<string, string>> | undefined {
    return this.button.ariaBusy ? this.#reloadTexts : undefined;
  }

  /** Loads the panel if another page of this tab has left it open or with news. */
  readonly #resume = (): void => {
    if (hasNews(this.server)) void this.#load();
  };

  async #greet(): Promise<void> {
    const module = await AgentChatLauncher.loadGreeting(this.#connection.signal);
    if (!module || !this.isConnected) return;
    this.greeting ??= new module.Greeting(this);
    this.greeting.launcherChanged();
  }

  #load(): Promise<LauncherPanel | undefined> {
    this.#loading ??= this.#loadPanel();
    return this.#loading;
  }

  async #loadPanel(): Promise<LauncherPanel | undefined> {
    const { signal } = this.#connection;
    // The bubble shows what arrives while the panel is closed.
    void this.#greet();
    const module = await AgentChatLauncher.loadPanel(signal, () => void this.#prepareReload());
    if (!module || signal.aborted) return undefined;
    this.#panel = new module.LauncherPanel(this);
    this.#draw();
    // Before everything else, so that a bubble stays right before the button that it explains.
    this.box.prepend(this.#panel);
    await this.#panel.updateComplete;
    return this.#panel;
  }

  /** After a new build of the server its files have other names, which only a reloaded page knows. */
  async #prepareReload(): Promise<void> {
    const module = await AgentChatLauncher.importReload().catch(() => undefined);
    this.#reloadTexts = navigator.onLine ? module?.texts : undefined;
    this.#requestDraw();
  }
}

function afterLoad(task: () => void): void {
  if (document.readyState === "complete") setTimeout(task);
  else addEventListener("load", () => setTimeout(task));
}
