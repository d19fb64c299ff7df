/**
 * Applies the owner's texts, looks and defaults (`chat` of `/api/info`) to an element, where the page sets nothing
 * else. Loaded if an agent has them, and if users sign in or are signed in.
 */

import { html, type TemplateResult } from "lit";
import type { AgentInfo, ByTheme, OwnersPage } from "../../server/protocol/chat.ts";
import { textFor } from "../i18n/text-for.ts";
import { lazy } from "../loading/lazy.ts";
import type { Client } from "../session/client.ts";
import { adoptSheets, sheetOf } from "../styles/adopt.ts";
import ownerStyles from "../styles/owner.css";
import type { ShownAgent } from "../ui/context.ts";
import type { ClientController } from "./client-controller.ts";
import type { LocaleController } from "./locale.ts";
import { CHAT, initialValue, isValid } from "./properties.ts";
import type { ChatProperties } from "./public-types.ts";
import type { Way } from "./sign-in.ts";
import type { ThemeWatcher } from "./theme.ts";

const sheet = sheetOf(ownerStyles);

/** Draws the card to sign in, and the name with the button to sign out. */
const ways = lazy(() => import("./sign-in.ts"));

/** Properties whose defaults an owner sets. */
const DEFAULTS = ["theme", "density", "corners", "tools", "thinking"] as const;

interface OwnedElement extends HTMLElement, ChatProperties {
  requestUpdate(): void;
  signOut(): Promise<void>;
  readonly renderRoot: Node;
  /** The result of `update`, which the element and its client use. */
  own: OwnersView | undefined;
}

/** Controllers of the element. */
interface OwnerParts {
  readonly theme: Pick<ThemeWatcher, "theme" | "hostConnected">;
  readonly locale: Pick<LocaleController, "tag" | "override" | "strings">;
  readonly clients: Pick<ClientController, "persistChanged">;
}

/** The agent as it is shown, and the owner's other settings. */
export interface OwnersView extends ShownAgent {
  readonly conversations?: boolean | undefined;
  readonly feedback?: boolean | undefined;
}

export class Owner {
  readonly #host: OwnedElement;
  readonly #parts: OwnerParts;
  /** The owner's colours and font. The site's style sheets and the page's `accent` win over them. */
  readonly #sheet = sheetOf(":host{}");
  /** The defaults that were set here. A property with another value by now was changed by the page or the user. */
  readonly #set = new Map<string, unknown>();
  #key: readonly unknown[] = [];
  /** Draws the sign-in card and the user's name; absent until it is needed and loaded. */
  #ways: typeof import("./sign-in.ts") | undefined;
  #waysLoading: Promise<void> | undefined;
  #userName: string | undefined;

  constructor(host: OwnedElement, parts: OwnerParts) {
    this.#host = host;
    this.#parts = parts;
    adoptSheets(host.renderRoot, [sheet, this.#sheet]);
  }

  /** To be called before each drawing. Updates `own` and the texts if anything has changed. */
  update({ info, server, phase, isHidden }: Pick<Client, "info" | "server" | "phase" | "isHidden">): void {
    const isSignedOut = phase === "login_required";
    // While the server has not identified the user, the previous name stays.
    if (!info?.user_pending) this.#userName = info?.user_name;
    const userName = isHidden ? undefined : this.#userName;
    if (isSignedOut || userName) this.#needWays();
    const { accent, strings } = this.#host;
    const { theme, locale, clients } = this.#parts;
    const { tag } = locale;
    const key = [info, tag, theme.theme, accent, strings, this.#ways, locale.strings, userName, isSignedOut];
    if (key.every((value, index) => value === this.#key[index])) return;
    this.#key = key;
    this.#host.shadowRoot?.firstElementChild?.toggleAttribute("data-signed-out", isSignedOut);
    const own = info && this.#viewOf(info, server, userName, isSignedOut);
    const isKept = own?.conversations === this.#host.own?.conversations;
    this.#host.own = own;
    if (!isKept) clients.persistChanged();
    const placeholder = info?.chat?.placeholder && textFor(info.chat.placeholder, tag);
    locale.override(placeholder === undefined ? strings : { placeholder, ...strings });
  }

  #needWays(): void {
    this.#waysLoading ??= ways.loadEventually().then((module) => {
      this.#ways = module;
      this.#host.requestUpdate();
    });
  }

  #viewOf(info: AgentInfo, server: URL, userName: string | undefined, isSignedOut: boolean): OwnersView | undefined {
    const { chat } = info;
    const { strings, tag } = this.#parts.locale;
    const wayOf = ({ label, url }: OwnersPage["signIn"] & {} = {}): Way => ({
      label: label && textFor(label, tag),
      href: url && addressOf(url, server),
    });
    try {
      const view: OwnersView = chat ? this.#drawn(info, chat, server, tag) : info;
      // Nothing can be sent, so nothing is suggested.
      if (isSignedOut)
        return { ...view, suggestions: [], signIn: this.#ways?.renderSignIn(this.#host, wayOf(chat?.signIn), strings) };
      if (!userName) return chat && view;
      const out = chat?.signOut && wayOf(chat.signOut);
      return { ...view, who: this.#ways?.renderUser(this.#host, userName, out, strings) };
    } catch (error) {
      // A server of another version may use another format. The chat then shows the server's plain texts.
      console.warn("<agent-chat> cannot read what the server says of the chat:", error);
      return undefined;
    }
  }

  #drawn(info: AgentInfo, chat: OwnersPage, server: URL, tag: string): OwnersView {
    const { strings } = this.#host;
    for (const name of DEFAULTS) this.#setDefault(name, chat[name]);
    this.#style(chat);
    const text = (value: unknown) => (value === undefined ? undefined : textFor(value, tag));
    const title = text(chat.title);
    if (title && this.#host.page && !this.#host.embed) document.title = title;
    const logo = chat.logo && imageAt(chat.logo, this.#parts.theme.theme, server);
    return {
      name: title ?? info.name,
      agent: title ?? info.agent,
      welcome: strings?.welcome === undefined ? text(chat.welcome) : undefined,
      disclaimer: text(chat.disclaimer),
      suggestions: (chat.suggestions ?? []).map(({ label, prompt }) => [textFor(label, tag), textFor(prompt, tag)]),
      links: renderLinks(chat.links ?? [], server, tag),
      logo: logo ? renderLogo(logo) : undefined,
      conversations: chat.conversations,
      feedback: chat.feedback,
    };
  }

  #setDefault(name: (typeof DEFAULTS)[number], value: unknown): void {
    const row = CHAT[name] ?? {};
    const current = Reflect.get(this.#host, name);
    const isOfPage = this.#set.has(name) ? current !== this.#set.get(name) : this.#host.hasAttribute(name);
    const next = value !== undefined && isValid(row, value) ? value : initialValue(row);
    if (isOfPage || (!this.#set.has(name) && current !== initialValue(row)) || next === current) return;
    this.#set.set(name, next);
    Reflect.set(this.#host, name, next);
    if (name === "theme") this.#parts.theme.hostConnected();
  }

  /** By `setProperty`, not as text of a style sheet, so that no value can add further declarations. */
  #style({ accent, font }: OwnersPage): void {
    const { style } = this.#sheet.cssRules[0] as CSSStyleRule;
    const isColour = [accent?.light, accent?.dark].every((colour) => /^#[\da-f]{6}$/.test(colour ?? ""));
    const colour = isColour && !this.#host.accent ? `light-dark(${accent?.light}, ${accent?.dark})` : undefined;
    style.setProperty("--_accent", colour ? `var(--agent-chat-accent, ${colour})` : "");
    style.setProperty("--_link", colour ? "var(--agent-chat-link, var(--_accent))" : "");
    style.setProperty("--_font", font ? `var(--agent-chat-font, ${font})` : "");
  }
}

/** URL of an image of the server; `undefined` for an image from anywhere else. */
function imageAt(image: ByTheme, theme: "light" | "dark", server: URL): string | undefined {
  const { href } = new URL(image[theme], server);
  return href.startsWith(`${server.href}chat/`) ? href : undefined;
}

/** Without an alternative text, because the name is beside it. Hidden if it cannot be loaded. */
function renderLogo(src: string): TemplateResult {
  const leave = ({ target }: Event) => {
    (target as HTMLElement).hidden = true;
  };
  // A wide logo contains the name in letters, and leaves no room for it in a narrow header.
  const measure = ({ target }: Event) => {
    const { naturalWidth, naturalHeight, classList } = target as HTMLImageElement;
    classList.toggle("wide", naturalWidth > 2 * naturalHeight);
  };
  return html`<img part="logo" class="logo" alt="" src=${src} @load=${measure} @error=${leave} />`;
}

/** The absolute URL of a link, relative to the server; `undefined` if it is neither http nor https. */
function addressOf(url: string, server: URL): string | undefined {
  const address = URL.canParse(url, server) ? new URL(url, server) : undefined;
  return /^https?:$/.test(address?.protocol ?? "") ? address?.href : undefined;
}

function renderLinks(links: NonNullable<OwnersPage["links"]>, server: URL, tag: string): TemplateResult | undefined {
  const shown = links.flatMap(({ label, url }) => {
    const href = addressOf(url, server);
    const text = textFor(label, tag);
    return href
      ? html`<a part="link" href=${href} target="_blank" rel="noopener noreferrer" dir="auto">${text}</a>`
      : [];
  });
  return shown.length > 0 ? html`<p part="links" class="links">${shown}</p>` : undefined;
}
