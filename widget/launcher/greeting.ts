/**
 * What a launcher does without a press of its button: it shows a bubble with a greeting or the beginning of an answer,
 * and opens the chat after a time or by a shortcut. Written without Lit, since visitors that are greeted need no chat
 * yet.
 */

import { isValid } from "../element/properties.ts";
import type { AgentChatLauncher } from "../element/public-types.ts";
import { sheetOf } from "../styles/adopt.ts";
import { create, svgIcon } from "../styles/elements.ts";
import previewStyles from "../styles/preview.css";
import surfaceStyles from "../styles/surfaces.css";
import { isShortcut, isTaken, shownShortcut } from "../ui/keys.ts";
import { askOwner } from "./owned.ts";
import { LauncherMemory, smallScreen } from "./state.ts";

/** Names of the button that closes the bubble, by language, as JSON. Inserted by the build. */
declare const PARLEY_HIDE_PREVIEW: string;

/** Used if the page sets no time: by then a visitor has looked around. */
const DEFAULT_AFTER_MS = 3_000;

/** After this time a screen reader has taken over a text. As in `announcer.ts`, which needs Lit. */
const HEARD_AFTER_MS = 1_000;

/** Number of characters shown of an answer. Each may be two UTF-16 code units. */
const EXCERPT = 140;

/** Ctrl or Alt is required: other keys are pressed while somebody types. */
const SHORTCUT = /^(?=.*(?:ctrl|alt)\+)(?:(?:ctrl|alt|shift)\+)+[^+]+$/i;

/** Removes inline Markdown, which the greeting in the chat may have: the bubble is one button with plain text. */
const withoutMarks = (text: string) => text.replace(/(\*\*|__|`)(.+?)\1|\[([^\]]+)\]\([^)\s]*\)/g, "$2$3");

/** An invalid time counts as none. The panel warns of it, once it is loaded. */
const timeOf = (value: number | string | null) => (isValid({ kind: "time" }, value) ? String(value) : "");

/** The launcher, as its greeting needs it. */
export interface GreetingLauncher extends AgentChatLauncher {
  /** The element around the button. Its `lang` is a language that has texts. */
  readonly box: HTMLElement;
  readonly button: HTMLButtonElement;
  show(): Promise<void>;
}

/** An action that runs once after a time. */
class Plan {
  #key = "";
  #over = new AbortController();

  /** Plans an action, unless `key` is the same as before. An empty key cancels. */
  set(key: string, milliseconds: number, act: () => void): void {
    if (key === this.#key) return;
    this.cancel();
    this.#key = key;
    if (key === "") return;
    const over = new AbortController();
    const { signal } = over;
    const once = () => {
      // In a hidden tab nobody would see or hear it.
      if (document.visibilityState === "hidden") return;
      over.abort();
      act();
    };
    const timer = setTimeout(() => {
      document.addEventListener("visibilitychange", once, { signal });
      once();
    }, milliseconds);
    signal.addEventListener("abort", () => clearTimeout(timer));
    this.#over = over;
  }

  cancel(): void {
    this.#over.abort();
    this.#key = "";
  }
}

export class Greeting {
  readonly #launcher: GreetingLauncher;
  readonly #memory: LauncherMemory;
  readonly #preview = new Plan();
  readonly #opening = new Plan();
  readonly #bubble = create("div", "preview");
  readonly #text = create("span");
  readonly #close = create("button", "icon-button");
  /** Speaks to screen readers. */
  readonly #status = create("div", "visually-hidden");
  /** The greeting that was shown last. */
  #greeted = "";
  #heard: ReturnType<typeof setTimeout> | undefined;
  /** The shortcut that the document listens for. */
  #shortcut: string | undefined;

  constructor(launcher: GreetingLauncher) {
    this.#launcher = launcher;
    this.#memory = new LauncherMemory(launcher);
    const open = create("button", "preview-text");
    open.addEventListener("click", () => void launcher.toggle());
    open.append(this.#text);
    this.#text.dir = "auto";
    this.#close.part.add("preview-close");
    this.#close.append(svgIcon("M6.5 6.5l11 11m0-11l-11 11"));
    this.#close.addEventListener("click", () => this.#dismiss());
    this.#bubble.part.add("preview");
    this.#bubble.append(open, this.#close);
    this.#status.role = "status";
    this.#status.ariaAtomic = "false";
    const { shadowRoot } = launcher;
    shadowRoot?.adoptedStyleSheets.push(...[surfaceStyles, previewStyles].map(sheetOf));
    shadowRoot?.addEventListener("keydown", (event) => this.#keyDown(event as KeyboardEvent));
    launcher.button.before(this.#status);
    const { defaultServer } = launcher.constructor as unknown as { readonly defaultServer: string };
    const isOwned = defaultServer && launcher.server === defaultServer;
    // Without these attributes this code was loaded with the panel, whose chat asks the server.
    const { preview, shortcut, autoOpen } = launcher;
    if (!isOwned && (preview || shortcut || autoOpen !== null)) void askOwner(launcher);
  }

  /** Opens the chat, or closes it if the focus is inside. The page can handle its keys first. */
  readonly #pressed = (event: KeyboardEvent): void => {
    const launcher = this.#launcher;
    // In many layouts the right Alt key types characters, but reports Ctrl and Alt.
    if (isTaken(event) || event.repeat || event.getModifierState("AltGraph")) return;
    if (!isShortcut(event, launcher.shortcut)) return;
    event.preventDefault();
    if (launcher.opened && document.activeElement === launcher) launcher.close();
    else void launcher.open();
  };

  /** Must be called when a property of the launcher or the page's language has changed. */
  launcherChanged(): void {
    const { autoOpen, box, preview, previewAfter, strings } = this.#launcher;
    this.#listen();
    const names: Readonly<Record<string, string>> = JSON.parse(PARLEY_HIDE_PREVIEW);
    const own = strings?.hidePreview;
    const name = typeof own === "string" ? own : (names[box.lang] ?? "");
    this.#close.title = name;
    this.#close.ariaLabel = name;
    const isSeen = this.#memory.state.preview === "seen";
    if (this.#text.textContent === this.#greeted && withoutMarks(preview) !== this.#greeted) this.hide();
    const after = isSeen ? 0 : Number(timeOf(previewAfter) || DEFAULT_AFTER_MS);
    this.#preview.set(preview.trim() && `${previewAfter} ${preview}`, after, () => this.#greet());
    this.#opening.set(timeOf(autoOpen), Number(autoOpen), () => {
      if (!this.#isWelcome || smallScreen().matches) return;
      // The agent's owner opens the chat once for each visitor, the page once in each session.
      if (this.#launcher.getAttribute("auto-open-once") === this.#launcher.getAttribute("auto-open")) {
        if (this.#memory.hasOpened) return;
        this.#memory.hasOpened = true;
      }
      void this.#launcher.show();
    });
  }

  /** Shows the beginning of an answer that arrived while the panel was closed, and announces it after `news`. */
  showAnswer(answer: string, news: string): void {
    const text = answer.replace(/\s+/g, " ").trim();
    const characters = [...text.slice(0, 3 * EXCERPT)];
    const excerpt = characters.slice(0, EXCERPT).join("");
    // Ends after a whole word, in languages that separate words.
    const shown = characters.length > EXCERPT ? `${excerpt.replace(/\s\S{0,30}$/, "")}…` : excerpt;
    if (this.#isDismissed) this.#say(news);
    else {
      this.#show(shown);
      this.#say(news, shown);
    }
  }

  hide(): void {
    this.#show("");
  }

  /** Cancels everything planned: the launcher has left the page. */
  stop(): void {
    document.removeEventListener("keydown", this.#pressed);
    this.#shortcut = undefined;
    this.#preview.cancel();
    this.#opening.cancel();
  }

  /** Listens for the shortcut that opens the chat. */
  #listen(): void {
    const { button, shortcut } = this.#launcher;
    if (shortcut === this.#shortcut) return;
    this.#shortcut = shortcut;
    const isValid = SHORTCUT.test(shortcut);
    if (shortcut && !isValid)
      console.warn(`<agent-chat-launcher> shortcut must be like Ctrl+Shift+K, not "${shortcut}"`);
    button.ariaKeyShortcuts = isValid ? shownShortcut(shortcut) : null;
    if (isValid) document.addEventListener("keydown", this.#pressed);
    else document.removeEventListener("keydown", this.#pressed);
  }

  /** Whether the user has closed a bubble: then no other one is shown in this session. */
  get #isDismissed(): boolean {
    return this.#memory.state.preview === "dismissed";
  }

  /** Whether the user has neither opened the chat nor closed a bubble yet. */
  get #isWelcome(): boolean {
    return this.#memory.state.open === undefined && !this.#isDismissed;
  }

  #greet(): void {
    if (!this.#isWelcome) return;
    this.#greeted = withoutMarks(this.#launcher.preview);
    this.#show(this.#greeted);
    if (this.#memory.state.preview === "seen") return;
    this.#memory.keep({ preview: "seen" });
    this.#say(this.#greeted);
  }

  #show(text: string): void {
    this.#text.textContent = text;
    if (text) this.#launcher.button.before(this.#bubble);
    else if (this.#bubble.isConnected) this.#bubble.remove();
  }

  /** Only for a moment: otherwise people would find the texts again while browsing the page. */
  #say(...texts: string[]): void {
    const paragraphs = texts.map((text) => {
      const paragraph = create("p");
      paragraph.textContent = text;
      return paragraph;
    });
    this.#status.replaceChildren(...paragraphs);
    clearTimeout(this.#heard);
    this.#heard = setTimeout(() => this.#status.replaceChildren(), HEARD_AFTER_MS);
  }

  #dismiss(): void {
    const hadFocus = this.#bubble.matches(":focus-within");
    this.#memory.keep({ preview: "dismissed" });
    this.hide();
    if (hadFocus) this.#launcher.button.focus({ preventScroll: true });
  }

  #keyDown(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.defaultPrevented || !this.#bubble.isConnected) return;
    this.#dismiss();
    event.preventDefault();
  }
}
